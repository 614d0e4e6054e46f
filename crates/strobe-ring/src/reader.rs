// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader: copies rows out of a ring while a producer goes on filling it, and knows which it lost.

use crate::barrier;
use crate::batch::{Batch, Rows};
use crate::geometry::Geometry;
use crate::header::{AttachError, Header, Snapshot};
use crate::memory::Memory;
use crate::sync::Ordering;

/// The row a reader begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// The oldest one that can still be read. What was overwritten before is not this reader's loss.
    #[default]
    Oldest,
    /// This row, made or not yet. If it was overwritten already, it and those after it count as lost.
    Row(u64),
    /// The next one to be made.
    Now,
}

/// Where a reader goes on that was too slow. All rows that it passes over are counted as lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLoss {
    /// At the oldest row there is. Was even that overwritten while it was copied, half a ring behind the producer: so
    /// the reader is not overtaken again at once.
    #[default]
    Half,
    /// At the oldest row there is, always: as little as can be is lost, but a reader that is too slow for good is
    /// overtaken again and again.
    Oldest,
    /// At the newest row: for who acts on what is, not on what was.
    Newest,
}

/// One reader of a ring, with a cursor of its own. It writes nothing, and the producer never waits for it.
///
/// The account is exact: once the run has ended and [`ended`](Reader::ended) says so,
/// `delivered() + lost()` is the number of rows made since [`begun_at`](Reader::begun_at).
pub struct Reader {
    memory: Memory,
    header: Header,
    begun_at: u64,
    next: u64,
    lost: u64,
    ended: bool,
    after_loss: AfterLoss,
}

impl Reader {
    /// A reader of the ring in this memory.
    pub fn attach(memory: Memory, begin: Begin) -> Result<Reader, AttachError> {
        let header = Header::load(&memory)?;
        let (_, head) = barrier::state_then_head(&memory);
        let next = match begin {
            Begin::Oldest => header.geometry.oldest(head),
            Begin::Row(row) => row,
            Begin::Now => head,
        };
        Ok(Reader {
            memory,
            header,
            begun_at: next,
            next,
            lost: 0,
            ended: false,
            after_loss: AfterLoss::default(),
        })
    }

    /// The same reader, which goes on there after a loss.
    #[must_use]
    pub fn after_loss(self, after_loss: AfterLoss) -> Reader {
        Reader { after_loss, ..self }
    }

    /// What the ring says about itself for good.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Shape of the ring.
    pub fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    /// Words of one row: a buffer for n rows has n times as many.
    pub fn row_words(&self) -> usize {
        self.header.geometry.row_words()
    }

    /// State and counters of the run, now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::load(&self.memory)
    }

    /// The row this reader began with.
    pub fn begun_at(&self) -> u64 {
        self.begun_at
    }

    /// The row that the next read begins with, if it is not lost by then: there is something to read once
    /// `next_row() + 1` rows were made.
    pub fn next_row(&self) -> u64 {
        self.next
    }

    /// Rows lost to this reader so far: the sum of its batches.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Rows delivered so far.
    pub fn delivered(&self) -> u64 {
        self.next - self.begun_at - self.lost
    }

    /// Whether the run has ended and all its rows were delivered or lost. Learnt by [`read`](Reader::read).
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Copies rows to `buffer`, as many as fit; all of them are whole. Returns at once: a batch without
    /// rows and without loss means that there is nothing new.
    ///
    /// # Panics
    /// If `buffer` is shorter than one row ([`row_words`](Reader::row_words)): reading would never end.
    pub fn read<'a>(&mut self, buffer: &'a mut [u64]) -> Batch<'a> {
        let geometry = &self.header.geometry;
        let row_words = geometry.row_words();
        let room = (buffer.len() / row_words) as u64;
        assert!(
            room > 0,
            "the buffer must have room for one row of {row_words} words"
        );

        let (state, head) = barrier::state_then_head(&self.memory); // G, C
        let oldest = geometry.oldest(head);
        let newest_only = self.after_loss == AfterLoss::Newest;
        let from = match self.next < oldest && newest_only {
            true => head.saturating_sub(1),
            false => self.next.max(oldest),
        };
        let count = head.saturating_sub(from).min(room);
        let count = self.copy(from, count, buffer);
        let head_now = barrier::head_after_copy(&self.memory); // D
        let oldest = geometry.oldest(head_now);

        // What is older than "oldest" by now may have been overwritten while it was copied.
        let (first, whole) = if newest_only && oldest > from {
            (head_now.saturating_sub(1), 0)
        } else if count > 0 && oldest >= from + count {
            let restart = match self.after_loss {
                AfterLoss::Half if !state.is_final() => geometry.restart(head_now),
                _ => oldest,
            };
            (restart, 0)
        } else {
            let first = oldest.clamp(from, from + count);
            (first, from + count - first)
        };
        let whole = (count - whole) as usize * row_words..count as usize * row_words;
        let (absent, words) = present(&self.header, first, &buffer[whole]);
        let first = first + absent;
        let rows = Rows::new(words, geometry.shape());
        let lost = first - self.next;
        self.lost += lost;
        self.next = first + rows.len() as u64;
        self.ended = state.is_final() && self.next >= head;
        let more = self.next < head;
        Batch {
            lost,
            first,
            rows,
            more,
        }
    }

    /// Address of the word that a user engine's producer changes when it wakes readers. To sleep: load
    /// [`wake_value`](Reader::wake_value), read; if nothing came, FUTEX_WAIT for the value loaded.
    #[cfg(not(loom))]
    pub fn wake_address(&self) -> *const u32 {
        self.memory
            .half_address(std::mem::offset_of!(crate::layout::RingHeader, wake))
    }

    /// The wake word, loaded before everything that is read after it.
    pub fn wake_value(&self) -> u32 {
        barrier::wake_value(&self.memory) // H
    }

    /// Copies rows, up to the first one that is absent after one that is there; says how many.
    fn copy(&self, first: u64, count: u64, buffer: &mut [u64]) -> u64 {
        let geometry = &self.header.geometry;
        let row_words = geometry.row_words();
        let mut is_there = false;
        for (row, to) in (first..first + count).zip(buffer.chunks_exact_mut(row_words)) {
            let slot = geometry.slot(row);
            for (to, word) in to
                .iter_mut()
                .zip(&self.memory.words()[slot..slot + row_words])
            {
                *to = word.load(Ordering::Relaxed);
            }
            if self.header.absent {
                if is_there && to[0] != row {
                    return row - first;
                }
                is_there = to[0] == row;
            }
        }
        count
    }
}

/// Of rows from `first` on: how many are absent before the first one that is there, and those that are there.
fn present<'a>(header: &Header, first: u64, words: &'a [u64]) -> (u64, &'a [u64]) {
    if !header.absent {
        return (0, words);
    }
    let row_words = header.geometry.row_words();
    let rows = words.iter().step_by(row_words).zip(first..);
    let absent = rows.take_while(|(row, number)| *row != number).count();
    (absent as u64, &words[absent * row_words..])
}
