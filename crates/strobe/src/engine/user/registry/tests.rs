// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use strobe_ring::layout::CLOCK_MONOTONIC;
use strobe_ring::{End, Engine, Geometry, Header, RowShape, StartTimes, State, Writer};

use super::*;
use crate::channel::Type;
use crate::engine::user::connection::Connection;
use crate::engine::user::memfd;
use crate::engine::user::polling_waiter;
use crate::engine::user::reader_waker::ReaderWaker;
use crate::engine::user::tuning::Tuning;
use crate::reader::{ReaderOptions, RunReader};
use crate::run::Run as _;
use crate::samples::channel;
use crate::samples::info;

mod tuning;

/// A run without a thread that makes rows.
struct Owner {
    writer: Writer,
    ring: Arc<memfd::RingFile>,
    run: u32,
    reader_waker: Arc<ReaderWaker>,
    tuning: Arc<Tuning>,
    server: Option<Server>,
}

fn owner(path: &Path) -> Owner {
    owner_of(path, 1)
}

fn owner_of(path: &Path, channels: u32) -> Owner {
    let claim = Registry::at(path).claim(false).expect("a number");
    let geometry = Geometry::new(RowShape::of_channels(channels), 64, u64::MAX).expect("a ring");
    let (memory, _, ring) = memfd::ring_memory(geometry.bytes(), true).expect("memory");
    let header = Header {
        geometry,
        clock: CLOCK_MONOTONIC,
        period_ns: 100_000,
        run: claim.run(),
        engine: Engine::User,
        absent: false,
    };
    let mut writer = Writer::create(memory, &header).expect("a ring");
    writer
        .start(StartTimes::default())
        .expect("not started before");
    let name = |n| channel(&format!("sim.a_channel_with_a_long_name_{n}"), Type::U64);
    let mut about = info((0..channels).map(name).collect());
    about.run = claim.run();
    about.limit = None;
    let ring = Arc::new(ring);
    let reader_waker = Arc::new(ReaderWaker::new().expect("a descriptor"));
    about.tunables = vec!["limit".into()];
    let tuning = Arc::new(tuning::tuning());
    let about = ServedRun {
        info: about,
        ring: Arc::clone(&ring),
        reader_waker: Arc::clone(&reader_waker),
        tuning: Some(Arc::clone(&tuning)),
    };
    Owner {
        writer,
        ring,
        run: claim.run(),
        reader_waker,
        tuning,
        server: Some(Server::new(claim, about).expect("a thread")),
    }
}

/// A reader in the owner's process.
fn here(owner: &Owner) -> RunReader {
    let whose = polling_waiter::Owner::ThisProcess(Arc::clone(&owner.reader_waker));
    polling_waiter::reader(
        &owner.ring,
        whose,
        &info(Vec::new()),
        ReaderOptions::default(),
    )
    .expect("a reader")
}

/// What there is. On a machine with other work, an owner may be late for once.
fn found(path: &Path) -> Runs {
    let begun = Instant::now();
    loop {
        let found = Registry::at(path).runs().expect("the runs");
        if found.silent.is_empty() || begun.elapsed() > 60 * PATIENCE {
            assert_eq!(found.silent, []);
            return found;
        }
    }
}

fn runs(path: &Path) -> Vec<u32> {
    found(path).runs.iter().map(|run| run.run).collect()
}

/// The run, to be read.
fn attach(path: &Path, run: u32) -> AttachedRun {
    let begun = Instant::now();
    loop {
        match Registry::at(path).attach(run) {
            Err(Error::Silent { .. }) if begun.elapsed() < 60 * PATIENCE => {}
            result => return result.expect("the run"),
        }
    }
}

/// What an owner answers to what is asked for on a connection, and may be asked for again.
fn answered<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let begun = Instant::now();
    loop {
        match ask() {
            Err(error)
                if error.kind() == io::ErrorKind::TimedOut && begun.elapsed() < 60 * PATIENCE => {}
            answer => return answer,
        }
    }
}

/// A folder in a folder: it has to be made.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("strobe");
    (dir, path)
}

/// A socket whose owner was killed.
fn stale(path: &Path, run: u32) {
    let name = path.join(format!("{run}.sock"));
    drop(UnixListener::bind(&name).expect("a socket"));
    assert!(name.exists());
}

