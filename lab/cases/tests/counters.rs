// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting as boards of counters do it, one board file for both engines: six counters with prescalers, gates, latches and
//! compares, pulses of other cards, one interrupt with several causes; an axis that is compared; a FIFO that loses.
// lab: --device lab-encoder,id=axis --device lab-counter,id=first,wire=axis --device lab-counter,master=first,wire=first
// lab: --device lab-adc --module uio_pci_generic

use strobe::accounting::Accounting;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_cases::account::{Kept, begin, read_now, record, until};
use strobe_cases::pci::{self, counted, get, once, put, steps};
use strobe_cases::{Engine, both, plan};
use strobe_ring::Missed;

const BOARDS: [&str; 3] = ["lab-counter", "lab-encoder", "lab-adc"];

both! {
    BOARDS:
    counters_of_the_clock_agree_by_their_prescalers,
    a_gate_lets_pulses_through_or_keeps_them,
    each_pulse_of_another_card_is_counted,
    a_compare_drives_the_output_that_another_card_counts,
    what_is_latched_by_one_instant_agrees_on_two_cards,
    an_axis_is_compared_and_a_counter_is_latched_when_it_comes,
    a_fifo_keeps_conversions_in_order_and_counts_those_it_loses,
    each_conversion_of_a_fifo_is_a_row_or_missed_as_the_fifo_lost_it,
}

/// What a control says: input, gate, latch, compare.
const CLOCK: u64 = 1;
const WIRE: u64 = 2;
const TIMER: u64 = 3;
const WHILE_OUTPUT: u64 = 1 << 2;
const WHILE_HIGH: u64 = 2 << 2;
const WHILE_LOW: u64 = 3 << 2;
const AT_END: u64 = 1 << 4;
const AT_TRIGGER: u64 = 2 << 4;
const AT_EDGE: u64 = 3 << 4;
const COMPARED: u64 = 0x40;
const ZEROED: u64 = 0x80;

/// What a select says: the card's output for the wires of others.
const SELECT_TIMER: u64 = 1;
const SELECT_C0: u64 = 2;

/// Nothing counts, and nothing is set up.
fn fresh(engine: &impl Engine) {
    for card in ["counter", "counter2"] {
        for part in ["run", "output", "select", "limit"] {
            put(engine, &[(&format!("{card}.{part}"), 0)]);
        }
        for number in 0..6 {
            for part in ["_control", "_prescaler", "_compare", ""] {
                put(engine, &[(&format!("{card}.c{number}{part}"), 0)]);
            }
        }
        put(engine, &[(&format!("{card}.clear"), 3)]);
    }
    put(engine, &[("encoder.speed", 0), ("encoder.control", 0)]);
    put(engine, &[("encoder.clear", 3), ("adc.clear", 3)]);
}

fn counters_of_the_clock_agree_by_their_prescalers(engine: &impl Engine) {
    const PRESCALERS: [u64; 6] = [0, 1, 2, 9, 99, 999];
    fresh(engine);
    for (number, prescaler) in PRESCALERS.iter().enumerate() {
        let name = |part: &str| format!("counter.c{number}{part}");
        put(
            engine,
            &[
                (&name("_prescaler"), *prescaler),
                (&name("_control"), CLOCK),
            ],
        );
    }
    let names: Vec<String> = (0..6)
        .map(|number| format!("counter.c{number}_held"))
        .collect();
    let mut channels = vec!["counter.held"];
    channels.extend(names.iter().map(String::as_str));
    let plan = steps("timer:500Hz", Some(100), &[("counter.hold", 1)], &channels);
    let (account, _) = record(&engine.run(&plan));
    let (first, last) = (&account.rows[0].values, &account.rows[99].values);
    let passed = (last[0] - first[0]) / 1000;
    assert!(passed > 100_000, "{passed} us");
    for (number, prescaler) in PRESCALERS.iter().enumerate() {
        let each = prescaler + 1;
        let counted = (last[number + 1] - first[number + 1]) * each;
        assert!(
            counted.abs_diff(passed) <= each,
            "1 of {each}: {counted} of {passed}"
        );
    }
}

