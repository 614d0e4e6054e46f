// SPDX-License-Identifier: MIT OR Apache-2.0

use strobe::samples::info;
use strobe_ring::{RowShape, Rows};

use super::*;

/// Rows of a timer of 1000 ns that is first due at 1000: row, trigger, stamp.
fn suspects(which: LateSelection, rows: &[[u64; 3]]) -> Suspects {
    let mut info = info(Vec::new());
    info.period_ns = Some(1000);
    info.start.first_due = 1000;
    let mut suspects = Suspects::new(&info, which);
    for [row, trigger, time] in rows {
        Rows::new(&[*row, *trigger, *time, 0], RowShape::of_channels(0))
            .for_each(|row| suspects.row(&row));
    }
    suspects
}

fn delays(suspects: &mut Suspects) -> Vec<(u64, u64)> {
    let taken = suspects.take();
    taken
        .iter()
        .map(|suspect| (suspect.row, suspect.delay_ns()))
        .collect()
}

#[test]
fn rows_later_than_a_time_are_looked_at_in_their_order() {
    let rows = [[0, 0, 1100], [1, 1, 2101], [2, 2, 3050], [3, 3, 4900]];
    let mut late = suspects(LateSelection::LaterThan(100), &rows);
    assert_eq!(delays(&mut late), [(1, 101), (3, 900)]);
    assert_eq!(delays(&mut late), [], "once");
}

#[test]
fn the_worst_rows_are_looked_at_the_worst_first() {
    let rows = [[0, 0, 1100], [1, 1, 2300], [2, 2, 3050], [3, 3, 4200]];
    assert_eq!(
        delays(&mut suspects(LateSelection::Worst(2), &rows)),
        [(1, 300), (3, 200)]
    );
}

#[test]
fn what_is_not_among_the_worst_so_far_is_of_no_interest() {
    let mut late = suspects(LateSelection::Worst(2), &[[0, 0, 1100]]);
    late.bar_ns = 150;
    for words in [[1, 1, 2150, 0], [2, 2, 3151, 0]] {
        Rows::new(&words, RowShape::of_channels(0)).for_each(|row| late.row(&row));
    }
    assert_eq!(delays(&mut late), [(2, 151), (0, 100)]);
}

#[test]
fn a_trigger_missed_after_a_row_in_time_is_a_delay_from_when_it_was_due() {
    // Row 1 was made in time, and yet trigger 2 made none.
    let rows = [[0, 0, 1010], [1, 1, 2010], [2, 3, 4020]];
    let mut late = suspects(LateSelection::LaterThan(500), &rows);
    let taken = late.take();
    let [only] = taken.as_slice() else {
        panic!("{taken:?}");
    };
    let delay = Delay {
        from: 3000,
        due: 4000,
        to: 4020,
    };
    assert_eq!((only.row, only.missed, only.delay), (2, 1, delay));
}

#[test]
fn triggers_that_a_late_row_has_left_behind_are_its_own_affair() {
    let rows = [[0, 0, 1010], [1, 1, 5500], [2, 5, 6010]];
    assert_eq!(
        delays(&mut suspects(LateSelection::LaterThan(500), &rows)),
        [(1, 3500)]
    );
}

#[test]
fn after_so_many_late_rows_the_others_are_counted() {
    let rows: Vec<[u64; 3]> = (0..MOST as u64 + 7)
        .map(|n| [n, n, 1900 + n * 1000])
        .collect();
    let mut late = suspects(LateSelection::LaterThan(500), &rows);
    assert_eq!((late.take().len(), late.more), (MOST, 7));
}

#[test]
fn a_verdict_says_what_took_how_long_and_leaves_out_trifles() {
    let delay = Delay {
        from: 3_000_000,
        due: 4_000_000,
        to: 4_020_000,
    };
    let suspect = Suspect {
        row: 2,
        trigger: 3,
        missed: 1,
        delay,
    };
    let share = |cause, ns| Share {
        cause,
        who: String::new(),
        ns,
    };
    let shares = vec![
        share(Cause::Waiting, 500_000),
        share(Cause::PageFault, 480_000),
        share(Cause::Way, 40_000),
    ];
    let verdict = Verdict::new(suspect, shares, String::new());
    assert_eq!(
        verdict.text(),
        "row 2, trigger 3, after 1 missed, no row for 1.02 ms, late 20 us: a page fault\n  \
         waiting for the next trigger 500 us\n  a page fault 480 us\n"
    );
    let json = serde_json::to_value(&verdict).expect("JSON");
    assert_eq!(
        (&json["cause"], &json["delay_ns"]),
        (&"page-fault".into(), &1_020_000.into())
    );
}

#[test]
fn only_the_first_late_row_is_looked_at_if_it_is_to_end_the_run() {
    let rows = [[0, 0, 1100], [1, 1, 2301], [2, 2, 3900]];
    assert_eq!(
        delays(&mut suspects(LateSelection::First(200), &rows)),
        [(1, 301)]
    );
}

#[test]
fn a_row_that_came_while_others_were_looked_at_is_not_among_the_worst() {
    for (which, wanted) in [
        (LateSelection::Worst(2), 0),
        (LateSelection::LaterThan(100), 1),
    ] {
        let mut late = suspects(which, &[]);
        late.since = 2500;
        Rows::new(&[0, 1, 2900, 0], RowShape::of_channels(0)).for_each(|row| late.row(&row));
        assert_eq!(late.take().len(), wanted, "{which:?}");
        let overlooked = if wanted == 0 { (1, 900) } else { (0, 0) };
        assert_eq!(late.overlooked, overlooked);
    }
}

#[test]
fn rows_of_two_rounds_with_the_same_number_have_a_file_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let rows = [[7, 7, 9000, 0], [7, 7, 9500, 0], [8, 8, 9900, 0]];
    let mut found = LateRows::default();
    for (round, [row, trigger, time, _]) in rows.into_iter().enumerate() {
        let suspect = suspects(LateSelection::Worst(1), &[[row, trigger, time]]).take();
        let suspect = suspect.into_iter().next().expect("a late row");
        let verdict = Verdict::new(suspect, Vec::new(), format!("round {round}"));
        found.verdicts.push(verdict);
    }
    found.keep(dir.path(), "block").expect("files");
    let names = ["block-row-7.txt", "block-row-7-2.txt", "block-row-8.txt"];
    for (round, name) in names.into_iter().enumerate() {
        let text = std::fs::read_to_string(dir.path().join(name)).expect("a file");
        assert!(text.ends_with(&format!("round {round}")), "{text}");
    }
}
