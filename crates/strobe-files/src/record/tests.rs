// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording from an engine of the tests: a ring in memory and a writer that
//! does what the test says.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use arrow_array::{Array, ArrayRef};
use arrow_ipc::reader::StreamReader;
use rustix::io::Errno;
use strobe::channel::Type;
use strobe::reader::{ReaderOptions, Wake};
use strobe::run::Run;
use strobe::samples as tests;
use strobe::samples::channel;
use strobe_ring::State;
use strobe_ring::{
    Geometry, Header, Memory, MemoryMut, Missed, Reader, RowShape, Rows, StartTimes, Writer,
};

use super::*;
use crate::sink::{Existing, Sink};

/// A run whose producer acts whenever all its readers sleep.
struct TestRun {
    info: RunInfo,
    memory: Memory,
    producer: Arc<(Mutex<Producer>, Condvar)>,
    wait_fails: bool,
    /// What happens when it is started; nothing, or it cannot be.
    at_start: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

struct Producer {
    writer: Writer,
    /// What to do when all readers sleep, in this order.
    acts: std::vec::IntoIter<Act>,
    readers: u32,
    asleep: u32,
    /// How often all were woken.
    woken: u64,
    /// When to act, instead of when all readers sleep.
    is_due: Option<IsDue>,
}

impl Producer {
    /// Whether it acted, and the sleepers are to be woken.
    fn acts_now(&mut self) -> bool {
        let now = match &self.is_due {
            Some(is_due) => is_due(&self.writer),
            None => self.asleep > 0 && self.asleep == self.readers,
        };
        if now {
            if let Some(act) = self.acts.next() {
                act(&mut self.writer);
            }
            self.asleep = 0;
            self.woken += 1;
        }
        now
    }
}

type IsDue = Box<dyn Fn(&Writer) -> bool + Send>;
type Act = Box<dyn FnOnce(&mut Writer) + Send>;

fn act(act: impl FnOnce(&mut Writer) + Send + 'static) -> Act {
    Box::new(act)
}

/// Rows of one channel, one every 100 ns from `from` on.
fn push(writer: &mut Writer, from: u64, rows: u64) {
    for n in from..from + rows {
        writer.push(1_000 + 100 * n, 0, &[7 * n]);
    }
}

fn run(capacity: u64, limit: u64, acts: Vec<Act>) -> TestRun {
    let mut info = tests::info(vec![channel("sim.counter", Type::U64)]);
    info.capacity = capacity;
    info.limit = Some(limit);
    info.period_ns = Some(100);
    let geometry = Geometry::new(RowShape::of_channels(1), capacity, limit).expect("a shape");
    let header = Header {
        geometry,
        clock: 1,
        period_ns: 100,
        run: 7,
        engine: strobe_ring::Engine::User,
        absent: false,
    };
    let memory = MemoryMut::zeroed(usize::try_from(geometry.bytes()).expect("a small ring"));
    let writer = Writer::create(memory, &header).expect("a writer");
    TestRun {
        info,
        memory: writer.for_reader(),
        producer: Arc::new((
            Mutex::new(Producer {
                writer,
                acts: acts.into_iter(),
                readers: 0,
                asleep: 0,
                woken: 0,
                is_due: None,
            }),
            Condvar::new(),
        )),
        wait_fails: false,
        at_start: Box::new(|| Ok(())),
    }
}

impl TestRun {
    fn record(&self, options: &Options, stop: &Stop) -> Summary {
        record(self, options, stop, &mut |_: Progress| {}).expect("a recording")
    }

    fn producer(&self) -> std::sync::MutexGuard<'_, Producer> {
        self.producer.0.lock().expect("the lock")
    }

    fn account(&self) -> Summary {
        self.record(&Options::default(), &Stop::default())
    }
}

impl Run for TestRun {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, engine::Error> {
        let ring = Reader::attach(self.memory.clone(), options.begin).expect("a reader");
        self.producer().readers += 1;
        let wake = Acting {
            null: File::open("/dev/null").expect("/dev/null"),
            producer: Arc::clone(&self.producer),
            fails: self.wait_fails,
        };
        Ok(RunReader::new(ring, Box::new(wake), &self.info, options))
    }
}

