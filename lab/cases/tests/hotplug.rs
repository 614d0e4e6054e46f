// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cards that are pulled and plugged in again while runs of both engines use them and readers read.
//!
//! `$STROBE_ROUNDS` says how often; lab/cases/hotplug does it a thousand times.
// lab: --monitor --module uio_pci_generic

mod machine;
mod surprise;
mod watched;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libc::{ENOENT, ESHUTDOWN};
use strobe::plan::{Plan, Step};
use strobe::program::{ProgramText, Rule};
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, until, until_rows};
use strobe_cases::machine::command;
use strobe_cases::monitor::SLOTS;
use strobe_cases::rounds::{held, rounds};
use strobe_cases::{Engine, plan, raw};
use strobe_ring::State;

use machine::{ID, INTX, Machine};
use watched::{Sum, Watched, long, rows_are_of_the_card, timer};

/// A run whose program writes an output in every other row, and later in those that it is tuned to.
fn acting(event: &str, channel: String, output: String) -> Plan {
    let mut plan = plan(event, &[&channel, "sim.counter"]);
    plan.program = ProgramText {
        tunables: vec!["wanted = 0".to_owned()],
        rules: vec![Rule {
            when: "sim.counter & 1 == wanted & 1".to_owned(),
            then: vec!["wanted += 2".to_owned()],
        }],
        derive: vec!["wanted_then = wanted".to_owned()],
        ..ProgramText::default()
    };
    plan.steps.push(Step::Act {
        output,
        value: 1,
        rule: 0,
    });
    plan
}

/// Tunes the run as long as it goes on, and answers how often.
fn tuned(run: u32) -> u64 {
    let control = raw::control();
    for times in 0.. {
        match raw::program::tune(&control, run, times % 1000) {
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(ENOENT | ESHUTDOWN) => return times,
            Err(errno) => panic!("a run cannot be tuned: errno {errno}"),
        }
    }
    0
}

/// One round: three runs of the kernel engine on the card in the first slot, one of which reads a card that stays
/// as well, and one has a program and is tuned all the time; and two of the user engine on that in the second.
fn round(machine: &mut Machine, number: u64, sum: &mut Sum) {
    let name = sum.phase("plug", || machine.plug(&SLOTS[0]));
    let card = sum.phase("plug for uio", || machine.plug_for_uio(&SLOTS[1]));

    let of = |what: &str| format!("{name}.{what}");
    let (sampling, heard, raising) = sum.phase("start in the kernel", || {
        let run = |plan: &Plan, readers| Watched::new(machine.engine.run(plan), readers);
        (
            run(&long(plan(&timer(1000), &[&of("id"), "edu.id"])), 2),
            run(&plan(&of("irq"), &[&of("id"), &of("irq_status")]), 1),
            run(&long(acting(&timer(1000), of("id"), of("raise"))), 1),
        )
    });
    let id = raising.run.info().run;
    let tuner = std::thread::spawn(move || tuned(id));
    let of = |what: &str| format!("{}.{what}", card.name);
    let (looking, listening) = sum.phase("start in user space", || {
        let run = |plan: &Plan, readers| Watched::new(machine.user(plan), readers);
        (
            run(&long(plan(&timer(500), &[&of("id")])), 2),
            run(&plan(&of("irq"), &[&of("id")]), 1),
        )
    });
    card.raise();
    sum.phase("first rows", || {
        sampling.until_rows(2);
        looking.until_rows(1);
        if number % 2 == 0 {
            // Else it goes while the first interrupt may be on its way.
            heard.until_rows(1);
            listening.until_rows(1);
        }
    });
    sum.phase("unplug", || {
        let (first, second) = if number % 4 < 2 { (0, 1) } else { (1, 0) };
        machine.unplug(&SLOTS[first]);
        machine.unplug(&SLOTS[second]);
    });
    sum.rounds += 1;

    let begun = Instant::now();
    for (run, what) in [
        (sampling, "the timer run of the kernel engine"),
        (heard, "the interrupt run of the kernel engine"),
        (looking, "the timer run of the user engine"),
        (listening, "the interrupt run of the user engine"),
    ] {
        let what = format!("round {number}, {what}");
        rows_are_of_the_card(&run.settle(&what, sum), &what);
    }
    raising.settle("the run that raises", sum);
    sum.tuned += tuner.join().expect("a tuner");
    assert!(!machine.lists(&name), "round {number}: {name} is there");
    *sum.phases.entry("read to the end").or_default() += begun.elapsed();
}

#[test]
fn cards_that_are_pulled_and_plugged_again_end_runs_of_both_engines_and_lose_nothing() {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let begun = Instant::now();
    let before = held();
    // Under sanitizers the kernel works for seconds on each new card.
    for number in 0..rounds(20, 5) {
        round(&mut machine, number, &mut sum);
    }
    println!(
        "{} rounds in {:.1?} {:.1?}: {} runs, {} rows, {} missed, {} lost, tuned {} times",
        sum.rounds,
        begun.elapsed(),
        sum.phases,
        sum.runs,
        sum.rows,
        sum.missed,
        sum.lost,
        sum.tuned
    );
    assert!(sum.tuned > sum.rounds, "nothing was tuned");
    assert_eq!(sum.lost, 0, "rings hold what their readers have not read");
    until("nothing to be left of the rounds", || held() == before);
}

