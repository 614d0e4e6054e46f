// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a recording as columns.
use std::{error::Error, time::Duration};

use strobe::source::RowSource;

/// The rows may be those of a run as well.
fn show(rows: &mut dyn RowSource) -> Result<(), Box<dyn Error>> {
    while let Some(block) = rows.next(Duration::from_secs(1))? {
        if block.lost() + block.missed() > 0 {
            eprintln!("{} lost, {} missed", block.lost(), block.missed());
        }
        let sine: Vec<f64> = block.column("sim.sine")?.to_vec();
        println!("{} rows from {}: {sine:?}", block.len(), block.first());
    }
    match rows.totals() {
        Some(totals) => println!("{} rows, {} lost", totals.rows, totals.lost),
        None => println!("it was cut off: nobody knows what is missing at its end"),
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let file = file.unwrap_or("scan-00001.arrows".into());
    show(strobe_files::open(file.as_ref())?.as_mut())
}
