// SPDX-License-Identifier: MIT OR Apache-2.0
//! The language, a sentence for each thing that it promises.

use crate::common::{Twice, columns, row, text};
use strobe_expr::{Part, Word, compile};

#[test]
fn a_physical_threshold_is_the_word_from_which_on_it_is_so() {
    // 2.5 V is the word 1200: (2.5 + 0.5) / 0.0025.
    let cases = [
        ("adc.a > 2.5 V", 1200, [false, false, true]),
        ("adc.a >= 2.5 V", 1200, [false, true, true]),
        ("adc.a < 2500 mV", 1200, [true, false, false]),
        ("adc.a <= 2.5 V", 1200, [true, true, false]),
        ("adc.a == 2.5 V", 1200, [false, true, false]),
        ("adc.a != 2.5 V", 1200, [true, false, true]),
        ("2.5 V < adc.a", 1200, [false, false, true]),
        // Between two words: nothing is rounded to either.
        ("adc.a > 2.5001 V", 1200, [false, false, true]),
        ("adc.a >= 2.5001 V", 1200, [false, false, true]),
        ("adc.a < 2.4999 V", 1200, [true, false, false]),
        ("adc.a <= 2.4999 V", 1200, [true, false, false]),
        ("!(adc.a > 2.5 V)", 1200, [true, true, false]),
        ("adc.a > 0", 200, [false, false, true]),
        ("adc.a - 1 V > 1500 mV", 1200, [false, false, true]),
        ("2 * adc.a > 5 V", 1200, [false, false, true]),
        ("-adc.a < -2.5 V", 1200, [false, false, true]),
    ];
    for (keep, word, expected) in cases {
        let mut program = Twice::of(&[], &[keep], None);
        let found = [-1, 0, 1].map(|step| program.keeps(&row(0, word + step, 0, 0, 0)));
        assert_eq!(found, expected, "{keep}");
    }
}

#[test]
fn a_scale_below_zero_turns_the_comparison() {
    // adc.b falls by 0.5 mV a word from 1 V: 900 mV is the word 200.
    for (keep, expected) in [
        ("adc.b > 900 mV", [true, false, false]),
        ("adc.b >= 0.9 V", [true, true, false]),
        ("adc.b < 900 mV", [false, false, true]),
        ("adc.b > adc.a", [true, false, false]),
    ] {
        let mut program = Twice::of(&[], &[keep], None);
        // adc.a is 0.9 V with the word 560.
        let found = [199, 200, 201].map(|word| program.keeps(&row(0, 560, word, 0, 0)));
        assert_eq!(found, expected, "{keep}");
    }
}

#[test]
fn bits_bind_more_than_comparisons_and_those_more_than_and_and_or() {
    for (keep, io, expected) in [
        ("io.in & 1", 3, true),
        ("io.in & 1", 2, false),
        ("io.in & 6 == 2", 3, true),
        ("io.in & 6 == 2 && io.in & 1 == 0", 3, false),
        ("io.in == 9 || io.in & 1 && io.in >> 1 == 1", 3, true),
        ("(io.in == 9 || io.in & 1) && io.in >> 1 == 2", 3, false),
        ("io.in ^ 0b11 == 0", 3, true),
        ("io.in + 1 << 2 == 16", 3, true),
        ("!io.in", 0, true),
        ("~io.in & 0xFF == 0xFC", 3, true),
        ("io.in * 2 % 4 == 2", 3, true),
    ] {
        assert_eq!(
            Twice::of(&[], &[keep], None).keeps(&row(0, 0, 0, io, 0)),
            expected,
            "{keep} of {io}"
        );
    }
}