fn a_gate_lets_pulses_through_or_keeps_them(engine: &impl Engine) {
    fresh(engine);
    // c0 counts while the output is high, c1 always; on the other card c0 while this output is high, c1 while it is low.
    put(
        engine,
        &[
            ("counter2.c0_control", CLOCK | WHILE_HIGH),
            ("counter2.c1_control", CLOCK | WHILE_LOW),
            ("counter.c0_control", CLOCK | WHILE_OUTPUT),
            ("counter.c1_control", CLOCK),
        ],
    );
    let gated = ["counter.c0", "counter2.c0", "counter2.c1", "counter.c1"];
    let shut = once(engine, &[], &gated);
    let still = once(engine, &[], &gated);
    assert_eq!((shut[0], still[0], still[1]), (0, 0, 0));
    assert!(still[2] > shut[2] && still[3] > shut[3], "{still:?}");
    put(engine, &[("counter.output", 1)]);
    let open = once(engine, &[], &gated);
    put(engine, &[("counter.output", 0)]);
    let shut = once(engine, &[], &gated);
    let still = once(engine, &[], &gated);
    assert!(open[0] > 0 && shut[0] >= open[0], "{open:?}, {shut:?}");
    assert_eq!(still[..2], shut[..2], "it is low again");
    // Both gates opened and shut at the same instants.
    assert_eq!(still[0], still[1]);
    assert!(still[2] > shut[2], "{still:?}");
}

