// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables and rules, a sentence for each thing that is promised of them.

use crate::common::{Twice, columns, row, rules};
use strobe_expr::{ProgramText, RULES_MAX, compile};

fn program(text: &ProgramText) -> Twice {
    Twice::new(text, &columns()).unwrap_or_else(|fault| panic!("{fault}"))
}

fn at(pos: i64) -> [u64; 6] {
    row(pos, 0, 0, 0, 0)
}

#[test]
fn a_rule_is_met_once_at_each_position() {
    let text = rules(
        &["next = 1 mm like enc.pos"],
        &[("enc.pos >= next", &["next += 0.1 mm"])],
    );
    let mut program = program(&text);
    // 10 um a row; 1 mm is the word 1000.
    let met = (0..200)
        .map(|row| 10 * row)
        .filter(|pos| !program.meets(&at(*pos)).is_empty());
    let wanted: Vec<i64> = (0..10).map(|n| 1000 + 100 * n).collect();
    assert_eq!(met.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_variable_that_is_compared_with_a_channel_is_like_it_and_0_at_first() {
    let text = rules(&[], &[("enc.pos >= next", &["next += 100 um"])]);
    let mut program = program(&text);
    let met = [-1, 0, 0, 99, 100, 350, 351, 352].map(|pos| program.meets(&at(pos)).len());
    // 100 um is the word 100. At 350 three positions have passed: one for each row.
    assert_eq!(met, [0, 1, 0, 0, 1, 1, 1, 0]);
}

#[test]
fn all_rules_see_the_variables_as_they_were_before_the_row() {
    let steps: &[(&str, &[&str])] = &[
        ("state == waiting && io.in & 1", &["state = open"]),
        ("state == open && io.in & 1", &["state = 2"]),
        ("state == 2", &["state = waiting"]),
    ];
    let mut program = program(&rules(&["waiting = 0", "open = 1", "state = 0"], steps));
    let met: Vec<_> = [0, 1, 1, 0, 1, 0, 1]
        .map(|io| program.meets(&row(0, 0, 0, io, 0)))
        .into();
    let nothing = Vec::new();
    assert_eq!(
        met,
        [
            nothing.clone(),
            vec![0],
            vec![1],
            vec![2],
            vec![0],
            nothing,
            vec![1]
        ]
    );
}

#[test]
fn two_variables_are_exchanged_and_of_two_rules_the_later_counts() {
    let mut text = rules(
        &["a = 1", "b = 2"],
        &[
            ("io.in & 1", &["a = b", "b = a"]),
            ("io.in & 2", &["a = 7"]),
            ("io.in & 4", &["a += 1", "b = a + 10"]),
        ],
    );
    text.derive = ["x = a", "y = b"].map(String::from).into();
    let mut program = program(&text);
    let seen = [1, 1, 3, 4, 6, 0].map(|io| program.run(&row(0, 0, 0, io, 0)).0);
    let seen = seen.map(|words| (words[0], words[1]));
    assert_eq!(seen, [(1, 2), (2, 1), (1, 2), (7, 1), (8, 17), (9, 18)]);
}

#[test]
fn columns_and_conditions_of_rows_see_what_was_before_the_row() {
    let mut text = rules(&["n = 0"], &[("io.in & 1", &["n += 1"])]);
    text.derive = vec!["seen = n".into()];
    text.keep = vec!["n < 2".into()];
    let mut program = program(&text);
    let seen = [1, 0, 1, 1, 1].map(|io| program.run(&row(0, 0, 0, io, 0)));
    let seen = seen.map(|(words, is_kept)| (words[0], is_kept));
    assert_eq!(
        seen,
        [(0, true), (1, true), (1, true), (2, false), (3, false)]
    );
}

#[test]
fn a_rule_is_met_in_a_row_that_is_left_out() {
    let mut text = rules(&[], &[("io.in & 1", &[])]);
    text.every = Some(3);
    let mut program = program(&text);
    let said = [1, 0, 1, 1].map(|io| program.answer(&row(0, 0, 0, io, 0)).1);
    let said = said.map(|answer| (answer.is_kept(), answer.meets(0)));
    assert_eq!(
        said,
        [(false, true), (false, false), (true, true), (false, true)]
    );
}

#[test]
fn a_variable_stays_at_the_end_of_its_range() {
    // 16 bits: from -32768 to 32767.
    let text = ProgramText {
        derive: vec!["x = level".into()],
        ..rules(
            &["level = 80 V like adc.a"],
            &[
                ("io.in & 1", &["level += 1 V"]),
                ("io.in & 2", &["level -= 1000 V"]),
            ],
        )
    };
    let mut program = program(&text);
    let seen = [0, 1, 1, 2, 0].map(|io| program.run(&row(0, 0, 0, io, 0)).0[0] as i64);
    // 81.4175 V is the word 32767.
    assert_eq!(seen, [32200, 32200, 32600, 32767, -32768]);
}

#[test]
fn a_sequencer_of_twenty_states_with_timeouts_and_repeats_is_one_program() {
    const STATES: usize = 20;
    // Each state waits for an edge of its own bit, or 1 us; after the last one it begins again, three times.
    let conditions: Vec<String> = (0..STATES)
        .map(|n| format!("state == {n} && (io.in == {n} || clock.time >= due)"))
        .collect();
    let next: Vec<Vec<String>> = (0..STATES)
        .map(|n| {
            let then = if n + 1 == STATES {
                vec!["state = 0".to_owned(), "rounds -= 1".to_owned()]
            } else {
                vec![format!("state = {}", n + 1)]
            };
            then.into_iter()
                .chain(["due = clock.time + 1 us".to_owned()])
                .collect()
        })
        .collect();
    let next: Vec<Vec<&str>> = next
        .iter()
        .map(|then| then.iter().map(String::as_str).collect())
        .collect();
    let mut list: Vec<(&str, &[&str])> = conditions
        .iter()
        .zip(&next)
        .map(|(when, then)| (when.as_str(), then.as_slice()))
        .collect();
    list.push(("rounds == 0", &["state = 100"]));
    let mut text = rules(
        &["state = 0", "rounds = 3", "due = 1 us like clock.time"],
        &list,
    );
    text.derive = vec!["at = state".into()];
    let mut program = program(&text);
    println!("{} instructions", program.program.insns().len());
    let (mut state, mut due, mut rounds) = (0_u64, 1000, 3);
    for step in 0..600_u64 {
        let (io, time) = ((step * 7) % 23, 10_000 + 300 * step);
        let (words, _) = program.run(&row(0, 0, 0, io, time));
        assert_eq!(words[0], state, "in row {step}");
        if rounds == 0 {
            state = 100;
        } else if io == state || time >= due {
            due = time + 1000;
            state += 1;
            if state == STATES as u64 {
                (state, rounds) = (0, rounds - 1);
            }
        }
    }
    assert_eq!(state, 100, "it has come to its end");
}

#[test]
fn what_is_assigned_is_held_within_the_range_before_it_is_computed() {
    // 64 bits without a sign, to a variable of 62; and of another scale, with either sign.
    let mut text = rules(
        &["due = 0 ns like clock.time", "mv = 0 mV like adc.b"],
        &[("io.in & 1", &["due = clock.time + 5 us", "mv = adc.a"])],
    );
    text.derive = vec!["d = due".into(), "m = mv".into()];
    let mut program = program(&text);
    for (time, a, due, mv) in [
        (7, 200, 5007, 0.0),
        (u64::MAX, 400, (1 << 62) - 1, 500.0),
        // adc.b is from 1000 mV, in steps of -0.5 mV, to -1047.5 mV.
        ((1 << 62) - 5001, 32000, (1 << 62) - 1, 1000.0),
        (1 << 62, -32000, (1 << 62) - 1, -1047.5),
    ] {
        program.run(&row(0, a, 0, 1, time));
        let words = program.run(&row(0, a, 0, 0, time)).0;
        assert_eq!(words[0], due, "{time}");
        assert_eq!(program.values(&row(0, a, 0, 0, time))[1], mv, "{a}");
    }
}

#[test]
fn a_value_of_another_kind_is_held_at_the_end_that_is_next_to_it() {
    // What it is assigned, and what comes of it: io.in is 200, clock.time 2^63, cnt.n 7.
    for (variable, value, wanted) in [
        ("v = 0 like io.in", "1000 * io.in + 300", 255),
        ("v = 0 like io.in", "0 - 1000 * io.in - 1", 0),
        ("v = 0 like io.in", "io.in + 300", 255),
        ("v = 0 like io.in", "0 - io.in - 1", 0),
        ("v = 0 ns", "clock.time + 40 h", (1 << 62) - 1),
        ("v = 0 ns", "0 ns - clock.time", -(1 << 62)),
        (
            "v = 0 ns",
            "clock.time - 9.3e18 ns",
            9223372036854775808 - 9300000000000000000,
        ),
        ("v = 0 ns", "clock.time + 1e25 ns", (1 << 62) - 1),
        ("v = 0 ns", "clock.time - 1e25 ns", -(1 << 62)),
        ("v = 0 like cnt.n", "cnt.n - 8 counts", 0),
    ] {
        let mut text = rules(&[variable], &[("io.in & 8", &[&format!("v = {value}")])]);
        text.derive = vec!["now = v".into()];
        let mut program = program(&text);
        let row = row(0, 0, 0, 200, 1 << 63);
        program.run(&row);
        let now = program.run(&row).0[0] as i64;
        assert_eq!(i128::from(now), wanted, "{variable}, {value}");
    }
}

#[test]
fn a_channel_is_no_variable_even_if_it_is_compared() {
    for name in ["adc.b", "time"] {
        let text = rules(
            &[],
            &[(&format!("adc.a > {name}"), &[&format!("{name} = 5 V")])],
        );
        let said = compile(&text, &columns())
            .expect_err("a channel")
            .to_string();
        assert!(said.contains("is a column of the row"), "{said}");
    }
    // Of several comparisons the one with a channel counts.
    let text = rules(
        &["limit = 9"],
        &[("next > limit && enc.pos >= next", &["next += 1 mm"])],
    );
    let said = compile(&text, &columns()).expect_err("units").to_string();
    assert!(
        said.contains("one side is in mm, the other has no unit"),
        "{said}"
    );
}

#[test]
fn hostile_texts_are_refused_at_once() {
    let huge = i128::MAX.to_string();
    for text in [
        rules(&[&format!("x = {huge}")], &[]),
        rules(&[&format!("x = -{huge}")], &[]),
        rules(&["x = 0"], &[("io.in & 1", &[&format!("x = {huge}")])]),
        rules(&["x = 0"], &[("io.in & 1", &["x = 1"; 200_000])]),
        rules(&["x = 0"; 200_000], &[]),
    ] {
        compile(&text, &columns()).expect_err("too much");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    let met: &[(&str, &[&str])] = &[("io.in & 1", &["next += 100"])];
    let of = |when: &'static str, then: &'static str| rules(&["n = 0"], &[(when, &[then])]);
    let cases = [
        (
            rules(&["= 5"], &[]),
            "let '= 5', column 1: the name of the variable is missing; write NAME = NUMBER",
        ),
        (
            rules(&["since = 5"], &[]),
            "let 'since = 5', column 1: `since` is a word of the language, and not the name of a variable; choose another name",
        ),
        (
            rules(&["n 5"], &[]),
            "let 'n 5', column 3: `=` is missing after the name of the variable",
        ),
        (
            rules(&["n = adc.a"], &[]),
            "let 'n = adc.a', column 5: what a variable is at first is not a number; write a number",
        ),
        (
            rules(&["n = 1 like adc.c"], &[]),
            "let 'n = 1 like adc.c', column 12: a row has no column adc.c",
        ),
        (
            rules(&["n = 1 A like adc.a"], &[]),
            "let 'n = 1 A like adc.a', column 5: one side is in V, the other is in A",
        ),
        (
            rules(&["n = 0.1 mV like adc.a"], &[]),
            "let 'n = 0.1 mV like adc.a', column 5: this has finer steps than n has",
        ),
        (
            rules(&["n = 100 V like adc.a"], &[]),
            "let 'n = 100 V like adc.a', column 5: the word of n would be 40200, and it is from -32768 to 32767",
        ),
        (
            rules(&["n = 1", "n = 2"], &[]),
            "let 'n = 2', column 1: there is a variable n already; give it another name",
        ),
        (
            rules(&["adc.a = 1"], &[]),
            "let 'adc.a = 1', column 1: there is a column adc.a already",
        ),
        (
            rules(&["row = 1"], &[]),
            "let 'row = 1', column 1: there is a column row already",
        ),
        (
            rules(&[], met),
            "then 'next += 100', column 1: nothing says what kind of number next is; declare the variable, as in next = 0",
        ),
        (
            rules(&[], &[("io.in & 1", &["io.in = 1"])]),
            "then 'io.in = 1', column 1: io.in is a column of the row, and rules change variables",
        ),
        (
            of("io.in >= 0", "n = 1"),
            "when 'io.in >= 0', column 1: this is always true",
        ),
        (of("io.in &", "n = 1"), "when 'io.in &', column 8: "),
        (
            of("io.in & 1", "n == 1"),
            "then 'n == 1', column 3: `=` is missing",
        ),
        (
            of("io.in & 1", "n = 0.5"),
            "then 'n = 0.5', column 5: this has finer steps than n has; write 0 or 1, or declare n with such steps, as in 0.001",
        ),
        (
            of("io.in & 1", "n = 1 V"),
            "then 'n = 1 V', column 5: one side has no unit, the other is in V",
        ),
        (
            of("io.in & 1", "m = 1"),
            "then 'm = 1', column 1: nothing says what kind of number m is",
        ),
        (
            of("io.in & 1", "n = 1e19"),
            "then 'n = 1e19', column 5: the word of n would be 10000000000000000000",
        ),
        (
            ProgramText {
                derive: vec!["n = adc.a".into()],
                ..of("io.in & 1", "n = 1")
            },
            "derive 'n = adc.a', column 1: there is a variable n already",
        ),
        (
            ProgramText {
                every: Some(10),
                ..of("mean(adc.a since emit) > 1 V", "n = 1")
            },
            "when 'mean(adc.a since emit) > 1 V', column 1: a mean or sum since emit is complete only in kept rows",
        ),
        (
            rules(&[], &[("io.in & 1", &[] as &[&str]); RULES_MAX + 1]),
            "when 'io.in & 1', column 1: there are 32 rules, and 31 are possible; join conditions",
        ),
    ];
    for (text, wanted) in cases {
        let said = match compile(&text, &columns()) {
            Err(fault) => fault.to_string(),
            Ok(_) => panic!("not refused: {text:?}"),
        };
        assert!(said.starts_with(wanted), "{said}\nwanted: {wanted}");
    }
    compile(
        &rules(&[], &[("io.in & 1", &[] as &[&str]); RULES_MAX]),
        &columns(),
    )
    .expect("so many are possible");
}

/// Rules that a generator writes, against a direct evaluation.
#[test]
fn generated_rules_do_what_they_say() {
    const NAMES: [&str; 3] = ["u", "v", "w"];
    let mut seed = 1_u64;
    let mut dice = move |below: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    for _ in 0..300 {
        let count = 1 + dice(4);
        // A variable, a comparison, a bound; then which variable becomes which one and how much more.
        let made: Vec<_> = (0..count)
            .map(|_| {
                let changes: Vec<_> = (0..dice(4))
                    .map(|_| (dice(3), dice(3), dice(9) as i64 - 4))
                    .collect();
                (
                    dice(3),
                    dice(2),
                    dice(12) as i64 - 4,
                    1 + dice(255) as u64,
                    changes,
                )
            })
            .collect();
        let conditions: Vec<String> = made
            .iter()
            .map(|(name, sign, bound, mask, _)| {
                let sign = ["<", ">="][*sign];
                format!("{} {sign} {bound} && io.in & {mask}", NAMES[*name])
            })
            .collect();
        let changes: Vec<Vec<String>> = made
            .iter()
            .map(|(.., changes)| {
                let text = |(to, from, more): &(usize, usize, i64)| {
                    format!("{} = {} + {more}", NAMES[*to], NAMES[*from])
                };
                changes.iter().map(text).collect()
            })
            .collect();
        let changes: Vec<Vec<&str>> = changes
            .iter()
            .map(|list| list.iter().map(String::as_str).collect())
            .collect();
        let list: Vec<(&str, &[&str])> = conditions
            .iter()
            .map(String::as_str)
            .zip(changes.iter().map(Vec::as_slice))
            .collect();
        let mut text = rules(&["u = 0", "v = 3", "w = -2"], &list);
        text.derive = NAMES.map(|name| format!("d{name} = {name}")).into();
        let mut program = program(&text);
        let mut values = [0_i64, 3, -2];
        for _ in 0..50 {
            let io = dice(256) as u64;
            let (words, answer) = program.answer(&row(0, 0, 0, io, 0));
            assert_eq!(words, values.map(|value| value as u64), "{text:?}");
            let before = values;
            for (rule, (name, sign, bound, mask, changes)) in made.iter().enumerate() {
                let is = (before[*name] < *bound) == (*sign == 0) && io & mask != 0;
                assert_eq!(answer.meets(rule), is, "rule {rule} of {text:?}");
                for (to, from, more) in changes.iter().filter(|_| is) {
                    values[*to] = before[*from] + more;
                }
            }
        }
    }
}