#[test]
fn a_derived_column_has_a_unit_a_scale_and_the_bits_that_it_needs() {
    let mut program = Twice::of(
        &[
            "sum = adc.a + adc.b",
            "power = adc.a * 2 A",
            "step = diff(enc.pos) in um",
            "high = adc.a > 1 V",
            "low = io.in & 7",
        ],
        &[],
        None,
    );
    let about: Vec<_> = program
        .program
        .derived()
        .iter()
        .map(|column| (column.unit.as_str(), column.word, column.bits))
        .collect();
    assert_eq!(
        about,
        [
            ("V", Word::Signed, 19),
            ("V*A", Word::Signed, 16),
            ("um", Word::Signed, 33),
            ("", Word::Unsigned, 1),
            ("", Word::Unsigned, 3)
        ]
    );
    let near = |found: &[f64], expected: [f64; 5]| {
        found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    };
    assert!(near(
        &program.values(&row(5, 1000, 400, 13, 0)),
        [2.8, 4.0, 0.0, 1.0, 5.0]
    ));
    assert!(near(
        &program.values(&row(-5, 200, 400, 8, 0)),
        [0.8, 0.0, -10.0, 0.0, 0.0]
    ));
    let names: Vec<_> = program
        .program
        .derived()
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["sum", "power", "step", "high", "low"]);
}

#[test]
fn a_rate_is_a_quotient_of_two_differences() {
    let mut program = Twice::of(
        &["speed = diff(enc.pos) / diff(clock.time) in mm/s"],
        &[],
        None,
    );
    assert_eq!(program.program.derived()[0].unit, "mm/s");
    let speed = |program: &mut Twice, pos, time| program.values(&row(pos, 0, 0, 0, time))[0];
    assert_eq!(
        speed(&mut program, 1000, 5_000_000),
        0.0,
        "the first row has none before it"
    );
    // 200 µm in 100 µs are 2 m/s.
    assert!((speed(&mut program, 1200, 5_100_000) - 2000.0).abs() < 0.01);
    assert!((speed(&mut program, 1000, 5_200_000) + 2000.0).abs() < 0.01);
    assert_eq!(
        speed(&mut program, 900, 5_200_000),
        0.0,
        "no time has passed"
    );
    let mut inverse = Twice::of(
        &["per = 1 / io.in else 0", "other = 8 / io.in else 8"],
        &[],
        None,
    );
    assert_eq!(inverse.values(&row(0, 0, 0, 0, 0)), [0.0, 8.0]);
    assert_eq!(inverse.values(&row(0, 0, 0, 4, 0)), [0.25, 2.0]);
}

#[test]
fn a_difference_of_words_of_64_bits_goes_round_rightly() {
    let mut program = Twice::of(&["step = diff(cnt.n)"], &[], None);
    let mut step = |n: u64| program.run(&[0, 0, 0, 0, 0, n]).0[0] as i64;
    assert_eq!([step(u64::MAX - 1), step(2), step(0)], [0, 4, -2]);
}

#[test]
fn a_mean_of_rows_is_exact_and_begins_with_the_first_one() {
    let mut program = Twice::of(&["m = mean(adc.a, 4)", "s = sum(io.in, 3)"], &[], None);
    let mut next = |a: i64| program.values(&row(0, a, 0, a as u64, 0));
    let value = |word: f64| word * 0.0025 - 0.5;
    // The first row stands for those that are not there.
    for (a, mean, sum) in [
        (8, 8.0, 24.0),
        (12, 9.0, 28.0),
        (8, 9.0, 28.0),
        (9, 9.25, 29.0),
        (1, 7.5, 18.0),
        (0, 4.5, 10.0),
        (0, 2.5, 1.0),
    ] {
        let found = next(a);
        assert!(
            (found[0] - value(mean)).abs() < 1e-12 && found[1] == sum,
            "{found:?}"
        );
    }
}

