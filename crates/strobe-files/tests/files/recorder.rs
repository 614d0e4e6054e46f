// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings beside a program that does something else, of runs and of rows from anywhere.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strobe::engine::user::registry::{Error, Registry};
use strobe::engine::user::{User, UserRun};
use strobe::info::{End, RunInfo, Totals};
use strobe::plan::{Plan, Step};
use strobe::ring::{Rows, State};
use strobe::run::{OwnedRun, Run};
use strobe_files::open;
use strobe_files::record::{Observer, Progress};
use strobe_files::recorder::{Recorder, Recording};
use strobe_files::sink::{Sink, SinkProgress};

/// A run on software triggers, which has not started.
fn soft() -> Arc<UserRun> {
    let mut plan = Plan::new("soft".parse().expect("an event"));
    plan.ring = Some(1024);
    plan.steps.push(Step::Read("sim.counter".into()));
    Arc::new(User::default().create(&plan).expect("a run"))
}

/// A sink of a program of one's own: keeps the rows' numbers, and the account.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u64>, Option<Totals>)>>);

impl Sink for Kept {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        assert!(info.start.time > 0, "it has started");
        Ok(())
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let mut kept = self.0.lock().expect("the lock");
        kept.0.extend(rows.map(|row| row.row));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        self.0.lock().expect("the lock").1 = totals.cloned();
        Ok(())
    }

    fn written(&self) -> SinkProgress {
        SinkProgress::default()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn until_rows(recording: &Recording, rows: u64) {
    until("rows", || {
        recording.progress().is_some_and(|now| now.rows >= rows)
    });
}

#[test]
fn a_run_is_recorded_into_a_file_and_a_sink_of_ones_own_until_it_is_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.arrows");
    let (run, kept) = (soft(), Kept::default());
    let recorder = Recorder::new(Arc::clone(&run) as Arc<dyn OwnedRun>);
    let recorder = recorder.file(file.to_str().expect("a name"));
    let recorder = recorder.sink("kept", Box::new(kept.clone()));
    let recording = recorder.spawn().expect("a thread");
    until("its start", || {
        run.state().is_ok_and(|state| state == State::Running)
    });
    run.trigger(30).expect("triggers");
    until_rows(&recording, 30);
    assert!(!recording.is_over());
    recording.stop();
    let summary = recording.join().expect("a recording");
    assert_eq!((summary.rows, summary.lost), (30, 0));
    assert!(summary.is_whole(), "{summary:?}");
    let mut names = summary.sinks.iter().map(|sink| sink.path.as_str());
    assert_eq!(names.next_back(), Some("kept"));
    let (rows, totals) = kept.0.lock().expect("the lock").clone();
    assert_eq!(rows, (0..30).collect::<Vec<_>>());
    assert_eq!(totals.expect("an account").rows, 30);
    let mut recorded = open(&file).expect("a recording");
    let block = recorded.next(Duration::ZERO).expect("rows");
    assert_eq!(block.expect("rows").len(), 30);
}

#[test]
fn a_recording_that_is_stopped_does_not_wait_until_it_would_have_looked() {
    for _ in 0..5 {
        let run = soft();
        let recorder = Recorder::new(Arc::clone(&run) as Arc<dyn OwnedRun>);
        let recorder = recorder.sink("kept", Box::new(Kept::default()));
        let recording = recorder.spawn().expect("a thread");
        until("its start", || run.trigger(1).is_ok());
        recording.stop();
        // Who reads a run is woken by its end.
        assert_eq!(run.state().expect("a state"), State::Stopped);
        let summary = recording.join().expect("a recording");
        assert_eq!((summary.rows, summary.end), (1, End::Complete));
    }
}

#[test]
fn a_recording_may_be_stopped_before_its_run_has_started() {
    for _ in 0..20 {
        let run = soft();
        let recorder = Recorder::new(run as Arc<dyn OwnedRun>);
        let recording = recorder.spawn().expect("a thread");
        recording.stop();
        let summary = recording.join().expect("a recording");
        assert_eq!((summary.rows, summary.end), (0, End::Complete));
    }
}

