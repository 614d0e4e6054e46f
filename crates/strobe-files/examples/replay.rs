// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as a run of this machine, for every program that reads runs.
use std::{error::Error, time::Duration};

use strobe::engine::user::{ReplayOptions, Speed, User};
use strobe::run::{OwnedRun, Run};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let file = file.unwrap_or("scan-00001.arrows".into());
    let options = ReplayOptions {
        speed: Speed::Max,
        ..ReplayOptions::default()
    };
    let recording = strobe_files::open(file.as_ref())?;
    let run = User::default().replay(recording, &options)?;
    // From here on it is a run like any other: `strobe watch` sees it, too.
    let mut rows = run.reader()?;
    run.start()?;
    while let Some(block) = rows.next(Duration::from_secs(1))? {
        println!("{} rows from {}", block.len(), block.first());
    }
    let account = rows.snapshot();
    println!("{} rows, {} missed", account.head, account.missed());
    Ok(())
}
