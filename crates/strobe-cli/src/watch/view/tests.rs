// SPDX-License-Identifier: MIT OR Apache-2.0
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use strobe::channel::Class;
use strobe::figures::LastRow;
use strobe::run::OwnedRun;
use strobe::samples::watched_soft as soft;

use super::*;

/// What is on a terminal of this size, line by line.
fn picture(figures: &Figures, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal
        .draw(|frame| draw(frame, figures))
        .expect("a picture");
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content().chunks(usize::from(width).max(1));
    let lines = lines.map(|cells| cells.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn the_figures_are_on_the_screen() {
    let (run, mut reader, mut figures) = soft(&["sim.counter", "sim.ramp"], 5);
    figures.update(&mut reader);
    run.trigger(5).expect("triggers");
    figures.update(&mut reader);
    let lines = picture(&figures, 80, 24);
    assert!(
        lines[0].starts_with("user:1  soft  running  "),
        "{lines:#?}"
    );
    assert!(lines[1].starts_with("rows      10, "), "{lines:#?}");
    assert!(
        lines[1].ends_with(" a second, 10 triggers, 0 skipped"),
        "{lines:#?}"
    );
    assert_eq!(
        lines[2],
        "missed    0 (overrun 0, busy 0, throttled 0, source 0, suspended 0)"
    );
    assert_eq!(lines[3], "lost      0 (this view was too slow for them)");
    assert_eq!(lines[4], "errors    0");
    assert!(lines[5].contains("5 of 64 rows to read"), "{lines:#?}");
    assert!(lines[6].starts_with("row 9─"), "{lines:#?}");
    assert!(
        lines[7].starts_with("sim.counter  9                   ▁█"),
        "{lines:#?}"
    );
    assert!(lines[8].starts_with("sim.ramp     "), "{lines:#?}");
    assert!(lines[8].contains(" V "), "{lines:#?}");
    let text = lines.join("\n");
    assert!(text.contains("\nperiod: min "), "{text}");
    assert!(text.contains("\nfrom "), "{text}");
    assert!(text.contains("▬"), "{text}");
    assert_eq!(lines[23], "q leaves; the run goes on");
}

#[test]
fn a_run_that_has_ended_keeps_its_last_figures() {
    let (run, mut reader, mut figures) = soft(&["sim.counter"], 7);
    figures.update(&mut reader);
    run.stop().expect("a stop");
    drop(run);
    for _ in 0..3 {
        figures.update(&mut reader);
    }
    let lines = picture(&figures, 80, 24);
    assert!(lines[0].contains("stopped"), "{lines:#?}");
    assert!(lines[1].starts_with("rows      7, "), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("sim.counter  6")),
        "{lines:#?}"
    );
    assert_eq!(lines[23], "the run has ended; q leaves");
}

#[test]
fn no_size_of_the_terminal_is_a_panic() {
    let names: Vec<String> = (0..40).map(|_| "sim.sine".to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_run, mut reader, mut figures) = soft(&names, 3);
    for seen in [false, true] {
        if seen {
            figures.update(&mut reader);
        }
        for (width, height) in [
            (0, 0),
            (1, 1),
            (1, 24),
            (80, 1),
            (2, 3),
            (10, 5),
            (20, 8),
            (500, 200),
        ] {
            picture(&figures, width, height);
        }
    }
    let lines = picture(&figures, 80, 24).join("\n");
    assert!(lines.contains("sim.sine#2"), "{lines}");
    assert!(lines.contains("more channels do not fit"), "{lines}");
}

#[test]
fn what_failed_has_no_value() {
    let names = ["sim.counter", "sim.ramp", "sim.sine"];
    let (_run, mut reader, mut figures) = soft(&names, 1);
    figures.update(&mut reader);
    figures.info.outputs.push("sim.latch".to_owned());
    figures.last = Some(LastRow {
        row: 0,
        words: vec![0, 7, 0],
        failed: vec![0, 2, 3],
    });
    let lines = picture(&figures, 80, 24);
    let is_there = |text: &str| lines.iter().any(|line| line.starts_with(text));
    assert!(is_there("sim.counter  failed"), "{lines:#?}");
    assert!(is_there("sim.ramp     0.00700 V"), "{lines:#?}");
    assert!(is_there("sim.sine     failed"), "{lines:#?}");
    assert!(is_there("row 0, failed: output sim.latch"), "{lines:#?}");
}

#[test]
fn values_are_shown_with_their_units() {
    let mut channel = Channel {
        name: "adc.x".into(),
        description: String::new(),
        unit: "V".into(),
        kind: Type::S64,
        class: Class::Hard,
        scale: 1.0,
        offset: 0.0,
        bits: 64,
        cost_ns: 1,
        in_use: false,
    };
    let show = |channel: &Channel, word: i64| {
        let word = word as u64;
        show_value(channel, word, channel.value(word))
    };
    assert_eq!(show(&channel, -3), "-3 V");
    assert_eq!(show(&channel, i64::MAX), format!("{} V", i64::MAX));
    channel.scale = 0.001;
    assert_eq!(show(&channel, 1234), "1.23400 V");
    assert_eq!(show(&channel, -123_456_789), "-123457 V");
    assert_eq!(show(&channel, 0), "0.00000 V");
    channel.unit.clear();
    channel.scale = 1e-9;
    assert_eq!(show(&channel, 5), "5.00000e-9");
}

#[test]
fn a_sparkline_goes_from_the_least_to_the_greatest() {
    assert_eq!(bars(&[]), [0; 0]);
    assert_eq!(bars(&[3.0, 3.0]), [1, 1]);
    assert_eq!(bars(&[0.0, 1.0, f64::NAN, 0.5]), [1, 8, 0, 5]);
    assert_eq!(bars(&[f64::NAN, f64::INFINITY]), [0, 0]);
    assert_eq!(bars(&[f64::MIN, f64::MAX, 0.0])[1], 8);
}
