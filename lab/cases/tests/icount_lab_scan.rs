// SPDX-License-Identifier: MIT OR Apache-2.0
//! A correlated scan: a counter is the master of an encoder and of a converter, and what these have latched is what was
//! there at the instant of the master's end of count. Both engines, from the same board files.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::thread;
use std::time::Duration;

use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_now, record, until};
use strobe_cases::machine::slowness;
use strobe_cases::pci::{counted, get, once, put, steps};
use strobe_cases::{Engine, both, plan};

const BOARDS: [&str; 3] = ["lab-counter", "lab-encoder", "lab-adc"];
const SECOND: i64 = 1_000_000_000;

both! {
    BOARDS:
    a_scan_has_what_was_there_at_the_end_of_count,
    an_axis_is_where_its_speed_has_brought_it,
    each_index_pulse_is_a_row_with_the_position_at_it,
    a_conversion_is_of_when_it_began_and_its_end_a_row,
    channels_of_16_bits_are_signed,
}

/// What the converter's first two inputs have at that time.
fn inputs(ns: u64) -> [i64; 2] {
    let ramp = (ns / 1000) as u16;
    let triangle = match i64::from(ramp) {
        up @ ..0x8000 => 2 * up - 0x8000,
        down => 0x1_7fff - 2 * down,
    };
    [i64::from(ramp as i16), triangle]
}

fn a_scan_has_what_was_there_at_the_end_of_count(engine: &impl Engine) {
    const SPEED: i64 = -123_457;
    // Half a second in any case: the encoder's time turns over after four.
    let (ends, period) = (500 / slowness(), 1_000_000 * slowness());
    let outputs = [
        ("counter.period", period),
        ("counter.limit", ends),
        ("encoder.resolution", 0),
        ("encoder.speed", SPEED as u32 as u64),
        ("encoder.position", 1000),
        ("encoder.clear", 3),
        ("adc.clear", 3),
        ("adc.delay", 2000),
    ];
    put(engine, &outputs);
    let channels = [
        "counter.latched",
        "encoder.latched",
        "adc.sample1",
        "adc.sample2",
        "adc.sampled",
        "encoder.since",
    ];
    // The converter is the last to be ready, so all the others are.
    let run = engine.run(&plan("adc.done", &channels));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    put(engine, &[("counter.run", 1)]);
    thread::sleep(Duration::from_nanos(ends * period));
    until("the last scan", || get(engine, "adc.conversions") == ends);
    until("its row", || get(engine, "adc.irq_status") == 0);
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    let start = get(engine, "counter.start");
    assert_eq!(account.rows.len() as u64, ends);
    for (row, scan) in (1..).zip(&account.rows) {
        let v = &scan.values;
        let instant = v[0];
        assert_eq!(instant, start + row * period, "{scan:?}");
        assert_eq!(v[4], instant & 0xffff_ffff, "{scan:?}");
        assert_eq!(
            [v[2], v[3]].map(|value| value as i64),
            inputs(instant),
            "{scan:?}"
        );
        let time = i64::from((instant as u32).wrapping_sub(v[5] as u32));
        assert_eq!(v[1] as i64, 1000 + time * SPEED / SECOND, "{scan:?}");
    }
    assert_eq!(get(engine, "adc.overruns"), 0);
    assert_eq!(get(engine, "encoder.triggers"), ends);
    put(engine, &[("encoder.speed", 0)]);
}

fn an_axis_is_where_its_speed_has_brought_it(engine: &impl Engine) {
    for speed in [250_000, -250_000, 3_i64] {
        put(
            engine,
            &[
                ("encoder.resolution", 100),
                ("encoder.speed", speed as u32 as u64),
                ("encoder.position", 0),
            ],
        );
        // The counter and the encoder are held one after the other; in between lie the instructions of two writes.
        let writes = [("counter.hold", 1), ("encoder.hold", 1)];
        let channels = ["counter.held32", "encoder.held", "encoder.since"];
        let (account, _) = record(&engine.run(&steps("timer:1kHz", Some(50), &writes, &channels)));
        for row in &account.rows {
            let time = i64::from((row.values[0] as u32).wrapping_sub(row.values[2] as u32));
            let held = row.values[1] as i64;
            let (least, most) = (
                time * speed / SECOND,
                (time + 20_000 * slowness() as i64) * speed / SECOND,
            );
            assert!(
                (least.min(most)..=least.max(most)).contains(&held),
                "{speed}: {row:?}"
            );
        }
    }
    // A and B change one after the other.
    put(engine, &[("encoder.speed", 0)]);
    let signals = [0, 1, 2, 3, 4].map(|position| {
        once(
            engine,
            &[("encoder.position", position)],
            &["encoder.a", "encoder.b", "encoder.at_index"],
        )
    });
    assert_eq!(
        signals,
        [[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]]
    );
}

