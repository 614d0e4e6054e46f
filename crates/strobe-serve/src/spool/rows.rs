// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a run, in memory and on the disk, behind one lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::info::{RunInfo, Totals};
use strobe::ring::Snapshot;

use super::recent::{Piece, Recent};
use super::segments::Segments;

/// The rows of one run, and what becomes of them.
pub(super) struct Rows {
    pub(super) info: Arc<RunInfo>,
    pub(super) recent: Recent,
    /// What is being written: it may have left the memory, and is not on the disk yet.
    pub(super) in_flight: Vec<Piece>,
    pub(super) segments: Segments,
    /// Where rows are written to, if they are.
    pub(super) disk: Disk,
    /// Whether they were meant for the disk at all.
    pub(super) is_for_disk: bool,
    /// Whether the disk has all that was meant for it, once nothing more is written.
    pub(super) is_whole: bool,
    /// Nobody wants more of them.
    pub(super) is_abandoned: bool,
    /// Rows that were meant for the disk, and are not there.
    pub(super) lost_to_disk: u64,
    /// Rows that the ring had lost before this process drained it.
    pub(super) lost_before: u64,
    /// When rows came last, if any came to this process.
    pub(super) touched: Option<Instant>,
    /// The account, or `None` if there is none; no more rows come.
    pub(super) over: Option<Option<Totals>>,
}

/// What is done with rows and the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// There is none, or nothing is written to it any more.
    None,
    /// A thread writes.
    Writing,
    /// It is to write what is there, and then to end.
    Closing,
    /// It is to remove all.
    Discarding,
}

impl Rows {
    /// None yet, of this run.
    pub(super) fn new(info: RunInfo, recent: usize, segments: Segments) -> Self {
        Rows {
            info: Arc::new(info),
            recent: Recent::new(recent),
            in_flight: Vec::new(),
            segments,
            disk: Disk::None,
            is_for_disk: false,
            is_whole: true,
            is_abandoned: false,
            lost_to_disk: 0,
            lost_before: 0,
            touched: None,
            over: None,
        }
    }

    /// The next ones. Those that leave the memory for them, and are neither written nor being written, are lost to the disk.
    pub(super) fn push(&mut self, block: &Block) {
        let info = Arc::clone(&self.info);
        let in_flight = self.in_flight.last().map_or(0, Piece::end);
        let safe = self.segments.end().max(in_flight);
        let gone = self.recent.push(&info, block);
        if self.is_for_disk {
            let lost = gone.iter().map(|gone| gone.rows_within(safe, u64::MAX));
            self.lost_to_disk += lost.sum::<u64>();
        }
        self.touched = Some(Instant::now());
    }

    /// No more of them come.
    pub(super) fn end(&mut self, totals: Option<Totals>) {
        self.over = Some(totals);
        self.touched = Some(Instant::now());
    }

    /// What was being written is not on the disk; what has left the memory meanwhile is lost to it.
    pub(super) fn take_back(&mut self) {
        self.lost_to_disk += self.in_flight_only();
        self.in_flight.clear();
    }

    /// Rows that are not on the disk yet.
    pub(super) fn in_memory_only(&self) -> u64 {
        self.in_flight_only() + self.recent.rows_from(self.segments.end())
    }

    /// Rows that are being written, and have left the memory.
    fn in_flight_only(&self) -> u64 {
        let (end, first) = (self.segments.end(), self.recent.first());
        let in_flight = self.in_flight.iter();
        in_flight
            .map(|piece| piece.rows_within(end, first.unwrap_or(u64::MAX)))
            .sum()
    }

    /// Whether all of them are older than this.
    pub(super) fn are_old(&self, age: Duration) -> bool {
        let is_new = self.touched.is_some_and(|at| at.elapsed() <= age);
        !is_new && self.segments.are_old(age)
    }

    /// The start of the run is known now.
    pub(super) fn learn(&mut self, run: &Snapshot) {
        if self.info.start != run.start {
            Arc::make_mut(&mut self.info).start = run.start;
        }
    }

    /// The piece with this row, or the first one after it.
    pub(super) fn in_memory(&self, row: u64) -> Option<&Piece> {
        let in_flight = self.in_flight.iter().find(|piece| piece.end() > row);
        let recent = self.recent.find(row);
        in_flight.into_iter().chain(recent).min_by_key(|p| p.first)
    }

    /// Bytes in memory that are not on the disk.
    pub(super) fn unwritten(&self) -> usize {
        self.recent.bytes_from(self.segments.end())
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        let in_flight = self.in_flight.first().map(|piece| piece.first);
        let all = [self.segments.first(), in_flight, self.recent.first()];
        all.into_iter().flatten().min()
    }
}
