// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who keeps what alive: fds that are closed, duplicated, inherited and sent away, processes that
//! are killed, modules that are taken away, and that nothing is left behind.
// lab: --module strobe_sample

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libc::{
    EBADF, EMFILE, ENOENT, EPIPE, EWOULDBLOCK, F_GETFD, FD_CLOEXEC, MAP_SHARED, POLLHUP, POLLIN,
    PROT_READ,
};
use strobe_cases::machine::patience;
use strobe_cases::raw::*;

const IN_HUP: i16 = POLLIN | POLLHUP;

/// A run of "soft" that is running, and its id.
fn running(control: &OwnedFd) -> (OwnedFd, u32) {
    let (owner, id) = soft(control, 64, 0);
    order(&owner, START, 0).expect("started");
    (owner, id)
}

fn state(control: &OwnedFd, run: u32) -> Result<u32, i32> {
    list(control, run).map(|(entries, _)| entries[0].state())
}

/// The ring's own word of how the run has ended.
fn end(ring: &OwnedFd) -> (u32, i32) {
    let map = Map::new(ring.as_raw_fd(), 4096, PROT_READ, MAP_SHARED, 0).expect("a mapping");
    (map.get(STATE), map.get::<u32>(ERROR) as i32)
}

fn all_rows(ring: &OwnedFd) -> Result<Vec<u64>, i32> {
    rows(ring, 100).map(|rows| rows.iter().map(|row| row[0]).collect())
}

#[test]
fn closing_the_owner_ends_the_run_and_keeps_its_rows() {
    let control = control();
    let before = census(&control);
    let (owner, id) = running(&control);
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    order(&owner, TRIGGER, 5).expect("triggered");
    drop(owner);
    assert_eq!(end(&ring), (FAILED, -EPIPE));
    assert_eq!(poll(&ring, 0), Ok(IN_HUP));
    assert_eq!(
        (all_rows(&ring), all_rows(&ring)),
        (Ok(vec![0, 1, 2, 3, 4]), Ok(vec![]))
    );
    assert_eq!(
        (state(&control, id), reader(&control, id, 0, 0).err()),
        (Err(ENOENT), Some(ENOENT))
    );
    assert!(!fs::exists(format!("/sys/class/strobe/run{id}")).expect("sysfs"));
    drop(ring);
    let after = census(&control);
    assert_eq!(
        Census {
            generation: before.generation,
            ..after
        },
        before
    );
}

#[test]
fn a_mapping_outlives_every_fd() {
    let control = control();
    let before = references("strobe");
    let (owner, _) = running(&control);
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    let map = Map::new(ring.as_raw_fd(), 8192, PROT_READ, MAP_SHARED, 0).expect("a mapping");
    order(&owner, TRIGGER, 64).expect("triggered");
    drop(ring);
    order(&owner, TRIGGER, 1).expect("triggered");
    drop(owner);
    // Others take memory, should the ring's pages be free by mistake.
    let others: Vec<_> = (0..20).map(|_| soft(&control, 64, 0)).collect();
    assert_eq!((map.get::<u64>(HEAD), map.get::<u32>(STATE)), (65, FAILED));
    for i in 2..65usize {
        let at = 4096 + (i % 64) * 64;
        assert_eq!(
            (map.get(at), map.get(at + 32)),
            (i as u64, i as u64),
            "row {i}"
        );
    }
    drop(others);
    assert!(
        references("strobe") > before,
        "the mapping holds the module"
    );
    drop(map);
    assert_eq!(references("strobe"), before);
}

#[test]
fn every_fd_that_is_returned_is_close_on_exec() {
    let control = control();
    let (owner, id) = soft(&control, 2, 0);
    let flags = |fd: &OwnedFd| {
        sys(
            libc::SYS_fcntl,
            &[fd.as_raw_fd() as usize, F_GETFD as usize],
        )
    };
    assert_eq!(flags(&owner), Ok(FD_CLOEXEC as usize));
    for ring in [reader(&owner, 0, 0, 0), reader(&control, id, 0, NONBLOCK)] {
        assert_eq!(flags(&ring.expect("a reader")), Ok(FD_CLOEXEC as usize));
    }
}

