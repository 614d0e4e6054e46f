// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a plot shows of a recording of any length, in bounded memory: for each
//! column of pixels, the extremes of each channel and whether something is
//! missing there.

use std::time::Duration;

use strobe::channel::{Channel, column_names};
use strobe::error::Error;
use strobe::info::{RunInfo, Totals};
use strobe::ring::Row;
use strobe::source::RowSource;
use strobe::timing::Timing;

/// Columns of pixels.
pub const COLUMNS: usize = 1_400;
/// Channels that find room in one picture.
pub const CHANNELS: usize = 12;
/// Beyond this, a difference of two values may not be a number.
const GREATEST: f64 = 1e300;

/// For rows that are on their way.
const WAIT: Duration = Duration::from_millis(100);

/// How to read the rows once more: all of them, or those before this one.
pub type Open<'a> = dyn FnMut(Option<u64>) -> Result<Box<dyn RowSource>, Error> + 'a;

/// A recording, as it is drawn.
pub struct Trace {
    pub info: RunInfo,
    pub totals: Option<Totals>,
    pub rows: u64,
    pub missed: u64,
    pub lost: u64,
    /// Triggers that were left out on purpose.
    pub skipped: u64,
    /// Rows in which something failed.
    pub errors: u64,
    /// Seconds from the start of the run to its first and last row.
    pub span: (f64, f64),
    pub channels: Vec<Curve>,
    /// Where triggers were missed, where rows were lost.
    pub gaps: [Vec<bool>; 2],
    pub timing: Timing,
}

/// One channel.
pub struct Curve {
    pub name: String,
    pub unit: String,
    /// Pieces between gaps: points (seconds, value).
    pub pieces: Vec<Vec<(f64, f64)>>,
    pub least: f64,
    pub greatest: f64,
    channel: Channel,
    bin: Option<Bin>,
    /// A value has failed since the last point.
    failed: bool,
}

/// What lies in one column of pixels.
#[derive(Clone, Copy)]
struct Bin {
    column: usize,
    first: (f64, f64),
    least: (f64, f64),
    greatest: (f64, f64),
    last: (f64, f64),
}

impl Trace {
    /// Reads the rows twice: the first time for their length.
    pub fn read(open: &mut Open<'_>) -> Result<Self, Error> {
        let mut recording = open(None)?;
        let (mut first, mut last, mut end) = (None, 0, 0);
        while let Some(block) = recording.next(WAIT)? {
            for row in block.rows() {
                first.get_or_insert(row.time);
                last = row.time;
            }
            end = block.first() + block.len() as u64;
        }
        let info = recording.info().clone();
        // A run that goes on has more rows by then.
        let mut recording = open(Some(end))?;
        let seconds = |time: u64| time.saturating_sub(info.start.time) as f64 / 1e9;
        let (first, last) = (seconds(first.unwrap_or(last)), seconds(last));
        let names = column_names(&info.channels);
        let channels = info.channels.iter().zip(names).take(CHANNELS);
        let mut trace = Trace {
            timing: Timing::new(&info),
            totals: None,
            rows: 0,
            missed: 0,
            lost: 0,
            skipped: 0,
            errors: 0,
            span: (first, if last > first { last } else { first + 1e-6 }),
            channels: channels
                .map(|(channel, name)| Curve::new(channel.clone(), name))
                .collect(),
            gaps: [vec![false; COLUMNS], vec![false; COLUMNS]],
            info,
        };
        let mut before = None;
        while let Some(block) = recording.next(WAIT)? {
            for row in block.rows() {
                trace.add(row, before);
                before = Some((row.row, row.trigger, row.skipped, trace.seconds(row.time)));
            }
        }
        trace.channels.iter_mut().for_each(Curve::end_bin);
        trace.totals = recording.totals();
        if let Some(totals) = &trace.totals {
            (trace.missed, trace.lost) = (totals.missed(), totals.lost);
            (trace.skipped, trace.errors) = (totals.skipped, totals.errors);
        }
        Ok(trace)
    }

    fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.info.start.time) as f64 / 1e9
    }

    fn column(&self, seconds: f64) -> usize {
        let (from, to) = self.span;
        let share = (seconds - from) / (to - from);
        ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
    }

    fn add(&mut self, row: Row<'_>, before: Option<(u64, u64, u64, f64)>) {
        let now = self.seconds(row.time);
        let column = self.column(now);
        let (next_row, next_trigger, skipped, from) = match before {
            Some((row, trigger, skipped, from)) => (row + 1, trigger + 1, skipped, from),
            None => (0, 0, 0, now),
        };
        let skipped = row.skipped.saturating_sub(skipped);
        let lost = row.row.saturating_sub(next_row);
        let missed = row
            .trigger
            .saturating_sub(next_trigger)
            .saturating_sub(lost)
            .saturating_sub(skipped);
        self.skipped += skipped;
        self.errors += u64::from(!row.faults.is_empty());
        self.rows += 1;
        self.lost += lost;
        self.missed += missed;
        let from = self.column(from);
        for (gap, count) in self.gaps.iter_mut().zip([missed, lost]) {
            if count > 0 {
                let place = gap.get_mut(from..=column);
                place.unwrap_or_default().fill(true);
            }
        }
        // What no eye can see makes no new piece.
        let is_cut = missed + lost > 0 && column > from + 1;
        self.timing.add(row);
        for (index, (curve, word)) in self.channels.iter_mut().zip(row.values).enumerate() {
            let value = curve.channel.value(*word);
            if is_cut {
                curve.cut();
            }
            if row.faults.failed(index) {
                curve.failed = true;
            } else if value.abs() <= GREATEST {
                curve.add(column, (now, value));
            }
        }
    }
}

impl Curve {
    fn new(channel: Channel, name: String) -> Self {
        Curve {
            name,
            unit: channel.unit.clone(),
            pieces: vec![Vec::new()],
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            channel,
            bin: None,
            failed: false,
        }
    }

    /// What comes next is not joined to what was before.
    fn cut(&mut self) {
        self.end_bin();
        self.pieces.push(Vec::new());
    }

    fn add(&mut self, column: usize, point: (f64, f64)) {
        let failed = std::mem::take(&mut self.failed);
        // What no eye can see makes no new piece.
        if failed && self.bin.is_some_and(|bin| column > bin.column + 1) {
            self.cut();
        }
        self.least = self.least.min(point.1);
        self.greatest = self.greatest.max(point.1);
        if self.bin.is_some_and(|bin| bin.column != column) {
            self.end_bin();
        }
        let bin = self.bin.get_or_insert(Bin {
            column,
            first: point,
            least: point,
            greatest: point,
            last: point,
        });
        bin.last = point;
        if point.1 < bin.least.1 {
            bin.least = point;
        }
        if point.1 > bin.greatest.1 {
            bin.greatest = point;
        }
    }

    fn end_bin(&mut self) {
        let Some(bin) = self.bin.take() else { return };
        let mut points = [bin.first, bin.least, bin.greatest, bin.last];
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(piece) = self.pieces.last_mut() {
            for point in points {
                if piece.last() != Some(&point) {
                    piece.push(point);
                }
            }
        }
    }
}
