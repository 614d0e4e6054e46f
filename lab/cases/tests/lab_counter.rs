// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's counter, one board file for both engines: wide registers, counters of one instant, ends of count that are
//! rows or accounted for, a watched output; in the kernel also a vector for each event, and a master with its slave.
// lab: --device lab-counter,id=first --device lab-counter,master=first --module uio_pci_generic

use std::collections::{BTreeMap, BTreeSet};

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, record, until};
use strobe_cases::pci::{self, counted, get, once, put, set, steps};
use strobe_cases::{Engine, both, plan};

const BOARD: [&str; 1] = ["lab-counter"];

both! {
    BOARD:
    a_register_of_64_bits_is_read_and_written_whole,
    held_counters_are_of_one_instant_and_others_are_not,
    every_end_of_count_is_a_row_or_accounted_for,
    periods_of_the_output_are_judged,
}

fn a_register_of_64_bits_is_read_and_written_whole(engine: &impl Engine) {
    const PERIOD: u64 = 0x1_2345_6789;
    let channels = [
        "counter.count",
        "counter.count32",
        "counter.count",
        "counter.period",
    ];
    let row = once(engine, &[("counter.period", PERIOD)], &channels);
    assert_eq!(row[3], PERIOD);
    // The narrow one is read between the wide ones.
    assert!(row[0] <= row[2], "{row:x?}");
    let narrow = |wide: u64| wide & 0xffff_ffff;
    let since = |low: u64| narrow(low.wrapping_sub(row[0]));
    assert!(since(row[1]) <= since(narrow(row[2])), "{row:x?}");
    let start = once(
        engine,
        &[("counter.limit", 0), ("counter.run", 1)],
        &["counter.start", "counter.count"],
    );
    assert!(start[0] <= start[1], "{start:?}");
    put(engine, &[("counter.run", 0)]);
}

fn held_counters_are_of_one_instant_and_others_are_not(engine: &impl Engine) {
    const PERIOD: u64 = 10_000;
    put(
        engine,
        &[
            ("counter.period", PERIOD),
            ("counter.limit", 0),
            ("counter.run", 1),
        ],
    );
    let held = ["counter.held", "counter.held_index", "counter.held_elapsed"];
    let free = ["counter.count", "counter.index", "counter.elapsed"];
    let channels = [
        "counter.start",
        held[0],
        held[1],
        held[2],
        free[0],
        free[1],
        free[2],
    ];
    let plan = steps("timer:1kHz", Some(200), &[("counter.hold", 1)], &channels);
    let (account, _) = record(&engine.run(&plan));
    put(engine, &[("counter.run", 0)]);
    let mut torn = 0;
    for row in &account.rows {
        let v = &row.values;
        assert_eq!(v[1], v[0] + v[2] * PERIOD + v[3], "{row:?}");
        torn += u64::from(v[4] != v[0] + v[5] * PERIOD + v[6]);
    }
    assert_eq!(account.rows.len(), 200);
    assert!(torn > 0, "that could not fail");
}

fn every_end_of_count_is_a_row_or_accounted_for(engine: &impl Engine) {
    const ENDS: u64 = 1000;
    put(
        engine,
        &[
            ("counter.clear", 1),
            ("counter.period", 1_000_000),
            ("counter.limit", ENDS),
        ],
    );
    let run = engine.run(&Plan {
        ring: Some(2 * ENDS),
        ..plan("counter.eoc", &["counter.index", "counter.latched"])
    });
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    put(engine, &[("counter.run", 1)]);
    until("the last end of count", || get(engine, "counter.run") == 0);
    until("its row", || get(engine, "counter.irq_status") == 0);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    let (raised, coalesced) = counted(engine, "counter", "eoc");
    println!(
        "{} rows + {} missed + {coalesced} merged = {raised}",
        end.head,
        end.missed()
    );
    assert_eq!(raised, ENDS);
    assert_eq!(end.head + end.missed() + coalesced, raised);
    let start = get(engine, "counter.start");
    assert!(
        account
            .rows
            .iter()
            .all(|row| row.values[1] <= start + ENDS * 1_000_000)
    );
    let rising: Vec<u64> = account.column(0).collect();
    assert!(
        rising.windows(2).all(|pair| pair[0] < pair[1]),
        "{rising:?}"
    );
}