#[test]
fn a_run_lives_as_long_as_the_last_of_its_owner_fds() {
    let control = control();
    let (owner, id) = running(&control);
    let double = owner.try_clone().expect("a duplicate");
    drop(owner);
    assert_eq!(state(&control, id), Ok(RUNNING), "a duplicate is left");
    let (hold, release) = UnixStream::pair().expect("sockets");
    let child = fork(|| {
        let _ = (&hold).read(&mut [0]);
        i32::from(order(&double, TRIGGER, 3).map(|now| now.head) != Ok(3))
    });
    drop(double);
    assert_eq!(state(&control, id), Ok(RUNNING), "a child has it");
    let ring = reader(&control, id, 0, 0).expect("a reader");
    (&release).write_all(&[0]).expect("told");
    assert_eq!(wait(child), 0, "the child could use it");
    assert_eq!(state(&control, id), Err(ENOENT));
    assert_eq!(
        (end(&ring), all_rows(&ring)),
        ((FAILED, -EPIPE), Ok(vec![0, 1, 2]))
    );
}

#[test]
fn a_reader_learns_that_the_owner_was_killed() {
    let control = control();
    let (mine, theirs) = UnixStream::pair().expect("sockets");
    let before = census(&control);
    let child = fork(|| {
        let steps = [step(READ, "sim.counter", 0)];
        let c = request("timer", 200_000, 4096, &steps);
        let (owner, made) = create(&control, &c).expect("a run");
        let own = reader(&owner, 0, 0, 0).expect("a reader");
        let map = Map::new(own.as_raw_fd(), 8192, PROT_READ, MAP_SHARED, 0).expect("a mapping");
        order(&owner, START, 0).expect("started");
        until("some rows", || map.get::<u64>(HEAD) > 10);
        (&theirs).write_all(&made.run.to_le_bytes()).expect("told");
        loop {
            thread::park(); // with the owner, a ring fd and a mapping
        }
    });
    let mut id = [0; 4];
    (&mine).read_exact(&mut id).expect("told");
    let ring = reader(&control, u32::from_le_bytes(id), 0, NONBLOCK).expect("a reader");
    sys(libc::SYS_kill, &[child, libc::SIGKILL as usize]).expect("killed");
    assert_eq!(wait(child), -libc::SIGKILL);
    assert_eq!(
        (end(&ring), poll(&ring, 20_000)),
        ((FAILED, -EPIPE), Ok(IN_HUP))
    );
    let first = all_rows(&ring).expect("rows");
    assert!(first.len() > 10 && first[0] == 0, "the rows are kept");
    drop(ring);
    let after = census(&control);
    assert_eq!(
        Census {
            generation: before.generation,
            ..after
        },
        before
    );
}

#[test]
fn a_run_whose_trigger_is_killed_in_mid_row_goes_on_for_others() {
    let slow = Parameter::set("sim_sleep_us", 100_000);
    let steps = [step(READ, "sim.slow", 0); 4];
    let (owner, _) = create(&control(), &request("soft", 0, 64, &steps)).expect("a run");
    order(&owner, START, 0).expect("started");
    let child = fork(|| i32::from(order(&owner, TRIGGER, 1000).is_err()));
    until("a row", || {
        order(&owner, STATUS, 0).expect("asked").head > 0
    });
    // The next row has been begun; its steps take four times as long as that.
    thread::sleep(Duration::from_millis(100));
    sys(libc::SYS_kill, &[child, libc::SIGKILL as usize]).expect("killed");
    assert_eq!(wait(child), -libc::SIGKILL);
    drop(slow);
    let before = order(&owner, STATUS, 0).expect("asked");
    assert_eq!(
        before.triggers,
        before.head + 1,
        "what was begun is given up"
    );
    let after = order(&owner, TRIGGER, 3).expect("triggered");
    assert_eq!(
        (after.head, after.triggers),
        (before.head + 3, before.triggers + 3)
    );
}

