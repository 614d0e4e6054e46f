// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it costs to write a row into a file of each format; and to write its bytes as they are.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

use serde::Serialize;
use strobe::engine::user::User;
use strobe::event::EventSpec;
use strobe::info::RunInfo;
use strobe::plan::{Plan, Step};
use strobe::ring::{RowShape, Rows};
use strobe::run::Run;
use strobe_files::sink::{self, Existing};

use crate::words::{CHANNELS, ROW_WORDS, value};

/// A format, and what a row took.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The extension of its files, or [`BARE`].
    pub output: &'static str,
    /// Nanoseconds a row, of each round: from the file's creation to its end, which may still be in memory.
    pub ns: Vec<f64>,
    /// Of the whole file.
    pub bytes_a_row: f64,
}

/// No format: the words of the rows.
pub const BARE: &str = "write";
/// All formats of a release.
const FORMATS: [&str; 4] = ["arrows", "h5", "parquet", "csv"];
/// Rows given to an output at once, as a recording does it at some 10 kHz.
const BATCH: usize = 1024;

/// All rounds so far.
#[derive(Default)]
pub struct Measurement(Vec<Figure>);

impl Measurement {
    /// Writes this many rows in each format, in files that are deleted again.
    pub fn round(&mut self, rows: u64) -> Result<(), Box<dyn Error>> {
        let dir = std::env::temp_dir().join(format!("strobe-bench.{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let round = self.files(rows, &dir);
        std::fs::remove_dir_all(&dir)?;
        round
    }

    fn files(&mut self, rows: u64, dir: &std::path::Path) -> Result<(), Box<dyn Error>> {
        let info = info()?;
        let batches: Vec<Vec<u64>> = (0..rows)
            .step_by(BATCH)
            .map(|first| {
                (first..rows.min(first + BATCH as u64))
                    .flat_map(words)
                    .collect()
            })
            .collect();
        let mut add = |output, began: Instant, bytes: u64| {
            let ns = began.elapsed().as_nanos() as f64 / rows as f64;
            match self.0.iter_mut().find(|figure| figure.output == output) {
                Some(figure) => figure.ns.push(ns),
                None => self.0.push(Figure {
                    output,
                    ns: vec![ns],
                    bytes_a_row: bytes as f64 / rows as f64,
                }),
            }
        };
        let began = Instant::now();
        let mut file = File::create(dir.join(BARE))?;
        for batch in &batches {
            let bytes: Vec<u8> = batch.iter().flat_map(|word| word.to_ne_bytes()).collect();
            file.write_all(&bytes)?;
        }
        add(BARE, began, rows * 8 * ROW_WORDS as u64);
        for format in FORMATS {
            let name = format!("{}/rows.{format}", dir.display());
            // A format that this program was built without.
            let Ok(()) = sink::check(&name) else {
                continue;
            };
            let began = Instant::now();
            let (_, mut sink) = sink::create(&name, &info.event, Existing::Refuse)?;
            sink.begin(&info)?;
            for batch in &batches {
                sink.write(Rows::new(batch, RowShape::of_channels(CHANNELS as u32)))?;
            }
            sink.flush()?;
            sink.finish(None)?;
            add(format, began, sink.written().bytes);
        }
        Ok(())
    }

    pub fn figures(self) -> Vec<Figure> {
        self.0
    }
}

/// Of a run with as many channels.
fn info() -> Result<RunInfo, Box<dyn Error>> {
    let plan = Plan {
        steps: vec![Step::Read("sim.counter".to_owned()); CHANNELS],
        ..Plan::new(EventSpec::soft())
    };
    Ok(User::default().create(&plan)?.info().clone())
}

/// A row: its number, its trigger, its time at 10 kHz, no status, and values as those of an ADC of 16 bits that sees noise:
/// such as cannot be compressed.
fn words(row: u64) -> [u64; ROW_WORDS] {
    std::array::from_fn(|word| match word {
        0 | 1 => row,
        2 => 100_000 * row,
        3 => 0,
        word => noise(value(row, word)) >> 48,
    })
}

/// A number that has nothing to do with the next one: multiplied and folded twice.
fn noise(number: u64) -> u64 {
    let once = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let twice = (once ^ (once >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    twice ^ (twice >> 32)
}
