// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables that can be tuned, a sentence for each thing that is promised of them.

use crate::common::{Twice, columns, row, rules};
use strobe_expr::{Column, ProgramText, TUNABLES_MAX, Word, compile, word};

fn tunables(tunables: &[&str], of: &[(&str, &[&str])]) -> ProgramText {
    ProgramText {
        tunables: tunables.iter().map(|text| (*text).to_owned()).collect(),
        ..rules(&[], of)
    }
}

fn program(text: &ProgramText) -> Twice {
    Twice::new(text, &columns()).unwrap_or_else(|fault| panic!("{fault}"))
}

fn at(pos: i64) -> [u64; 6] {
    row(pos, 0, 0, 0, 0)
}

#[test]
fn a_tunable_is_a_column_that_shows_with_what_the_row_was_computed() {
    let mut text = tunables(
        &["next = 1 mm like enc.pos", "step = 100 um like enc.pos"],
        &[("enc.pos >= next", &["next += step"])],
    );
    text.derive = vec!["left = next - enc.pos".into()];
    let mut program = program(&text);
    let names: Vec<_> = program.program.derived().iter().map(|c| &c.name).collect();
    assert_eq!(names, ["next", "step", "left"]);
    let shown = &program.program.derived()[0];
    let wanted = Column {
        name: "next".into(),
        ..columns()[0].clone()
    };
    assert_eq!(*shown, wanted);
    assert_eq!(program.program.tunables(), [1000, 100]);
    // Each row shows the position that it was compared with, not the next one.
    let seen = [999, 1000, 1001, 1100].map(|pos| program.run(&at(pos)).0);
    let seen = seen.map(|words| (words[0], words[2] as i64));
    assert_eq!(seen, [(1000, 1), (1000, 0), (1100, 99), (1100, 0)]);
}

#[test]
fn a_new_value_is_there_in_the_next_row_and_rules_go_on_from_it() {
    let text = tunables(
        &["next = 1 mm like enc.pos"],
        &[("enc.pos >= next", &["next += 0.1 mm"])],
    );
    let mut program = program(&text);
    assert_eq!(program.meets(&at(500)), [0_usize; 0]);
    program.tune(0, 400);
    assert_eq!(program.meets(&at(500)), [0]);
    assert_eq!(program.run(&at(450)).0, [500]);
    // Before the first row as well as between others.
    let mut program = self::program(&text);
    program.tune(0, 7);
    assert_eq!(program.run(&at(0)).0, [7]);
}

#[test]
fn means_and_the_first_row_are_what_they_are_without_tunables() {
    let derive = || vec!["d = diff(enc.pos)".to_owned(), "m = mean(io.in, 3)".into()];
    let plain = ProgramText {
        derive: derive(),
        every: Some(2),
        ..ProgramText::default()
    };
    let mut with = tunables(&["a = 1", "b = 2", "c = 3"], &[]);
    with.derive = derive();
    with.every = Some(2);
    let (mut plain, mut with) = (program(&plain), program(&with));
    for n in 0..20 {
        let inputs = row(n * n, 0, 0, (n * 7) as u64 & 0xff, 0);
        let (words, is_kept) = plain.run(&inputs);
        let (more, also) = with.run(&inputs);
        assert_eq!((&words[..], is_kept), (&more[3..], also), "row {n}");
    }
}

