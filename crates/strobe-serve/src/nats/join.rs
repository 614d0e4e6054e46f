// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs as one: each row of the first one, and beside it the row of the second one that is nearest in time.
//!
//! Times are compared as TAI, which machines can agree on. Only rows of the second run are kept that may still be the
//! nearest: those of twice the tolerance, and a block.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strobe::block::{Block, Place};
use strobe::channel::{Channel, Class, Type};
use strobe::error::{Error, Words};
use strobe::info::{RunInfo, Totals};
use strobe::ring::layout::{ROW_FAULTS, ROW_HEADER_WORDS, STATUS_FAULTS};
use strobe::ring::{Row, RowShape};
use strobe::source::RowSource;
use strobe_hw::uapi::STEPS_MAX;

/// Columns before those of the second run: the number of its row, and how much later it is.
const ABOUT: usize = 2;

/// How many rows found each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Matches {
    /// Rows of the first run with a row of the second one.
    pub joined: u64,
    /// Rows of the first run without.
    pub alone: u64,
    /// Rows of the second run that were made while the first one was, and are beside none of its rows.
    pub others: u64,
    /// Rows of the second run that did not come.
    pub others_lost: u64,
}

/// What others want to know meanwhile.
#[derive(Debug, Default)]
pub struct Shared {
    /// How many rows found each other so far.
    pub matches: Matches,
    /// For some rows of the first run: once all before this one are kept, rows of the second one before that one are not
    /// needed any more.
    steps: VecDeque<(u64, u64)>,
}

impl Shared {
    /// Rows of the first run before this one are kept for good. Answers the row of the second one from which on it is
    /// needed, if that is news.
    pub fn kept(&mut self, first: u64) -> Option<u64> {
        let mut second = None;
        while self.steps.front().is_some_and(|(row, _)| *row <= first) {
            second = self.steps.pop_front().map(|(_, row)| row);
        }
        second
    }
}

/// Rows of two runs as rows of one.
pub struct Join {
    first: Box<dyn RowSource>,
    second: Box<dyn RowSource>,
    within: u64,
    info: Arc<RunInfo>,
    /// Rows of the first run that wait, from this place on.
    waiting: Option<(Block, usize)>,
    last: Option<Place>,
    /// Rows of the second run that may still be wanted.
    window: VecDeque<Other>,
    /// There are no more of them.
    is_over: bool,
    /// The second run has broken off: it is not known what would have been beside more rows.
    is_cut: bool,
    /// When the first and the last row of the first run were made.
    time: Option<(u64, u64)>,
    /// Rows in which nothing has failed but that there is nothing beside them, or what is there has failed.
    faults: u64,
    shared: Arc<Mutex<Shared>>,
}

/// A row of the second run.
struct Other {
    tai: u64,
    row: u64,
    values: Vec<u64>,
    failed: Vec<usize>,
    is_beside: bool,
}

impl Join {
    /// Of these two, with rows that are no further apart than this. The columns of the second one are called after `name`.
    ///
    /// # Errors
    /// A row would have more columns than there can be, or it is not known when one of them was started.
    pub fn new(
        first: Box<dyn RowSource>,
        second: Box<dyn RowSource>,
        within: Duration,
        name: &str,
        shared: Arc<Mutex<Shared>>,
    ) -> Result<Self, Words> {
        let mut info = first.info().clone();
        info.channels.extend(columns(name, second.info()));
        let steps = info.channels.len() + info.outputs.len();
        let wrong = |why: String| Words::new("the joined runs", why);
        if steps > STEPS_MAX {
            let why = format!("a row would have {steps} columns, and {STEPS_MAX} are possible");
            return Err(wrong(why).mend("join runs of fewer channels"));
        }
        if info.start.tai == 0 || second.info().start.tai == 0 {
            let why = "the start time of one of them is not known".to_owned();
            return Err(wrong(why).mend("record each of them into a file of its own"));
        }
        Ok(Join {
            first,
            second,
            within: u64::try_from(within.as_nanos()).unwrap_or(u64::MAX),
            info: Arc::new(info),
            waiting: None,
            last: None,
            window: VecDeque::new(),
            is_over: false,
            is_cut: false,
            time: None,
            faults: 0,
            shared,
        })
    }

    /// Has rows of the second run up to behind this time, if they come soon enough. Answers whether they are there.
    fn reach(&mut self, tai: u64, wait: Duration) -> Result<bool, Error> {
        while !self.is_over && self.window.back().is_none_or(|other| other.tai <= tai) {
            match self.second.next(wait)? {
                Some(block) if block.is_empty() && block.lost() == 0 => return Ok(false),
                Some(block) => {
                    lock(&self.shared).matches.others_lost += block.lost();
                    let info = self.second.info();
                    self.window.extend(block.rows().map(|row| {
                        Other {
                            tai: time(info, row.time),
                            row: row.row,
                            values: row.values.to_vec(),
                            failed: (row.faults.iter())
                                .filter(|place| *place < row.values.len())
                                .collect(),
                            is_beside: false,
                        }
                    }));
                }
                None => (self.is_over, self.is_cut) = (true, self.second.is_torn()),
            }
        }
        Ok(!self.is_cut)
    }

    /// Lets go of rows that are further away from this time than the next one: they are so from later times, too.
    fn pass(&mut self, tai: u64) {
        let (begun, _) = *self.time.get_or_insert((tai, tai));
        self.time = Some((begun, tai));
        let is_nearer =
            |other: &Other, next: &Other| next.tai.abs_diff(tai) < other.tai.abs_diff(tai);
        while let (Some(other), Some(next)) = (self.window.front(), self.window.get(1)) {
            if !is_nearer(other, next) {
                break;
            }
            let is_alone = !other.is_beside && other.tai.saturating_add(self.within) >= begun;
            lock(&self.shared).matches.others += u64::from(is_alone);
            self.window.pop_front();
        }
    }

