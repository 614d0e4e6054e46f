// SPDX-License-Identifier: MIT OR Apache-2.0
//! How soon a reader sees a row: one that looks, as readers of the user engine do, and one that has asked to be woken at
//! each row, which costs the thread that makes the rows a system call a row.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use strobe::clock::monotonic;
use strobe::engine::user::{Settings, User};
use strobe::event::EventSpec;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::rt;
use strobe::run::{OwnedRun, Run};

use crate::period::{TURNS, at, percentiles};

/// Rates that are measured, in Hz.
const RATES: [u64; 2] = [100, 1_000];
/// Longer than a row takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a reader learns of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Looks,
    Woken,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Looks => "a reader that looks",
            Way::Woken => "a reader that is woken at each row",
        })
    }
}

/// What was measured of one way at one rate.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub rate: u64,
    pub way: Way,
    /// From a row's stamp until its reader has it, ns, sorted, over all turns. Of several rows that it has got at once, each
    /// counts.
    #[serde(serialize_with = "percentiles")]
    pub after: Vec<u64>,
    /// Calls that the thread made to wake readers, at the end too.
    pub wakes: u64,
}

/// How many turns there will be.
pub fn turns(seconds: u32) -> u64 {
    match seconds {
        0 => 0,
        _ => RATES.len() as u64 * 2 * u64::from(TURNS),
    }
}

/// Both ways at all rates, in turn, each as long as that in all. The reader has a CPU of its own.
pub fn measure(
    seconds: u32,
    producer: usize,
    consumer: usize,
    mut tick: impl FnMut(),
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = Vec::new();
    if seconds == 0 {
        return Ok(figures);
    }
    for rate in RATES {
        let mut of_rate = [Way::Looks, Way::Woken].map(|way| Figure {
            rate,
            way,
            after: Vec::new(),
            wakes: 0,
        });
        for _ in 0..TURNS {
            for figure in &mut of_rate {
                let rows = u64::from(seconds) * rate / u64::from(TURNS);
                figure.turn(rows, producer, consumer)?;
                tick();
            }
        }
        for figure in &mut of_rate {
            figure.after.sort_unstable();
        }
        figures.extend(of_rate);
    }
    Ok(figures)
}

impl Figure {
    fn turn(&mut self, rows: u64, producer: usize, consumer: usize) -> Result<(), Box<dyn Error>> {
        let settings = Settings {
            cpu: Some(producer),
            ..Settings::default()
        };
        let event: EventSpec = format!("timer:{}Hz", self.rate).parse()?;
        let mut plan = Plan::new(event);
        (plan.ring, plan.limit) = (Some(rows), Some(rows));
        let run = User::new(settings).create(&plan)?;
        let reader = run.reader()?;
        if self.way == Way::Woken {
            reader.wake_at_each_row()?;
        }
        let reading = std::thread::spawn(move || {
            rt::set_up_thread(Some(consumer), rt::Policy::Other);
            read(reader)
        });
        run.start()?;
        let after = reading.join().map_err(|_| "the reader has panicked")??;
        if after.len() as u64 + run.snapshot()?.missed() != rows {
            return Err(format!("{} of {rows} rows were seen", after.len()).into());
        }
        self.after.extend(after);
        self.wakes += run.usage().unwrap_or_default().wakes;
        Ok(())
    }

    /// The time that this share of the rows, in 1/10000, does not exceed.
    pub fn after_at(&self, share: usize) -> u64 {
        at(&self.after, share).unwrap_or(0)
    }
}

/// Until the run has ended: how old each row was when it came.
fn read(mut reader: RunReader) -> Result<Vec<u64>, strobe::error::Error> {
    let mut after = Vec::new();
    while let Some(block) = reader.next(PATIENCE)? {
        let now = monotonic();
        after.extend(block.rows().map(|row| now.saturating_sub(row.time)));
    }
    Ok(after)
}
