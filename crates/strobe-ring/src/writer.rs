// SPDX-License-Identifier: MIT OR Apache-2.0
//! The producer of the user engine. The kernel engine does the same in C, over the same layout.

use crate::barrier;
use crate::geometry::Geometry;
use crate::header::{Header, StartTimes};
use crate::layout::{MISSED_CAUSES, Missed, ROW_HEADER_WORDS, RingHeader, State};
use crate::memory::{Memory, MemoryMut};
use crate::sync::Ordering;
use std::fmt;
use std::mem::offset_of;

mod new_row;

pub use new_row::NewRow;
use new_row::{ROW, TIME, TRIGGER};

/// Errno of a run whose producer went away without a word.
const EPIPE: i32 = 32;
/// So many rows ahead the place of a row is fetched: far enough that it is there in time, at the rate of a CPU that
/// does nothing else, and near enough that it is not driven out again.
const AHEAD: u64 = 12;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All rows of the limit were made.
    Done,
    /// On request.
    Stopped,
    /// By a failure: its errno, positive or negative.
    Failed(i32),
}

/// The one producer of a ring. Dropped before [`finish`](Writer::finish), it ends the run as failed
/// (EPIPE), so that no reader waits for ever; who is killed cannot do that.
pub struct Writer {
    memory: MemoryMut,
    geometry: Geometry,
    /// Whether rows may be absent.
    absent: bool,
    live: Live,
}

/// The producer's own copy of what it publishes: shared memory is never read back.
struct Live {
    state: State,
    head: u64,
    triggers: u64,
    errors: u64,
    skipped: u64,
    missed: [u64; MISSED_CAUSES],
    resumed: bool,
    wake: u32,
    /// The fault words of the row that is being made.
    faults: Box<[u64]>,
}

impl Writer {
    /// Makes a new ring in this memory; the run is READY.
    pub fn create(memory: MemoryMut, header: &Header) -> Result<Writer, CreateError> {
        let bytes = memory.memory().bytes() as u64;
        let need = header.geometry.bytes();
        if bytes < need {
            return Err(CreateError { bytes, need });
        }
        header.store(memory.memory());
        let live = Live {
            state: State::Ready,
            head: 0,
            triggers: 0,
            errors: 0,
            skipped: 0,
            missed: [0; MISSED_CAUSES],
            resumed: false,
            wake: 0,
            faults: vec![0; header.geometry.shape().fault_words() as usize].into(),
        };
        Ok(Writer {
            memory,
            geometry: header.geometry,
            absent: header.absent,
            live,
        })
    }

    /// The same ring for a reader in this process.
    pub fn for_reader(&self) -> Memory {
        self.memory.for_reader()
    }

    /// Shape of the ring.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the run is.
    pub fn state(&self) -> State {
        self.live.state
    }

    /// Rows made.
    pub fn head(&self) -> u64 {
        self.live.head
    }

    /// Triggers known: also the number of the next one.
    pub fn triggers(&self) -> u64 {
        self.live.triggers
    }

    /// Triggers that were skipped.
    pub fn skipped(&self) -> u64 {
        self.live.skipped
    }

    /// Rows in which something failed.
    pub fn errors(&self) -> u64 {
        self.live.errors
    }

    /// Whether all rows of the limit were made: it is time to [`finish`](Writer::finish) as done.
    pub fn is_full(&self) -> bool {
        self.live.head >= self.geometry.limit()
    }

    /// READY becomes RUNNING.
    pub fn start(&mut self, times: StartTimes) -> Result<(), WrongState> {
        self.must_be(State::Ready)?;
        self.store(offset_of!(RingHeader, start_time), times.time);
        self.store(offset_of!(RingHeader, start_realtime), times.realtime);
        self.store(offset_of!(RingHeader, start_tai), times.tai);
        self.store(offset_of!(RingHeader, first_due), times.first_due);
        self.enter(State::Running);
        Ok(())
    }

    /// RUNNING becomes PAUSED; triggers are not counted until [`resume`](Writer::resume).
    pub fn pause(&mut self) -> Result<(), WrongState> {
        self.must_be(State::Running)?;
        self.enter(State::Paused);
        Ok(())
    }

    /// PAUSED becomes RUNNING; the next row is flagged as resumed.
    pub fn resume(&mut self) -> Result<(), WrongState> {
        self.must_be(State::Paused)?;
        self.live.resumed = true;
        self.enter(State::Running);
        Ok(())
    }