#[test]
fn anothers_run_is_recorded_and_goes_on() {
    let run = soft();
    run.start().expect("a start");
    run.trigger(5).expect("triggers");
    let begun = Instant::now();
    let attached = loop {
        match Registry::of_this_user().attach(run.info().run) {
            // On a busy machine, its owner may be late for once.
            Err(Error::Silent { .. }) if begun.elapsed() < Duration::from_secs(60) => {}
            attached => break attached.expect("the run"),
        }
    };
    let reader = attached.reader().expect("a reader");
    let kept = Kept::default();
    let recorder = Recorder::of_rows(Box::new(reader)).sink("kept", Box::new(kept.clone()));
    let recording = recorder.spawn().expect("a thread");
    run.trigger(5).expect("triggers");
    until_rows(&recording, 10);
    recording.stop();
    let summary = recording.join().expect("a recording");
    assert_eq!((summary.rows, &summary.end), (10, &End::Complete));
    assert_eq!(run.state().expect("a state"), State::Running);
    let (rows, totals) = kept.0.lock().expect("the lock").clone();
    assert_eq!(rows, (0..10).collect::<Vec<_>>());
    assert_eq!(totals.expect("an account").triggers, 10);
}

#[test]
fn a_run_that_ends_ends_its_recording_with_its_account() {
    let run = soft();
    run.start().expect("a start");
    run.trigger(7).expect("triggers");
    run.stop().expect("a stop");
    let reader = run.reader().expect("a reader");
    let summary = Recorder::of_rows(Box::new(reader)).run();
    let summary = summary.expect("a recording");
    assert_eq!((summary.rows, summary.end), (7, End::Stopped));
}

#[test]
fn a_recording_is_recorded_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a name")
            .to_owned()
    };
    let run = soft();
    let recording = Recorder::new(Arc::clone(&run) as Arc<dyn OwnedRun>);
    let recording = recording.file(name("a.arrows")).spawn().expect("a thread");
    until("its start", || run.trigger(10).is_ok());
    until_rows(&recording, 10);
    recording.stop();
    let first = recording.join().expect("a recording");
    let rows = open(name("a.arrows").as_ref()).expect("a recording");
    let again = Recorder::of_rows(rows).file(name("b.arrows")).run();
    let again = again.expect("a recording");
    assert_eq!((again.rows, &again.end), (first.rows, &first.end));
    assert_eq!(again.period_ns, first.period_ns);
    let read = |file: &str| std::fs::read(name(file)).expect("bytes");
    assert_eq!(read("a.arrows").len(), read("b.arrows").len());
}

/// A sink that has its rows in the file when it is told so.
#[derive(Clone, Default)]
struct Late(Arc<AtomicU64>);

impl Sink for Late {
    fn begin(&mut self, _: &RunInfo) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: Rows<'_>) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: Option<&Totals>) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> SinkProgress {
        SinkProgress {
            rows: self.0.load(Ordering::Relaxed),
            bytes: 0,
        }
    }
}

/// Hears how far the files are, and how often it might have.
#[derive(Clone, Default)]
struct Heard(Arc<AtomicU64>, Arc<AtomicU64>);

impl Observer for Heard {
    fn progress(&mut self, now: Progress) {
        self.1.fetch_add(u64::from(now.rows > 0), Ordering::Relaxed);
    }

    fn written(&mut self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

#[test]
fn rows_are_said_to_be_written_when_they_are_in_the_files_and_not_before() {
    let (run, late, heard) = (soft(), Late::default(), Heard::default());
    run.start().expect("a start");
    let rows = run.reader().expect("a reader");
    let recorder = Recorder::of_rows(Box::new(rows)).observer(Box::new(heard.clone()));
    let recorder = recorder.sink("late", Box::new(late.clone()));
    let recording = recorder.spawn().expect("a thread");
    run.trigger(7).expect("triggers");
    until_rows(&recording, 7);
    assert_eq!(heard.0.load(Ordering::Relaxed), 0);
    late.0.store(7, Ordering::Relaxed);
    until("they are written", || heard.0.load(Ordering::Relaxed) == 7);
    recording.stop();
    recording.join().expect("a summary");
}

#[cfg(feature = "parquet")]
#[test]
fn rows_in_a_file_that_is_whole_only_at_its_end_are_not_said_to_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.parquet");
    let (run, heard) = (soft(), Heard::default());
    run.start().expect("a start");
    let rows = run.reader().expect("a reader");
    let recorder = Recorder::of_rows(Box::new(rows)).observer(Box::new(heard.clone()));
    let recorder = recorder.file(file.to_str().expect("a name"));
    let recording = recorder.spawn().expect("a thread");
    run.trigger(7).expect("triggers");
    until("it is said how far it is", || {
        heard.1.load(Ordering::Relaxed) > 2
    });
    assert_eq!(heard.0.load(Ordering::Relaxed), 0);
    recording.stop();
    assert_eq!(recording.join().expect("a summary").rows, 7);
}
