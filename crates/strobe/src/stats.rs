// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of a stream of times, in bounded memory.
//!
//! Count, least, greatest, mean and standard deviation are exact. Quantiles
//! come from a histogram of the distances of samples from an expected value.
//! Its bins grow with the distance: below 256 a bin holds one value, above it
//! 1/128 of the distance or less. A quantile is the middle of the bin that
//! holds the nearest-rank sample, so it is wrong by at most 0.4 % of its
//! distance from the expected value ([`QUANTILE_ERROR`]). Memory is at most
//! 0.2 MiB for any number of samples.

use serde::Serialize;

mod saved;

/// Greatest error of a quantile, relative to its distance from the expected
/// value.
pub const QUANTILE_ERROR: f64 = 1.0 / 256.0;

/// Bins of an octave, as a power of two.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// A quantile needs this many samples for each one beyond it, and one.
const P99_SAMPLES: u64 = 100;
const P999_SAMPLES: u64 = 1000;
const P9999_SAMPLES: u64 = 10_000;

/// Statistics of signed nanoseconds; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    expected: i64,
    count: u64,
    min: i64,
    max: i64,
    /// Mean and sum of squared deviations (Welford).
    mean: f64,
    squares: f64,
    /// Samples not below the expected value, by bin of their distance; bins
    /// beyond the end are empty.
    above: Vec<u64>,
    /// Samples below the expected value.
    below: Vec<u64>,
}

/// The figures of a [`Stats`], as they are reported. Quantiles are `None` if
/// there are too few samples for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Least sample.
    pub min: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Greatest sample.
    pub max: i64,
    /// Standard deviation of the samples.
    pub sd: f64,
    /// Median.
    pub p50: Option<i64>,
    /// 99 of 100 samples are not above; needs 100 samples.
    pub p99: Option<i64>,
    /// 999 of 1000 samples are not above; needs 1000 samples.
    pub p999: Option<i64>,
    /// 9999 of 10000 samples are not above; needs 10000 samples.
    pub p9999: Option<i64>,
}

impl Stats {
    /// No samples yet, of which most will be near `expected`.
    pub fn around(expected: i64) -> Self {
        Stats {
            expected,
            ..Self::default()
        }
    }

    /// Samples so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The greatest sample so far.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// One more sample.
    pub fn add(&mut self, sample: i64) {
        if self.count == 0 {
            self.min = sample;
            self.max = sample;
        } else {
            self.min = self.min.min(sample);
            self.max = self.max.max(sample);
        }
        self.count += 1;
        let value = sample as f64;
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (value - self.mean);

        self.add_to_bin(sample, 1);
    }

    fn add_to_bin(&mut self, sample: i64, samples: u64) {
        let bins = if sample < self.expected {
            &mut self.below
        } else {
            &mut self.above
        };
        let bin = bin_of(sample.abs_diff(self.expected));
        if bin >= bins.len() {
            bins.resize(bin + 1, 0);
        }
        if let Some(sum) = bins.get_mut(bin) {
            *sum += samples;
        }
    }