impl OwnedRun for TestRun {
    fn start(&self) -> Result<(), engine::Error> {
        (self.at_start)().map_err(|source| engine::Error::Run {
            event: self.info.event.clone(),
            doing: "starting it",
            source,
        })?;
        let times = StartTimes {
            time: 900,
            first_due: 1_000,
            ..StartTimes::default()
        };
        self.producer().writer.start(times).expect("a start");
        Ok(())
    }

    fn stop(&self) -> Result<(), engine::Error> {
        let mut producer = self.producer();
        producer.writer.finish(strobe_ring::End::Stopped, 5_000);
        Ok(())
    }

    fn trigger(&self, _: u32) -> Result<(), engine::Error> {
        Ok(())
    }

    fn pause(&self) -> Result<(), engine::Error> {
        Ok(())
    }

    fn resume(&self) -> Result<(), engine::Error> {
        Ok(())
    }
}

struct Acting {
    /// Nobody waits for a descriptor of it.
    null: File,
    producer: Arc<(Mutex<Producer>, Condvar)>,
    fails: bool,
}

impl Wake for Acting {
    fn wait(&self, _: &Reader, _: u64, timeout: Duration) -> io::Result<()> {
        if self.fails {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (producer, wake) = &*self.producer;
        let mut producer = producer.lock().expect("the lock");
        producer.asleep += 1;
        if producer.acts_now() {
            wake.notify_all();
            return Ok(());
        }
        let before = producer.woken;
        let (mut producer, _) = wake
            .wait_timeout_while(producer, timeout, |p| p.woken == before)
            .expect("the lock");
        if producer.woken == before {
            producer.asleep -= 1;
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    fn arm(&self, _: &Reader, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn disarm(&self) -> io::Result<()> {
        Ok(())
    }

    fn wake_at_each_row(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        let (producer, wake) = &*self.producer;
        let mut producer = producer.lock().expect("the lock");
        producer.readers -= 1;
        if producer.acts_now() {
            wake.notify_all();
        }
    }
}

/// The limit was reached.
fn done() -> Act {
    act(|w| w.finish(strobe_ring::End::Done, 2_000_000_900))
}

#[test]
fn every_row_of_a_complete_run_is_accounted_for() {
    let run = run(
        1024,
        30,
        vec![act(|w| push(w, 0, 20)), act(|w| push(w, 20, 10)), done()],
    );
    let summary = run.account();
    assert_eq!(summary.end, End::Complete);
    assert_eq!((summary.rows, summary.missed, summary.lost), (30, 0, 0));
    assert_eq!(summary.start_time_ns, 900);
    assert_eq!(summary.elapsed_s, 2.0);
    assert!(summary.is_whole());
    assert_eq!(summary.period.count(), 29);
    assert_eq!(summary.late_ns.map(|f| (f.min, f.max)), Some((0, 0)));
}

#[test]
fn missed_triggers_and_lost_rows_are_told_apart() {
    let run = run(
        16,
        100,
        vec![
            act(|w| {
                push(w, 0, 5);
                w.miss(Missed::Overrun, 3);
                w.miss(Missed::Throttled, 1);
            }),
            // 40 rows through a ring of 16: the guard row leaves 15 to read.
            act(|w| push(w, 9, 40)),
            act(|w| w.finish(strobe_ring::End::Done, 9_000)),
        ],
    );
    let summary = run.account();
    assert_eq!(summary.rows, 45);
    assert_eq!(summary.missed, 4);
    assert_eq!(
        summary.missed_by,
        [
            ("overrun", 3),
            ("busy", 0),
            ("throttled", 1),
            ("source", 0),
            ("suspended", 0)
        ]
    );
    assert_eq!(summary.lost, 25);
    assert_eq!(summary.end, End::Complete);
    assert!(!summary.is_whole());
}

#[test]
fn an_interrupted_recording_keeps_what_was_made() {
    let stop = Stop::default();
    let interrupt = Arc::clone(&stop.interrupt);
    let run = run(
        1024,
        1_000,
        vec![act(move |w| {
            push(w, 0, 10);
            interrupt.store(true, Ordering::Relaxed);
        })],
    );
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.csv");
    let options = Options {
        sinks: vec![path.to_str().expect("a name").to_owned()],
        duration: None,
        ..Options::default()
    };
    let summary = run.record(&options, &stop);
    assert_eq!((summary.end, summary.rows), (End::Stopped, 10));
    let lines = std::fs::read_to_string(path).expect("the file");
    assert_eq!(lines.lines().count(), 11);
    assert_eq!(lines.lines().last(), Some("9,9,1900,0,63"));
}

#[test]
fn rows_are_in_the_file_before_the_recorder_sleeps() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.csv");
    let options = Options {
        sinks: vec![path.to_str().expect("a name").to_owned()],
        duration: None,
        ..Options::default()
    };
    let lines = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&lines);
    let look = act(move |_| {
        let text = std::fs::read_to_string(path).expect("the file");
        *seen.lock().expect("the lock") = text.lines().count();
    });
    let run = run(1024, 30, vec![act(|w| push(w, 0, 5)), look, done()]);
    run.record(&options, &Stop::default());
    assert_eq!(*lines.lock().expect("the lock"), 6);
}

/// Takes rows as slowly as they come: there are always more.
struct Busy {
    producer: Arc<(Mutex<Producer>, Condvar)>,
    /// Writes until the run is over.
    left: u32,
    /// How many writes came before each flush.
    flushed_after: Arc<Mutex<Vec<u32>>>,
    writes: u32,
}

impl Sink for Busy {
    fn begin(&mut self, _: &RunInfo) -> io::Result<()> {
        self.write(Rows::new(&[], RowShape::of_channels(1)))
    }

    fn write(&mut self, _: Rows<'_>) -> io::Result<()> {
        thread::sleep(FLUSH_EVERY / 4);
        self.writes += 1;
        let writer = &mut self.producer.0.lock().expect("the lock").writer;
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                let from = writer.head();
                push(writer, from, BUFFER_WORDS as u64);
            }
            None if writer.state() == State::Running => {
                writer.finish(strobe_ring::End::Done, 9_000);
            }
            None => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut flushed_after = self.flushed_after.lock().expect("the lock");
        flushed_after.push(std::mem::take(&mut self.writes));
        Ok(())
    }

    fn finish(&mut self, _: Option<&Totals>) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> crate::sink::Written {
        Default::default()
    }
}

#[test]
fn rows_are_flushed_in_time_also_if_there_are_always_more() {
    let run = run(2 * BUFFER_WORDS as u64, u64::MAX, vec![]);
    run.start().expect("a start");
    let flushed_after = Arc::default();
    let sink = Busy {
        producer: Arc::clone(&run.producer),
        left: 20,
        flushed_after: Arc::clone(&flushed_after),
        writes: 0,
    };
    let drain = Drain::new(
        "busy".to_owned(),
        Box::new(sink),
        run.reader().expect("a reader"),
        None,
    );
    // Nobody waits for its end.
    let (_, totals) = mpsc::channel();
    let summary = drain.run(
        &run.info,
        &View::default(),
        &AtomicBool::new(false),
        &totals,
    );
    assert_eq!(summary.error, None);
    let flushed_after = flushed_after.lock().expect("the lock");
    assert!(flushed_after.len() >= 4, "{flushed_after:?}");
    assert!(
        flushed_after.iter().all(|writes| *writes <= 6),
        "{flushed_after:?}"
    );
}

#[test]
fn a_recording_that_is_told_to_finish_is_complete() {
    let stop = Stop::default();
    stop.finish.store(true, Ordering::Relaxed);
    let summary = run(1024, 1_000, vec![]).record(&Options::default(), &stop);
    assert_eq!((summary.end, summary.rows), (End::Complete, 0));
    assert_eq!((summary.period_ns, summary.late_ns), (None, None));
}

#[test]
fn a_recording_of_limited_time_ends_by_itself() {
    let options = Options {
        sinks: vec![],
        duration: Some(Duration::from_millis(1)),
        ..Options::default()
    };
    let mut run = run(1024, 1_000, vec![]);
    run.info.limit = None;
    let summary = run.record(&options, &Stop::default());
    assert_eq!(summary.end, End::Complete);
}

#[test]
fn a_run_that_fails_says_why() {
    let gone = Errno::NODEV.raw_os_error();
    let summary = run(
        1024,
        1_000,
        vec![
            act(|w| push(w, 0, 10)),
            act(move |w| w.finish(strobe_ring::End::Failed(-gone), 3_400)),
        ],
    )
    .account();
    let why = "a device of the run went away after 2.5 us".to_owned();
    assert_eq!((summary.end, summary.rows), (End::Failed(why), 10));
}

#[test]
fn a_sink_that_fails_does_not_stop_the_others() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    std::os::unix::fs::symlink("/dev/full", path("full.csv")).expect("a link");
    let run = run(1024, 30, vec![act(|w| push(w, 0, 30)), done()]);
    let options = Options {
        sinks: vec![path("full.csv"), path("good.csv")],
        duration: None,
        ..Options::default()
    };
    let summary = run.record(&options, &Stop::default());
    assert_eq!(summary.end, End::Complete);
    assert!(!summary.is_whole());
    let [full, good] = summary.sinks.as_slice() else {
        panic!("two sinks")
    };
    assert_eq!((full.rows, good.rows), (0, 30));
    assert!(
        full.error
            .as_ref()
            .is_some_and(|e| e.contains("No space left"))
    );
    assert_eq!(good.error, None);
}