#[test]
fn a_run_is_seen_as_long_as_it_is_there() {
    let (_dir, path) = folder();
    assert_eq!(runs(&path), [0; 0], "nothing was made to look");
    assert!(!path.exists());
    let mut first = owner(&path);
    let mode = std::fs::metadata(&path).expect("the folder").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let second = owner(&path);
    assert_eq!(runs(&path), [1, 2]);
    first.server = None;
    assert_eq!(runs(&path), [2]);
    assert_eq!(owner(&path).run, 1, "the smallest one that is free");
    drop(second);
    assert_eq!(std::fs::read_dir(&path).expect("the folder").count(), 0);
}

#[test]
fn status_tells_what_the_run_does() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    for row in 0..100 {
        let mut begun = owner.writer.begin(row).expect("a row");
        begun.value(row);
        begun.commit(0);
    }
    owner.writer.miss(strobe_ring::Missed::Overrun, 7);
    let status = &found(&path).runs[0];
    assert_eq!((status.engine, status.event.as_str()), ("user", "timer"));
    assert_eq!((status.rows, status.missed, status.triggers), (100, 7, 107));
    assert_eq!((status.state, status.limit), (State::Running, None));
    assert_eq!(status.period_ns, 100_000);
    assert_eq!(status.pid, std::process::id() as i32);
    assert_eq!(status.uid, rustix::process::geteuid().as_raw());
    assert_eq!(status.channels, 1);
}

#[test]
fn readers_are_counted_but_not_those_who_only_look() {
    let (_dir, path) = folder();
    let owner = owner(&path);
    let readers = || found(&path).runs[0].readers;
    assert_eq!((readers(), readers()), (0, 0));
    let here = here(&owner);
    assert_eq!(readers(), 1);
    let attached = attach(&path, 1);
    // What was sent before is heard before what comes after, but on two connections.
    while readers() != 2 {
        std::thread::yield_now();
    }
    drop(attached);
    while readers() != 1 {
        std::thread::yield_now();
    }
    drop(here);
    assert_eq!(readers(), 0);
}

#[test]
fn a_reader_gets_all_rows_and_sees_the_end() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    let attached = attach(&path, 1);
    assert_eq!(attached.info().channels[0].unit, "V");
    let mut reader = attached.reader().expect("a reader");
    for row in 0..5 {
        owner.writer.begin(row).expect("a row").commit(0);
    }
    reader.wait(5, Duration::from_secs(60)).expect("rows");
    let mut buffer = vec![0; 64 * reader.ring().row_words()];
    assert_eq!(reader.read(&mut buffer).len(), 5);
    let mut run = owner;
    let ends = std::thread::spawn(move || {
        run.writer.finish(End::Stopped, 9);
        drop(run.server.take());
    });
    while !reader.ring().ended() {
        reader
            .wait(1, Duration::from_secs(60))
            .expect("no error, but an end");
        let _ = reader.read(&mut buffer);
    }
    ends.join().expect("no panic");
    assert_eq!(reader.snapshot().state, State::Stopped);
    assert_eq!(reader.ring().delivered() + reader.ring().lost(), 5);
}

#[test]
fn a_reader_may_wait_for_ever() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    let here = here(&owner);
    let there = attach(&path, owner.run).reader().expect("a reader");
    assert!(owner.writer.push(1, 0, &[7]));
    for reader in [here, there] {
        reader.wait(1, Duration::MAX).expect("a row");
    }
}

#[test]
fn a_run_that_never_started_has_lasted_no_time() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    // As of a run that was stopped before its start: it has no time of that.
    owner.writer.finish(End::Stopped, 1_000_000_000_000);
    assert_eq!(found(&path).runs[0].elapsed_ns, 0);
}

#[test]
fn a_reader_is_told_when_the_owner_goes_without_an_end() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    let attached = attach(&path, 1);
    let mut reader = attached.reader().expect("a reader");
    owner.writer.begin(1).expect("a row").commit(0);
    owner.server = None;
    reader
        .wait(1, Duration::from_secs(60))
        .expect("there is a row");
    let mut buffer = vec![0; reader.ring().row_words()];
    assert_eq!(reader.read(&mut buffer).len(), 1);
    let error = reader
        .wait(1, Duration::from_secs(60))
        .expect_err("no owner");
    assert_eq!(error.to_string(), "the run's program ended or closed it");
    assert_eq!(reader.snapshot().state, State::Running);
}

