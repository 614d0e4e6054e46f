// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any number of rows as a few points: of each channel the least and the greatest value, so that no spike vanishes.
//!
//! A point holds the rows whose numbers have the same high bits. When there are too many points, two become one. So
//! neither the number of rows nor their rate need be known before.

use strobe::block::Block;
use strobe::channel::{Channel, column_names};
use strobe::info::RunInfo;

/// Points that may be asked for.
pub const POINTS_MAX: usize = 10_000;
/// Points times columns: 16 bytes each, of which there are twice as many while rows are added.
const VALUES_MAX: usize = 400_000;
/// Columns that a message can have.
const COLUMNS_MAX: usize = u8::MAX as usize;
/// Of the message.
const VERSION: u8 = 1;

/// Rows, point by point.
pub struct Bins {
    channels: Vec<(usize, Channel)>,
    start_ns: u64,
    points: usize,
    /// Rows of a point, as a power of two.
    shift: u32,
    /// Number and time of the first row of each point.
    firsts: Vec<(u64, u64)>,
    /// Least and greatest value, point by point, channel by channel.
    values: Vec<(f64, f64)>,
    rows: Option<(u64, u64)>,
    missed: u64,
    lost: u64,
}

impl Bins {
    /// Of these channels of a run, or of all; at most so many points.
    ///
    /// # Errors
    /// The run does not have a channel, or it has too many.
    pub fn new(info: &RunInfo, wanted: Option<&[String]>, points: usize) -> Result<Self, String> {
        let names = column_names(&info.channels);
        let wanted = wanted.unwrap_or(&names);
        let mut channels = Vec::new();
        for name in wanted {
            let place = names.iter().position(|column| column == name);
            let channel = place.and_then(|place| Some((place, info.channels.get(place)?.clone())));
            let none = || format!("the run has no column {name}; it has {}", names.join(", "));
            channels.push(channel.ok_or_else(none)?);
        }
        if channels.len() > COLUMNS_MAX {
            return Err(format!(
                "more than {COLUMNS_MAX} columns; name at most that many"
            ));
        }
        if !(1..=POINTS_MAX).contains(&points) {
            return Err(format!("{points} points; ask for 1 to {POINTS_MAX}"));
        }
        let most = VALUES_MAX / channels.len().max(1);
        if points > most {
            return Err(format!(
                "{points} points of {} columns; ask for at most {most}, or name fewer columns",
                channels.len()
            ));
        }
        Ok(Bins {
            channels,
            start_ns: info.start.time,
            points,
            shift: 0,
            firsts: Vec::new(),
            values: Vec::new(),
            rows: None,
            missed: 0,
            lost: 0,
        })
    }

    /// Whether there is nothing to be said.
    pub fn is_empty(&self) -> bool {
        self.rows.is_none() && self.lost == 0
    }

    /// More rows, after those before.
    pub fn add(&mut self, block: &Block) {
        self.missed += block.missed();
        self.add_up_to(block, u64::MAX);
    }

    /// Those rows of a block that are before this one. What was missed among them is not known.
    pub fn add_up_to(&mut self, block: &Block, to: u64) {
        self.lost += block
            .lost()
            .min(to.saturating_sub(block.first() - block.lost()));
        let end = (block.first() + block.len() as u64).min(to);
        if block.first() < end {
            let first = self.rows.map_or(block.first(), |(first, _)| first);
            self.rows = Some((first, end));
        }
        for row in block.rows().take_while(|row| row.row < to) {
            let is_new = self
                .firsts
                .last()
                .is_none_or(|(first, _)| first >> self.shift != row.row >> self.shift);
            if is_new {
                if self.firsts.len() >= 2 * self.points {
                    self.halve();
                }
                self.firsts.push((row.row, row.time));
                let nothing = (f64::NAN, f64::NAN);
                self.values
                    .resize(self.values.len() + self.channels.len(), nothing);
            }
            let begin = self.values.len() - self.channels.len();
            let point = self.values.get_mut(begin..).unwrap_or_default();
            let is_whole = row.faults.is_empty();
            for ((place, channel), (least, greatest)) in self.channels.iter().zip(point) {
                let is_there = is_whole || !row.faults.failed(*place);
                if let Some(word) = row.values.get(*place).filter(|_| is_there) {
                    let value = channel.value(*word);
                    // No number is neither less nor greater than another.
                    (*least, *greatest) = (least.min(value), greatest.max(value));
                }
            }
        }
    }