fn each_index_pulse_is_a_row_with_the_position_at_it(engine: &impl Engine) {
    for speed in [1_000_000, -1_000_000_i64] {
        put(
            engine,
            &[
                ("encoder.speed", 0),
                ("encoder.clear", 3),
                ("encoder.resolution", 1000),
            ],
        );
        let run = engine.run(&plan(
            "encoder.index",
            &["encoder.index", "encoder.latched"],
        ));
        let (mut reader, mut account) = begin(&run);
        run.start().expect("to start");
        put(
            engine,
            &[
                ("encoder.position", 500),
                ("encoder.speed", speed as u32 as u64),
            ],
        );
        thread::sleep(Duration::from_millis(100));
        put(engine, &[("encoder.speed", 0)]);
        until("the last row", || get(engine, "encoder.irq_status") == 0);
        run.stop().expect("to stop");
        read_now(&mut reader, &mut account);
        let end = reader.snapshot();
        account.settle(&end);
        let (raised, coalesced) = counted(engine, "encoder", "index");
        assert_eq!(raised, get(engine, "encoder.index"));
        assert_eq!(end.head + end.missed() + coalesced, raised, "{end:?}");
        assert!((99..100 + 20 * slowness()).contains(&end.head), "{end:?}");
        for row in &account.rows {
            let index = row.values[0] as i64;
            let at = if speed > 0 {
                1000 * index
            } else {
                1000 - 1000 * index
            };
            assert_eq!(row.values[1] as i64, at, "{row:?}");
        }
    }
}

fn a_conversion_is_of_when_it_began_and_its_end_a_row(engine: &impl Engine) {
    put(engine, &[("adc.clear", 3), ("adc.delay", 300_000)]);
    let run = engine.run(&plan(
        "adc.done",
        &["adc.sample1", "adc.sample2", "adc.sampled"],
    ));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    let mut begun = Vec::new();
    for _ in 0..20 {
        // The second start finds the first conversion going on.
        let writes = [("counter.hold", 1), ("adc.start", 1), ("adc.start", 1)];
        let row = once(engine, &writes, &["counter.held", "adc.start"]);
        assert_eq!(row[1], 1);
        begun.push(row[0]);
        thread::sleep(Duration::from_millis(2));
        assert_eq!(get(engine, "adc.start"), 0);
    }
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    account.settle(&reader.snapshot());
    assert_eq!(
        once(engine, &[], &["adc.conversions", "adc.overruns"]),
        [20, 20]
    );
    assert_eq!(account.rows.len(), 20);
    for (row, held) in account.rows.iter().zip(begun) {
        let late = (row.values[2] as u32).wrapping_sub(held as u32);
        assert!(
            u64::from(late) < 20_000 * slowness(),
            "{late} ns after the counter was held"
        );
        let values = [row.values[0], row.values[1]].map(|value| value as i64);
        assert_eq!(values, inputs(held + u64::from(late)), "{row:?}");
    }
}

fn channels_of_16_bits_are_signed(engine: &impl Engine) {
    let channels = ["adc.ch1", "adc.ch2", "adc.ch3", "adc.ch4", "adc.both"];
    let (account, _) = record(&engine.run(&steps("timer:333Hz", Some(100), &[], &channels)));
    let rows = account
        .rows
        .iter()
        .map(|row| row.values.iter().map(|value| *value as i64));
    let rows: Vec<Vec<i64>> = rows.map(Iterator::collect).collect();
    for row in &rows {
        assert!([16384, -16384].contains(&row[2]), "{row:?}");
        assert_eq!(row[3], -12345);
        // One access of 32 bits: the triangle is that of the ramp, and the ramp has one value in a microsecond.
        let [ramp, triangle] = inputs(1000 * (row[4] as u64 & 0xffff));
        assert_eq!(
            row[4] as u32,
            (triangle as u32) << 16 | ramp as u32 & 0xffff,
            "{row:?}"
        );
        assert!(
            u64::from((ramp - row[0]) as u16) <= 20 * slowness(),
            "read one after the other: {row:?}"
        );
    }
    for channel in 0..3 {
        let range = -32768..=32767;
        assert!(rows.iter().all(|row| range.contains(&row[channel])));
        assert!(rows.iter().any(|row| row[channel] < 0), "{channel}");
        assert!(rows.iter().any(|row| row[channel] > 0), "{channel}");
    }
}