#[test]
fn fds_that_travel_through_a_socket_work_where_they_arrive() {
    let control = control();
    let (owner, id) = running(&control);
    let ring = reader(&owner, 0, 0, NONBLOCK).expect("a reader");
    let (mine, theirs) = UnixStream::pair().expect("sockets");
    let child = fork(|| {
        // What the child has inherited does not count: it is closed first.
        for inherited in [control.as_raw_fd(), owner.as_raw_fd(), ring.as_raw_fd()] {
            sys(libc::SYS_close, &[inherited as usize]).expect("closed");
        }
        become_user();
        let (owner, ring) = (receive_fd(&theirs), receive_fd(&theirs));
        let triggered = order(&owner, TRIGGER, 4).map(|now| now.head);
        let read = all_rows(&ring);
        let mapped = end(&ring);
        i32::from((triggered, read, mapped) != (Ok(4), Ok(vec![0, 1, 2, 3]), (RUNNING, 0)))
    });
    send_fd(&mine, &owner);
    send_fd(&mine, &ring);
    drop(owner);
    assert_eq!(wait(child), 0, "an ordinary user may use what it was given");
    assert_eq!(
        (state(&control, id), end(&ring)),
        (Err(ENOENT), (FAILED, -EPIPE))
    );
    let (owner, id) = running(&control);
    send_fd(&mine, &owner);
    drop(owner);
    assert_eq!(state(&control, id), Ok(RUNNING), "it is in the socket");
    drop((mine, theirs));
    until("the run ends with the socket", || {
        state(&control, id) == Err(ENOENT)
    });
}

/// Nothing below `limit` but what is open already.
fn limit_fds(limit: u64) -> u64 {
    let mut old = [0u64; 2];
    let nofile = libc::RLIMIT_NOFILE as usize;
    let address = old.as_mut_ptr() as usize;
    sys(libc::SYS_prlimit64, &[0, nofile, 0, address]).expect("the limit");
    let new = [limit, old[1]];
    sys(libc::SYS_prlimit64, &[0, nofile, new.as_ptr() as usize, 0]).expect("limited");
    old[0]
}

#[test]
fn without_room_for_an_fd_nothing_is_left_behind() {
    let control = control();
    let (owner, id) = soft(&control, 2, 0);
    let steps = [step(READ, "sample.level", 0)];
    let before = census(&control);
    let c = request("soft", 0, 2, &steps);
    let usual = limit_fds(3);
    let (created, answer) = ask(&control, &c);
    let readers = [(&control, id), (&owner, 0)].map(|(fd, id)| reader(fd, id, 0, 0).err());
    let dry = Create {
        flags: DRY_RUN,
        ..c
    };
    let (dried, dry) = ask(&control, &dry);
    limit_fds(usual);
    assert_eq!((created, readers), (Err(EMFILE), [Some(EMFILE); 2]));
    let after = census(&control);
    assert_eq!(
        Census {
            generation: before.generation,
            ..after
        },
        before
    );
    assert_eq!((dried, dry.fd), (Ok(0), -1), "a dry run needs no fd");
    assert_eq!(
        (answer.fd, answer.run),
        (-1, 0),
        "the answer says that none was made"
    );
}

#[test]
fn an_owner_may_be_closed_by_another_thread_in_the_midst_of_a_call() {
    let control = control();
    let before = census(&control);
    let (shown, too_late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut calls = 0;
            loop {
                let fd = shown.load(Ordering::Acquire);
                if fd == usize::MAX {
                    break calls;
                }
                for (op, count) in [(TRIGGER, 2000), (PAUSE, 0), (RESUME, 0), (STATUS, 0)] {
                    match order(&(fd as i32), op, count) {
                        Ok(now) => assert!(now.state < DONE, "state {}", now.state),
                        Err(errno) => {
                            too_late.fetch_add(usize::from(errno == EBADF), Ordering::Relaxed);
                        }
                    }
                    calls += 1;
                }
            }
        });
        // As often as it takes until one was too late.
        let give_up = Instant::now() + patience(60);
        let mut rounds = 0;
        while rounds < 200 || too_late.load(Ordering::Relaxed) == 0 && Instant::now() < give_up {
            rounds += 1;
            let (owner, _) = running(&control);
            shown.store(owner.as_raw_fd() as usize, Ordering::Release);
            thread::sleep(Duration::from_millis(1));
        }
        shown.store(usize::MAX, Ordering::Release);
        let calls = caller.join().expect("no surprise");
        let late = too_late.load(Ordering::Relaxed);
        assert!(late > 0, "the race was run: {calls} calls, {late} too late");
    });
    let after = census(&control);
    assert_eq!(
        Census {
            generation: before.generation,
            ..after
        },
        before
    );
}

