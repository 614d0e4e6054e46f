// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs beside one that waits for an instrument, exactly: on a machine that nothing disturbs, they miss nothing.

use std::thread;

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_cases::account::{begin, read_to_end, record};
use strobe_cases::instrument::{FAULTS, instrument};
use strobe_cases::machine::timer;
use strobe_cases::{Pace, plan};
use strobe_ring::State;

#[test]
fn a_run_beside_an_instrument_with_every_fault_misses_nothing() {
    let instrument = instrument("psu");
    let of = |limit, period, names: &[&str]| {
        let engine = User::default().with_board(instrument.clone());
        let plan = Plan {
            limit,
            ..plan(&timer(period), names)
        };
        engine.create(&plan).unwrap_or_else(|why| panic!("{why}"))
    };
    let names: Vec<String> = ["x", "questions", "answers", "absent"]
        .iter()
        .chain(&FAULTS)
        .map(|name| format!("psu.{name}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slow = of(None, 10_000_000, &names);
    let (mut reader, _) = begin(&slow);
    slow.start().expect("to start");
    // One that knows nothing of it, and one that looks at its latest answers.
    let fast = of(Some(2000), 1_000_000, &["sim.counter"]);
    let other = thread::spawn(move || record(&fast));
    let looking = of(Some(2000), 1_000_000, &["psu.y", "psu.y.age"]);
    for (account, end) in [record(&looking), other.join().expect("the other run")] {
        assert_eq!(
            (end.state, end.triggers, end.missed()),
            (State::Done, 2000, 0)
        );
        assert!(account.rows.iter().all(|row| row.faults.is_empty()));
    }
    slow.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    let last = account.rows.last().expect("rows");
    let [_, questions, answers, absent, ends @ ..] = &last.values[..] else {
        panic!("{last:?}");
    };
    assert!(ends.iter().all(|count| *count > 0), "{last:?}");
    let sum = answers + absent + ends.iter().sum::<u64>();
    // The latest answers of this conversation nobody has asked for.
    assert_eq!((*questions, account.rows.len() as u64), (sum, sum));
    let values = account.rows.iter().filter(|row| row.faults.is_empty());
    let values: Vec<u64> = values.map(|row| row.values[0]).collect();
    assert!(
        values.windows(2).all(|pair| pair[0] < pair[1]),
        "an answer of before"
    );
    assert_eq!(values.len() as u64, *answers);
}