#[test]
fn since_emit_is_from_the_last_row_that_was_kept() {
    let derive = [
        "n = count(since emit)",
        "odd = count(io.in & 1 since emit)",
        "s = sum(io.in since emit)",
        "m = mean(io.in since emit)",
        "least = min(io.in since emit)",
        "most = max(io.in since emit)",
        "f = first(io.in since emit)",
        "l = last(io.in since emit)",
        "wide = spread(io.in since emit)",
    ];
    let mut by_count = Twice::of(&derive, &[], Some(3));
    let mut by_sign = Twice::of(&derive, &["io.in >= 100"], None);
    for (io, kept) in [
        (4, None),
        (9, None),
        (
            101,
            Some([3.0, 2.0, 114.0, 38.0, 4.0, 101.0, 4.0, 101.0, 97.0]),
        ),
        (8, None),
        (7, None),
        (
            111,
            Some([3.0, 2.0, 126.0, 42.0, 7.0, 111.0, 8.0, 111.0, 104.0]),
        ),
    ] {
        for program in [&mut by_count, &mut by_sign] {
            let (words, is_kept) = program.run(&row(0, 0, 0, io, 0));
            assert_eq!(is_kept, kept.is_some(), "{io}");
            let columns = program.program.derived().iter();
            let values: Vec<f64> = columns
                .zip(words)
                .map(|(column, word)| crate::common::value(column, word))
                .collect();
            if let Some(expected) = kept {
                assert_eq!(values, expected);
            }
        }
    }
}

#[test]
fn every_counts_the_rows_that_the_conditions_keep() {
    let mut program = Twice::of(&[], &["io.in & 1", "io.in < 100"], Some(2));
    let kept = [1, 3, 2, 5, 101, 7, 9].map(|io| program.keeps(&row(0, 0, 0, io, 0)));
    assert_eq!(kept, [false, true, false, false, false, true, false]);
    let mut all = Twice::of(&[], &[], Some(3));
    let kept: Vec<_> = (0..7).map(|io| all.keeps(&row(0, 0, 0, io, 0))).collect();
    assert_eq!(kept, [false, false, true, false, false, true, false]);
}

#[test]
fn what_is_kept_from_row_to_row_does_not_depend_on_what_is_asked_first() {
    // The second side of && is not needed if the first is not so; its difference is taken all the same.
    let mut program = Twice::of(&[], &["io.in & 1 && diff(enc.pos) == 1 um"], None);
    let kept =
        [(0, 5), (0, 6), (1, 7), (1, 9)].map(|(io, pos)| program.keeps(&row(pos, 0, 0, io, 0)));
    assert_eq!(kept, [false, false, true, false]);
}

#[test]
fn columns_that_are_derived_are_there_for_those_after_them() {
    let mut program = Twice::of(
        &["step = diff(enc.pos)", "far = abs(step) in um"],
        &["far >= 3 um"],
        None,
    );
    let kept = [0, 2, -1, -1].map(|pos| program.keeps(&row(pos, 0, 0, 0, 0)));
    assert_eq!(kept, [false, false, true, false]);
    let fault =
        compile(&text(&["a = b", "b = io.in"], &[], None), &columns()).expect_err("b comes later");
    assert_eq!((fault.part, fault.column), (Part::Derive(0), 5));
}