#[test]
fn a_reader_can_only_read() {
    let (_dir, path) = folder();
    let _owner = owner(&path);
    let directory = Directory::find(path, false)
        .expect("it is ours")
        .expect("is there");
    let attached =
        Handshake::to(&directory, 1).and_then(|l| l.receive(Instant::now() + 60 * PATIENCE));
    let attached = attached.expect("an answer");
    let fd = attached.ring.fd();
    let flags = rustix::fs::fcntl_getfl(fd).expect("flags");
    assert_eq!(
        flags & rustix::fs::OFlags::RWMODE,
        rustix::fs::OFlags::RDONLY
    );
    assert!(
        rustix::fs::fcntl_get_seals(fd)
            .expect("seals")
            .contains(rustix::fs::SealFlags::FUTURE_WRITE | rustix::fs::SealFlags::SHRINK)
    );
}

#[test]
fn what_a_killed_owner_has_left_is_removed() {
    let (_dir, path) = folder();
    let live = owner(&path);
    stale(&path, 2);
    stale(&path, 9);
    assert_eq!(runs(&path), [1]);
    assert!(!path.join("2.sock").exists() && !path.join("9.sock").exists());
    stale(&path, 2);
    assert!(matches!(
        Registry::at(&path).attach(2),
        Err(Error::NoRun(2))
    ));
    assert_eq!(owner(&path).run, 2, "its number is free");
    drop(live);
}

#[test]
fn nothing_is_removed_while_a_number_is_claimed() {
    let (_dir, path) = folder();
    drop(owner(&path));
    stale(&path, 1);
    let directory = Directory::make(path.clone()).expect("a folder");
    let lock = directory.lock().expect("nobody has it");
    assert_eq!(runs(&path), [0; 0]);
    assert!(path.join("1.sock").exists());
    drop(lock);
    assert_eq!(runs(&path), [0; 0]);
    assert!(!path.join("1.sock").exists());
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    let (_dir, path) = folder();
    drop(owner(&path));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o770)).expect("chmod");
    let registry = Registry::at(&path);
    assert!(matches!(
        registry.runs(),
        Err(Error::Mode { mode: 0o770, .. })
    ));
    let error = registry.claim(false).err().expect("refused").to_string();
    assert!(
        error.contains("other users may write there") && error.contains("chmod 700"),
        "{error}"
    );
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    let (_dir, path) = folder();
    let root = rustix::process::geteuid().is_root();
    let foreign = if root {
        std::fs::create_dir(&path).expect("a folder");
        std::os::unix::fs::chown(&path, Some(12345), None).expect("chown");
        path
    } else {
        PathBuf::from("/proc/1")
    };
    let registry = Registry::at(&foreign);
    assert!(matches!(registry.claim(false), Err(Error::Owner { .. })));
    let found = Directory::find(foreign.clone(), false);
    let error = found.err().expect("refused").to_string();
    assert!(error.contains("belongs to user"), "{error}");
    // Whoever names it wants to look there.
    assert_eq!(registry.runs().expect("none"), Runs::default());
    if root {
        stale(&foreign, 1);
        assert_eq!(registry.runs().expect("none"), Runs::default());
        assert!(foreign.join("1.sock").exists(), "theirs to remove");
    }
}

#[test]
fn a_link_to_a_directory_and_a_file_are_refused() {
    let (dir, path) = folder();
    std::os::unix::fs::symlink(dir.path(), &path).expect("a link");
    assert!(matches!(
        Registry::at(&path).runs(),
        Err(Error::Directory { .. })
    ));
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    assert!(matches!(
        Registry::at(&file).claim(false),
        Err(Error::Directory { .. })
    ));
    let nowhere = dir.path().join("not/there");
    assert_eq!(
        Registry::at(&nowhere).runs().expect("none"),
        Runs::default()
    );
    assert!(matches!(
        Registry::at(nowhere).claim(false),
        Err(Error::Directory { .. })
    ));
}