fn periods_of_the_output_are_judged(engine: &impl Engine) {
    let names = ["in_range", "over", "under", "edges"].map(|name| format!("counter.{name}"));
    let judged = |nominal, tolerance| {
        put(
            engine,
            &[
                ("counter.nominal", nominal),
                ("counter.tolerance", tolerance),
                ("counter.clear", 2),
            ],
        );
        let mut plan = steps("timer:1kHz", Some(100), &[], &[]);
        plan.steps = vec![set("counter.output", 1), set("counter.output", 0)];
        let (account, _) = record(&engine.run(&plan));
        assert_eq!(account.rows.len(), 100);
        once(engine, &[], &[&names[0], &names[1], &names[2], &names[3]])
    };
    let second = 1_000_000_000;
    // Up to 8 s: a machine may stand still for some of them.
    assert_eq!(judged(4 * second, 4 * second), [99, 0, 0, 100]);
    assert_eq!(judged(0, 1), [0, 99, 0, 100]);
    assert_eq!(judged(4 * second, 0), [0, 0, 99, 100]);
    let bounds = once(engine, &[], &["counter.shortest", "counter.longest"]);
    assert!(0 < bounds[0] && bounds[0] <= bounds[1], "{bounds:?}");
    // One that does not rise is no edge.
    put(engine, &[("counter.output", 1), ("counter.output", 1)]);
    assert_eq!(get(engine, "counter.edges"), 101);
    put(engine, &[("counter.output", 0)]);
}

#[test]
fn each_event_comes_by_its_own_vector() {
    const ROWS: u64 = 20;
    let fitted = pci::kernel(&BOARD);
    let engine = &fitted.engine;
    put(
        engine,
        &[
            ("counter.clear", 1),
            ("counter.period", 5_000_000),
            ("counter.limit", ROWS),
        ],
    );
    // An end of count raises the output and the software's interrupt: each makes a row of another run.
    let writes = [
        ("counter.output", 1),
        ("counter.output", 0),
        ("counter.software", 1),
    ];
    let plans = [
        steps("counter.eoc", None, &writes, &["counter.index"]),
        plan("counter.edge", &["counter.edges"]),
        plan("counter.software", &["counter.software_raised"]),
    ];
    let runs = plans.map(|plan| engine.run(&plan));
    for run in &runs {
        run.start().expect("to start");
    }
    let vectors = vectors();
    assert_eq!(vectors.len(), 4, "{vectors:?}");
    put(engine, &[("counter.run", 1)]);
    until("the last end of count", || get(engine, "counter.run") == 0);
    until("all rows", || get(engine, "counter.irq_status") == 0);
    let delivered = self::vectors();
    let counts: Vec<u64> = delivered
        .values()
        .zip(vectors.values())
        .map(|(now, before)| now - before)
        .collect();
    for (run, source) in runs.iter().zip(["eoc", "edge", "software"]) {
        run.stop().expect("to stop");
        let end = run.reader().expect("a reader").snapshot();
        let (raised, coalesced) = counted(engine, "counter", source);
        assert_eq!(
            end.head + end.missed() + coalesced,
            raised,
            "{source}: {end:?}"
        );
        assert!(raised > 0, "{source}");
    }
    let sent = |source| {
        let (raised, coalesced) = counted(engine, "counter", source);
        raised - coalesced
    };
    assert_eq!(counts, [sent("eoc"), sent("edge"), 0, sent("software")]);
}

/// Interrupts of the first card that the machine has delivered, by number.
fn vectors() -> BTreeMap<String, u64> {
    let card = pci::cards(0x1ab1)[0]
        .file_name()
        .expect("an address")
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    let of_card = |line: &&str| line.contains(&format!("strobe:{card}"));
    let one = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let counts = rest
            .split_whitespace()
            .map_while(|word| word.parse::<u64>().ok());
        Some((number.trim().to_owned(), counts.sum()))
    };
    text.lines().filter(of_card).filter_map(one).collect()
}