/// Lines of a file that is being written.
fn lines(path: &Path) -> u64 {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count() as u64)
}

#[test]
fn a_slow_sink_loses_rows_of_its_own_and_costs_the_others_none() {
    const STEPS: u64 = 40;
    const STEP: u64 = 500;
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let (pipe, good) = (path("pipe.csv"), path("good.csv"));
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    // Held open, and not read: it is full after some 64 KiB.
    let mut full = File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("a pipe");
    let (over, is_over) = mpsc::channel();
    let mut acts: Vec<Act> = (0..STEPS)
        .map(|n| act(move |w| push(w, n * STEP, STEP)))
        .collect();
    acts.push(act(move |w| {
        w.finish(strobe_ring::End::Done, 2_000_000_900);
        over.send(()).expect("a listener");
    }));
    let run = run(1024, STEPS * STEP, acts);
    // The other sink has all rows that there are.
    let file = good.clone();
    run.producer().is_due = Some(Box::new(move |w| lines(file.as_ref()) > w.head()));
    let reader = thread::spawn(move || {
        is_over.recv().expect("the end");
        let mut text = Vec::new();
        // The last row of the run is never lost.
        while !text.ends_with(b"\n19999,19999,2000900,0,139993\n") {
            let mut some = [0; 4096];
            let count = full.read(&mut some).expect("text");
            text.extend_from_slice(some.get(..count).expect("bytes"));
        }
        String::from_utf8(text).expect("text")
    });
    let options = Options {
        sinks: vec![pipe.clone(), good.clone()],
        duration: None,
        ..Options::default()
    };
    let summary = run.record(&options, &Stop::default());
    let text = reader.join().expect("the reader");
    let [slow, good] = summary.sinks.as_slice() else {
        panic!("two sinks")
    };
    assert_eq!(summary.end, End::Complete);
    assert_eq!((good.rows, good.lost), (STEPS * STEP, 0));
    assert_eq!(slow.rows + slow.lost, STEPS * STEP);
    assert!(slow.lost > 0, "it was not slow");
    assert!(summary.lost >= slow.lost && !summary.is_whole());
    assert_eq!(text.lines().count() as u64, 1 + slow.rows);
    assert_eq!((&slow.error, &good.error), (&None, &None));
}