#[test]
fn what_follows_a_run_whose_card_goes_has_its_last_row_and_fails_as_it_does() {
    let mut machine = Machine::new();
    for round in 0..rounds(10, 3) {
        let name = machine.plug(&SLOTS[0]);
        let of_card = format!("{name}.id");
        let followed = long(plan(&timer(1000), &[&of_card]));
        let followed = Watched::new(machine.engine.run(&followed), 1);
        let run = format!("run:kernel:{}", followed.run.info().run);
        let parts = ["row".to_owned(), of_card].map(|part| format!("{run}.{part}"));
        let parts = parts.each_ref().map(String::as_str);
        let follower = long(plan(&format!("{run}.row"), &parts));
        let follower: Box<dyn OwnedRun> = match round % 2 {
            0 => Box::new(machine.user(&follower)),
            _ => Box::new(machine.engine.run(&follower)),
        };
        let (mut reader, mut account) = begin(&*follower);
        follower.start().expect("to start");
        until_rows(&reader, 10);
        machine.unplug(&SLOTS[0]);
        let what = format!("round {round}, the run that is followed");
        let theirs = followed.settle(&what, &mut Sum::default());
        until("the end of what follows", || {
            reader.snapshot().state.is_final()
        });
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        assert_eq!(end.state, State::Failed, "{end:?}");
        for row in &account.rows {
            let their = &theirs.rows[row.values[0] as usize];
            if row.faults.is_empty() {
                assert_eq!(row.values[1], their.values[0], "{row:?}");
            } else {
                assert_eq!(their.faults, [0], "{row:?}");
            }
        }
    }
}

/// Starts the program, lets it wait for what is not there, and answers what it has written in the end.
fn recorded_after(
    words: &[&str],
    missing: &str,
    plugs: impl FnOnce(&mut Child),
) -> serde_json::Value {
    let said = "/tmp/hotplug.said";
    let mut child = Command::new("strobe")
        .arg("record")
        .args(words)
        .args([
            "--rows",
            "100",
            "--wait-for-device",
            "--allow-loss",
            "--json",
            "--overwrite",
            "-o",
            "/tmp/hotplug.csv",
        ])
        .stdout(Stdio::piped())
        .stderr(fs::File::create(said).expect(said))
        .spawn()
        .expect("strobe");
    until("it waits", || {
        fs::read_to_string(said)
            .is_ok_and(|text| text.contains("waiting: ") && text.contains(missing))
    });
    plugs(&mut child);
    let done = child.wait_with_output().expect("its end");
    let said = fs::read_to_string(said).expect("what it said");
    assert!(done.status.success(), "{said}{done:?}");
    let csv = fs::read_to_string("/tmp/hotplug.csv").expect("its file");
    let rows = csv
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    assert_eq!(rows.count(), 100, "{csv}");
    assert!(csv.contains(&format!(",{ID}")), "{csv}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

#[test]
fn the_program_waits_for_a_card_that_is_plugged_in_later_and_records_it() {
    let mut machine = Machine::new();
    let words = [
        "--engine",
        "kernel",
        "--event",
        "timer:1kHz",
        "--read",
        "edu3.id",
    ];
    let account = recorded_after(&words, "edu3", |_| {
        assert_eq!(machine.plug(&SLOTS[0]), "edu3");
    });
    assert_eq!(
        (&account["rows"], &account["end"]),
        (&100.into(), &"complete".into()),
        "{account}"
    );
    machine.unplug(&SLOTS[0]);

    let words = [
        "--engine", "user", "--board", INTX, "--event", "edu3.irq", "--read", "edu3.id",
    ];
    let account = recorded_after(&words, "edu3", |program| {
        let card = machine.plug_for_uio(&SLOTS[0]);
        // An interrupt that comes before the run is none of its.
        until("100 rows", || {
            card.raise();
            program.try_wait().expect("to look").is_some()
        });
    });
    assert_eq!(account["rows"], 100, "{account}");
    assert_eq!(account["end"], "complete", "{account}");
}

#[test]
fn the_driver_of_boards_stays_while_a_run_uses_a_card_and_may_go_when_the_card_has_gone() {
    let mut machine = Machine::new();
    let name = machine.plug(&SLOTS[0]);
    let run = plan("timer:1kHz", &[&format!("{name}.id")]);
    let run = Watched::new(machine.engine.run(&run), 1);
    run.until_rows(1);
    assert_eq!(raw::unload("strobe_board"), Err(libc::EWOULDBLOCK));
    assert!(raw::references("strobe_board") > 0);
    machine.unplug(&SLOTS[0]);
    // The owner has its run still, which holds nothing any more.
    assert_eq!(raw::unload("strobe_board"), Ok(0));
    run.settle("a run of a module that has gone", &mut Sum::default());
    assert!(command("modprobe strobe_board"));
    assert!(machine.lists("edu"), "found again, by its firmware");
    let name = machine.plug(&SLOTS[0]);
    assert!(machine.lists(&name));
}