#[test]
fn the_least_the_greatest_and_bounds_are_of_one_unit() {
    let mut program = Twice::of(
        &[
            "x = clamp(adc.a, 0 V, 2.5 V)",
            "y = min(adc.a, adc.b, 0.7 V)",
            "z = max(io.in, 7)",
        ],
        &[],
        None,
    );
    for (a, b, io, expected) in [
        (200, 0, 0, [0.0, 0.0, 7.0]),
        (0, 0, 9, [0.0, -0.5, 9.0]),
        (2000, 800, 8, [2.5, 0.6, 8.0]),
        (1000, 0, 7, [2.0, 0.7, 7.0]),
    ] {
        let found = program.values(&row(0, a, b, io, 0));
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{found:?} {expected:?}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    for (source, column, words) in [
        (
            "x = adc.a > 2.5",
            5,
            "one side is in V, the other has no unit; write the number with its unit, as in 2.5 V",
        ),
        (
            "x = adc.a > 2.5 A",
            5,
            "one side is in V, the other is in A; write both in V",
        ),
        (
            "x = adc.c",
            5,
            "a row has no column adc.c; read it, or use another; there are enc.pos, adc.a",
        ),
        (
            "x = cnt.n + cnt.n",
            5,
            "it may overflow: the word would be from 0 to 36893488147419103230, and it has 64 bits; bound a part",
        ),
        (
            "x = io.in / io.in",
            5,
            "the divisor may be 0; say what the quotient is then, as in A / B else 0",
        ),
        (
            "x = io.in / 0",
            5,
            "the divisor is 0; divide by another number",
        ),
        (
            "x = diff(cnt.n) / diff(clock.time)",
            5,
            "the dividend may be so large that 0 bits are left for a fraction; bound",
        ),
        (
            "x = adc.a & 1",
            5,
            "only whole numbers have bits, and this is not one; write raw(CHANNEL)",
        ),
        (
            "x = io.in << io.in",
            14,
            "the number of bits to shift is not from 0 to 63; write one",
        ),
        (
            "x = mean(adc.a, 1)",
            17,
            "the number of rows is not from 2 to 1024; write such a number",
        ),
        (
            "x = mean(adc.a)",
            5,
            "mean has the wrong arguments; write mean(X, ROWS) or mean(X since emit)",
        ),
        (
            "x = avg(adc.a, 3)",
            5,
            "there is no function avg; use one of diff, mean",
        ),
        (
            "x = diff(adc.a since emit)",
            5,
            "there is no diff since emit; use count",
        ),
        (
            "x = diff(3 V)",
            10,
            "a number does not change from row to row; name a channel",
        ),
        (
            "x = adc.a in A",
            13,
            "it is in V, which cannot become A; write a unit of the same kind",
        ),
        (
            "x = io.in % io.in",
            13,
            "the divisor may be 0, or negative; divide by a value that is always greater",
        ),
        (
            "x = io.in < 3 < 4",
            15,
            "`<` compares the result of a comparison; join two comparisons with &&",
        ),
        ("x = io.in = 3", 11, "`=` compares nothing; write =="),
        ("x = (io.in", 5, "`(` has no end; write a `)`"),
        (
            "x = io.in)",
            10,
            "the expression has ended before this; put an operator",
        ),
        (
            "x = io.in &",
            12,
            "a channel, a number or a function is missing; write one",
        ),
        (
            "x io.in",
            3,
            "`=` is missing after the name of the derived column; write NAME = EXPRESSION",
        ),
        (
            "time = io.in",
            1,
            "each row has a time of its own; give it another name",
        ),
        (
            "io.in = 3",
            1,
            "there is a column io.in already; give it another name",
        ),
        ("x = mean(cnt.n since emit)", 5, "it may overflow"),
        ("x = 3 ? 4", 7, "`?` has no meaning here; leave it out"),
    ] {
        // Of many rows, so that means of words of 64 bits do not fit.
        let fault = compile(&text(&[source], &["io.in & 1"], None), &columns()).expect_err(source);
        assert_eq!((fault.line, fault.column), (1, column), "{source}: {fault}");
        let said = format!("{}; {}", fault.reason, fault.remedy);
        assert!(said.starts_with(words), "{source}: {said}");
    }
    let fault = compile(&text(&[], &["io.in &\n  ° 3"], None), &columns()).expect_err("two lines");
    assert_eq!(
        (fault.part, fault.line, fault.column),
        (Part::Keep(0), 2, 5)
    );
    let fault = compile(&text(&[], &["adc.a > 2.5 A"], None), &columns()).expect_err("a unit");
    assert!(
        fault
            .to_string()
            .starts_with("keep 'adc.a > 2.5 A', column 1: one side is in V"),
        "{fault}"
    );
}

#[test]
fn a_mean_of_a_group_is_not_taken_before_the_group_is_whole() {
    for derive in [
        &["m = diff(mean(io.in since emit))"][..],
        &["m = mean(io.in since emit)", "d = mean(m + 1, 4)"],
    ] {
        let fault = compile(&text(derive, &[], Some(3)), &columns()).expect_err("a group");
        assert!(
            fault.reason.contains("complete only in kept rows"),
            "{fault}"
        );
        // Of groups of any size the mean is one at each moment.
        assert!(compile(&text(derive, &["io.in & 1"], Some(3)), &columns()).is_ok());
    }
}

#[test]
fn a_condition_that_says_nothing_is_refused() {
    for (keep, words) in [
        ("adc.a > 100 V", "always false: no row"),
        ("io.in >= 0", "always true: every row"),
        ("io.in == 1.5", "always false"),
    ] {
        let fault = compile(&text(&[], &[keep], None), &columns()).expect_err(keep);
        assert!(fault.reason.contains(words), "{fault}");
    }
    for every in [0, 1 << 32] {
        assert!(compile(&text(&[], &[], Some(every)), &columns()).is_err());
    }
}

#[test]
fn no_text_is_too_long_or_too_deep_for_an_answer() {
    let deep = [
        "(".repeat(100_000),
        "-".repeat(100_000),
        format!("{}1", "!".repeat(70)),
        "io.in+".repeat(100_000),
        format!("io.in{}", "+io.in".repeat(480)),
        format!("{}io.in{}", "(io.in*".repeat(60), ")".repeat(60)),
        "abs(".repeat(63),
        format!("{}io.in{}", "abs(-".repeat(31), ")".repeat(31)),
    ];
    for keep in deep {
        let _ = compile(&text(&[], &[&keep], None), &columns());
    }
    let many: Vec<String> = (0..500)
        .map(|n| format!("x{n} = mean(io.in, 1000)"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let fault = compile(&text(&many, &[], None), &columns()).expect_err("too much");
    assert!(fault.reason.contains("words from row to row"), "{fault}");
    let many: Vec<String> = (0..1100)
        .map(|n| format!("x{n} = io.in + {n} & 3"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let fault = compile(&text(&many, &[], None), &columns()).expect_err("too much");
    assert!(fault.reason.contains("4096 instructions"), "{fault}");
}

#[test]
fn the_example_of_the_documents_is_short() {
    let derive = [
        "speed = diff(enc.pos) / diff(clock.time)",
        "smooth = mean(adc.a, 64)",
        "peak = max(adc.a since emit)",
    ];
    let program = Twice::of(&derive, &["io.in & 1", "adc.a > 2.5 V"], Some(10)).program;
    assert!(program.insns().len() < 130, "{}", program.insns().len());
    let gate = Twice::of(
        &["d = diff(enc.pos)"],
        &["adc.a > 2.5 V && io.in & 1"],
        None,
    )
    .program;
    assert!(gate.insns().len() < 30, "{}", gate.insns().len());
}

/// On a stack as small as a thread may have, also where nothing is optimized.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let thread = thread.spawn(work).expect("a thread");
    thread.join().expect("no panic")
}

#[test]
fn what_is_nested_too_deeply_is_refused_with_its_place_and_a_remedy() {
    let within = |open: &str, close: &str, count| {
        format!("{}io.in{}", open.repeat(count), close.repeat(count))
    };
    let texts = [
        within("(", ")", 60),
        within("-", "", 60),
        within("!", "", 60),
        within("abs(", ")", 60),
        within("1 + 2 * (", ")", 60),
        within("mean(", ", 2)", 60),
        within("max(1, ", ")", 60),
        format!("io.in{}", " + io.in".repeat(300)),
        format!("io.in{}", " / 2".repeat(300)),
        format!("io.in{}", " && io.in".repeat(300)),
    ];
    let faults = on_a_small_stack(move || {
        let refused = |text: &String| {
            let fault = compile(&self::text(&[], &[text], None), &columns());
            fault.expect_err("too deep")
        };
        texts.iter().map(refused).collect::<Vec<_>>()
    });
    for fault in faults {
        assert_eq!(
            fault.reason, "the expression is nested too deeply",
            "{fault}"
        );
        assert_eq!(
            fault.remedy,
            "give a part of it a name, as a derived column"
        );
        assert!(fault.column > 0 && fault.line == 1, "{fault}");
    }
}

#[test]
fn what_is_as_deep_as_it_may_be_needs_no_deep_stack() {
    let within = |open: &str, close: &str, count| {
        format!("{}io.in{}", open.repeat(count), close.repeat(count))
    };
    let texts = [
        within("(", ")", 31),
        within("-", "", 31),
        within("abs(-", ")", 15),
        within("max(1, ", ")", 31),
        within("clamp(", ", 0, 1)", 31),
        within("mean(", ", 2)", 31),
        within("max(", " since emit)", 31),
        within("(1 - ", ")", 15),
        format!("io.in{}", " + io.in".repeat(250)),
        format!("io.in{}", " / 2".repeat(30)),
        format!("io.in{}", " && io.in".repeat(250)),
        format!("io.in{}", " || io.in".repeat(250)),
        format!("mean(io.in{} since emit)", " + io.in".repeat(240)),
    ];
    on_a_small_stack(move || {
        for derive in texts.iter().map(|text| format!("x = {text}")) {
            let program = compile(&text(&[&derive], &[], None), &columns());
            program.unwrap_or_else(|fault| panic!("{fault}"));
        }
    });
}

#[test]
fn no_text_whatever_its_length_overflows_a_small_stack() {
    on_a_small_stack(|| {
        for deep in [
            "(", "-", "!(", "abs(", "io.in+", "io.in/", "io.in&&", "1 || (", "max(1,",
        ] {
            for end in ["", "io.in"] {
                let keep = format!("{}{end}", deep.repeat(100_000));
                let fault = compile(&text(&[], &[&keep], None), &columns());
                fault.expect_err(deep);
            }
        }
    });
}

#[test]
fn as_many_conditions_as_one_likes_need_no_deep_stack() {
    let conditions = |count| vec!["io.in & 1"; count];
    // On a stack as small as a thread of the daemon may have.
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    let compiled = thread.spawn(move || {
        let program = compile(&text(&[], &conditions(1000), None), &columns());
        let fault = compile(&text(&[], &conditions(75_000), None), &columns());
        (program, fault)
    });
    let (program, fault) = compiled.expect("a thread").join().expect("no panic");
    assert!(program.is_ok(), "{program:?}");
    let fault = fault.expect_err("too many");
    assert!(fault.reason.contains("4096 instructions"), "{fault}");
    let mut many = Twice::of(&[], &["io.in & 1", "io.in & 2", "io.in & 4"], None);
    for io in 0..8 {
        assert_eq!(many.keeps(&row(0, 0, 0, io, 0)), io == 7, "{io}");
    }
}

#[test]
fn a_row_of_more_columns_than_instructions_reach_is_refused() {
    let many: Vec<String> = (0..4091).map(|n| format!("x{n} = 0")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    let fault = compile(&text(&many, &[], None), &columns()).expect_err("too many");
    assert_eq!(
        (fault.reason.as_str(), fault.remedy.as_str()),
        (
            "a row would have 4097 columns, and 4096 are possible",
            "leave some out"
        )
    );
    many.pop();
    // That many are one too many for its instructions, and not for its columns.
    let fault = compile(&text(&many, &[], None), &columns()).expect_err("too long");
    assert!(fault.reason.contains("4096 instructions"), "{fault}");
}

#[test]
fn a_number_of_rows_that_is_none_is_what_is_said_first() {
    for every in [0, u64::MAX] {
        let text = text(&["m = mean(io.in since emit)"], &[], Some(every));
        let fault = compile(&text, &columns()).expect_err("no such number");
        let said = fault.to_string();
        assert!(said.contains("it must be from 1 to 2147483648"), "{said}");
    }
}

#[test]
fn a_name_that_a_file_has_no_place_for_is_refused() {
    for name in ["", "a,b", "a b", "output x", "a\nb", "a\"b", "a\u{7}"] {
        let source = format!("`{name}` = io.in");
        let fault = compile(&text(&[&source], &[], None), &columns()).expect_err(name);
        assert_eq!(fault.column, 1, "{fault}");
        assert!(
            fault.reason.contains("cannot be the name of a column"),
            "{fault}"
        );
    }
    assert!(compile(&text(&["`a-b/c:d#1` = io.in"], &[], None), &columns()).is_ok());
}
