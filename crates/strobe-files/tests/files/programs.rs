// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in a run of the user engine, and the same on what a run without one has recorded.

use std::path::Path;
use std::time::Duration;

use strobe::channel::Channel;
use strobe::computed_rows::ComputedRows;
use strobe::engine::user::User;
use strobe::info::Totals;
use strobe::plan::{Plan, Step};
use strobe::program::ProgramText;
use strobe::run::{OwnedRun, Run};
use strobe::source::RowSource;
use strobe_files::open;
use strobe_files::sink::{Existing, create};

const TRIGGERS: u32 = 6000;
const READ: [&str; 5] = [
    "sim.counter",
    "sim.ramp",
    "sim.sine",
    "sim.noise",
    "sim.noise",
];

/// Trigger and skipped triggers of a row, its values, and what failed.
type Row = (u64, u64, Vec<u64>, Vec<usize>);

fn text(derive: &[&str], keep: &[&str], every: Option<u64>) -> ProgramText {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    ProgramText {
        derive: owned(derive),
        keep: owned(keep),
        every,
        ..ProgramText::default()
    }
}

fn plan(read: &[&str], program: &ProgramText) -> Plan {
    let mut plan = Plan::new("soft".parse().expect("an event"));
    plan.steps = read
        .iter()
        .map(|name| Step::Read((*name).to_owned()))
        .collect();
    plan.program = program.clone();
    plan.ring = Some(2 * u64::from(TRIGGERS));
    plan
}

fn rows_of(source: &mut dyn RowSource) -> Vec<Row> {
    let mut rows = Vec::new();
    while let Some(block) = source.next(Duration::from_secs(1)).expect("rows") {
        assert_eq!((block.lost(), block.missed()), (0, 0));
        for row in block.rows() {
            assert_eq!(row.row, rows.len() as u64);
            let faults = row.faults.iter().collect();
            rows.push((row.trigger, row.skipped, row.values.to_vec(), faults));
        }
    }
    rows
}

/// The rows of a run that `between` triggers, and its account.
fn of_run(plan: &Plan, between: impl Fn(&dyn OwnedRun)) -> (Vec<Channel>, Vec<Row>, Totals) {
    let run = User::default().create(plan).expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("a start");
    between(&run);
    run.stop().expect("an end");
    let mut rows = Vec::new();
    while let Some(block) = reader.next(Duration::from_secs(1)).expect("rows") {
        assert_eq!((block.lost(), block.missed()), (0, 0));
        for row in block.rows() {
            assert_eq!(row.row, rows.len() as u64);
            let faults = row.faults.iter().collect();
            rows.push((row.trigger, row.skipped, row.values.to_vec(), faults));
        }
    }
    let totals = Totals::of(&reader.snapshot(), 0);
    assert_eq!(
        totals.triggers,
        totals.rows + totals.missed() + totals.skipped
    );
    (run.info().channels.clone(), rows, totals)
}

/// A recording of a run without a program.
fn record(path: &Path, read: &[&str], between: impl Fn(&dyn OwnedRun)) {
    let run = User::default()
        .create(&plan(read, &ProgramText::default()))
        .expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("a start");
    between(&run);
    run.stop().expect("an end");
    let (_, mut sink) =
        create(path.to_str().expect("a name"), "soft", Existing::Refuse).expect("a file");
    sink.begin(run.info()).expect("a start");
    while let Some(block) = reader.next(Duration::from_secs(1)).expect("rows") {
        sink.write(block.rows()).expect("rows");
    }
    sink.finish(Some(&Totals::of(&reader.snapshot(), 0)))
        .expect("an end");
}

fn all(run: &dyn OwnedRun) {
    run.trigger(TRIGGERS).expect("triggers");
}

