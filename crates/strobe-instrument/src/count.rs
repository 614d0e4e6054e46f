// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted of a conversation.

use std::sync::atomic::{AtomicU64, Ordering};

use strobe_board::instrument::COUNTERS;

use crate::fault::Fault;

/// The counts of an instrument, in the order of [`COUNTERS`]. Its thread and those of runs add to them; anybody reads.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; COUNTERS.len()]);

const QUESTIONS: usize = 0;
const ANSWERS: usize = 1;
const RECONNECTS: usize = 9;

impl Counts {
    /// One of them, by its place.
    pub fn get(&self, counter: usize) -> u64 {
        let count = self.0.get(counter);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// One of them, by its name.
    pub fn named(&self, name: &str) -> Option<u64> {
        let place = COUNTERS.iter().position(|(known, _)| *known == name)?;
        Some(self.get(place))
    }

    /// One more question, and how it ended.
    pub(crate) fn add(&self, ended: Result<(), Fault>) {
        let end = match ended {
            Ok(()) => ANSWERS,
            Err(Fault::Late) => 2,
            Err(Fault::Wrong) => 3,
            Err(Fault::Cut) => 4,
            Err(Fault::Long) => 5,
            Err(Fault::Extra) => 6,
            Err(Fault::Refused) => 7,
            Err(Fault::Absent) => 8,
        };
        self.one(QUESTIONS);
        self.one(end);
    }

    /// It was reached again.
    pub(crate) fn reconnected(&self) {
        self.one(RECONNECTS);
    }

    fn one(&self, counter: usize) {
        if let Some(count) = self.0.get(counter) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_a_question_has_the_counter_of_its_name() {
        use Fault::{Absent, Cut, Extra, Late, Long, Refused, Wrong};
        let counts = Counts::default();
        let faults = [Late, Wrong, Cut, Long, Extra, Refused, Absent];
        counts.add(Ok(()));
        faults.iter().for_each(|fault| counts.add(Err(*fault)));
        for fault in faults {
            let name = format!("{fault:?}").to_lowercase();
            assert_eq!(counts.named(&name), Some(1), "{name}");
        }
        assert_eq!(counts.named("answers"), Some(1));
        assert_eq!(counts.named("questions"), Some(8));
        counts.reconnected();
        assert_eq!(counts.named("reconnects"), Some(1));
    }
}