fn each_pulse_of_another_card_is_counted(engine: &impl Engine) {
    const ENDS: u64 = 1000;
    fresh(engine);
    put(
        engine,
        &[
            ("counter2.c0_control", WIRE),
            ("counter2.c1_prescaler", 9),
            ("counter2.c1_control", WIRE),
            ("counter2.c2_control", WIRE | WHILE_OUTPUT),
            ("counter2.c3_compare", 10),
            ("counter2.c3_control", WIRE | COMPARED | ZEROED),
            ("counter.c5_control", TIMER),
            ("counter.select", SELECT_TIMER),
            ("counter.period", 20_000),
            ("counter.limit", ENDS),
            ("counter.run", 1),
        ],
    );
    until("the last end of count", || get(engine, "counter.run") == 0);
    let names = ["c0", "c1", "c2", "c3", "c3_matches", "levels", "wire"]
        .map(|name| format!("counter2.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = once(engine, &[], &names);
    // The output of c3 was turned round an even number of times.
    assert_eq!(row, [ENDS, ENDS / 10, 0, 0, ENDS / 10, 0, 0]);
    assert_eq!(get(engine, "counter.c5"), ENDS);
}

fn a_compare_drives_the_output_that_another_card_counts(engine: &impl Engine) {
    fresh(engine);
    put(
        engine,
        &[
            ("counter2.c0_control", WIRE),
            ("counter.select", SELECT_C0),
            ("counter.c0_compare", 500),
            ("counter.c0_control", CLOCK | COMPARED | ZEROED),
        ],
    );
    until("some matches", || get(engine, "counter.c0_matches") > 100);
    put(engine, &[("counter.c0_control", 0)]);
    let names = [
        "counter.c0_matches",
        "counter2.c0",
        "counter2.wire",
        "counter.levels",
    ];
    let [matches, counted, wire, levels] = once(engine, &[], &names)[..] else {
        panic!("four channels");
    };
    assert_eq!(counted, matches.div_ceil(2), "each second one raises it");
    assert_eq!((wire, levels), (matches % 2, matches % 2));
}

fn what_is_latched_by_one_instant_agrees_on_two_cards(engine: &impl Engine) {
    fresh(engine);
    put(engine, &[("counter.c0_control", CLOCK | AT_END)]);
    put(
        engine,
        &[
            ("counter2.c0_control", CLOCK | AT_TRIGGER),
            ("counter.limit", 1),
        ],
    );
    let mut apart = Vec::new();
    for round in 0..20 {
        put(
            engine,
            &[
                ("counter.period", 50_000 + 7919 * round),
                ("counter.run", 1),
            ],
        );
        until("the end of count", || get(engine, "counter.run") == 0);
        let row = once(
            engine,
            &[],
            &["counter.c0_latched", "counter2.c0_latched", "counter.c0"],
        );
        assert!(row[0] < row[2], "{row:?}");
        apart.push(row[0] - row[1]);
    }
    assert!(apart.iter().all(|one| *one == apart[0]), "{apart:?}");
}

/// In the kernel only: there the events are told apart as often as a message comes.
#[test]
fn matches_and_wraps_share_an_interrupt_and_each_is_a_row_or_accounted_for() {
    const WRAPS: u64 = 20;
    let fitted = pci::kernel(&BOARDS);
    let engine = &fitted.engine;
    fresh(engine);
    let runs = ["counter.match0", "counter.match3", "counter.wrap"].map(|event| {
        engine.run(&Plan {
            ring: Some(4096),
            ..plan(event, &["counter.causes"])
        })
    });
    let mut readers = runs.each_ref().map(begin);
    for run in &runs {
        run.start().expect("to start");
    }
    put(
        engine,
        &[
            ("counter.c0_compare", 2000),
            ("counter.c3_compare", 3001),
            ("counter.c0_control", CLOCK | COMPARED | ZEROED),
            ("counter.c3_control", CLOCK | COMPARED | ZEROED),
            ("counter.c1_control", CLOCK),
        ],
    );
    for _ in 0..WRAPS {
        put(engine, &[("counter.c1", 0xffff_ff00)]);
        until("the wrap", || get(engine, "counter.c1") < 0x8000_0000);
    }
    put(
        engine,
        &[
            ("counter.c0_control", 0),
            ("counter.c3_control", 0),
            ("counter.c1_control", 0),
        ],
    );
    until("the last cause", || get(engine, "counter.causes") == 0);
    let mut sum = 0;
    for (number, (run, (reader, account))) in runs.iter().zip(&mut readers).enumerate() {
        run.stop().expect("to stop");
        read_now(reader, account);
        let end = reader.snapshot();
        account.settle(&end);
        assert!(end.head > 0, "{number}: {end:?}");
        sum += end.head + end.missed();
    }
    let names = [
        "causes_appeared",
        "causes_merged",
        "c0_matches",
        "c3_matches",
    ]
    .map(|name| format!("counter.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = once(engine, &[], &names);
    println!("{sum} rows and missed, {row:?}");
    assert_eq!(sum, row[0]);
    assert_eq!(row[0] + row[1], row[2] + row[3] + WRAPS);
}

fn an_axis_is_compared_and_a_counter_is_latched_when_it_comes(engine: &impl Engine) {
    const SPEED: u64 = 100_000;
    fresh(engine);
    put(
        engine,
        &[
            ("counter.c0_control", CLOCK | AT_EDGE),
            ("counter.c1_control", WIRE),
            ("encoder.position", 0),
            ("encoder.compare", 3000),
            ("encoder.control", 1),
        ],
    );
    let run = engine.run(&steps(
        "encoder.match",
        Some(1),
        &[],
        &["encoder.position", "encoder.at_index"],
    ));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    // What c0 has, and when the axis began, at one instant each: the axis needs 30 ms.
    put(engine, &[("encoder.speed", SPEED)]);
    until("the match", || get(engine, "encoder.matches") == 1);
    until("its row", || reader.snapshot().state.is_final());
    read_now(&mut reader, &mut account);
    let position = account.rows[0].values[0];
    assert!(position >= 3000, "{position}");
    let names = [
        "encoder.since",
        "encoder.matched",
        "counter.c1",
        "counter.wire",
        "encoder.match_raised",
    ];
    let row = once(engine, &[], &names);
    let low = |ns: u64| ns & 0xffff_ffff;
    assert_eq!(
        low(row[1].wrapping_sub(row[0])),
        3000 * 1_000_000_000 / SPEED
    );
    assert_eq!(row[2..], [1, 1, 1], "one edge, and the wire is high");
    // The counter of the clock was latched at that time: what it has now, less what has passed.
    let row = once(
        engine,
        &[("counter.hold", 1)],
        &[
            "counter.c0_held",
            "counter.held",
            "counter.c0_latched",
            "encoder.matched",
        ],
    );
    let passed = low(row[1].wrapping_sub(row[3]));
    let counts = low((row[0].wrapping_sub(row[2]) & 0xffff_ffff) * 1000);
    assert!(
        low(counts.wrapping_sub(passed).wrapping_add(1000)) <= 2000,
        "{row:?}"
    );
    // Back again: it is low below.
    put(
        engine,
        &[
            ("encoder.position", 3100),
            ("encoder.speed", 0x1_0000_0000 - SPEED),
        ],
    );
    until("the way back", || get(engine, "encoder.matches") == 2);
    assert_eq!(get(engine, "counter.wire"), 0);
    assert_eq!(counted(engine, "encoder", "index").0, 0, "nobody listens");
    put(engine, &[("encoder.speed", 0)]);
}

/// Fills the FIFO beyond its end while a run waits for the loss. None if its trigger was missed.
fn the_row_of_the_loss(engine: &impl Engine) -> Option<Kept> {
    fresh(engine);
    put(
        engine,
        &[
            ("adc.fifo_control", 1),
            ("adc.fifo_status", 4),
            ("adc.delay", 1000),
        ],
    );
    let lost = engine.run(&plan("adc.lost", &["adc.fifo_lost"]));
    let (mut reader, mut account) = begin(&lost);
    lost.start().expect("to start");
    let start = steps(
        "timer:500Hz",
        Some(21),
        &[("adc.start", 1)],
        &["adc.fifo_count", "adc.fifo_full"],
    );
    let (filled, _) = record(&engine.run(&start));
    let counts: Vec<u64> = filled.column(0).collect();
    assert!(
        counts.windows(2).all(|pair| pair[0] <= pair[1]),
        "{counts:?}"
    );
    let names = [
        "fifo_count",
        "fifo_lost",
        "fifo_losing",
        "fifo_full",
        "conversions",
        "lost_raised",
    ];
    let names = names.map(|name| format!("adc.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    until("the last conversion", || {
        get(engine, "adc.conversions") == 21
    });
    assert_eq!(once(engine, &[], &names), [16, 5, 1, 1, 21, 1]);
    until("the trigger of the loss", || {
        let now = reader.snapshot();
        now.head + now.missed() == 1
    });
    lost.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    account.rows.pop()
}

fn a_fifo_keeps_conversions_in_order_and_counts_those_it_loses(engine: &impl Engine) {
    // There is one trigger. On a busy machine the budget may have no room for its row; then the FIFO is filled again.
    let row = (0..30).find_map(|_| the_row_of_the_loss(engine));
    let row = row.expect("a row of the loss, in one of 30 times");
    assert!((1..=5).contains(&row.values[0]), "{row:?}");
    // Each row has the oldest, and then drops it.
    let channels = [
        "adc.fifo1",
        "adc.fifo4",
        "adc.fifo_sampled",
        "adc.fifo_count",
    ];
    let mut drain = steps("timer:500Hz", Some(16), &[], &channels);
    drain.steps.push(pci::set("adc.fifo_next", 1));
    let (drained, _) = record(&engine.run(&drain));
    let has: Vec<u64> = drained.column(3).collect();
    assert!(has.iter().copied().eq((1..=16).rev()), "{has:?}");
    for pair in drained.rows.windows(2) {
        let [before, after] = [0, 1].map(|one| &pair[one].values);
        let step = (after[0].wrapping_sub(before[0])) & 0xffff;
        let passed = (after[2].wrapping_sub(before[2]) & 0xffff_ffff) / 1000;
        assert!(step.abs_diff(passed & 0xffff) <= 1, "{pair:?}");
        assert_eq!(after[1] as i64, -12345);
    }
    assert_eq!(get(engine, "adc.fifo_has"), 0);
    put(engine, &[("adc.fifo_control", 0), ("adc.delay", 5000)]);
}

fn each_conversion_of_a_fifo_is_a_row_or_missed_as_the_fifo_lost_it(engine: &impl Engine) {
    const BURSTS: u64 = 50;
    const BURST: usize = 40;
    // What was lost before is of no run.
    the_row_of_the_loss(engine);
    let [conversions, lost] = ["adc.conversions", "adc.fifo_lost"].map(|name| get(engine, name));
    put(engine, &[("adc.delay", 0), ("adc.fifo_status", 4)]);
    let all = engine.run(&plan("adc.fifo", &["adc.fifo_sampled", "adc.fifo_lost"]));
    let (mut reader, mut account) = begin(&all);
    assert_eq!(reader.info().accounting, Accounting::Exact);
    all.start().expect("to start");
    // More at once than the FIFO has room for.
    let burst = steps(
        "timer:200Hz",
        Some(BURSTS),
        &[("adc.start", 1); BURST],
        &["adc.conversions"],
    );
    record(&engine.run(&burst));
    let every = BURSTS * BURST as u64;
    until("the last conversion", || {
        get(engine, "adc.conversions") - conversions == every
    });
    until("an empty FIFO", || get(engine, "adc.fifo_count") == 0);
    let known = || {
        let now = reader.snapshot();
        now.head + now.missed()
    };
    until("every trigger", || known() >= every);
    all.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!(end.triggers, every, "{end:?}");
    let lost = get(engine, "adc.fifo_lost") - lost;
    println!("{} rows, {lost} lost by the FIFO, {end:?}", end.head);
    assert!(lost > 0, "bursts are longer than the FIFO");
    assert_eq!(end.missed_by[Missed::Source as usize], lost, "{end:?}");
    let times: Vec<u64> = account.column(0).collect();
    let later =
        |pair: &[u64]| (1..1 << 31).contains(&(pair[1].wrapping_sub(pair[0]) & 0xffff_ffff));
    assert!(times.windows(2).all(later), "{times:?}");
    put(engine, &[("adc.fifo_control", 0), ("adc.delay", 5000)]);
}