    /// Begins the row of a trigger that came at `time`; it exists when it is committed. A row that is
    /// dropped instead leaves no trace: the trigger is to be counted by [`miss`](Writer::miss) then.
    /// `None` if the run is not running, or full.
    #[inline]
    pub fn begin(&mut self, time: u64) -> Option<NewRow<'_>> {
        if self.live.state != State::Running || self.is_full() {
            return None;
        }
        let words = self.memory.memory().words();
        let start = self.geometry.slot(self.live.head);
        let (row, behind) =
            words[start..start + self.geometry.row_words()].split_at(ROW_HEADER_WORDS);
        let (values, behind) = behind.split_at(self.geometry.channels() as usize);
        let ahead = self.live.head.wrapping_add(AHEAD);
        self.memory
            .memory()
            .will_be_written(self.geometry.slot(ahead));
        barrier::before_row(); // A
        row[ROW].store(self.live.head, Ordering::Relaxed);
        row[TRIGGER].store(self.live.triggers, Ordering::Relaxed);
        row[TIME].store(time, Ordering::Relaxed);
        // Without the question, a row of few channels cost 110 ns more: a masked store of nothing, to where nothing is,
        // is slow on processors with AVX-512.
        if !self.live.faults.is_empty() {
            self.live.faults.fill(0);
        }
        Some(NewRow {
            header: words,
            row,
            values,
            behind,
            filled: 0,
            faults: 0,
            faulty: false,
            outputs: self.geometry.shape().outputs as usize,
            live: &mut self.live,
        })
    }

    /// Makes a whole row; see [`begin`](Writer::begin). Values too few count as failed channels, values
    /// too many are left out. False if the run is not running, or full.
    pub fn push(&mut self, time: u64, flags: u64, values: &[u64]) -> bool {
        let Some(mut row) = self.begin(time) else {
            return false;
        };
        for &value in values {
            row.value(value);
        }
        row.commit(flags);
        true
    }

    /// Counts triggers that should have made a row and did not. Nothing unless the run is running.
    pub fn miss(&mut self, cause: Missed, count: u64) {
        if self.live.state != State::Running {
            return;
        }
        let missed = &mut self.live.missed[cause as usize];
        *missed = missed.saturating_add(count);
        let missed = *missed;
        self.live.triggers = self.live.triggers.saturating_add(count);
        self.store(offset_of!(RingHeader, missed) + 8 * cause as usize, missed);
        self.store(offset_of!(RingHeader, triggers), self.live.triggers);
    }

    /// Counts triggers that were left out on purpose. Nothing unless the run is running. The rows must have a word
    /// for it ([`RowShape::skipped`](crate::RowShape::skipped)).
    pub fn skip(&mut self, count: u64) {
        debug_assert!(self.geometry.shape().skipped, "rows without that word");
        if self.live.state != State::Running {
            return;
        }
        self.live.skipped = self.live.skipped.saturating_add(count);
        self.live.triggers = self.live.triggers.saturating_add(count);
        self.store(offset_of!(RingHeader, skipped), self.live.skipped);
        self.store(offset_of!(RingHeader, triggers), self.live.triggers);
    }

    /// Goes on `count` rows further, without making them: to readers they are lost. Each takes a trigger, as rows do.
    /// Nothing unless the run is running.
    ///
    /// Their places keep what they have: older rows, or none, and so no row of their number. The rows before them go out of
    /// the window of the ring as if these had been made: who wants readers to follow goes on in steps that are short beside
    /// the ring.
    ///
    /// # Panics
    /// If the header does not say that rows may be absent ([`Header::absent`]): readers would take older rows for them.
    pub fn absent(&mut self, count: u64) {
        assert!(self.absent, "a ring whose rows are all there");
        let count = count.min(self.geometry.limit().saturating_sub(self.live.head));
        if self.live.state != State::Running || count == 0 {
            return;
        }
        // The next place may have the number of its row already: it was begun and given up; or it is row 0, which memory
        // looks like that nobody has written.
        barrier::before_row(); // A
        let next = self.geometry.slot(self.live.head) + ROW;
        self.memory.memory().words()[next].store(u64::MAX, Ordering::Relaxed);
        self.live.head += count;
        self.live.triggers = self.live.triggers.saturating_add(count);
        self.store(offset_of!(RingHeader, triggers), self.live.triggers);
        let head = self.memory.memory().word(offset_of!(RingHeader, head));
        barrier::publish(head, self.live.head); // B
    }

    /// In so many of the rows that are absent something failed. Nothing unless the run is running.
    pub fn absent_errors(&mut self, count: u64) {
        if self.live.state != State::Running {
            return;
        }
        self.live.errors = self.live.errors.saturating_add(count);
        self.store(offset_of!(RingHeader, errors), self.live.errors);
    }

    /// Ends the run; nothing if it has ended already.
    pub fn finish(&mut self, end: End, end_time: u64) {
        if self.live.state.is_final() {
            return;
        }
        let (state, error) = match end {
            End::Done => (State::Done, 0),
            End::Stopped => (State::Stopped, 0),
            End::Failed(errno) => (State::Failed, errno.saturating_abs().saturating_neg()),
        };
        let memory = self.memory.memory();
        memory
            .half(offset_of!(RingHeader, error))
            .store(error as u32, Ordering::Relaxed);
        self.store(offset_of!(RingHeader, end_time), end_time);
        self.enter(state);
    }

    /// Changes the wake word after all that was published so far. FUTEX_WAKE is the caller's, on
    /// [`wake_address`](Writer::wake_address).
    pub fn change_wake(&mut self) {
        self.live.wake = self.live.wake.wrapping_add(1);
        barrier::change_wake(self.memory.memory(), self.live.wake); // H
    }

    /// Address of the wake word.
    #[cfg(not(loom))]
    pub fn wake_address(&self) -> *const u32 {
        self.memory
            .memory()
            .half_address(offset_of!(RingHeader, wake))
    }

    fn must_be(&self, state: State) -> Result<(), WrongState> {
        if self.live.state == state {
            Ok(())
        } else {
            Err(WrongState {
                state: self.live.state,
                needed: state,
            })
        }
    }

    fn enter(&mut self, state: State) {
        self.live.state = state;
        barrier::enter(self.memory.memory(), state); // G
    }

    fn store(&self, offset: usize, value: u64) {
        self.memory
            .memory()
            .word(offset)
            .store(value, Ordering::Relaxed);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish(End::Failed(EPIPE), 0);
        self.change_wake();
    }
}