#[test]
fn an_owner_that_does_not_answer_holds_up_nobody() {
    let (_dir, path) = folder();
    let live = owner(&path);
    let mute: Vec<_> = (2..62)
        .map(|run| UnixListener::bind(path.join(format!("{run}.sock"))).expect("a socket"))
        .collect();
    let first = Instant::now();
    let found = loop {
        let begun = Instant::now();
        let found = Registry::at(&path).runs().expect("the runs");
        // All of them together, not one after the other.
        assert!(begun.elapsed() < 30 * PATIENCE, "{:?}", begun.elapsed());
        // On a machine with other work, the live one may be late for once.
        if !found.runs.is_empty() || first.elapsed() > 60 * PATIENCE {
            break found;
        }
    };
    assert_eq!(found.runs.len(), 1);
    assert_eq!(found.silent.len(), mute.len());
    assert_eq!(found.silent[0].run, 2);
    assert_eq!(found.silent[0].pid, std::process::id() as i32);
    assert!(
        found.silent[0].why.contains("stopped"),
        "{:?}",
        found.silent[0]
    );
    let error = Registry::at(&path)
        .attach(3)
        .err()
        .expect("silent")
        .to_string();
    assert!(error.starts_with("user:3: does not answer"), "{error}");
    assert_eq!(owner(&path).run, 62);
    drop(live);
}

#[test]
fn an_owner_whose_backlog_is_full_is_taken_for_stopped() {
    let (_dir, path) = folder();
    drop(owner(&path));
    let claim = Registry::at(&path).claim(false).expect("a number");
    let directory = Directory::find(path.clone(), false)
        .expect("ours")
        .expect("there");
    let lines: Vec<_> = (0..1000)
        .map_while(|_| Handshake::to(&directory, 1).ok())
        .collect();
    assert!(lines.len() < 1000);
    let found = Registry::at(&path).runs().expect("the runs");
    assert_eq!(found.silent.len(), 1, "{found:?}");
    assert!(path.join("1.sock").exists());
    drop(claim);
}