    /// Points become twice as wide.
    fn halve(&mut self) {
        self.shift += 1;
        let width = self.channels.len();
        let mut kept: usize = 0;
        for index in 0..self.firsts.len() {
            let Some(&(row, time)) = self.firsts.get(index) else {
                break;
            };
            let last = kept
                .checked_sub(1)
                .and_then(|last: usize| self.firsts.get(last));
            let joins = last.is_some_and(|(first, _)| first >> self.shift == row >> self.shift);
            if !joins {
                if let Some(first) = self.firsts.get_mut(kept) {
                    *first = (row, time);
                }
                kept += 1;
            }
            for column in 0..width {
                let from = self.values.get(index * width + column).copied();
                let to = self.values.get_mut((kept - 1) * width + column);
                let (Some((low, high)), Some(to)) = (from, to) else {
                    break;
                };
                *to = match joins {
                    true => (to.0.min(low), to.1.max(high)),
                    false => (low, high),
                };
            }
        }
        self.firsts.truncate(kept);
        self.values.truncate(kept * width);
    }

    /// All of it as a message; nothing is left, and the next points are as fine as can be.
    pub fn take(&mut self) -> Vec<u8> {
        while self.firsts.len() > self.points {
            self.halve();
        }
        let (columns, points) = (self.channels.len(), self.firsts.len());
        let (first, end) = self.rows.unwrap_or_default();
        let mut bytes = Vec::with_capacity(40 + points * 16 * (columns + 1));
        // Both are bounded.
        bytes.extend([VERSION, columns as u8, 0, 0]);
        bytes.extend((points as u32).to_le_bytes());
        for number in [first, end, self.missed, self.lost] {
            bytes.extend(number.to_le_bytes());
        }
        for column in 0..columns {
            for (least, greatest) in self.values.iter().skip(column).step_by(columns) {
                bytes.extend(least.to_le_bytes());
                bytes.extend(greatest.to_le_bytes());
            }
        }
        for (row, _) in &self.firsts {
            bytes.extend(row.to_le_bytes());
        }
        for (_, time) in &self.firsts {
            // A row may be a little before the start was noted.
            let since = time.wrapping_sub(self.start_ns) as i64;
            bytes.extend((since as f64 / 1e9).to_le_bytes());
        }
        self.firsts.clear();
        self.values.clear();
        (self.shift, self.rows, self.missed, self.lost) = (0, None, 0, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    fn run() -> RunInfo {
        info(vec![channel("a.x", Type::S64), channel("a.y", Type::F64)])
    }

    /// Rows from `first` on, in blocks; `word` says the first channel's values.
    fn add(bins: &mut Bins, rows: std::ops::Range<u64>, word: impl Fn(u64) -> i64) {
        let info = Arc::new(run());
        let mut last = (rows.start == 0).then_some(Place::START);
        let mut next = rows.start;
        while next < rows.end {
            let end = rows.end.min(next + 1000);
            let words = (next..end).flat_map(|row| {
                let half = (row as f64 / 2.0).to_bits();
                [row, row, 1_000 + row * 1_000_000, 0, word(row) as u64, half]
            });
            let words: Vec<u64> = words.collect();
            let count = words.len() / 6;
            let block = Block::new(
                Arc::clone(&info),
                Arc::new(words),
                0..count,
                (next, 0),
                &mut last,
            );
            bins.add(&block);
            next = end;
        }
    }

    struct Message {
        head: [u64; 4],
        values: Vec<Vec<(f64, f64)>>,
        rows: Vec<u64>,
        times: Vec<f64>,
    }

    fn parse(bytes: &[u8]) -> Message {
        assert_eq!((bytes[0], bytes[2], bytes[3]), (1, 0, 0));
        let points = u32::from_le_bytes(bytes[4..8].try_into().expect("four")) as usize;
        let words = bytes[8..].chunks_exact(8);
        let words: Vec<u64> = words
            .map(|w| u64::from_le_bytes(w.try_into().expect("eight")))
            .collect();
        let columns = usize::from(bytes[1]);
        assert_eq!(bytes.len(), 40 + points * 16 * (columns + 1));
        let pairs = words[4..4 + 2 * points * columns].chunks_exact(2);
        let pairs: Vec<_> = pairs
            .map(|p| (f64::from_bits(p[0]), f64::from_bits(p[1])))
            .collect();
        let behind = 4 + 2 * points * columns;
        Message {
            head: [words[0], words[1], words[2], words[3]],
            values: pairs.chunks(points.max(1)).map(<[_]>::to_vec).collect(),
            rows: words[behind..behind + points].to_vec(),
            times: words[behind + points..]
                .iter()
                .map(|w| f64::from_bits(*w))
                .collect(),
        }
    }

    #[test]
    fn a_spike_of_one_row_in_a_million_is_there() {
        let mut bins = Bins::new(&run(), None, 1000).expect("bins");
        add(&mut bins, 0..1_000_000, |row| {
            if row == 765_432 { 99 } else { -1 }
        });
        let message = parse(&bins.take());
        assert_eq!(message.head, [0, 1_000_000, 0, 0]);
        assert!((500..=1000).contains(&message.rows.len()));
        let spikes: Vec<usize> = (0..message.rows.len())
            .filter(|point| message.values[0][*point] == (-1.0, 99.0))
            .collect();
        assert_eq!(spikes.len(), 1);
        let first = message.rows[spikes[0]];
        let next = message.rows[spikes[0] + 1];
        assert!((first..next).contains(&765_432));
        let low = message.values[1]
            .iter()
            .map(|v| v.0)
            .fold(f64::MAX, f64::min);
        let high = message.values[1]
            .iter()
            .map(|v| v.1)
            .fold(f64::MIN, f64::max);
        assert_eq!((low, high), (0.0, 999_999.0 / 2.0));
        assert!(bins.is_empty());
    }

    #[test]
    fn few_rows_are_a_point_each() {
        let mut bins = Bins::new(&run(), Some(&["a.x".to_owned()]), 100).expect("bins");
        add(&mut bins, 7..10, |row| row as i64);
        let message = parse(&bins.take());
        assert_eq!(message.rows, [7, 8, 9]);
        assert_eq!(message.values, [[(7.0, 7.0), (8.0, 8.0), (9.0, 9.0)]]);
        assert_eq!(message.times, [0.007, 0.008, 0.009]);
        let nothing = parse(&bins.take());
        assert!(nothing.rows.is_empty());
    }

    #[test]
    fn what_was_missed_lost_or_failed_is_said() {
        let mut bins = Bins::new(&run(), None, 1).expect("bins");
        let info = Arc::new(run());
        let both = 0b11 << 32;
        let words = vec![5, 9, 0, both, 1, 2, 6, 12, 0, both, 1, 2];
        let mut last = Some(Place::START);
        let block = Block::new(info, Arc::new(words), 0..2, (5, 5), &mut last);
        bins.add(&block);
        let message = parse(&bins.take());
        // Triggers 0 to 12 and seven rows.
        assert_eq!(message.head, [5, 7, 6, 5]);
        assert!(
            message
                .values
                .iter()
                .flatten()
                .all(|v| v.0.is_nan() && v.1.is_nan())
        );
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        assert!(Bins::new(&run(), None, 0).is_err());
        assert!(Bins::new(&run(), None, POINTS_MAX + 1).is_err());
        let wide = info(
            (0..255)
                .map(|n| channel(&format!("a.x{n}"), Type::U64))
                .collect(),
        );
        assert!(Bins::new(&wide, None, 1000).is_ok());
        let error = Bins::new(&wide, None, 2000).err().expect("an error");
        assert!(error.contains("at most 1568"), "{error}");
        let error = Bins::new(&run(), Some(&["a.z".to_owned()]), 1)
            .err()
            .expect("an error");
        assert!(error.contains("a.x, a.y"));
    }
}