#[test]
fn a_pipe_that_is_closed_ends_the_recording_as_stopped() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("pipe.csv");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    let mut reader = Some(
        File::options()
            .read(true)
            .write(true)
            .open(&path)
            .expect("a pipe"),
    );
    let close = act(move |w| {
        reader.take();
        push(w, 0, 5);
    });
    let run = run(1024, 30, vec![act(|_| {}), close]);
    let options = Options {
        sinks: vec![path.to_str().expect("a name").to_owned()],
        duration: None,
        ..Options::default()
    };
    let summary = run.record(&options, &Stop::default());
    assert_eq!((summary.end, summary.rows), (End::Stopped, 5));
    assert_eq!((summary.sinks[0].rows, &summary.sinks[0].error), (0, &None));
}

#[test]
fn a_full_disk_ends_each_format_alone_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let mut names = vec!["full.csv", "full.arrows"];
    // An HDF5 file cannot even be created there; tests/files fills a disk later.
    if cfg!(feature = "parquet") {
        names.push("full.parquet");
    }
    let mut sinks: Vec<String> = names.into_iter().map(path).collect();
    for sink in &sinks {
        std::os::unix::fs::symlink("/dev/full", sink).expect("a link");
    }
    sinks.push(path("good.csv"));
    let run = run(1024, 30, vec![act(|w| push(w, 0, 30)), done()]);
    let options = Options {
        sinks,
        duration: None,
        ..Options::default()
    };
    let summary = run.record(&options, &Stop::default());
    assert_eq!((&summary.end, summary.is_whole()), (&End::Complete, false));
    let (good, full) = summary.sinks.split_last().expect("sinks");
    assert_eq!((good.rows, good.lost, &good.error), (30, 0, &None));
    for sink in full {
        let error = sink.error.as_deref().unwrap_or_default();
        let text = format!("{}: {error}", sink.path);
        assert!(text.contains("No space left on device"), "{text}");
        assert_eq!(sink.rows, 0, "{text}");
    }
}

