// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the kernel engine that has missed triggers and lost rows is recorded, replayed by the user engine, and recorded
//! again: nothing but what names the recording has changed.

use std::time::Duration;

use strobe::block::Block;
use strobe::engine::Error;
use strobe::engine::user::{ReplayOptions, Speed};
use strobe::info::{RunInfo, Totals};
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe::source::RowSource;
use strobe_cases::machine::Sim;
use strobe_cases::{Engine, Kernel, User, plan};
use strobe_files::recorder::Recorder;
use strobe_files::sink::Existing;

/// Sleeps before it reads: rows of a short ring are overwritten meanwhile.
struct Slow(RunReader);

impl RowSource for Slow {
    fn info(&self) -> &RunInfo {
        self.0.info()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        std::thread::sleep(Duration::from_millis(50));
        self.0.next(wait)
    }

    fn totals(&self) -> Option<Totals> {
        self.0.totals()
    }
}

fn path(name: &str, format: &str) -> String {
    format!("/tmp/replay-{name}.{format}")
}

fn record(rows: impl RowSource + 'static, name: &str) {
    let recorder = Recorder::of_rows(Box::new(rows))
        .existing(Existing::Overwrite)
        .file(path(name, "arrows"))
        .file(path(name, "csv"));
    let summary = recorder.run().expect("a recording");
    let failed = summary.sinks.iter().find(|sink| sink.error.is_some());
    assert!(failed.is_none(), "{failed:?}");
}

/// What is known of the run, its account, and its rows. What names the recording is left out: a replay is a run of the user
/// engine with a number, a ring and a set-up of its own; the machine's state is noted by who makes a run.
fn all_of(name: &str) -> (RunInfo, Totals, Vec<u64>) {
    let mut source = strobe_files::open(path(name, "arrows").as_ref()).expect("a recording");
    let mut words = Vec::new();
    while let Some(block) = source.next(Duration::ZERO).expect("rows") {
        words.extend_from_slice(block.words());
    }
    let info = RunInfo {
        engine: User::KIND,
        run: 0,
        capacity: 0,
        set_up: Vec::new(),
        doctor: Vec::new(),
        ..source.info().clone()
    };
    (info, source.totals().expect("an account"), words)
}

#[test]
fn a_recording_of_the_kernel_engine_with_gaps_is_the_same_after_a_replay() {
    let sim = Sim::well();
    // Each tenth read of the ramp takes ten periods, and each tenth of the noise fails.
    sim.set("sim_every", 10)
        .set("sim_slow_ns", 1_000_000)
        .set("sim_fail", 1);
    let run = Kernel::open().run(&Plan {
        ring: Some(64),
        limit: Some(3000),
        ..plan("timer:100us", &["sim.noise", "sim.ramp", "clock.late"])
    });
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    record(Slow(reader), "first");
    let first = all_of("first");
    let account = &first.1;
    assert_eq!(account.rows, 3000, "{account:?}");
    assert!(account.missed() > 0 && account.lost > 0, "{account:?}");
    assert!(account.errors > 0, "{account:?}");

    let recording = strobe_files::open(path("first", "arrows").as_ref()).expect("a recording");
    assert_eq!(recording.info().engine, Kernel::KIND);
    let options = ReplayOptions {
        speed: Speed::Max,
        ..ReplayOptions::default()
    };
    let replay = User::open().0.replay(recording, &options).expect("a run");
    let reader = replay.reader().expect("a reader");
    replay.start().expect("to start");
    record(reader, "second");
    let second = all_of("second");
    assert_eq!((&second.0, &second.1), (&first.0, &first.1));
    assert!(second.2 == first.2, "the rows are not the same");
    let text = |name| std::fs::read(path(name, "csv")).expect("text");
    assert!(text("first") == text("second"), "not the same bytes");
}
