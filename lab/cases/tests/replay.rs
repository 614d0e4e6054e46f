// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the kernel engine that has missed triggers and lost rows is recorded, replayed by the user engine, and recorded
//! again: nothing but what names the recording has changed.

use std::path::Path;
use std::time::Duration;
use std::{env, fs, process};

use strobe::block::Block;
use strobe::engine::Error;
use strobe::engine::user::{ReplayOptions, Speed};
use strobe::info::{RunInfo, Totals};
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe::samples::all_of;
use strobe::source::RowSource;
use strobe_cases::account::until;
use strobe_cases::machine::Sim;
use strobe_cases::{Engine, Kernel, User, plan};
use strobe_files::recorder::Recorder;

/// Waits before it reads until rows of a short ring have been overwritten.
struct Slow(RunReader);

impl RowSource for Slow {
    fn info(&self) -> &RunInfo {
        self.0.info()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        let begun = self.0.snapshot().head;
        until("as many rows as the ring has", || {
            let now = self.0.snapshot();
            now.head > begun + 64 || now.state.is_final()
        });
        self.0.next(wait)
    }

    fn totals(&self) -> Option<Totals> {
        self.0.totals()
    }
}

fn record(rows: impl RowSource + 'static, folder: &Path, name: &str) {
    let file = |format| folder.join(name).with_extension(format);
    let recorder = Recorder::of_rows(Box::new(rows))
        .file(file("arrows").display().to_string())
        .file(file("csv").display().to_string());
    let summary = recorder.run().expect("a recording");
    let failed = summary.sinks.iter().find(|sink| sink.error.is_some());
    assert!(failed.is_none(), "{failed:?}");
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
    let folder = env::temp_dir().join(format!("replay-{}", process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let open = |name| strobe_files::open(&folder.join(name)).expect("a recording");
    record(Slow(reader), &folder, "first");
    let first = all_of(open("first.arrows"));
    let account = &first.1;
    assert_eq!(account.rows, 3000, "{account:?}");
    assert!(account.missed() > 0 && account.lost > 0, "{account:?}");
    assert!(account.errors > 0, "{account:?}");

    let recording = open("first.arrows");
    assert_eq!(recording.info().engine, Kernel::KIND);
    let options = ReplayOptions {
        speed: Speed::Max,
        ..ReplayOptions::default()
    };
    let replay = User::open().0.replay(recording, &options).expect("a run");
    let reader = replay.reader().expect("a reader");
    replay.start().expect("to start");
    record(reader, &folder, "second");
    let second = all_of(open("second.arrows"));
    assert_eq!((&second.0, &second.1), (&first.0, &first.1));
    assert!(second.2 == first.2, "the rows are not the same");
    let text = |name| fs::read(folder.join(name)).expect("text");
    assert!(
        text("first.csv") == text("second.csv"),
        "not the same bytes"
    );
    fs::remove_dir_all(&folder).expect("to leave nothing");
}