#[test]
fn who_says_nonsense_does_not_harm() {
    use std::io::{Read, Write};
    let (_dir, path) = folder();
    let mut run = owner(&path);
    let mut client = std::os::unix::net::UnixStream::connect(path.join("1.sock")).expect("it");
    client.write_all(&[0xFF; 10_000]).expect("heard");
    let mut word = [0; 1];
    client.read_exact(&mut word).expect("an answer");
    assert_eq!(word, *b"{");
    let liar = UnixListener::bind(path.join("2.sock")).expect("a socket");
    let lies = std::thread::spawn(move || {
        let (mut line, _) = liar.accept().expect("a client");
        line.write_all(b"{\"version\":1}\n").expect("heard");
        let (mut line, _) = liar.accept().expect("a client");
        // Without end.
        while line.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    let directory = Directory::find(path, false);
    let directory = directory.expect("ours").expect("there");
    for expected in [
        "does not hand out its ring",
        "sent a longer answer than expected",
    ] {
        let patience = Instant::now() + 60 * PATIENCE;
        let answer = Handshake::to(&directory, 2).and_then(|handshake| handshake.receive(patience));
        let Err(handshake::Error::Silent { why, .. }) = answer else {
            panic!("believed");
        };
        assert!(why.contains(expected), "{why}");
    }
    lies.join().expect("no panic");
    run.server = None;
}

#[test]
fn a_run_with_the_most_channels_is_told_in_parts() {
    let (_dir, path) = folder();
    let _owner = owner_of(&path, 1024);
    let attached = attach(&path, 1);
    assert_eq!(attached.info().channels.len(), 1024);
}

#[test]
fn a_hundred_runs_have_a_hundred_numbers() {
    let (_dir, path) = folder();
    let owners: Vec<Owner> = (0..100).map(|_| owner(&path)).collect();
    assert!(owners.iter().map(|owner| owner.run).eq(1..=100));
    assert!(runs(&path).into_iter().eq(1..=100));
    drop(owners);
    assert_eq!(runs(&path), [0; 0]);
}

#[test]
fn numbers_claimed_at_the_same_time_are_different() {
    let (_dir, path) = folder();
    drop(owner(&path));
    for run in [1, 3, 5] {
        stale(&path, run);
    }
    let start = Arc::new(Barrier::new(16));
    let claims: Vec<_> = (0..16)
        .map(|_| {
            let (start, path) = (Arc::clone(&start), path.clone());
            std::thread::spawn(move || {
                let registry = Registry::at(&path);
                start.wait();
                // Others look, and remove what is stale, at the same time.
                let mut claims = Vec::new();
                for _ in 0..4 {
                    claims.push(registry.claim(false).expect("a number"));
                    let directory = Directory::find(path.clone(), false)
                        .expect("ours")
                        .expect("there");
                    (1..70).for_each(|run| directory.remove_stale(run));
                }
                claims
            })
        })
        .collect();
    let claims: Vec<_> = claims
        .into_iter()
        .flat_map(|thread| thread.join().expect("no panic"))
        .collect();
    let mut numbers: Vec<u32> = claims.iter().map(|claim| claim.run()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=64));
    let directory = Directory::find(path, false).expect("ours").expect("there");
    assert_eq!(directory.numbers().expect("numbers").len(), 64);
}

#[test]
fn a_run_that_ends_while_it_is_asked_is_none() {
    let (_dir, path) = folder();
    drop(owner(&path));
    for _ in 0..200 {
        let run = owner(&path);
        let start = Arc::new(Barrier::new(2));
        let (starts, others) = (Arc::clone(&start), path.clone());
        let looks = std::thread::spawn(move || {
            starts.wait();
            let found = Registry::at(others).runs().expect("the runs");
            let told = found.silent.iter().all(|run| run.why.contains("very busy"));
            assert!(told, "{found:?}");
        });
        start.wait();
        drop(run);
        looks.join().expect("no panic");
    }
}

#[test]
fn a_reader_that_is_polled_learns_that_the_owner_has_gone() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    let mut reader = attach(&path, owner.run).reader().expect("a reader");
    answered(|| reader.wake_at_each_row()).expect("to be woken");
    assert!(matches!(reader.poll_next(), Ok(Poll::Pending)));
    // The run has not ended: nobody can say any more that it has.
    drop(owner.server.take());
    let begun = Instant::now();
    let error = loop {
        let long = Timespec::try_from(60 * PATIENCE).expect("a time");
        let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&long));
        assert_eq!(ready, Ok(1), "it is never ready");
        match reader.poll_next() {
            Err(error) => break error.reason(),
            Ok(block) => assert!(begun.elapsed() < 60 * PATIENCE, "{block:?}"),
        }
    };
    assert!(
        error.contains("the run's program ended or closed it"),
        "{error}"
    );
}

#[test]
fn an_owner_that_does_not_wake_readers_is_not_waited_for_long() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a connection");
    let connection = Connection::new(ours.into());
    let error = connection
        .reader_waker()
        .expect_err("no answer")
        .to_string();
    assert!(
        error.contains("does not wake this reader for each row"),
        "{error}"
    );
    // One that answers without a descriptor does not either.
    (&theirs).write_all(b"w").expect("to write");
    assert!(connection.reader_waker().is_err());
}

#[test]
fn a_reader_that_does_not_wait_learns_that_the_owner_has_gone_once_it_has_all_rows() {
    let (_dir, path) = folder();
    let mut owner = owner(&path);
    let mut reader = attach(&path, owner.run).reader().expect("a reader");
    let block = reader.next(Duration::ZERO).expect("an owner");
    assert!(block.is_some_and(|block| block.is_empty()));
    owner.writer.begin(1).expect("a row").commit(0);
    drop(owner.server.take());
    let block = reader.next(Duration::ZERO).expect("a row");
    assert_eq!(block.map(|block| block.len()), Some(1));
    let error = reader.next(Duration::ZERO).expect_err("no owner").reason();
    assert!(
        error.contains("the run's program ended or closed it"),
        "{error}"
    );
    // Of one that has ended there is nothing more to come.
    owner.writer.finish(End::Stopped, 2);
    assert!(reader.next(Duration::ZERO).expect("the end").is_none());
}