#[test]
fn a_slave_latches_at_the_same_instant_as_its_master() {
    const ENDS: u64 = 100;
    const PERIOD: u64 = 2_000_000;
    let fitted = pci::kernel(&BOARD);
    let engine = &fitted.engine;
    put(
        engine,
        &[
            ("counter.period", PERIOD),
            ("counter.limit", ENDS),
            ("counter2.clear", 1),
        ],
    );
    let runs = [
        plan("counter.eoc", &["counter.latched"]),
        plan("counter2.trigger", &["counter2.latched"]),
    ]
    .map(|plan| engine.run(&plan));
    let mut readers = runs.each_ref().map(begin);
    for run in &runs {
        run.start().expect("to start");
    }
    put(engine, &[("counter.run", 1)]);
    until("the last end of count", || get(engine, "counter.run") == 0);
    until("all rows", || get(engine, "counter2.irq_status") == 0);
    let [master, slave] = readers.each_mut().map(|(reader, account)| {
        read_now(reader, account);
        account.column(0).collect::<BTreeSet<u64>>()
    });
    assert_eq!(get(engine, "counter2.triggers"), ENDS);
    // An end of count lies on the master's grid to the nanosecond; nothing else does.
    let start = get(engine, "counter.start");
    for latched in master.union(&slave) {
        assert_eq!((latched - start) % PERIOD, 0, "{latched} of {start}");
        assert!((latched - start) / PERIOD <= ENDS, "{latched} of {start}");
    }
    let both = master.intersection(&slave).count();
    assert!(both > 0, "none in common: {master:?}, {slave:?}");
    println!("{both} of {ENDS} seen by both runs");
}

/// Exit status, and what strobe says on standard output and standard error.
fn strobe(words: &str) -> (Option<i32>, String, String) {
    let output = std::process::Command::new("strobe")
        .args(words.split(' '))
        .output()
        .expect("strobe");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn outputs_are_set_and_channels_read_once_by_the_kernel_engine() {
    let _fitted = pci::kernel(&BOARD);
    let set = strobe("set counter.period=123456 --engine kernel");
    assert_eq!(set, (Some(0), String::new(), String::new()));
    let (status, said, _) = strobe("get counter.period,sim.counter --engine kernel");
    assert_eq!(status, Some(0));
    let line = said.lines().next().unwrap_or_default();
    assert_eq!(line, "counter.period  123456  ns");
    let (status, said, why) = strobe("set counter.period=1,counter.nothing=1 --engine kernel");
    assert_eq!((status, said.as_str()), (Some(1), ""));
    assert!(
        why.contains("output counter.nothing: no such output"),
        "{why}"
    );
    let (_, said, _) = strobe("get counter.period --engine kernel");
    assert!(said.contains("123456"), "nothing was written: {said}");
}

#[test]
fn a_run_of_the_kernel_engine_has_its_cpu_clock_and_policy_or_says_why_not() {
    let _fitted = pci::kernel(&BOARD);
    let record = |more: &str| {
        strobe(&format!(
            "record --engine kernel --rows 20 --allow-loss -o - {more}"
        ))
    };
    for cpu in ["0", "1"] {
        let (status, rows, why) = record(&format!("--event timer:100Hz --read cpu.id --cpu {cpu}"));
        assert_eq!(status, Some(0), "{why}");
        let cpus: BTreeSet<&str> = rows
            .lines()
            .skip(1)
            .filter_map(|row| row.rsplit(',').next())
            .collect();
        assert_eq!(cpus, BTreeSet::from([cpu]));
    }
    for (more, part) in [
        (
            "--event counter.eoc --read counter.index --cpu 0",
            "--cpu: event counter.eoc: ",
        ),
        (
            "--event timer:100Hz --read sim.slow --cpu 0",
            "--cpu: channel sim.slow sleeps",
        ),
        (
            "--event timer:100Hz --read sim.slow --cpu 0 --dry-run",
            "--cpu: channel sim.slow sleeps",
        ),
        (
            "--event timer:100Hz --read cpu.id --policy other",
            "--policy: policy other: ",
        ),
    ] {
        let (status, rows, why) = record(more);
        assert_eq!((status, rows.as_str()), (Some(1), ""), "{more}");
        assert!(why.contains(part), "{more}: {why}");
    }
    let (status, rows, why) = record("--event timer:100Hz --read cpu.id --clock tai --shared");
    assert_eq!(status, Some(0), "{why}");
    let time = rows
        .lines()
        .nth(1)
        .and_then(|row| row.split(',').nth(2)?.parse().ok());
    assert!(time > Some(1_000_000_000_000_000_000_u64), "{rows}");
}
