// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording of a replay is the recording: of both engines' runs, with gaps, from each format that can be replayed into
//! each that can be written.
//!
//! What names the recording itself is left out: a replay is a run of the user engine (`engine`) with a number (`run`), a
//! ring (`capacity`) and a set-up (`set_up`) of its own, and how the machine was (`doctor`) is noted by who makes a run.
//! The batches of an .arrows file say when its writer flushed; so bytes are compared of files that were written without a
//! flush. HDF5 notes when each object was made; so all that is in .h5 files is compared, instead of their bytes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use strobe::engine::user::{Lock, ReplayOptions, Settings, Speed, User};
use strobe::info::{RunInfo, Totals};
use strobe::plan::{Plan, Step};
use strobe::ring::Rows;
use strobe::run::{OwnedRun, Run};
use strobe::samples::{self, every_type, nameless};
use strobe::source::RowSource;
use strobe_files::open;
use strobe_files::recorder::Recorder;
use strobe_files::sink::arrow::ArrowFile;
use strobe_files::sink::{Existing, Sink, SinkProgress, create};

/// What names a recording.
const NAMES: [&str; 5] = ["engine", "run", "capacity", "set_up", "doctor"];

/// An .arrows file without what names the recording, of one batch.
struct Whole(ArrowFile);

impl Sink for Whole {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        self.0.begin(&nameless(info))
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        self.0.write(rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        self.0.finish(totals)
    }

    fn written(&self) -> SinkProgress {
        self.0.written()
    }
}

/// A file of each format, and one of one batch, in a new folder.
fn record(rows: Box<dyn RowSource>, folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    let whole = File::create(folder.join("whole.arrows")).expect("a file");
    let mut recorder =
        Recorder::of_rows(rows).sink("whole", Box::new(Whole(ArrowFile::new(whole))));
    for format in formats().chain(["csv"]) {
        recorder = recorder.file(file(folder, format).display().to_string());
    }
    let summary = recorder.run().expect("a recording");
    assert!(summary.sinks.iter().all(|sink| sink.error.is_none()));
}

/// Those that can be replayed.
fn formats() -> impl Iterator<Item = &'static str> {
    ["arrows"]
        .into_iter()
        .chain(cfg!(feature = "hdf5").then_some("h5"))
}

fn file(folder: &Path, format: &str) -> PathBuf {
    folder.join("rows").with_extension(format)
}

/// Replays a recording in a folder as fast as it can be read, and records that into another.
fn replay(recording: &Path, folder: &Path) {
    let user = User::new(Settings {
        lock: Lock::None,
        ..Settings::default()
    });
    let options = ReplayOptions {
        speed: Speed::Max,
        ..ReplayOptions::default()
    };
    let run = user.replay(open(recording).expect("a recording"), &options);
    let run = run.expect("a run");
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    record(Box::new(reader), folder);
}

fn all_of(recording: &Path) -> (RunInfo, Totals, Vec<u64>) {
    samples::all_of(open(recording).expect("a recording"))
}

/// That a recording is the same after a replay, whatever its format.
fn is_the_same_again(original: &Path) {
    let folder = original.parent().expect("a folder");
    let first = folder.join("first");
    record(open(original).expect("a recording"), &first);
    let all = all_of(original);
    assert!(all.1.missed() > 0 && all.1.lost > 0, "{:?}", all.1);
    for from in formats() {
        let second = folder.join(format!("of-{from}"));
        replay(&file(&first, from), &second);
        for to in formats() {
            assert_eq!(all_of(&file(&first, to)), all, "{to}");
            assert_eq!(all_of(&file(&second, to)), all, "{from} to {to}");
        }
        let bytes = |folder: &Path, name| fs::read(folder.join(name)).expect("a file");
        for name in ["rows.csv", "whole.arrows"] {
            assert!(
                bytes(&first, name) == bytes(&second, name),
                "{from} to {name}: not the same bytes"
            );
        }
        #[cfg(feature = "hdf5")]
        assert_eq!(
            hdf5_objects::of(&file(&first, "h5")),
            hdf5_objects::of(&file(&second, "h5")),
            "{from} to h5"
        );
    }
}

