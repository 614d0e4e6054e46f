// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables of a program that are set while the run goes on.

use rustix::io::Errno;
use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::engine::errno;
use strobe_cases::machine::timer;
use strobe_cases::{Account, Engine, plan};

/// Rows of `sim.counter`, which counts them, and of these tunables.
fn with(event: &str, tunables: &[&str], program: ProgramText) -> Plan {
    let mut plan = plan(event, &["sim.counter"]);
    plan.program = ProgramText {
        tunables: tunables.iter().map(|text| (*text).to_owned()).collect(),
        ..program
    };
    plan
}

/// What was read of a run that has ended.
fn ended(run: &impl OwnedRun, reader: &mut RunReader, mut account: Account) -> Account {
    run.stop().expect("to stop");
    read_now(reader, &mut account);
    account.settle(&reader.snapshot());
    account
}

pub fn a_new_value_is_in_each_row_that_begins_after_it<E: Engine>(engine: &E) {
    let program = ProgramText {
        derive: vec!["far = clamp(sim.counter, 0, 100) >= limit".into()],
        ..ProgramText::default()
    };
    let run = engine.run(&with("soft", &["limit = 5", "other = -2"], program));
    assert_eq!(run.info().tunables, ["limit", "other"]);
    let names: Vec<_> = run.info().channels.iter().map(|c| &c.name).collect();
    assert_eq!(names, ["sim.counter", "limit", "other", "far"]);
    let (mut reader, account) = begin(&run);
    run.start().expect("to start");
    run.trigger(10).expect("triggers");
    run.tune("limit", "13").expect("to tune");
    run.trigger(5).expect("triggers");
    run.tune("other", "7").expect("to tune");
    run.tune("limit", "-1").expect("to tune");
    run.trigger(5).expect("triggers");
    let account = ended(&run, &mut reader, account);
    assert_eq!(account.rows.len(), 20);
    for row in &account.rows {
        let (limit, other) = match row.row {
            0..10 => (5, -2),
            10..15 => (13, -2),
            _ => (-1, 7),
        };
        let far = u64::from(row.row as i64 >= limit);
        assert_eq!(
            row.values,
            [row.row, limit as u64, other as u64, far],
            "{row:?}"
        );
    }
}

pub fn rules_go_on_from_a_value_that_was_set<E: Engine>(engine: &E) {
    let program = ProgramText {
        rules: vec![Rule {
            when: "sim.counter >= next".into(),
            then: vec!["next += 7".into()],
        }],
        ..ProgramText::default()
    };
    let mut plan = with("soft", &["next = 5 like sim.counter"], program);
    plan.steps.push(Step::Act {
        output: "sim.latch".into(),
        value: 1,
        rule: 0,
    });
    let run = engine.run(&plan);
    let (mut reader, account) = begin(&run);
    run.start().expect("to start");
    run.trigger(20).expect("triggers");
    run.tune("next", "100").expect("to tune");
    run.trigger(20).expect("triggers");
    run.tune("next", "41").expect("to tune");
    run.trigger(20).expect("triggers");
    let account = ended(&run, &mut reader, account);
    let wanted = |row: u64| match row {
        // 5, 12, 19: met in that row, seen from the next one on.
        0..6 => 5,
        6..20 => 5 + 7 * ((row - 6) / 7 + 1),
        20..40 => 100,
        40..42 => 41,
        _ => 41 + 7 * ((row - 42) / 7 + 1),
    };
    assert_eq!(account.rows.len(), 60);
    for row in &account.rows {
        assert_eq!(row.values[1], wanted(row.row), "{row:?}");
    }
}

/// Before the start, and in a pause.
pub fn a_value_is_kept_until_the_program_runs<E: Engine>(engine: &E) {
    let run = engine.run(&with("soft", &["x = 1"], ProgramText::default()));
    run.tune("x", "2").expect("to tune");
    run.tune("x", "3").expect("to tune");
    let (mut reader, account) = begin(&run);
    run.start().expect("to start");
    run.trigger(1).expect("a trigger");
    run.pause().expect("to pause");
    run.tune("x", "4").expect("to tune");
    run.resume().expect("to resume");
    run.trigger(1).expect("a trigger");
    let account = ended(&run, &mut reader, account);
    assert_eq!(account.column(1).collect::<Vec<_>>(), [3, 4]);
}

pub fn what_cannot_be_set_is_refused_and_changes_nothing<E: Engine>(engine: &E) {
    let run = engine.run(&with(
        "soft",
        &["x = 1 like sim.counter", "v = 2.5 V"],
        ProgramText::default(),
    ));
    let said = |name: &str, value: &str| match run.tune(name, value) {
        Ok(()) => panic!("not refused: {name} = {value}"),
        Err(error) => error.to_string(),
    };
    assert!(said("y", "1").ends_with("it cannot be tuned; this run has x, v"));
    assert!(said("sim.counter", "1").contains("it cannot be tuned"));
    assert!(said("x", "1.5").contains("finer steps"));
    assert!(said("v", "1 mm").contains("unit"));
    assert!(said("v", "sim.counter").contains("no column sim.counter"));
    assert!(said("v", "2.5 V V").starts_with("tune '2.5 V V', column"));
    assert_eq!(errno(run.tune_word(2, 0)), Some(Errno::INVAL));
    assert_eq!(errno(run.tune_word(0, u64::MAX)), Some(Errno::RANGE));
    assert_eq!(errno(run.tune_word(1, 1 << 62)), Some(Errno::RANGE));
    let (mut reader, account) = begin(&run);
    run.start().expect("to start");
    run.trigger(1).expect("a trigger");
    let account = ended(&run, &mut reader, account);
    assert_eq!(account.rows[0].values, [0, 1, 5]);
    assert_eq!(errno(run.tune_word(0, 1)), Some(Errno::SHUTDOWN));
    let without = engine.run(&plan("soft", &["sim.counter"]));
    assert_eq!(errno(without.tune_word(0, 1)), Some(Errno::INVAL));
}

pub fn values_that_are_set_while_rows_are_made_are_seen_once_and_in_their_order<E: Engine>(
    engine: &E,
) {
    const VALUES: u64 = 2000;
    // Each row that begins after a value changes it; so a value that was taken twice would be seen twice.
    let program = ProgramText {
        rules: vec![Rule {
            when: "x != 0".into(),
            then: vec!["x = 0".into()],
        }],
        ..ProgramText::default()
    };
    let mut plan = with(&timer(500_000), &["x = 0", "y = 0"], program);
    plan.ring = Some(1 << 16);
    let run = engine.run(&plan);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    for value in 1..=VALUES {
        run.tune("x", &value.to_string()).expect("to tune");
        run.tune("y", &value.to_string()).expect("to tune");
        if value % 100 == 0 {
            let rows = reader.snapshot().head;
            // The first one may have begun before the value.
            until("two rows", || reader.snapshot().head > rows + 1);
            read_now(&mut reader, &mut account);
        }
    }
    let rows = reader.snapshot().head;
    until("a row after the last value", || {
        reader.snapshot().head > rows + 1
    });
    let account = ended(&run, &mut reader, account);
    let seen: Vec<u64> = account.column(1).filter(|value| *value != 0).collect();
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    assert_eq!(seen.last(), Some(&VALUES));
    assert!(seen.len() as u64 >= VALUES / 100, "{seen:?}");
    let stays: Vec<u64> = account.column(2).collect();
    assert!(stays.is_sorted(), "a value went back");
    assert_eq!(stays.last(), Some(&VALUES));
}