#[test]
fn a_run_with_a_program_has_the_rows_that_the_program_makes_of_a_recording_without_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plain.arrows");
    record(&path, &READ, all);
    let since = [
        "n = count(since emit)",
        "mean = mean(sim.noise since emit)",
        "least = min(sim.sine since emit)",
        "most = max(sim.sine since emit)",
        "first = first(sim.ramp since emit)",
        "wide = spread(sim.noise since emit)",
    ];
    let derived = [
        "step = diff(sim.ramp)",
        "slope = diff(sim.sine) / diff(sim.ramp) in kV/V",
        "smooth = mean(sim.noise, 64)",
        "both = sim.noise + `sim.noise#2`",
        "bit = sim.counter >> 3 & 1",
        "far = abs(smooth) > 10 mV",
    ];
    let all_of_it = [&derived[..], &since[..]].concat();
    for program in [
        text(&derived, &[], None),
        text(&[], &["sim.ramp > 0.5 V"], None),
        text(&[], &[], Some(7)),
        text(&derived, &["sim.noise > 100 mV", "sim.counter & 1"], None),
        text(
            &since,
            &["sim.noise > 100 mV && far || sim.sine < -200 mV"],
            Some(3),
        ),
        text(&all_of_it, &["sim.noise > 100 mV"], Some(10)),
        text(&since, &[], Some(100)),
        // The last rows are left out.
        text(&derived, &["sim.counter < 1000"], None),
    ] {
        let mut program = program;
        if program.keep.iter().any(|keep| keep.contains("far")) {
            program.derive = all_of_it.iter().map(|text| (*text).to_owned()).collect();
        }
        let (channels, rows, totals) = of_run(&plan(&READ, &program), all);
        let mut tried =
            ComputedRows::new(open(&path).expect("a recording"), &program).expect("a program");
        let known = |channels: &[Channel]| -> Vec<_> {
            let about = |c: &Channel| {
                (
                    c.name.clone(),
                    c.unit.clone(),
                    c.kind,
                    c.bits,
                    c.scale,
                    c.offset,
                )
            };
            channels.iter().map(about).collect()
        };
        assert_eq!(known(&tried.info().channels), known(&channels));
        assert_eq!(tried.info().skips, program.skips());
        let tried_rows = rows_of(&mut tried);
        assert_eq!(tried_rows, rows, "{program:?}");
        let found = tried.totals().expect("an account");
        let counts = |t: &Totals| (t.rows, t.triggers, t.skipped, t.missed(), t.lost, t.errors);
        assert_eq!(counts(&found), counts(&totals));
        assert_eq!(totals.triggers, u64::from(TRIGGERS));
        assert_eq!(totals.rows, rows.len() as u64);
        assert!(
            rows.len() > 10 && (!program.skips() || totals.skipped > 1000),
            "{program:?}: {}",
            rows.len()
        );
    }
}

#[test]
fn the_mean_of_a_group_is_that_of_the_plain_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plain.arrows");
    record(&path, &READ, all);
    let plain = rows_of(open(&path).expect("a recording").as_mut());
    let program = text(
        &[
            "mean = mean(sim.noise since emit)",
            "sum = sum(sim.noise since emit)",
        ],
        &[],
        Some(1000),
    );
    let (channels, rows, _) = of_run(&plan(&READ, &program), all);
    // Of a word there is nothing to round; the scale is a number, and has its last bit from one division or another.
    let scale = channels[3].scale / 1000.0;
    assert!(
        (channels[5].scale / scale - 1.0).abs() < 1e-15 && channels[6].scale == channels[3].scale
    );
    assert_eq!(rows.len(), 6);
    for (group, row) in plain.chunks(1000).zip(&rows) {
        let sum: i64 = group.iter().map(|row| row.2[3] as i64).sum();
        assert_eq!(row.2[5..], [sum as u64, sum as u64]);
    }
}

#[test]
fn a_row_in_which_something_failed_is_kept_and_the_program_does_not_see_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let number = folder.path().join("number");
    std::fs::write(&number, "1").expect("a file");
    let channel = format!("file:{}", number.display());
    let read = ["sim.counter", channel.as_str()];
    let triggers = |run: &dyn OwnedRun| {
        for word in ["1", "2", "none", "4", "5", "6"] {
            std::fs::write(&number, word).expect("a file");
            run.trigger(1).expect("a trigger");
        }
    };
    let program = text(
        &["step = diff(sim.counter)", "n = count(since emit)"],
        &[&format!("`{channel}` >= 5")],
        None,
    );
    let (_, rows, totals) = of_run(&plan(&read, &program), triggers);
    // Row 2 is as it is read, but for its derived values, which failed with it. Rows 0, 1 and 3 are left out.
    assert_eq!(
        rows,
        [
            (2, 2, vec![2, 0, 0, 0], vec![1, 2, 3]),
            (4, 3, vec![4, 5, 1, 4], vec![]),
            (5, 3, vec![5, 6, 1, 1], vec![])
        ]
    );
    assert_eq!((totals.rows, totals.skipped, totals.errors), (3, 3, 1));
    let path = folder.path().join("plain.arrows");
    record(&path, &read, triggers);
    let mut tried =
        ComputedRows::new(open(&path).expect("a recording"), &program).expect("a program");
    assert_eq!(rows_of(&mut tried), rows);
    assert_eq!(tried.totals().map(|totals| totals.errors), Some(1));
}

#[test]
fn the_limit_counts_rows_that_are_kept() {
    let program = text(&[], &["sim.counter & 3 == 3"], None);
    let mut plan = plan(&["sim.counter"], &program);
    plan.limit = Some(5);
    let (_, rows, totals) = of_run(&plan, all);
    assert_eq!(
        (rows.len(), totals.rows, totals.triggers, totals.skipped),
        (5, 5, 20, 15)
    );
}
