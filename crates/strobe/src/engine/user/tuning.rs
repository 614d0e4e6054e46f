// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of tunables, on their way from those who set them to the thread that makes the rows. That thread never waits:
//! if it comes while a value is being left, it takes it with the next row. The kernel engine does the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use strobe_expr::{Program, Word};

/// The tunables of a run.
pub struct Tuning {
    /// Bit n is set if value n waits. Set by those who tune and cleared by the thread of the run, under `values`; the
    /// thread looks at it before without that.
    waiting: AtomicU64,
    /// By place.
    values: Mutex<Box<[u64]>>,
    /// How the word of each is to be understood, and its bits.
    kinds: Box<[(Word, u32)]>,
    /// The run has ended. Set by its thread.
    over: AtomicBool,
}

impl Tuning {
    /// Those of a program; nothing waits.
    pub fn of(program: &Program) -> Tuning {
        let count = program.tunables().len();
        let shown = program.derived().iter().take(count);
        Tuning {
            waiting: AtomicU64::new(0),
            values: Mutex::new(vec![0; count].into()),
            kinds: shown.map(|column| (column.word, column.bits)).collect(),
            over: AtomicBool::new(false),
        }
    }

    /// Leaves a value for the next row.
    ///
    /// # Errors
    /// As those of `STROBE_TUNE`.
    pub fn leave(&self, tunable: usize, word: u64) -> Result<(), Errno> {
        let (kind, bits) = self.kinds.get(tunable).ok_or(Errno::INVAL)?;
        if !fits(*kind, *bits, word) {
            return Err(Errno::RANGE);
        }
        if self.over.load(Ordering::Relaxed) {
            return Err(Errno::SHUTDOWN);
        }
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get_mut(tunable) {
            *value = word;
        }
        self.waiting.fetch_or(1 << tunable, Ordering::Relaxed);
        Ok(())
    }

    /// Takes what waits.
    #[inline]
    pub fn take(&self, taken: impl FnMut((usize, u64))) {
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.take_waiting(taken);
        }
    }

    #[cold]
    fn take_waiting(&self, taken: impl FnMut((usize, u64))) {
        let Ok(values) = self.values.try_lock() else {
            return;
        };
        let waiting = self.waiting.swap(0, Ordering::Relaxed);
        let values = values.iter().copied().enumerate();
        values
            .filter(|(tunable, _)| waiting >> tunable & 1 != 0)
            .for_each(taken);
    }

    /// The run has ended.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Whether this is a word of so many bits.
fn fits(kind: Word, bits: u32, word: u64) -> bool {
    let unused = 64_u32.saturating_sub(bits).min(63);
    match kind {
        Word::Signed => ((word << unused) as i64 >> unused) as u64 == word,
        _ => word << unused >> unused == word,
    }
}

#[cfg(test)]
mod tests {
    use strobe_expr::{Column, ProgramText, compile};

    use super::*;

    fn tuning() -> Tuning {
        let text = ProgramText {
            tunables: vec!["a = 5 like c".into(), "b = -1".into()],
            ..ProgramText::default()
        };
        let c = Column {
            bits: 8,
            ..Column::unsigned("c")
        };
        Tuning::of(&compile(&text, &[c]).expect("a program"))
    }

    fn taken(tuning: &Tuning) -> Vec<(usize, u64)> {
        let mut taken = Vec::new();
        tuning.take(|value| taken.push(value));
        taken
    }

    #[test]
    fn what_is_left_is_taken_once_and_the_last_value_counts() {
        let tuning = tuning();
        assert_eq!(taken(&tuning), []);
        tuning.leave(1, 8).expect("a value");
        tuning.leave(0, 7).expect("a value");
        tuning.leave(1, 9).expect("a value");
        assert_eq!(taken(&tuning), [(0, 7), (1, 9)]);
        assert_eq!(taken(&tuning), []);
    }

    #[test]
    fn what_is_being_left_is_taken_with_the_next_row() {
        let tuning = tuning();
        tuning.leave(0, 7).expect("a value");
        let held = tuning.values.lock().expect("a lock");
        assert_eq!(taken(&tuning), []);
        drop(held);
        assert_eq!(taken(&tuning), [(0, 7)]);
    }

    #[test]
    fn what_does_not_fit_and_what_comes_after_the_end_is_refused() {
        let tuning = tuning();
        assert_eq!(tuning.leave(2, 0), Err(Errno::INVAL));
        assert_eq!(tuning.leave(0, 255), Ok(()));
        assert_eq!(tuning.leave(0, 256), Err(Errno::RANGE));
        assert_eq!(tuning.leave(1, (-1_i64 << 62) as u64), Ok(()));
        assert_eq!(tuning.leave(1, 1 << 62), Err(Errno::RANGE));
        tuning.end();
        assert_eq!(tuning.leave(0, 1), Err(Errno::SHUTDOWN));
    }
}