/// The memory is too small for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateError {
    /// Bytes there are.
    pub bytes: u64,
    /// Bytes of the ring.
    pub need: u64,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes of memory for a ring of {}: give it as many",
            self.bytes, self.need
        )
    }
}

impl std::error::Error for CreateError {}

/// The run is not in the state that this needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongState {
    /// Where it is.
    pub state: State,
    /// Where it would have to be.
    pub needed: State,
}

impl fmt::Display for WrongState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the run is {}, and must be {} for that",
            self.state, self.needed
        )
    }
}

impl std::error::Error for WrongState {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{CLOCK_MONOTONIC, Engine, NO_LIMIT};
    use crate::reader::{Begin, Reader};
    use crate::shape::RowShape;

    #[test]
    fn the_numbers_end_at_the_limit_and_do_not_wrap() {
        let geometry = Geometry::new(RowShape::of_channels(0), 2, NO_LIMIT).unwrap();
        let header = Header {
            geometry,
            clock: CLOCK_MONOTONIC,
            period_ns: 0,
            run: 1,
            engine: Engine::User,
            absent: false,
        };
        let memory = MemoryMut::zeroed(geometry.bytes() as usize);
        let mut writer = Writer::create(memory, &header).unwrap();
        writer.start(StartTimes::default()).unwrap();
        // As if so many rows had been made.
        writer.live.head = NO_LIMIT - 3;
        writer.live.triggers = NO_LIMIT - 3;
        writer.push(0, 0, &[]);
        let mut reader = Reader::attach(writer.for_reader(), Begin::Now).unwrap();
        writer.miss(Missed::Busy, NO_LIMIT);
        assert_eq!(writer.triggers(), u64::MAX);
        assert!(writer.push(1, 0, &[]));
        assert!(writer.push(2, 0, &[]));
        assert!(writer.is_full());
        assert!(!writer.push(3, 0, &[]));
        writer.finish(End::Done, 4);
        let mut buffer = [0; 16];
        let times: Vec<_> = reader
            .read(&mut buffer)
            .rows()
            .map(|row| (row.row, row.time))
            .collect();
        assert_eq!(times, [(NO_LIMIT - 2, 1), (NO_LIMIT - 1, 2)]);
        assert!(reader.ended());
    }
}