    /// A row of the first run, and what is beside it.
    fn add(&mut self, row: &Row<'_>, flags: u64, words: &mut Vec<u64>) {
        let tai = time(self.first.info(), row.time);
        self.pass(tai);
        let (shape, begin, own) = (self.info.shape(), words.len(), row.values.len());
        words.extend([row.row, row.trigger, row.time, flags & !ROW_FAULTS]);
        words.extend(row.values);
        let nearest = self.window.front_mut();
        let beside = nearest.filter(|other| other.tai.abs_diff(tai) <= self.within);
        let mut failed: Vec<usize> = match &beside {
            Some(other) => {
                words.extend([other.row, other.tai.wrapping_sub(tai)]);
                words.extend(&other.values);
                let failed = other.failed.iter();
                failed.map(|place| own + ABOUT + place).collect()
            }
            None => (own..shape.channels as usize).collect(),
        };
        self.faults += u64::from(row.faults.is_empty() && !failed.is_empty());
        let matches = &mut lock(&self.shared).matches;
        match beside {
            Some(other) => (other.is_beside, matches.joined) = (true, matches.joined + 1),
            None => matches.alone += 1,
        }
        // Outputs come after all channels.
        let added = shape.channels as usize - own;
        failed.extend(row.faults.iter().map(|place| match place < own {
            true => place,
            false => place + added,
        }));
        words.resize(begin + shape.words() as usize, 0);
        let words = words.get_mut(begin..).unwrap_or_default();
        failed
            .into_iter()
            .for_each(|place| fail(words, shape, place));
        if let (true, Some(last)) = (shape.skipped, words.last_mut()) {
            *last = row.skipped;
        }
    }

    /// There is nothing more. Counts the rest of the second run that was made while the first one was.
    fn end(&mut self) -> Option<Block> {
        let (begun, ended) = self.time.take()?;
        let was_made = |other: &&Other| {
            other.tai.saturating_add(self.within) >= begun
                && other.tai <= ended.saturating_add(self.within)
        };
        let rest = self.window.iter().filter(was_made);
        let alone = rest.filter(|other| !other.is_beside).count() as u64;
        lock(&self.shared).matches.others += alone;
        None
    }

    /// Says what is needed once these rows are kept.
    fn step(&self, next: u64) {
        if let Some(other) = self.window.front() {
            lock(&self.shared).steps.push_back((next, other.row));
        }
    }
}

impl RowSource for Join {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        let (block, from) = match self.waiting.take() {
            Some(waiting) => waiting,
            None => match self.first.next(wait)? {
                Some(block) => (block, 0),
                None => return Ok(self.end()),
            },
        };
        let (mut words, mut to) = (Vec::new(), from);
        let raw = block.words().chunks_exact(block.width());
        for (row, raw) in block.rows().zip(raw).skip(from) {
            let behind = time(self.first.info(), row.time).saturating_add(self.within);
            let wait = if to == from { wait } else { Duration::ZERO };
            if !self.reach(behind, wait)? {
                break;
            }
            let flags = raw.get(ROW_HEADER_WORDS - 1).copied().unwrap_or_default();
            self.add(&row, flags, &mut words);
            to += 1;
        }
        if self.is_cut && to == from {
            return Ok(self.end());
        }
        let numbers = match (from, to) {
            (0, 0) if !block.is_empty() => (block.first().saturating_sub(block.lost()), 0),
            (0, _) => (block.first(), block.lost()),
            _ => (block.first() + from as u64, 0),
        };
        let (info, words) = (Arc::clone(&self.info), Arc::new(words));
        let given = Block::new(info, words, 0..to - from, numbers, &mut self.last);
        self.step(block.first() + to as u64);
        if to < block.len() {
            self.waiting = Some((block, to));
        }
        Ok(Some(given))
    }

    /// That of the first run. A row without a partner is one in which something has failed.
    fn totals(&self) -> Option<Totals> {
        let totals = self.first.totals().filter(|_| !self.is_cut)?;
        Some(Totals {
            errors: totals.errors + self.faults,
            ..totals
        })
    }

    fn is_torn(&self) -> bool {
        self.is_cut || self.first.is_torn()
    }
}

/// The columns that the second run adds.
fn columns(name: &str, other: &RunInfo) -> Vec<Channel> {
    let about = |column: &str, description: &str, unit: &str, kind| Channel {
        name: format!("{name}.{column}"),
        description: description.to_owned(),
        unit: unit.to_owned(),
        kind,
        class: Class::Hard,
        scale: 1.0,
        offset: 0.0,
        bits: u64::BITS,
        cost_ns: 0,
        in_use: false,
    };
    let mut columns = vec![
        about("row", "number of the row there", "", Type::U64),
        about("after", "how much later it was made there", "ns", Type::S64),
    ];
    columns.extend(other.channels.iter().map(|channel| Channel {
        name: format!("{name}.{}", channel.name),
        ..channel.clone()
    }));
    columns
}

/// When a row was made, as TAI.
fn time(info: &RunInfo, time: u64) -> u64 {
    time.wrapping_sub(info.start.time)
        .wrapping_add(info.start.tai)
}

/// Says in the words of a row that this channel or output has failed.
fn fail(row: &mut [u64], shape: RowShape, place: usize) {
    let status = STATUS_FAULTS as usize;
    let (word, bit) = match place.checked_sub(status) {
        None => (ROW_HEADER_WORDS - 1, status + place),
        Some(behind) => (
            ROW_HEADER_WORDS + shape.channels as usize + behind / 64,
            behind % 64,
        ),
    };
    if let Some(word) = row.get_mut(word) {
        *word |= 1 << bit;
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