    /// All samples of `other` as well. If it expected another value, the errors
    /// of its quantiles and ours add up.
    pub fn merge(&mut self, other: &Stats) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.min = other.min;
            self.max = other.max;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.count += other.count;
        self.mean += apart * theirs / (ours + theirs);
        self.squares += other.squares + apart * apart * ours * theirs / (ours + theirs);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (value, samples) in other.bins() {
            self.add_to_bin(value, samples);
        }
    }

    /// The sample of nearest rank: the least one such that at least the
    /// fraction `q` of all are not above it. `None` without samples.
    pub fn quantile(&self, q: f64) -> Option<i64> {
        if self.count == 0 {
            return None;
        }
        let rank = (q * self.count as f64).ceil().clamp(1.0, self.count as f64) as u64;
        let mut seen = 0;
        for (value, samples) in self.bins() {
            seen += samples;
            if seen >= rank {
                return Some(value.clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// What to report; `None` without samples.
    pub fn figures(&self) -> Option<Figures> {
        let from = |samples, q| (self.count >= samples).then(|| self.quantile(q)).flatten();
        (self.count > 0).then(|| Figures {
            min: self.min,
            mean: self.mean,
            max: self.max,
            sd: (self.squares / self.count as f64).sqrt(),
            p50: self.quantile(0.5),
            p99: from(P99_SAMPLES, 0.99),
            p999: from(P999_SAMPLES, 0.999),
            p9999: from(P9999_SAMPLES, 0.9999),
        })
    }

    /// A histogram of `lines` lines, from the least sample to the greatest:
    /// start of the line's range, and samples in it. Fewer lines if the
    /// samples lie close together; none without samples.
    pub fn histogram(&self, lines: usize) -> Vec<(i64, u64)> {
        if self.count == 0 || lines == 0 {
            return Vec::new();
        }
        let span = i128::from(self.max) - i128::from(self.min) + 1;
        let width = (span + lines as i128 - 1) / lines as i128;
        let mut table: Vec<(i64, u64)> = (0..lines as i128)
            .map(|line| i128::from(self.min) + line * width)
            .filter_map(|start| i64::try_from(start).ok())
            .filter(|start| *start <= self.max)
            .map(|start| (start, 0))
            .collect();
        for (value, samples) in self.bins() {
            let value = value.clamp(self.min, self.max);
            let line = (i128::from(value) - i128::from(self.min)) / width;
            let line = usize::try_from(line)
                .ok()
                .and_then(|line| table.get_mut(line));
            if let Some((_, sum)) = line {
                *sum += samples;
            }
        }
        table
    }

    /// The same with lines that grow: each is about twice as wide as the one before, so that a few samples far
    /// away do not put all others into one line.
    pub fn histogram_doubling(&self, lines: usize) -> Vec<(i64, u64)> {
        // More would not be different: a line cannot be wider than all values there are.
        let lines = lines.min(62) as u32;
        if self.count == 0 || lines == 0 {
            return Vec::new();
        }
        let span = i128::from(self.max) - i128::from(self.min) + 1;
        let parts = (1_i128 << lines) - 1;
        let first = (span + parts - 1) / parts;
        let mut table: Vec<(i64, u64)> = (0..lines)
            .map(|line| i128::from(self.min) + first * ((1_i128 << line) - 1))
            .filter_map(|start| i64::try_from(start).ok())
            .filter(|start| *start <= self.max)
            .map(|start| (start, 0))
            .collect();
        for (value, samples) in self.bins() {
            let value = value.clamp(self.min, self.max);
            let above = table.partition_point(|(start, _)| *start <= value);
            let line = above.checked_sub(1).and_then(|line| table.get_mut(line));
            if let Some((_, sum)) = line {
                *sum += samples;
            }
        }
        table
    }

    /// Middle and samples of every bin that has some, in ascending order.
    pub fn bins(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let below = self.below.iter().enumerate().rev();
        let below = below.map(|(bin, samples)| {
            (
                self.expected.saturating_sub_unsigned(middle_of(bin)),
                *samples,
            )
        });
        let above = self.above.iter().enumerate();
        let above = above.map(|(bin, samples)| {
            (
                self.expected.saturating_add_unsigned(middle_of(bin)),
                *samples,
            )
        });
        below.chain(above).filter(|(_, samples)| *samples > 0)
    }
}

/// Number of the bin a distance belongs to. Bins below 2 * `SUB` hold one value;
/// from there on each octave has `SUB` bins.
fn bin_of(distance: u64) -> usize {
    let octave = (u64::BITS - distance.leading_zeros()).saturating_sub(SUB_BITS + 1);
    // At most 56 * 128 + 255: fits any usize.
    (u64::from(octave) * SUB + (distance >> octave)) as usize
}

/// The value in the middle of a bin.
fn middle_of(bin: usize) -> u64 {
    let bin = bin as u64;
    let octave = (bin / SUB).saturating_sub(1);
    let first = (bin - octave * SUB) << octave;
    first + ((1 << octave) - 1) / 2
}

#[cfg(test)]
mod tests;