#[test]
fn with_no_sink_left_the_run_is_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("full.arrows");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let options = Options {
        sinks: vec![path.to_str().expect("a name").to_owned()],
        duration: None,
        ..Options::default()
    };
    let summary = run(1024, 30, vec![]).record(&options, &Stop::default());
    assert_eq!(summary.end, End::Failed("no sink is left".to_owned()));
    let error = summary.sinks[0].error.as_deref().unwrap_or_default();
    assert!(error.starts_with("No space left on device"), "{error}");
}

#[test]
fn a_ring_that_cannot_be_waited_for_ends_the_run() {
    let mut run = run(1024, 30, vec![]);
    run.wait_fails = true;
    let End::Failed(why) = run.account().end else {
        panic!("it failed")
    };
    assert!(why.starts_with("cannot wait: "), "{why}");
}

#[test]
fn nothing_is_started_if_a_sink_cannot_be_made() {
    let run = run(1024, 30, vec![]);
    let options = Options {
        sinks: vec!["/nonexistent/a.csv".to_owned()],
        duration: None,
        ..Options::default()
    };
    let error = record(&run, &options, &Stop::default(), &mut |_: Progress| {});
    assert!(matches!(error, Err(Error::Sink(_))));
    let state = run.producer().writer.state();
    assert_eq!(state, State::Ready);
}

/// A folder, and what is recorded into files of these names there.
fn into(names: &[&str]) -> (tempfile::TempDir, Options) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &&str| match *name {
        "-" => "-".to_owned(),
        name => format!("{}/{name}", dir.path().display()),
    };
    let options = Options {
        sinks: names.iter().map(path).collect(),
        ..Options::default()
    };
    (dir, options)
}

fn refusal(run: &TestRun, options: &Options) -> String {
    let error = record(run, options, &Stop::default(), &mut |_: Progress| {}).err();
    error.expect("a refusal").to_string()
}

/// The files of a folder and what is in them.
fn files(dir: &Path) -> Vec<(String, String)> {
    let files = dir.read_dir().expect("a folder");
    let files = files.map(|file| file.expect("a file"));
    let mut files: Vec<_> = files
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("text");
            (file.file_name().into_string().expect("a name"), text)
        })
        .collect();
    files.sort();
    files
}

fn short() -> TestRun {
    run(1024, 5, vec![act(|w| push(w, 0, 5)), done()])
}

#[test]
fn a_file_that_exists_is_refused_before_the_run_starts_and_left_as_it_is() {
    for names in [vec!["a.csv"], vec!["b.csv", "a.csv"]] {
        let (dir, options) = into(&names);
        std::fs::write(dir.path().join("a.csv"), "older").expect("text");
        let run = short();
        let text = refusal(&run, &options);
        assert!(
            text.contains("a.csv: the file exists") && text.contains("a-{n}.csv"),
            "{text}"
        );
        assert_eq!(run.producer().writer.state(), State::Ready);
        assert_eq!(
            files(dir.path()),
            [("a.csv".to_owned(), "older".to_owned())]
        );
    }
}

#[test]
fn a_file_is_overwritten_if_that_is_asked_for() {
    let (dir, mut options) = into(&["a.csv"]);
    std::fs::write(dir.path().join("a.csv"), "older".repeat(1000)).expect("text");
    options.existing = Existing::Overwrite;
    short().record(&options, &Stop::default());
    assert_eq!(lines(&dir.path().join("a.csv")), 6);
    assert!(!files(dir.path())[0].1.contains("older"));
}

