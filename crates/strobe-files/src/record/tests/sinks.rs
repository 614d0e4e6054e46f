// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sinks that are slow, that fail, or that are closed: of their own accord and at their own cost.

use super::*;

/// More than are read at once.
const ROWS_AT_ONCE: u64 = 32 * 1024;

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
                push(writer, from, ROWS_AT_ONCE);
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

    fn written(&self) -> crate::sink::SinkProgress {
        Default::default()
    }
}

#[test]
fn rows_are_flushed_in_time_also_if_there_are_always_more() {
    let run = run(2 * ROWS_AT_ONCE, u64::MAX, vec![]);
    run.start().expect("a start");
    let flushed_after = Arc::default();
    let sink = Busy {
        producer: Arc::clone(&run.producer),
        left: 20,
        flushed_after: Arc::clone(&flushed_after),
        writes: 0,
    };
    let reader = run.reader().expect("a reader");
    let buffer = follow::buffer(&reader);
    let drain = Drain::new(("busy".to_owned(), Box::new(sink)), (reader, buffer), None);
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
