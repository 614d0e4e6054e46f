// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that came last, in memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use strobe::block::Block;
use strobe::info::RunInfo;

/// Words of a piece that is put together of smaller ones, at most: 64 KiB.
const WORDS: usize = 8192;

/// Rows with consecutive numbers.
#[derive(Clone)]
pub struct Piece {
    /// What they are made of.
    pub info: Arc<RunInfo>,
    /// Their words are among these.
    pub words: Arc<Vec<u64>>,
    /// Which rows of `words`.
    pub rows: Range<usize>,
    /// Number of the first one.
    pub first: u64,
}

impl Piece {
    /// Of all these words.
    pub(super) fn new(info: Arc<RunInfo>, words: Vec<u64>, first: u64) -> Piece {
        let rows = words.len() / info.shape().words() as usize;
        Piece {
            info,
            words: Arc::new(words),
            rows: 0..rows,
            first,
        }
    }

    /// The row after its last one.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.rows.len() as u64
    }

    /// The words of its rows.
    pub(super) fn words(&self) -> &[u64] {
        let width = self.info.shape().words() as usize;
        let part = self.rows.start * width..self.rows.end * width;
        self.words.get(part).unwrap_or_default()
    }

    /// How many of its rows are from this number on, and before that.
    pub(super) fn rows_within(&self, start: u64, end: u64) -> u64 {
        self.end().min(end).saturating_sub(self.first.max(start))
    }

    /// The rows from this number on, at most so many.
    pub(crate) fn from(&self, row: u64, at_most: usize) -> Piece {
        let skip = row.saturating_sub(self.first) as usize;
        let start = self.rows.start.saturating_add(skip).min(self.rows.end);
        let end = self.rows.end.min(start.saturating_add(at_most));
        Piece {
            rows: start..end,
            first: self.first + (start - self.rows.start) as u64,
            ..self.clone()
        }
    }
}

/// Rows in memory, up to a bound. A slow run's rows come one by one: they are put together, so that neither readers nor
/// files have them in pieces of a row.
pub(super) struct Recent {
    bound: usize,
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Recent {
    /// None yet; so many bytes at most, but the last piece in any case.
    pub(super) fn new(bound: usize) -> Self {
        Recent {
            bound,
            pieces: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The oldest row.
    pub(super) fn first(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.first)
    }

    /// Bytes of the rows from this one on.
    pub(super) fn bytes_from(&self, row: u64) -> usize {
        let place = self.place(row);
        let later = self.pieces.iter().skip(place);
        later.map(|piece| size_of_val(piece.words())).sum()
    }

    /// Rows from this one on.
    pub(super) fn rows_from(&self, row: u64) -> u64 {
        let later = self.pieces.iter().skip(self.place(row));
        later.map(|piece| piece.rows_within(row, u64::MAX)).sum()
    }

    /// The rows from this number on, or the first ones after it.
    pub(super) fn find(&self, row: u64) -> Option<&Piece> {
        self.pieces.get(self.place(row))
    }

    /// Pieces from this row on, the first one cut off before it, about so many bytes.
    pub(super) fn from(&self, row: u64, bytes: usize) -> Vec<Piece> {
        let mut sum = 0;
        let later = self.pieces.iter().skip(self.place(row));
        let some = later.take_while(|piece| {
            let is_room = sum < bytes;
            sum += size_of_val(piece.words());
            is_room
        });
        some.map(|piece| piece.from(row, usize::MAX)).collect()
    }

    /// The rows of this block, which come after all others; those that have to go for them.
    pub(super) fn push(&mut self, info: &Arc<RunInfo>, block: &Block) -> Vec<Piece> {
        let piece = Piece::new(Arc::clone(info), block.words().to_vec(), block.first());
        self.bytes += size_of_val(piece.words());
        self.pieces.push_back(piece);
        self.join();
        let mut gone = Vec::new();
        while self.bytes > self.bound && self.pieces.len() > 1 {
            if let Some(piece) = self.pieces.pop_front() {
                self.bytes -= size_of_val(piece.words());
                gone.push(piece);
            }
        }
        gone
    }

    /// Puts the last pieces together, while the last one is not much smaller: so each word is copied a few times only.
    fn join(&mut self) {
        while let [.., a, b] = self.pieces.make_contiguous() {
            let (small, large) = (b.words().len(), a.words().len());
            let is_next = a.end() == b.first && Arc::ptr_eq(&a.info, &b.info);
            if !is_next || large > 2 * small || large + small > WORDS {
                return;
            }
            let mut words = Vec::with_capacity(large + small);
            words.extend_from_slice(a.words());
            words.extend_from_slice(b.words());
            *a = Piece::new(Arc::clone(&a.info), words, a.first);
            self.pieces.pop_back();
        }
    }

    fn place(&self, row: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end() <= row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    fn push(recent: &mut Recent, info: &Arc<RunInfo>, rows: Range<u64>) {
        let words = rows.clone().flat_map(|row| [row, row, row, 0, row]);
        let words: Vec<u64> = words.collect();
        let count = (rows.end - rows.start) as usize;
        let numbers = (rows.start, 0);
        let info_ = Arc::clone(info);
        let last = &mut Some(Place::START);
        let block = Block::new(info_, Arc::new(words), 0..count, numbers, last);
        recent.push(info, &block);
    }

    #[test]
    fn rows_that_come_one_by_one_are_few_pieces_and_a_step_parts_them() {
        let info = Arc::new(info(vec![channel("sim.counter", Type::U64)]));
        let mut recent = Recent::new(100_000);
        for row in 0..2000 {
            push(&mut recent, &info, row..row + 1);
        }
        push(&mut recent, &info, 2010..2020);
        assert!(recent.pieces.len() < 16, "{}", recent.pieces.len());
        assert!(recent.find(2000).is_some_and(|piece| piece.first == 2010));
        let mut next = 0;
        for piece in recent.from(0, usize::MAX) {
            assert!(piece.first == next || piece.first == 2010);
            let numbers: Vec<u64> = piece.words().iter().step_by(5).copied().collect();
            assert_eq!(numbers, (piece.first..piece.end()).collect::<Vec<_>>());
            next = piece.end();
        }
        assert_eq!(next, 2020);
    }

    #[test]
    fn the_oldest_rows_go_first() {
        let info = Arc::new(info(vec![channel("sim.counter", Type::U64)]));
        let mut recent = Recent::new(200_000);
        for row in 0..20_000 {
            push(&mut recent, &info, row..row + 1);
        }
        let first = recent.first().expect("rows");
        let bytes = recent.bytes_from(first);
        assert!(bytes <= 200_000 && bytes > 100_000, "{bytes}");
        assert!(recent.find(0).is_some_and(|piece| piece.first == first));
        let part = recent.from(19_990, usize::MAX);
        assert_eq!(part.last().map(Piece::end), Some(20_000));
        assert_eq!(part.first().map(|piece| piece.first), Some(19_990));
    }
}
