// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics in a file: nothing is lost, so that those of several files can be merged.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Stats, bin_of};

/// The bins that have samples, and how many.
type Bins = Vec<(usize, u64)>;

/// How it is written.
#[derive(Serialize, Deserialize)]
struct Saved {
    expected: i64,
    count: u64,
    min: i64,
    max: i64,
    mean: f64,
    squares: f64,
    below: Bins,
    above: Bins,
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bins = |bins: &[u64]| {
            let bins = bins.iter().copied().enumerate();
            bins.filter(|(_, samples)| *samples > 0).collect()
        };
        Saved {
            expected: self.expected,
            count: self.count,
            min: self.min,
            max: self.max,
            mean: self.mean,
            squares: self.squares,
            below: bins(&self.below),
            above: bins(&self.above),
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Stats {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let saved = Saved::deserialize(from)?;
        let bins = |saved: &Bins| -> Option<Vec<u64>> {
            let mut bins = Vec::new();
            for (bin, samples) in saved {
                // No file makes this program ask for any amount of memory.
                if *bin > bin_of(u64::MAX) {
                    return None;
                }
                bins.resize(bins.len().max(bin + 1), 0);
                let sum: &mut u64 = bins.get_mut(*bin)?;
                *sum = sum.checked_add(*samples)?;
            }
            Some(bins)
        };
        let stats = || {
            let (below, above) = (bins(&saved.below)?, bins(&saved.above)?);
            let mut samples = below.iter().chain(&above);
            let count = samples.try_fold(0_u64, |sum, samples| sum.checked_add(*samples))?;
            let is_whole = count == saved.count && saved.min <= saved.max;
            is_whole.then_some(Stats {
                expected: saved.expected,
                count,
                min: saved.min,
                max: saved.max,
                mean: saved.mean,
                squares: saved.squares,
                above,
                below,
            })
        };
        stats().ok_or_else(|| serde::de::Error::custom("these statistics contradict themselves"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let mut stats = Stats::around(1000);
        for sample in [1000, 1001, 990, 5, -7, 1_000_000_007, i64::MAX] {
            stats.add(sample);
        }
        stats
    }

    #[test]
    fn what_is_saved_is_what_it_was() {
        for stats in [Stats::default(), stats()] {
            let json = serde_json::to_string(&stats).expect("JSON");
            assert_eq!(serde_json::from_str::<Stats>(&json).expect("it"), stats);
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let json = serde_json::to_value(stats()).expect("JSON");
        let damaged = |key: &str, value: serde_json::Value| {
            let mut json = json.clone();
            json[key] = value;
            serde_json::from_value::<Stats>(json)
        };
        assert!(damaged("mean", 3.into()).is_ok(), "no contradiction");
        assert!(damaged("count", 3.into()).is_err());
        assert!(damaged("min", i64::MAX.into()).is_ok());
        assert!(damaged("max", i64::MIN.into()).is_err());
        for bin in [bin_of(u64::MAX) as u64 + 1, u64::MAX] {
            assert!(
                damaged("above", serde_json::json!([[bin, 7]])).is_err(),
                "{bin}"
            );
        }
        let overflow = serde_json::json!([[0, u64::MAX], [1, u64::MAX]]);
        assert!(damaged("above", overflow).is_err());
    }
}