#[test]
fn fdinfo_and_sysfs_say_what_the_run_does() {
    let control = control();
    let steps = [step(READ, "sim.counter", 0), step(READ, "cpu.id", 0)];
    let c = Create {
        limit: 100,
        ..request("soft", 0, 16, &steps)
    };
    let (owner, c) = create(&control, &c).expect("a run");
    let ring = reader(&owner, 0, 3, 0).expect("a reader");
    arm(&ring, 40).expect("armed");
    order(&owner, START, 0).expect("started");
    order(&owner, TRIGGER, 20).expect("triggered");
    let info = |fd: &OwnedFd| {
        let file = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
        let text = fs::read_to_string(file).expect("fdinfo");
        let ours: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("strobe-"))
            .collect();
        ours.join("\n")
    };
    let run = format!(
        "strobe-run:\t{}\nstrobe-event:\tsoft\nstrobe-state:\trunning\nstrobe-channels:\t2\n\
         strobe-capacity:\t16\nstrobe-head:\t20\nstrobe-triggers:\t20\nstrobe-missed:\t0\nstrobe-skipped:\t0",
        c.run
    );
    assert_eq!(info(&owner), run);
    assert_eq!(
        info(&ring),
        format!("{run}\nstrobe-next:\t3\nstrobe-armed:\t40")
    );
    let comm = fs::read_to_string("/proc/self/comm").expect("comm");
    for (name, want) in [
        ("event", "soft"),
        ("channels", "2"),
        ("capacity", "16"),
        ("limit", "100"),
        ("head", "20"),
        ("triggers", "20"),
        ("missed", "0"),
        ("skipped", "0"),
        ("outputs", "0"),
        ("columns", "sim.counter\ncpu.id"),
        ("filling", "circular"),
        ("readable", "15"),
        ("errors", "0"),
        ("state", "running"),
        ("owner", comm.trim()),
    ] {
        let file = format!("/sys/class/strobe/run{}/{name}", c.run);
        assert_eq!(fs::read_to_string(file).expect(name).trim(), want, "{name}");
    }
    order(&owner, STOP, 0).expect("stopped");
    let elapsed = || {
        let file = format!("/sys/class/strobe/run{}/elapsed_ns", c.run);
        fs::read_to_string(file)
            .expect("elapsed")
            .trim()
            .parse::<u64>()
            .expect("a number")
    };
    assert!(
        elapsed() > 0 && elapsed() == elapsed(),
        "it stands still after the end"
    );
}

/// All files below a directory that are strobe's own.
fn files_below(directory: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect(directory) {
        let entry = entry.expect("an entry");
        let path = entry.path().display().to_string();
        match entry.file_name().to_str() {
            Some("uevent" | "power" | "subsystem" | "device") => (),
            _ if path.ends_with('/') || entry.path().is_dir() => files.extend(files_below(&path)),
            _ => files.push(path),
        }
    }
    files
}

#[test]
fn nobody_not_even_root_can_write_into_sysfs() {
    let control = control();
    let run = running(&control);
    let files = files_below("/sys/class/strobe");
    assert!(
        files
            .iter()
            .any(|file| file.ends_with("sim/channels/counter"))
    );
    assert!(files.iter().any(|file| file.ends_with("/state")));
    let before = census(&control);
    for file in &files {
        assert!(
            fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')),
            "{file}"
        );
        let open = File::options().write(true).open(file);
        assert!(
            open.is_err_and(|e| e.raw_os_error() == Some(libc::EACCES)),
            "{file}"
        );
    }
    assert_eq!(census(&control), before);
    drop(run);
}

