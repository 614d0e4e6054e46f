// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// A reproducible stream that covers many octaves, with negative samples.
fn samples(count: usize, seed: u64) -> Vec<i64> {
    let mut x = seed;
    (0..count)
        .map(|_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let magnitude = (x >> 20) >> (x & 31);
            let value = i64::try_from(magnitude).expect("44 bits");
            if x & (1 << 40) == 0 {
                value
            } else {
                -value / 1000
            }
        })
        .collect()
}

fn stats(samples: &[i64]) -> Stats {
    around(0, samples)
}

fn around(expected: i64, samples: &[i64]) -> Stats {
    let mut stats = Stats::around(expected);
    samples.iter().for_each(|s| stats.add(*s));
    stats
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

#[test]
fn every_bin_holds_its_own_middle_and_bins_are_in_order() {
    for bin in 0..bin_of(u64::MAX) {
        assert_eq!(bin_of(middle_of(bin)), bin);
        assert!(middle_of(bin) < middle_of(bin + 1));
    }
    assert!(bin_of(u64::MAX) < 8192);
}

#[test]
fn a_quantile_is_within_its_stated_error_of_the_exact_one() {
    for count in [1, 2, 3, 10, 99, 1000, 50_000] {
        let mut exact = samples(count, 7);
        let stats = stats(&exact);
        exact.sort_unstable();
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((q * count as f64).ceil() as usize).max(1);
            let (want, got) = (
                exact[rank - 1] as f64,
                stats.quantile(q).expect("samples") as f64,
            );
            assert!(
                close(want, got, QUANTILE_ERROR),
                "q {q} of {count}: {want} {got}"
            );
        }
    }
}

#[test]
fn a_quantile_near_the_expected_value_is_exact() {
    let mut samples: Vec<i64> = (0..1000)
        .map(|i| 1_000_000 + (i * 7919) % 500 - 250)
        .collect();
    samples.push(90_000_000);
    let stats = around(1_000_000, &samples);
    samples.sort_unstable();
    for rank in [1, 2, 250, 500, 501, 502, 750, 1000] {
        assert_eq!(
            stats.quantile(rank as f64 / 1001.0),
            Some(samples[rank - 1])
        );
    }
}

#[test]
fn least_greatest_mean_and_deviation_are_exact() {
    let samples = samples(10_000, 3);
    let figures = stats(&samples).figures().expect("samples");
    let n = samples.len() as f64;
    let mean = samples.iter().map(|s| *s as f64).sum::<f64>() / n;
    let variance = samples
        .iter()
        .map(|s| (*s as f64 - mean).powi(2))
        .sum::<f64>()
        / n;
    assert_eq!(Some(figures.min), samples.iter().min().copied());
    assert_eq!(Some(figures.max), samples.iter().max().copied());
    assert!(close(figures.mean, mean, 1e-12));
    assert!(close(figures.sd, variance.sqrt(), 1e-12));
}

#[test]
fn merging_is_the_same_as_adding_all() {
    let all = samples(9_000, 11);
    let (left, right) = all.split_at(2_000);
    let mut merged = stats(left);
    merged.merge(&stats(right));
    merged.merge(&Stats::around(0));
    let whole = stats(&all);
    let mut from_nothing = Stats::around(0);
    from_nothing.merge(&whole);
    for merged in [merged, from_nothing] {
        assert_eq!(
            (merged.count, merged.min, merged.max),
            (whole.count, whole.min, whole.max)
        );
        assert!((&merged.above, &merged.below) == (&whole.above, &whole.below));
        assert!(close(merged.mean, whole.mean, 1e-9));
        assert!(close(merged.squares, whole.squares, 1e-9));
    }
}

#[test]
fn merging_keeps_every_sample_also_if_another_value_was_expected() {
    let mut merged = around(100, &[90, 100, 110]);
    merged.merge(&around(-100, &[i64::MIN, -100, 100, i64::MAX]));
    assert_eq!(merged.count(), 7);
    assert_eq!((merged.min, merged.max), (i64::MIN, i64::MAX));
    assert_eq!(merged.quantile(0.5), Some(100));
    assert_eq!(merged.bins().map(|(_, n)| n).sum::<u64>(), 7);
}

#[test]
fn quantiles_of_too_few_samples_are_not_reported() {
    let figures = |count| stats(&samples(count, 1)).figures();
    assert_eq!(figures(0), None);
    let few = figures(99).expect("samples");
    assert!(few.p50.is_some() && few.p99.is_none() && few.p999.is_none());
    let some = figures(999).expect("samples");
    assert!(some.p99.is_some() && some.p999.is_none());
    let many = figures(1000).expect("samples");
    assert!(many.p999.is_some() && many.p9999.is_none());
    assert!(figures(10_000).expect("samples").p9999.is_some());
}

#[test]
fn the_histogram_holds_every_sample_once_in_its_line() {
    assert_eq!(stats(&[]).histogram(4), []);
    assert_eq!(stats(&[5, 5]).histogram(4), [(5, 2)]);
    assert_eq!(
        stats(&[0, 1, 2, 3, 4, 5, 6, 7]).histogram(4),
        [(0, 2), (2, 2), (4, 2), (6, 2)]
    );
    assert_eq!(stats(&[-4, 0, 3]).histogram(2), [(-4, 1), (0, 2)]);
    let extremes = stats(&[i64::MIN, 0, i64::MAX]).histogram(8);
    assert_eq!(extremes.iter().map(|(_, n)| n).sum::<u64>(), 3);
    let many = stats(&samples(5_000, 2));
    assert_eq!(
        many.histogram(10).iter().map(|(_, n)| n).sum::<u64>(),
        5_000
    );
}

#[test]
fn the_lines_of_a_doubling_histogram_cover_all_samples() {
    let mut stats = Stats::around(0);
    assert_eq!(stats.histogram_doubling(5), []);
    for sample in [10, 11, 12, 40, 150] {
        stats.add(sample);
    }
    assert_eq!(stats.histogram_doubling(0), []);
    // 141 values: 21 + 42 + 84 is 147.
    assert_eq!(stats.histogram_doubling(3), [(10, 3), (31, 1), (73, 1)]);
    assert_eq!(stats.histogram_doubling(1), [(10, 5)]);
    let mut wide = Stats::around(0);
    for sample in [i64::MIN, 0, i64::MAX] {
        wide.add(sample);
    }
    for lines in [1, 2, 7, 62, 1000] {
        let table = wide.histogram_doubling(lines);
        assert_eq!(table.iter().map(|(_, samples)| samples).sum::<u64>(), 3);
        assert!(table.is_sorted_by(|a, b| a.0 < b.0), "{table:?}");
    }
    let mut same = Stats::around(0);
    same.add(7);
    assert_eq!(same.histogram_doubling(8), [(7, 1)]);
}
