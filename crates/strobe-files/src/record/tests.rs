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
use strobe::reader::{ReaderOptions, Waiter};
use strobe::run::Run;
use strobe::samples as tests;
use strobe::samples::channel;
use strobe_ring::State;
use strobe_ring::{
    Geometry, Header, Memory, MemoryMut, Missed, Reader, RowShape, Rows, StartTimes, Writer,
};

use super::*;
use crate::sink::{Existing, Sink};

mod sinks;
mod targets;

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

impl Waiter for Acting {
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

/// Lines of a file that is being written.
fn lines(path: &Path) -> u64 {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count() as u64)
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
fn a_run_that_somebody_else_stops_before_its_limit_is_not_complete() {
    let stopped = || act(|w| w.finish(strobe_ring::End::Stopped, 5_000));
    let mut limited = run(1024, 1_000, vec![act(|w| push(w, 0, 10)), stopped()]);
    limited.info.limit = Some(1_000);
    let summary = limited.record(&Options::default(), &Stop::default());
    assert_eq!((summary.end, summary.rows), (End::Stopped, 10));
    let mut endless = run(1024, 1_000, vec![act(|w| push(w, 0, 10)), stopped()]);
    endless.info.limit = None;
    let summary = endless.record(&Options::default(), &Stop::default());
    assert_eq!((summary.end, summary.rows), (End::Complete, 10));
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
    let why = "a device of the run was removed after 2.5 us".to_owned();
    assert_eq!((summary.end, summary.rows), (End::Failed(why), 10));
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
