// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program does where a condition is met: variables change, outputs are written.

use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now};
use strobe_cases::{Account, Engine, plan};

/// A rule, and what it writes to the latch of the simulator.
struct Latch(&'static str, &'static [&'static str], u64);

/// Rows of `sim.counter`, which counts them, of `sim.latch` and of what is derived.
fn with_rules(rules: &[Latch], program: ProgramText) -> Plan {
    let mut plan = plan("soft", &["sim.counter", "sim.latch"]);
    for (rule, Latch(_, _, value)) in rules.iter().enumerate() {
        plan.steps.push(Step::Act {
            output: "sim.latch".into(),
            value: *value,
            rule,
        });
    }
    let rules = rules.iter().map(|Latch(when, then, _)| Rule {
        when: (*when).into(),
        then: then.iter().map(|text| (*text).into()).collect(),
    });
    plan.program = ProgramText {
        rules: rules.collect(),
        ..program
    };
    plan
}

/// So many triggers of a run that has just begun.
fn triggered<E: Engine>(engine: &E, plan: &Plan, triggers: u32) -> Account {
    let run = engine.run(plan);
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    run.trigger(triggers).expect("to trigger");
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.triggers, u64::from(triggers));
    assert_eq!(
        end.head + end.skipped,
        u64::from(triggers),
        "nothing is missed"
    );
    account
}

pub fn a_rule_writes_its_output_in_the_rows_that_meet_it<E: Engine>(engine: &E) {
    let rules = [
        Latch("sim.counter % 10 == 3", &[], 7),
        Latch("sim.counter % 10 == 6", &[], u64::MAX),
    ];
    let account = triggered(engine, &with_rules(&rules, ProgramText::default()), 40);
    // Written after the row was read: the next one has it.
    for row in account.rows.iter().skip(10) {
        let wanted = match row.row % 10 {
            4..=6 => 7,
            _ => u64::MAX,
        };
        assert_eq!(row.values, [row.row, wanted], "{row:?}");
    }
    assert_eq!(account.rows.len(), 40);
}

pub fn a_variable_is_the_next_position_that_is_waited_for<E: Engine>(engine: &E) {
    let rules = [Latch("sim.counter >= next", &["next += 7"], 1)];
    let program = ProgramText {
        variables: vec!["next = 5 like sim.counter".into()],
        derive: vec!["wanted = next".into()],
        ..ProgramText::default()
    };
    let account = triggered(engine, &with_rules(&rules, program), 100);
    for row in &account.rows {
        // 5, 12, 19 ...: met in that row, seen from the next one on.
        let wanted = if row.row < 6 {
            5
        } else {
            5 + 7 * ((row.row - 6) / 7 + 1)
        };
        assert_eq!(row.values[2], wanted, "{row:?}");
    }
    assert_eq!(account.rows.len(), 100);
}

pub fn rules_are_also_met_by_rows_that_are_left_out<E: Engine>(engine: &E) {
    let rules = [
        Latch("sim.counter % 10 == 3", &["met += 1"], 3),
        Latch("sim.counter % 10 == 8", &["met += 1"], 8),
    ];
    let program = ProgramText {
        variables: vec!["met = 0".into()],
        derive: vec!["times = met".into()],
        every: Some(5),
        ..ProgramText::default()
    };
    let account = triggered(engine, &with_rules(&rules, program), 100);
    assert_eq!(account.rows.len(), 20);
    for row in account.rows.iter().skip(1) {
        // Rows 4, 9, 14 ... of all: 3 or 8 was written right before.
        let all = row.values[0];
        assert_eq!(row.values[1], all % 10 - 1, "{row:?}");
        assert_eq!(row.values[2], all / 5 + 1, "{row:?}");
    }
}

pub fn an_output_of_a_rule_stands_last_and_has_its_rule<E: Engine>(engine: &E) {
    let good = with_rules(&[Latch("sim.counter & 1", &[], 1)], ProgramText::default());
    let mut behind = good.clone();
    behind.steps.push(Step::Read("sim.ramp".into()));
    let mut without = good.clone();
    without.program = ProgramText {
        derive: vec!["x = sim.counter % 2".into()],
        ..ProgramText::default()
    };
    let mut none = good.clone();
    none.steps.pop();
    none.steps.push(Step::Act {
        output: "sim.nothing".into(),
        value: 1,
        rule: 0,
    });
    for (plan, why) in [
        (behind, "stands behind an output that a rule writes"),
        (
            without,
            "the rule that is to write it is not in the program",
        ),
        (none, "sim.nothing"),
    ] {
        let said = match engine.create(&plan) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("not refused: {why}"),
        };
        assert!(said.contains(why), "{said}");
    }
    let run = engine.run(&good);
    assert_eq!(run.info().outputs, ["sim.latch"]);
}