/// Row, trigger, time, status, values, skipped. Rows 0, 3 to 7 and 11 are lost; what failed is in the status.
const ROWS: [[u64; 8]; 5] = [
    [1, 1, 6_000, 0, 10, 20, 0x3FF0_0000_0000_0000, 0],
    [2, 5, 10_100, 0b10, 11, u64::MAX, 0xFFF0_0000_0000_0000, 2],
    [8, 13, 18_000, 0b10 << 32, 12, 0, 0, 2],
    [9, 14, 19_000, 0b1100 << 32 | 1, 13, 24, 0, 2],
    [10, 19, 24_000, 0, u64::MAX, 25, 0x7FF8_0000_0000_0000, 5],
];

#[test]
fn a_run_of_the_kernel_engine_is_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = every_type();
    let account = Totals {
        rows: 12,
        triggers: 25,
        skipped: 6,
        missed_by: [3, 1, 0, 2, 1, 0, 0, 0],
        lost: 7,
        errors: 4,
        end_time_ns: 30_000,
        end: strobe::info::End::Stopped,
    };
    let path = folder.path().join("kernel.arrows");
    let name = path.to_str().expect("a name");
    let (_, mut sink) = create(name, "soft", Existing::Refuse).expect("a file");
    sink.begin(&run).expect("to begin");
    for rows in ROWS.chunks(2) {
        let rows = Rows::new(rows.as_flattened(), run.shape());
        sink.write(rows).expect("rows");
        sink.flush().expect("to flush");
    }
    sink.finish(Some(&account)).expect("to finish");
    is_the_same_again(&path);
}

#[test]
fn a_run_of_the_user_engine_is_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    // No machine is so fast, and a reader that sleeps for a millisecond comes too late for a ring of 16 rows.
    let mut plan = Plan::new("timer:1us".parse().expect("an event"));
    (plan.ring, plan.limit) = (Some(16), Some(3000));
    let channels = ["sim.counter", "sim.sine", "clock.late"];
    plan.steps = channels.map(|name| Step::Read(name.into())).into();
    let run = User::default().create(&plan).expect("a run");
    let reader = run.reader().expect("a reader");
    run.start().expect("to start");
    let path = folder.path().join("user.arrows");
    let recorder = Recorder::of_rows(Box::new(reader)).file(path.display().to_string());
    recorder.run().expect("a recording");
    is_the_same_again(&path);
}

#[cfg(feature = "hdf5")]
mod hdf5_objects {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::path::Path;

    use hdf5::types::{FixedAscii, TypeDescriptor, VarLenUnicode};
    use hdf5::{Container, File, Group, H5Type, Location};

    use super::NAMES;

    /// Shape and values of each object and attribute, by its path, without what names the recording.
    pub fn of(path: &Path) -> BTreeMap<String, String> {
        let file = File::open(path).expect("an HDF5 file");
        let mut all = BTreeMap::new();
        add(&file, &mut all);
        assert!(all.contains_key("/entry/run@event"), "{all:?}");
        for name in NAMES {
            all.remove(&format!("/entry/run@{name}"));
        }
        all
    }

    fn add(group: &Group, all: &mut BTreeMap<String, String>) {
        add_attributes(group, all);
        for inner in group.groups().expect("groups") {
            add(&inner, all);
        }
        for dataset in group.datasets().expect("datasets") {
            add_attributes(&dataset, all);
            all.insert(dataset.name(), content(&dataset));
        }
    }

    fn add_attributes(of: &Location, all: &mut BTreeMap<String, String>) {
        for name in of.attr_names().expect("attributes") {
            let attribute = of.attr(&name).expect("an attribute");
            all.insert(format!("{}@{name}", of.name()), content(&attribute));
        }
    }

    fn content(of: &Container) -> String {
        let kind = of.dtype().and_then(|kind| kind.to_descriptor());
        match kind.expect("a type") {
            TypeDescriptor::Unsigned(_) => values::<u64>(of),
            TypeDescriptor::Integer(_) => values::<i64>(of),
            TypeDescriptor::Float(_) => values::<f64>(of),
            TypeDescriptor::FixedAscii(_) => values::<FixedAscii<8>>(of),
            TypeDescriptor::VarLenUnicode => values::<VarLenUnicode>(of),
            other => panic!("{}: {other}", of.name()),
        }
    }

    fn values<T: H5Type + Debug>(of: &Container) -> String {
        let values = of.read_raw::<T>().expect("values");
        format!("{:?} {values:?}", of.shape())
    }
}
