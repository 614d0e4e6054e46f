// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest answer to a question that an instrument is asked by itself.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use crate::fault::Fault;

/// The latest answer, for any number of readers. The instrument's thread alone writes it. Readers take no lock, and do
/// not wait for a writer that was interrupted: it writes the copy that they do not read.
#[derive(Debug)]
pub struct Latest {
    /// What times count from.
    epoch: Instant,
    /// How often it was written. The copy of its parity is whole.
    written: AtomicU64,
    copies: [Copy; 2],
}

#[derive(Debug)]
struct Copy(Vec<Value>);

/// What is known of one channel.
#[derive(Debug, Default)]
struct Value {
    word: AtomicU64,
    /// Why there is no word: 0 if there is one.
    fault: AtomicU64,
    /// When the last answer with a word was asked for, in ns from the epoch and one more; 0: never.
    asked: AtomicU64,
}

const FAULTS: [Fault; 7] = [
    Fault::Late,
    Fault::Wrong,
    Fault::Cut,
    Fault::Long,
    Fault::Extra,
    Fault::Refused,
    Fault::Absent,
];

fn code(fault: Fault) -> u64 {
    let place = FAULTS.iter().position(|known| *known == fault);
    place.map_or(0, |place| place as u64 + 1)
}

impl Latest {
    /// Of so many channels; nothing has been asked yet.
    pub(crate) fn new(epoch: Instant, channels: usize) -> Latest {
        let values = || Copy((0..channels).map(|_| Value::default()).collect());
        Latest {
            epoch,
            written: AtomicU64::new(0),
            copies: [values(), values()],
        }
    }

    fn copy(&self, written: u64) -> &[Value] {
        let [even, odd] = &self.copies;
        &if written % 2 == 0 { even } else { odd }.0
    }

    /// Whether anything was asked.
    pub fn is_there(&self) -> bool {
        self.written.load(Ordering::Acquire) > 0
    }

    /// The word of a channel, as the last question found it.
    ///
    /// # Errors
    /// There was no such word in the last answer, or no answer.
    pub fn word(&self, channel: usize) -> Result<u64, Fault> {
        let (word, fault, _) = self.read(channel).ok_or(Fault::Absent)?;
        match fault.checked_sub(1) {
            None => Ok(word),
            Some(place) => Err(FAULTS.get(place as usize).copied().unwrap_or(Fault::Absent)),
        }
    }

    /// How long ago the last answer with a word was asked for, ns: the word is of that time or after it.
    ///
    /// # Errors
    /// There was none yet.
    pub fn age(&self, channel: usize) -> Result<u64, Fault> {
        let (_, _, asked) = self.read(channel).ok_or(Fault::Absent)?;
        let asked = asked.checked_sub(1).ok_or(Fault::Absent)?;
        Ok(self.now().saturating_sub(asked))
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Word, fault and time of a channel, of one writing; `None` if nothing was written yet.
    fn read(&self, channel: usize) -> Option<(u64, u64, u64)> {
        loop {
            // Pairs with the release in `write`: what was written before is seen.
            let written = self.written.load(Ordering::Acquire);
            if written == 0 {
                return None;
            }
            let value = self.copy(written).get(channel)?;
            let seen = (
                value.word.load(Ordering::Relaxed),
                value.fault.load(Ordering::Relaxed),
                value.asked.load(Ordering::Relaxed),
            );
            // The loads above stay before the one below. If nothing was published meanwhile, the writer is at most at
            // the other copy.
            fence(Ordering::Acquire);
            if self.written.load(Ordering::Relaxed) == written {
                return Some(seen);
            }
        }
    }

    /// Writes what a question brought that was asked at this time: words, or why there are none.
    pub(crate) fn write(&self, asked: Instant, answer: Result<&[Option<u64>], Fault>) {
        let written = self.written.load(Ordering::Relaxed);
        let asked = asked.saturating_duration_since(self.epoch).as_nanos() as u64 + 1;
        // The stores below stay after the publication of the copy that readers have now.
        fence(Ordering::Release);
        let before = self.copy(written);
        for (channel, value) in self.copy(written + 1).iter().enumerate() {
            let found = match answer {
                Ok(words) => words.get(channel).copied().flatten().ok_or(Fault::Wrong),
                Err(fault) => Err(fault),
            };
            let old = before.get(channel).filter(|_| written > 0);
            let old = old.map_or(0, |old| old.asked.load(Ordering::Relaxed));
            let (word, fault, asked) = match found {
                Ok(word) => (word, 0, asked),
                Err(fault) => (0, code(fault), old),
            };
            value.word.store(word, Ordering::Relaxed);
            value.fault.store(fault, Ordering::Relaxed);
            value.asked.store(asked, Ordering::Relaxed);
        }
        // Pairs with the acquire in `read`: without it, a reader could take a copy that is not whole.
        self.written.store(written + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hides_the_word_of_before_and_leaves_its_age() {
        let latest = Latest::new(Instant::now(), 2);
        assert_eq!(latest.word(0), Err(Fault::Absent));
        assert_eq!(latest.age(0), Err(Fault::Absent));
        assert!(!latest.is_there());
        latest.write(Instant::now(), Ok(&[Some(7), None]));
        assert_eq!(latest.word(0), Ok(7));
        assert_eq!(latest.word(1), Err(Fault::Wrong));
        assert_eq!(latest.age(1), Err(Fault::Absent));
        let age = latest.age(0).expect("an age");
        latest.write(Instant::now(), Err(Fault::Late));
        assert_eq!(latest.word(0), Err(Fault::Late));
        assert!(latest.age(0).expect("an age") >= age);
    }

    #[test]
    fn a_reader_never_sees_two_writings_at_once() {
        let latest = Latest::new(Instant::now(), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for word in 1..200_000 {
                    let asked = latest.epoch + std::time::Duration::from_nanos(word - 1);
                    latest.write(asked, Ok(&[Some(word)]));
                }
            });
            loop {
                match latest.read(0) {
                    Some((199_999, ..)) => break,
                    Some((word, fault, asked)) => assert_eq!((fault, asked), (0, word)),
                    None => {}
                }
            }
        });
    }
}