fn modprobe(module: &str) {
    let status = Command::new("modprobe")
        .arg(module)
        .status()
        .expect("modprobe is there");
    assert!(status.success(), "modprobe {module}");
}

/// Modules that are loaded again when this is dropped.
struct Away(Vec<&'static str>);

impl Away {
    /// Unloads those that are there.
    fn take(modules: &[&'static str]) -> Away {
        let there = modules.iter().filter(|module| references(module) >= 0);
        let away: Vec<_> = there.copied().collect();
        for module in &away {
            unload(module).unwrap_or_else(|errno| panic!("unload {module}: errno {errno}"));
        }
        Away(away)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.0.iter().for_each(|module| modprobe(module));
    }
}

#[test]
fn the_module_stays_while_anything_of_it_is_open_and_goes_when_nothing_is() {
    let above = Away::take(&["strobe_board", "strobe_sample"]);
    for round in ["first", "second"] {
        let refused = |what: &str| {
            assert_eq!(unload("strobe"), Err(EWOULDBLOCK), "{round} time, {what}");
        };
        let control = control();
        refused("the control device");
        let (owner, _) = running(&control);
        order(&owner, TRIGGER, 3).expect("triggered");
        drop(control);
        refused("a run");
        let ring = reader(&owner, 0, 0, 0).expect("a reader");
        drop(owner);
        refused("a ring fd");
        let map = Map::new(ring.as_raw_fd(), 8192, PROT_READ, MAP_SHARED, 0).expect("a mapping");
        let watch = epoll(&ring, libc::EPOLLIN);
        drop(ring);
        refused("a mapping");
        assert_eq!(map.get::<u64>(HEAD), 3, "nothing has changed");
        drop(map);
        let away = Away::take(&["strobe"]);
        assert_eq!(away.0, ["strobe"]);
        assert!(!fs::exists("/dev/strobe").expect("devtmpfs"));
        assert!(!fs::exists("/sys/class/strobe").expect("sysfs"));
        assert_eq!(epoll_wait(&watch, 0), Ok(0));
        drop(away);
    }
    drop(above);
    drop(running(&control()));
}

#[test]
fn a_provider_stays_while_a_run_uses_it_and_may_go_when_the_run_has_ended() {
    let control = control();
    let steps = [step(READ, "sample.level", 0), step(WRITE, "sample.step", 1)];
    for event in ["sample.tick", "soft"] {
        let (owner, c) = create(&control, &request(event, 0, 4, &steps)).expect("a run");
        let ring = reader(&owner, 0, 0, NONBLOCK).expect("a reader");
        assert_eq!(unload("strobe_sample"), Err(EWOULDBLOCK), "{event}: ready");
        order(&owner, START, 0).expect("started");
        assert_eq!(
            unload("strobe_sample"),
            Err(EWOULDBLOCK),
            "{event}: running"
        );
        order(&owner, STOP, 0).expect("stopped");
        let away = Away::take(&["strobe_sample"]);
        assert_eq!(away.0, ["strobe_sample"], "{event}: stopped");
        let (entries, _) = list(&control, c.run).expect("the run");
        let names: Vec<_> = entries.iter().map(Entry::name).collect();
        assert_eq!(names, [event, "sample.level", "sample.step"]);
        assert_eq!(poll(&ring, 0), Ok(IN_HUP));
        let gone = create(&control, &request("soft", 0, 4, &steps));
        assert_eq!(gone.map(drop), Err(ENOENT));
    }
}

#[test]
fn a_32_bit_program_finds_the_same_contract() {
    let Ok(status) = Command::new("compat32").status() else {
        panic!("compat32 is not in the guest; lab/cases/c/compat32.c says how to build it");
    };
    assert!(status.success(), "its messages are above");
}
