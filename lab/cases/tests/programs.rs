// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of the kernel engine: its rows are those that the evaluator makes of the same values, bit for bit.

use std::sync::Arc;

use strobe::engine::Error;
use strobe::info::{Clock, RunInfo};
use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule, compile};
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{Kept, begin, read_now, record, until, until_rows};
use strobe_cases::engine::program;
use strobe_cases::machine::{Sim, sysfs, timer};
use strobe_cases::raw::Parameter;
use strobe_cases::rounds::{held, rounds};
use strobe_cases::{Account, Engine, Kernel, plan};
use strobe_expr::Machine;
use strobe_ring::{Snapshot, State};

const CHANNELS: [&str; 4] = ["sim.counter", "sim.ramp", "sim.sine", "sim.noise"];

/// Something of everything that the language has.
const DERIVE: [&str; 16] = [
    "step = diff(sim.counter)",
    "slope = diff(sim.sine) / diff(sim.counter) else 0",
    "of3 = mean(sim.sine, 3)",
    "of64 = mean(sim.noise, 64)",
    "all = sum(sim.ramp, 1000)",
    "least = min(sim.sine, sim.noise)",
    "most = max(sim.sine, sim.noise, 0)",
    "size = abs(sim.noise)",
    "held = clamp(sim.ramp, 0.25 V, 0.5 V)",
    "rest = sim.counter % 7",
    "bits = (sim.counter & 1023) << 2 >> 1 | 3 ^ raw(sim.ramp)",
    "peak = max(sim.noise since emit)",
    "rows = count(since emit)",
    "some = count(sim.ramp > 0.5 V since emit)",
    "spread = spread(sim.ramp since emit)",
    "ratio = sim.noise / (raw(sim.ramp) + 1)",
];

/// Rows of a timer may be made in line (kernel/row/row.h), those of software triggers never are.
fn events() -> [String; 2] {
    ["soft".into(), timer(500_000)]
}

/// What came of 400 triggers that were not missed, or of some more.
fn four_hundred(plan: &Plan) -> (Account, Snapshot) {
    run_for(400, &Kernel::open().run(plan))
}

