// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of another program, read by the library from its first row on, once for each line of the standard input: what
//! bench/python compares Python with.

use std::error::Error;
use std::io::stdin;
use std::time::{Duration, Instant};

use serde_json::json;
use strobe::reader::{Begin, ReaderOptions};
use strobe::runs::Runs;

/// Says of each time how long it took, and what was read, as JSON.
pub fn passes(name: &str) -> Result<(), Box<dyn Error>> {
    let run = Runs::now().find(&name.parse()?)?.attach()?;
    for line in stdin().lines() {
        line?;
        // From the making of the reader to its end, as Python's clock: to unmap a ring takes a fifth of reading it.
        let begin = Instant::now();
        let mut reader = run.reader_with(ReaderOptions {
            begin: Begin::Row(0),
            ..ReaderOptions::default()
        })?;
        let (mut rows, mut blocks, mut lost, mut ends) = (0, 0, 0, 0);
        while let Some(block) = reader.next(Duration::ZERO)? {
            if block.is_empty() {
                break;
            }
            let words = block.words();
            rows += block.len();
            blocks += 1;
            lost += block.lost();
            // The first and the last row are looked at.
            ends += words[0] + words[words.len() - block.width()];
        }
        drop(reader);
        let seconds = begin.elapsed().as_secs_f64();
        let said =
            json!({"seconds": seconds, "rows": rows, "blocks": blocks, "lost": lost, "ends": ends});
        println!("{said}");
    }
    Ok(())
}