#[test]
fn the_word_of_a_value_is_in_the_units_of_the_column_and_a_value_between_two_is_refused() {
    let enc = columns().remove(0);
    let volts = columns().remove(1);
    let falling = columns().remove(2);
    let plain = Column::signed("n");
    // As of a converter of 16 bits: nobody can write its steps.
    let fine = Column {
        unit: "V".to_owned(),
        scale: 10.0 / 32767.0,
        bits: 16,
        ..Column::signed("adc.fine")
    };
    // A current loop: an offset, and a step below 0.
    let current = Column {
        unit: "mA/s".to_owned(),
        scale: -0.25,
        offset: 4.1,
        bits: 16,
        ..Column::signed("loop")
    };
    let angle = Column {
        unit: "° over ground".to_owned(),
        word: Word::Unsigned,
        bits: 8,
        ..Column::signed("angle")
    };
    let words = [
        ("10 V", &fine, 32767),
        ("1.8", &fine, 5898),
        ("-1.8 V", &fine, -5898),
        ("0.1 mV", &fine, 0),
        ("0.2 mV", &fine, 1),
        ("-1.9", &current, 24),
        ("7", &angle, 7),
        ("1 mm", &enc, 1000),
        ("-25 um", &enc, -25),
        ("1 mm + 2 um", &enc, 1002),
        ("0", &enc, 0),
        ("-1.25", &enc, -1250),
        ("2 V", &volts, 1000),
        ("0 mV", &falling, 2000),
        ("7", &plain, 7),
    ];
    for (text, column, wanted) in words {
        assert_eq!(word(text, column), Ok(wanted as u64), "{text}");
    }
    let refused = [
        (
            "1.5 um",
            &enc,
            "column 1: this has finer steps than enc.pos has; write 0.001 mm or 0.002 mm, or declare",
        ),
        (
            "10.001 V",
            &fine,
            "the word of adc.fine would be 32770, and it is from -32768 to 32767",
        ),
        ("1e38 V", &fine, ""),
        ("1e38", &plain, "the word of n would be"),
        (
            "170141183460469231731687303715884105727",
            &plain,
            "the word of n would be",
        ),
        ("1 mV", &volts, "write 0 V or 0.0025 V, or declare"),
        ("-0.3", &plain, "write -1 or 0, or declare"),
        ("0.995", &plain, "write 0 or 1, or declare"),
        (
            "-1.8",
            &current,
            "write -1.65 mA/s or -1.9 mA/s, or declare",
        ),
        ("-0.5", &angle, "write 0 \"° over ground\", or declare"),
        ("300.5", &angle, "; declare angle"),
        ("1 V", &enc, "unit"),
        ("1e9 mm", &enc, "the word of enc.pos would be"),
        ("enc.pos", &enc, "not a number"),
        ("adc.a", &enc, "no column adc.a"),
        ("1 mm mm", &enc, ""),
        ("", &enc, ""),
    ];
    for (text, column, wanted) in refused {
        let said = word(text, column).expect_err(text).to_string();
        assert!(said.contains(wanted), "{text}: {said}");
        assert!(said.starts_with("tune '"), "{said}");
        let beside = said.split_once("; write ").map(|(_, remedy)| remedy);
        let beside = beside.and_then(|remedy| remedy.split_once(", or declare"));
        for value in beside
            .map_or("", |(values, _)| values)
            .split_terminator(" or ")
        {
            assert!(word(value, column).is_ok(), "{text}: {said}: {value}");
        }
    }
}

#[test]
fn the_word_of_the_first_value_is_that_of_the_same_text() {
    let text = tunables(&["a = 2.5 V", "b = -3", "c = 7 counts like cnt.n"], &[]);
    let program = compile(&text, &columns()).expect("a program");
    for (text, (column, first)) in ["2.5 V", "-3", "7 counts"]
        .iter()
        .zip(program.derived().iter().zip(program.tunables()))
    {
        assert_eq!(word(text, column).as_ref(), Ok(first), "{text}");
    }
    let kinds: Vec<_> = program.derived().iter().map(|c| (c.word, c.bits)).collect();
    // Room to compute with.
    let wanted = [(Word::Signed, 63), (Word::Signed, 63), (Word::Unsigned, 62)];
    assert_eq!(kinds, wanted);
}

#[test]
fn what_cannot_be_a_tunable_is_refused_with_its_place_and_the_remedy() {
    let refused = |all: &[&str], wanted: &str| {
        let fault = compile(&tunables(all, &[]), &columns()).expect_err(wanted);
        let said = fault.to_string();
        assert!(said.starts_with(wanted), "{said}");
    };
    refused(
        &["enc.pos = 1"],
        "tune 'enc.pos = 1', column 1: there is a column enc.pos already",
    );
    refused(
        &["a = 1", "a = 2"],
        "tune 'a = 2', column 1: there is a variable a already",
    );
    refused(
        &["row = 1"],
        "tune 'row = 1', column 1: there is a column row already",
    );
    refused(
        &["a = io.in"],
        "tune 'a = io.in', column 5: what a variable is at first is not a number",
    );
    refused(
        &["`a b` = 1"],
        "tune '`a b` = 1', column 1: `a b` cannot be the name of a column",
    );
    let many: Vec<String> = (0..=TUNABLES_MAX).map(|n| format!("t{n} = 0")).collect();
    let text = ProgramText {
        tunables: many,
        ..ProgramText::default()
    };
    let said = compile(&text, &columns())
        .expect_err("too many")
        .to_string();
    assert!(
        said.contains("there are 65 tunables, and 64 are possible"),
        "{said}"
    );
}