fn run_for(triggers: u32, run: &impl OwnedRun) -> (Account, Snapshot) {
    let (mut reader, mut account) = begin(run);
    run.start().expect("to start");
    if run.info().event == "soft" {
        run.trigger(triggers).expect("triggers");
    }
    until("triggers", || {
        read_now(&mut reader, &mut account);
        let now = reader.snapshot();
        now.head + now.skipped >= u64::from(triggers)
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(account.lost, 0, "{end:?}");
    assert!(!account.rows.is_empty(), "{end:?}");
    (account, end)
}

fn with(event: &str, program: ProgramText) -> Plan {
    Plan {
        ring: Some(1 << 14),
        program,
        ..plan(event, &CHANNELS)
    }
}

/// The same program, for the evaluator.
fn machine(text: &ProgramText, info: &RunInfo) -> Machine {
    let program = compile(text, &info.channels[..CHANNELS.len()]);
    Machine::new(Arc::new(program.expect("a program")))
}

/// What the evaluator makes of a row's channels: its values, and whether it is kept.
fn computed(machine: &mut Machine, row: &Kept) -> (Vec<u64>, bool) {
    let mut values = row.values[..CHANNELS.len()].to_vec();
    values.resize(row.values.len(), 0);
    let is_kept = machine.run(&mut values).is_kept();
    (values, is_kept)
}

#[test]
fn each_row_has_what_the_evaluator_makes_of_its_values() {
    let _sim = Sim::well();
    let text = program(&DERIVE, &[], None);
    for event in &events() {
        let run = Kernel::open().run(&with(event, text.clone()));
        let channels = run.info().channels.iter();
        let names: Vec<&str> = channels.map(|c| c.name.as_str()).collect();
        assert_eq!(names[..4], CHANNELS);
        assert_eq!((names[4], names[19]), ("step", "ratio"));
        assert!(!run.info().skips);
        let (account, _) = run_for(3000, &run);
        let mut machine = machine(&text, run.info());
        for row in &account.rows {
            assert_eq!(
                computed(&mut machine, row),
                (row.values.clone(), true),
                "{event}: row {}",
                row.row
            );
        }
        // A test of words that never change shows nothing.
        for (column, name) in names.iter().enumerate().skip(4) {
            let first = account.rows[1].values[column];
            let changes = account.column(column).any(|word| word != first);
            assert!(
                changes || ["step", "rows", "spread"].contains(name),
                "{event}: {name} is always {first}"
            );
        }
    }
}

#[test]
fn what_a_program_leaves_out_is_skipped_and_the_rest_is_as_the_evaluator_says() {
    let _sim = Sim::well();
    let derive = [
        "c = sum(sim.counter % 100 since emit)",
        "d = diff(sim.counter)",
    ];
    let programs = [
        program(&derive, &["sim.counter % 3 == 0"], None),
        program(&derive, &[], Some(5)),
        program(&derive, &["sim.counter % 2 == 1"], Some(4)),
    ];
    for text in programs {
        let plan = Plan {
            limit: Some(100),
            ..with("timer:1kHz", text.clone())
        };
        let run = Kernel::open().run(&plan);
        assert!(run.info().skips);
        let (account, end) = record(&run);
        assert_eq!(end.head, 100);
        assert!(end.skipped >= 100, "{end:?}");
        check_kept(&account, &text, run.info());
    }
}

/// Rows that a program has left out had the values between those of the rows around them: the counter counts triggers that
/// were not missed.
fn check_kept(account: &Account, text: &ProgramText, info: &RunInfo) {
    let mut machine = machine(text, info);
    let first = &account.rows[0];
    let mut counter = first.values[0] - first.skipped;
    let mut skipped = 0;
    for row in &account.rows {
        loop {
            let mut values = row.values.clone();
            values[0] = counter;
            let is_kept = machine.run(&mut values).is_kept();
            counter += 1;
            if is_kept {
                assert_eq!(
                    (&values, skipped),
                    (&row.values, row.skipped),
                    "row {}",
                    row.row
                );
                break;
            }
            skipped += 1;
        }
    }
}

#[test]
fn an_event_that_leaves_triggers_out_may_have_a_program_that_does_not() {
    let _sim = Sim::well();
    let text = program(&["d = diff(sim.counter)"], &[], None);
    let plan = Plan {
        limit: Some(100),
        ..with("sim.decimated", text.clone())
    };
    let run = Kernel::open().run(&plan);
    let (account, end) = record(&run);
    assert!(end.skipped >= 99, "{end:?}");
    let mut machine = machine(&text, run.info());
    for row in &account.rows {
        assert_eq!(
            computed(&mut machine, row),
            (row.values.clone(), true),
            "{row:?}"
        );
    }
}

#[test]
fn a_row_in_which_a_channel_failed_is_kept_and_its_derived_columns_have_failed() {
    let sim = Sim::well();
    sim.set("sim_every", 4).set("sim_fail", 4);
    let text = program(
        &["d = diff(sim.counter)", "m = mean(sim.ramp, 8)"],
        &["sim.counter % 2 == 0"],
        None,
    );
    for event in &events() {
        let (account, end) = four_hundred(&with(event, text.clone()));
        assert!(end.errors >= 90 && end.skipped >= 100, "{event}: {end:?}");
        for row in &account.rows {
            if row.faults.is_empty() {
                assert_eq!(row.values[0] % 2, 0, "{event}: {row:?}");
                continue;
            }
            assert_eq!(row.faults, [1, 4, 5], "{event}: {row:?}");
            assert_eq!(row.values[4..], [0, 0], "{event}: {row:?}");
        }
    }
}

#[test]
fn a_program_of_a_run_on_atomic_time_has_its_rows_on_it() {
    let _sim = Sim::well();
    for event in &events() {
        let plan = Plan {
            clock: Clock::Tai,
            ..with(event, program(&["d = sim.counter & 1"], &[], None))
        };
        let (account, end) = four_hundred(&plan);
        for row in &account.rows {
            let since = row.time.checked_sub(end.start.tai);
            assert!(
                since.is_some_and(|ns| ns < 600_000_000_000),
                "{event}: {row:?}, {end:?}"
            );
            assert_eq!(row.values[4], row.values[0] & 1, "{event}: {row:?}");
        }
    }
}

#[test]
fn derived_columns_beyond_the_32nd_fail_with_the_row_and_outputs_stay_behind_them() {
    let sim = Sim::well();
    sim.set("sim_every", 4).set("sim_fail", 4 | 16);
    let mut steps: Vec<Step> = (0..38).map(|_| Step::Read("sim.counter".into())).collect();
    steps.push(Step::Read("sim.ramp".into()));
    steps.insert(
        5,
        Step::Write {
            output: "sim.latch".into(),
            value: 7,
        },
    );
    for event in &events() {
        let plan = Plan {
            steps: steps.clone(),
            ring: Some(4096),
            program: program(
                &["x = sim.ramp + 1 V", "y = diff(sim.ramp)", "z = abs(y)"],
                &[],
                Some(2),
            ),
            ..plan(event, &[])
        };
        let run = Kernel::open().run(&plan);
        assert_eq!(
            (run.info().channels.len(), run.info().outputs.len()),
            (42, 1)
        );
        let (account, _) = run_for(400, &run);
        let mut met = [0; 3];
        for row in &account.rows {
            let (ramp, latch) = (row.faults.contains(&38), row.faults.contains(&42));
            let derived = row
                .faults
                .iter()
                .filter(|index| (39..42).contains(*index))
                .count();
            assert_eq!(
                derived,
                if ramp || latch { 3 } else { 0 },
                "{event}: {row:?}"
            );
            assert_eq!(
                row.faults.len(),
                derived + usize::from(ramp) + usize::from(latch),
                "{event}: {row:?}"
            );
            if derived == 0 {
                // A sum with a number is another offset of the same word.
                assert_eq!(row.values[39], row.values[38], "{event}: {row:?}");
            }
            met[0] += usize::from(ramp);
            met[1] += usize::from(latch);
            met[2] += usize::from(derived == 0);
        }
        assert!(met.iter().all(|times| *times >= 90), "{event}: {met:?}");
    }
}

#[test]
fn what_is_kept_from_row_to_row_outlives_a_pause_and_the_first_row_after_it_says_so() {
    let _sim = Sim::well();
    let text = program(&["n = count(since emit)"], &["sim.counter % 4 == 0"], None);
    for event in &events() {
        let run = Kernel::open().run(&with(event, text.clone()));
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        for _ in 0..10 {
            if event == "soft" {
                run.trigger(6).expect("triggers");
            }
            until_rows(&reader, reader.snapshot().head + u64::from(event != "soft"));
            run.pause().expect("a pause");
            run.resume().expect("to go on");
        }
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        account.settle(&reader.snapshot());
        let of_four = account.rows.iter().skip(1).all(|row| row.values[4] == 4);
        assert!(of_four, "{event}: {:?}", account.rows);
        let resumed = account.rows.iter().filter(|row| row.status.resumed());
        // Of a timer a row may come after the last pause.
        let resumed = resumed.count();
        assert!(
            resumed == 9 || event != "soft" && resumed == 10,
            "{event}: {resumed}"
        );
    }
}

#[test]
fn who_attaches_has_the_names_and_units_of_derived_columns() {
    let _sim = Sim::well();
    let text = program(
        &["mean = mean(sim.sine, 4) in mV", "odd = sim.counter & 1"],
        &[],
        None,
    );
    let run = Kernel::open().run(&with("soft", text));
    let number = run.info().run;
    let attached = Kernel::open().0.attach(number).expect("its run");
    let theirs = &attached.info().channels;
    assert_eq!(theirs, &run.info().channels);
    assert_eq!(
        (theirs[4].name.as_str(), theirs[4].unit.as_str()),
        ("mean", "mV")
    );
    assert_eq!(sysfs(&format!("run{number}/channels")), "6");
    assert!(sysfs(&format!("run{number}/columns")).ends_with("mean\nodd"));
}

#[test]
fn programs_of_runs_with_channels_that_are_not_ready_at_once_are_refused() {
    let _sim = Sim::well();
    for channel in ["sim.slow", "sim.async"] {
        let plan = Plan {
            program: program(&["d = diff(sim.counter)"], &[], None),
            ..plan("soft", &["sim.counter", channel])
        };
        let refused = Kernel::open().create(&plan).err().expect("to be refused");
        assert!(matches!(refused, Error::ProgramOfKernel(_)), "{refused}");
        assert!(
            refused
                .to_string()
                .contains(&format!("channel {channel} arrives later")),
            "{refused}"
        );
    }
}

#[test]
fn what_the_administrator_forbids_is_said() {
    let _sim = Sim::well();
    let _forbidden = Parameter::set("programs", 0);
    let plan = with("soft", program(&[], &["sim.counter & 1"], None));
    let refused = Kernel::open().create(&plan).err().expect("to be refused");
    let said = refused.to_string();
    assert!(
        said.contains("parameter programs forbids programs"),
        "{said}"
    );
}

#[test]
fn many_runs_with_programs_leave_nothing_behind() {
    let _sim = Sim::well();
    let kernel = Kernel::open();
    let before = held();
    for _ in 0..rounds(100, 100) {
        let run = kernel.run(&with(
            "soft",
            program(&["m = mean(sim.sine, 1000)"], &["sim.counter & 1"], None),
        ));
        run.start().expect("to start");
        run.trigger(2).expect("triggers");
        assert_eq!(run.state().expect("a state"), State::Running);
    }
    until("nothing to be left", || held() == before);
}

/// The simulator's latch refuses each fourth row, whatever the program says of it.
#[test]
fn a_row_whose_rule_cannot_write_its_output_is_kept_and_marked() {
    let sim = Sim::well();
    sim.set("sim_every", 4).set("sim_fail", 16);
    for event in &events() {
        let mut plan = with(
            event,
            ProgramText {
                rules: vec![Rule {
                    when: "raw(sim.ramp) & 1".into(),
                    then: vec!["n += 1".into()],
                }],
                ..program(
                    &["odd = raw(sim.ramp) & 1", "times = n"],
                    &["0 > sim.sine"],
                    None,
                )
            },
        );
        plan.program.variables = vec!["n = 0".into()];
        plan.steps.push(Step::Act {
            output: "sim.latch".into(),
            value: 5,
            rule: 0,
        });
        let (account, end) = four_hundred(&plan);
        let failed: Vec<_> = account
            .rows
            .iter()
            .filter(|row| !row.faults.is_empty())
            .collect();
        assert!(failed.len() > 10, "{event}: {end:?}");
        assert_eq!(end.errors, failed.len() as u64, "{event}");
        for row in failed {
            // Four channels and two columns stand before it, which have failed with it.
            assert_eq!(row.faults, [4, 5, 6], "{event}: {row:?}");
            assert_eq!(row.values[1] & 1, 1, "{event}: {row:?}");
        }
        assert!(
            end.skipped > 0 && account.rows.iter().any(|row| row.faults.is_empty()),
            "{event}"
        );
    }
}
