// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row, now: channels are read, or outputs written, once.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use strobe_ring::State;

use crate::channel::Channel;
use crate::engine;
use crate::error::Words;
use crate::event::EventSpec;
use crate::info::failure;
use crate::plan::{Plan, Step};
use crate::run::OwnedRun;

/// A value that has not arrived by then does not.
const AT_MOST: Duration = Duration::from_secs(5);
/// What errors are about.
const OBJECT: &str = "the row";
/// Between two attempts to trigger a run that has not begun yet.
const PAUSE: Duration = Duration::from_millis(1);

/// The row, and what it consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// When it was triggered, ns on the clock of the plan.
    pub time_ns: u64,
    /// Each channel, and the word that was read; `None`: reading it has failed.
    pub values: Vec<(Channel, Option<u64>)>,
    /// Each output, and whether it was written.
    pub outputs: Vec<(String, bool)>,
}

/// Why there is no row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's reason.
    Engine(#[from] engine::Error),
    /// The reader's reason.
    Wait(io::Error),
    /// The run has ended, or its trigger was missed.
    NoRow(Words),
}

impl From<&Error> for Words {
    fn from(error: &Error) -> Words {
        match error {
            Error::Engine(error) => error.words(),
            Error::Wait(error) => Words::new(OBJECT, format!("waiting for it failed: {error}")),
            Error::NoRow(words) => words.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Words::from(self).fmt(f)
    }
}

/// A plan for [`once`].
pub fn plan(steps: Vec<Step>) -> Plan {
    Plan {
        steps,
        limit: Some(1),
        ..Plan::new(EventSpec::soft())
    }
}

/// Starts and triggers a run of such a plan, and answers its row.
///
/// # Errors
/// There is none; the reason.
pub fn once(run: &dyn OwnedRun) -> Result<Once, Error> {
    let mut reader = run.reader()?;
    let mut buffer = vec![0; reader.ring().row_words()];
    let begun = Instant::now();
    run.start()?;
    while let Err(error) = run.trigger(1) {
        if begun.elapsed() > AT_MOST {
            return Err(error.into());
        }
        std::thread::sleep(PAUSE);
    }
    loop {
        let left = AT_MOST.saturating_sub(begun.elapsed());
        reader.wait(1, left).map_err(Error::Wait)?;
        if let Some(row) = reader.read(&mut buffer).rows().next() {
            let info = run.info();
            let failed: Vec<usize> = row.faults.iter().collect();
            let is_there = |index: usize| !failed.contains(&index);
            let words = info.channels.iter().zip(row.values).enumerate();
            let outputs = info.outputs.iter().enumerate();
            return Ok(Once {
                time_ns: row.time,
                values: words
                    .map(|(n, (channel, word))| (channel.clone(), is_there(n).then_some(*word)))
                    .collect(),
                outputs: outputs
                    .map(|(n, name)| (name.clone(), is_there(info.channels.len() + n)))
                    .collect(),
            });
        }
        let now = reader.snapshot();
        if now.state == State::Failed {
            return Err(no_row(failure(&now)));
        }
        if now.missed() > 0 {
            return Err(Error::NoRow(
                Words::new(OBJECT, "it was not made: the machine was too busy")
                    .mend("try it again"),
            ));
        }
        if left.is_zero() {
            return Err(no_row(format!(
                "a value did not arrive within {} s",
                AT_MOST.as_secs()
            )));
        }
    }
}

fn no_row(why: String) -> Error {
    Error::NoRow(Words::new(OBJECT, format!("it was not made: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::user::User;

    #[test]
    fn what_was_read_and_what_was_written_is_said_by_name() {
        let write = Step::Write {
            output: "sim.latch".into(),
            value: 1,
        };
        let steps = vec![write, Step::Read("sim.counter".into())];
        let run = User::default().create(&plan(steps)).expect("a run");
        let row = once(&run).expect("a row");
        let values: Vec<_> = row
            .values
            .iter()
            .map(|(c, word)| (c.name.as_str(), *word))
            .collect();
        assert_eq!(values, [("sim.counter", Some(0))]);
        assert_eq!(row.outputs, [("sim.latch".to_owned(), true)]);
    }

    #[test]
    fn a_channel_that_fails_has_no_value() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "7\n").expect("text");
        let name = format!("file:{}", file.path().display());
        let run = User::default()
            .create(&plan(vec![Step::Read(name)]))
            .expect("a run");
        std::fs::write(file.path(), "no number\n").expect("text");
        let row = once(&run).expect("a row");
        assert_eq!(row.values.first().map(|(_, word)| *word), Some(None));
    }
}
