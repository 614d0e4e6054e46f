// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a generator writes, against a direct evaluation of the same expressions in exact fractions. `STROBE_FUZZ`
//! says how many.
#![allow(clippy::unwrap_used)]

use crate::common::{Twice, value};
use crate::exact::{ROWS, Written, eval, has_wide_diff, quotient};
use crate::generator::{CHANNELS, Fraction, Random, columns};

#[derive(Debug, Default)]
struct Count {
    accepted: u64,
    refused: u64,
    exact: u64,
    rows: u64,
    kept: u64,
}

#[test]
fn a_program_does_what_its_expressions_say_or_is_refused() {
    let said = std::env::var("STROBE_FUZZ").ok();
    let programs = said.and_then(|said| said.parse().ok()).unwrap_or(20_000);
    let mut count = Count::default();
    for seed in 0..programs {
        one(seed, &mut count);
    }
    println!("{programs} programs: {count:?}");
    assert!(
        count.accepted > programs / 3 && count.refused > programs / 50,
        "{count:?}"
    );
    assert!(
        count.exact > programs && count.kept > count.rows / 20,
        "{count:?}"
    );
}

fn one(seed: u64, count: &mut Count) {
    let Some(written) = Written::new(seed) else {
        return;
    };
    let mut program = match Twice::new(&written.text, &columns()) {
        Ok(program) => program,
        Err(fault) => {
            let known = [
                "may overflow",
                "does not change",
                "needs all 64 bits",
                "too many digits",
                "always",
                "number of values in the sum is not known",
                "more values at once",
                "is complete only in kept rows",
                "may be negative",
            ];
            assert!(
                known.iter().any(|known| fault.reason.contains(known)),
                "{seed}: {fault}"
            );
            count.refused += 1;
            return;
        }
    };
    count.accepted += 1;
    let last = written.rows[ROWS - 1].number;
    for row in &written.rows {
        let (words, is_kept) = program.run(&row.words);
        let about = || {
            let row = row.words.map(|word| word as i64);
            format!("seed {seed}, {:?}, row {row:?}: {words:?}", written.text)
        };
        assert_eq!(is_kept, row.is_kept, "{}", about());
        count.rows += 1;
        if !is_kept && written.text.keep.is_empty() {
            // In the middle of a group there is no mean of it.
            continue;
        }
        let derived = program.program.derived().iter().zip(&words);
        let values: Vec<f64> = derived.map(|(column, word)| value(column, *word)).collect();
        let found = values[0];
        let expected = row.number.float();
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{found} {expected} {}",
            about()
        );
        // Nothing is rounded: it compares as the exact value does.
        let is_less = row.number.less(last).unwrap();
        let truths = [row.truth, row.number == last, !is_less, is_less];
        let truths = truths.map(|is| f64::from(u8::from(is)));
        assert_eq!(values[1..], truths, "{}", about());
        count.exact += 1;
        count.kept += u64::from(is_kept);
    }
}

#[test]
fn quotients_and_means_are_within_one_of_their_last_bit() {
    let mut checked = 0;
    for seed in 0..4000 {
        let mut random = Random(seed ^ 0x5EED);
        let (mut a, mut b, text) = quotient(&mut random);
        if has_wide_diff(&a) || has_wide_diff(&b) {
            continue;
        }
        let Ok(mut program) = Twice::new(&text, &columns()) else {
            continue;
        };
        let about = program.program.derived().to_vec();
        let (mut fresh, mut since) = (true, Vec::new());
        for _ in 0..ROWS {
            let row: Vec<i128> = CHANNELS.map(|about| random.word(about)).into();
            let (Some(a), Some(b)) = (eval(&mut a, &row, fresh), eval(&mut b, &row, fresh)) else {
                break;
            };
            if fresh {
                since.clear();
            }
            since.push(a);
            fresh = row[0] > 50;
            let words: Vec<u64> = row.iter().map(|word| *word as u64).collect();
            let (words, is_kept) = program.run(&words);
            assert_eq!(is_kept, fresh);
            let near = |column: usize, expected: f64| {
                let found = value(&about[column], words[column]);
                let off = (found - expected).abs();
                assert!(
                    off <= about[column].scale.abs() * 1.001 + 1e-9 * expected.abs(),
                    "seed {seed}: {text:?}: {found} is not {expected}"
                );
            };
            near(0, if b.0 == 0 { 0.0 } else { a.float() / b.float() });
            let sum = since
                .iter()
                .try_fold(Fraction(0, 1), |a, b| a.add(*b))
                .unwrap();
            near(1, sum.float() / since.len() as f64);
            checked += 1;
        }
    }
    println!("{checked} rows");
    assert!(checked > 5000, "{checked}");
}
