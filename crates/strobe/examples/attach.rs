// SPDX-License-Identifier: MIT OR Apache-2.0
//! The next rows of a run that another program has made, such as `strobe record`.
use std::{error::Error, time::Duration};
use strobe::reader::{Begin, ReaderOptions};
use strobe::runs::Runs;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or("user:1".into());
    let run = Runs::now().find(&name.parse()?)?.attach()?;
    let begin = Begin::Now;
    let mut rows = run.reader_with(ReaderOptions {
        begin,
        ..Default::default()
    })?;
    for _ in 0..10 {
        if let Some(block) = rows.next(Duration::from_secs(1))? {
            println!("{}: {block:?}", run.info().event);
        }
    }
    Ok(())
}
