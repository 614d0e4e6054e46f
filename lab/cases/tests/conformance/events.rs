// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events, and what they have missed.

use std::thread;
use std::time::Duration;

use strobe::plan::Plan;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, read_to_end, record, until_rows};
use strobe_cases::machine::pin;
use strobe_cases::{Engine, Kept, Pace, plan};
use strobe_ring::{Missed, State};

/// Period of sim.pulse.
const PULSE_NS: u64 = 1_000_000;

pub fn one_call_triggers_a_thousand_rows<E: Engine>(engine: &E) {
    let run = engine.run(&plan("soft", &["sim.counter"]));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    for (triggers, rows) in [(1, 1), (1000, 1001), (1, 1002)] {
        run.trigger(triggers).expect("to trigger");
        // The call returns when the rows are there.
        read_now(&mut reader, &mut account);
        assert_eq!(account.rows.len(), rows);
    }
    run.stop().expect("to stop");
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((end.triggers, end.missed(), account.lost), (1002, 0, 0));
    assert!(account.rows.iter().all(|row| row.trigger == row.row));
}

pub fn triggers_of_two_threads_make_one_row_each<E: Engine>(engine: &E) {
    let run = engine.run(&plan("soft", &["sim.counter"]));
    let (mut reader, mut account) = begin(&run);
    run.start().expect("to start");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for triggers in [1, 200, 1, 300, 1000].into_iter().cycle().take(10) {
                    run.trigger(triggers).expect("to trigger");
                }
            });
        }
    });
    run.stop().expect("to stop");
    read_now(&mut reader, &mut account);
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((end.triggers, end.missed(), account.lost), (6008, 0, 0));
    assert!(account.column(0).eq(0..6008));
}

pub fn every_row_lies_on_the_grid_from_a_microsecond_to_a_second<E: Engine>(engine: &E) {
    let periods = [
        (1_000, 300),
        (2_000, 300),
        (7_001, 300),
        (20_000, 300),
        (100_000, 100),
        (1_000_000, 50),
        (10_000_000, 10),
        (100_000_000, 3),
        (1_000_000_000, 2),
    ];
    for (period, rows) in periods {
        let run = engine.run(&Plan {
            limit: Some(rows),
            ..plan(&format!("timer:{period}ns"), &["clock.late"])
        });
        assert_eq!(run.info().period_ns, Some(period));
        let (account, end) = record(&run);
        assert_eq!((account.rows.len() as u64, end.state), (rows, State::Done));
        assert_eq!(end.start.first_due, end.start.time + period);
        for row in &account.rows {
            let due = end.start.first_due + row.trigger * period;
            assert_eq!(
                row.time.checked_sub(due),
                Some(row.values[0]),
                "{period} ns, {row:?}"
            );
        }
    }
}

pub fn what_a_timer_has_missed_is_where_the_triggers_step<E: Engine>(engine: &E) {
    // More than a machine can do that runs the lab; if not, this proves nothing.
    let run = engine.run(&Plan {
        limit: Some(3000),
        ..plan("timer:1us", &["sim.counter"])
    });
    let (account, end) = record(&run);
    assert!(end.missed() > 0, "nothing was missed: {end:?}");
    assert_eq!(account.missed_shown(), end.missed());
    let known = [Missed::Overrun, Missed::Throttled].map(|cause| end.missed_by[cause as usize]);
    assert_eq!(
        known.iter().sum::<u64>(),
        end.missed(),
        "a timer misses for no other cause"
    );
    // The rows themselves do not step: what was missed was not read.
    assert!(account.column(0).eq(0..3000));
}

pub fn a_row_is_late_if_it_comes_a_whole_period_after_it_was_due<E: Engine>(engine: &E) {
    // Long rows of another run on the same CPU stand in the way.
    let _pinned = pin(0);
    let other = engine.run(&Plan {
        ring: Some(64),
        ..plan("timer:50us", &["clock.time"; 300])
    });
    other.start().expect("to start");
    let mut late = [0, 0];
    for (period, rows) in [(2_000, 1000), (1_000_000, 100), (20_000_000, 10)] {
        let run = engine.run(&Plan {
            limit: Some(rows),
            ..plan(&format!("timer:{period}ns"), &["clock.late"])
        });
        for row in &record(&run).0.rows {
            let is_late = row.values[0] >= period;
            assert_eq!(row.status.late(), is_late, "{period} ns, {row:?}");
            late[usize::from(is_late)] += 1;
        }
    }
    assert!(
        late[0] > 0 && late[1] > 0,
        "both kinds of rows are needed: {late:?}"
    );
}

pub fn a_device_event_makes_rows<E: Engine>(engine: &E) {
    let run = engine.run(&plan("sim.pulse", &["clock.late", "sim.counter"]));
    assert_eq!(run.info().period_ns, None);
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    until_rows(&reader, 20);
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert!(account.column(1).eq(0..account.rows.len() as u64));
    // Pulses are due on a grid as well, of a millisecond; it begins somewhere.
    // The number of a row's trigger is that of its pulse, late or not.
    let due = |row: &Kept| row.time - row.values[0];
    let first = &account.rows[0];
    for row in &account.rows {
        let pulses = row.trigger - first.trigger;
        assert_eq!(due(row) - due(first), pulses * PULSE_NS, "{row:?}");
    }
}

pub fn triggers_that_are_left_out_are_skipped_and_not_missed<E: Engine>(engine: &E) {
    let run = engine.run(&Plan {
        limit: Some(30),
        ..plan("sim.decimated", &["sim.counter"])
    });
    // The account, and that of each row, is settled there.
    let (account, end) = record(&run);
    assert_eq!((account.rows.len(), end.skipped), (30, 30 * 9));
    for row in &account.rows {
        assert_eq!(row.skipped, 9 * (row.row + 1), "{row:?}");
    }
    assert_eq!(account.missed_shown(), end.missed());
}

pub fn what_is_skipped_before_a_pause_and_a_stop_is_counted<E: Engine>(engine: &E) {
    let run = engine.run(&plan("sim.decimated", &[]));
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    for rows in [2, 4] {
        until_rows(&reader, rows);
        thread::sleep(Duration::from_millis(5));
        run.pause().expect("to pause");
        let paused = reader.snapshot();
        let known = paused.head + paused.missed() + paused.skipped;
        assert_eq!(paused.triggers, known, "{paused:?}");
        assert!(paused.skipped >= 9 * paused.head, "{paused:?}");
        run.resume().expect("to go on");
    }
    run.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    assert!(account.rows.len() >= 4);
}