#[test]
fn a_run_that_does_not_start_leaves_nothing_behind_and_destroys_nothing() {
    let (dir, mut options) = into(&["a.csv", "new.csv", "new.arrows"]);
    std::fs::write(dir.path().join("a.csv"), "older").expect("text");
    options.existing = Existing::Overwrite;
    let mut run = short();
    run.at_start = Box::new(|| Err(io::ErrorKind::Other.into()));
    let text = refusal(&run, &options);
    assert!(text.contains("starting it failed"), "{text}");
    assert_eq!(
        files(dir.path()),
        [("a.csv".to_owned(), "older".to_owned())]
    );
}

#[test]
fn files_are_made_when_the_run_has_started_and_all_or_none() {
    let (dir, options) = into(&["a.csv", "b.csv"]);
    let mut run = short();
    let folder = dir.path().to_owned();
    run.at_start = Box::new(move || {
        assert_eq!(files(&folder), []);
        // Somebody else is faster.
        std::fs::write(folder.join("b.csv"), "of somebody else")
    });
    let text = refusal(&run, &options);
    assert!(text.contains("b.csv: the file exists"), "{text}");
    assert_ne!(run.producer().writer.state(), State::Running);
    let left = ("b.csv".to_owned(), "of somebody else".to_owned());
    assert_eq!(files(dir.path()), [left]);
}

#[test]
fn a_number_that_somebody_else_takes_meanwhile_is_not_taken_twice() {
    let (dir, options) = into(&["a-{n:03}.csv", "b-{n}.csv"]);
    std::fs::write(dir.path().join("b-6.csv"), "older").expect("text");
    let mut run = short();
    let folder = dir.path().to_owned();
    run.at_start = Box::new(move || std::fs::write(folder.join("b-7.csv"), "of somebody else"));
    let summary = run.record(&options, &Stop::default());
    let paths: Vec<_> = summary
        .sinks
        .iter()
        .map(|sink| sink.path.as_str())
        .collect();
    let path = |name: &str| dir.path().join(name).display().to_string();
    assert_eq!(paths, [path("a-008.csv"), path("b-8.csv")]);
    let names: Vec<_> = files(dir.path())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["a-008.csv", "b-6.csv", "b-7.csv", "b-8.csv"]);
}

#[test]
fn one_file_by_two_names_is_refused() {
    let twice = |names: &[&str], prepare: &dyn Fn(&Path)| {
        let (dir, mut options) = into(names);
        options.existing = Existing::Overwrite;
        prepare(dir.path());
        let text = refusal(&short(), &options);
        assert!(text.contains("given twice"), "{text}");
    };
    twice(&["a.csv", "a.csv"], &|_| {});
    twice(&["a.csv", "./a.csv"], &|_| {});
    twice(&["-", "-"], &|_| {});
    twice(&["a.csv", "folder/a.csv"], &|dir| {
        std::os::unix::fs::symlink(".", dir.join("folder")).expect("a link");
    });
    twice(&["a.csv", "b.csv"], &|dir| {
        std::fs::write(dir.join("a.csv"), "").expect("a file");
        std::fs::hard_link(dir.join("a.csv"), dir.join("b.csv")).expect("a link");
    });
    twice(&["{n}.csv", "1.csv"], &|_| {});
}

/// The batches of a file and what it says of the run, but for what the machine was like, which differs from one moment to the next.
fn contents(path: &Path) -> (Vec<Vec<ArrayRef>>, HashMap<String, String>) {
    let file = File::open(path).expect("the file");
    let file = StreamReader::try_new(file, None).expect("a stream");
    let mut about = file.schema().metadata().clone();
    assert!(about.remove("strobe.doctor").is_some(), "{about:?}");
    let batches = file.map(|batch| batch.expect("a batch").columns().to_vec());
    (batches.collect(), about)
}

#[test]
fn two_recordings_of_the_same_rows_are_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ["a.arrows", "b.arrows"].map(|name| {
        let path = dir.path().join(name);
        let run = run(
            1024,
            30,
            vec![act(|w| push(w, 0, 20)), act(|w| push(w, 20, 10)), done()],
        );
        let options = Options {
            sinks: vec![path.to_str().expect("a name").to_owned()],
            duration: None,
            ..Options::default()
        };
        run.record(&options, &Stop::default());
        contents(&path)
    });
    let [one, other] = &files;
    assert_eq!(one, other);
    let rows: usize = one.0.iter().map(|columns| columns[0].len()).sum();
    assert_eq!(rows, 30);
}
