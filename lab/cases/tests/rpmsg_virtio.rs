// SPDX-License-Identifier: MIT OR Apache-2.0
//! Endpoints on the stock virtio bus: its driver is bound to a device whose other side is the lab's, and sends everything back.
// lab: --module virtio_rpmsg_bus --module strobe_rpmsg --module lab_virtio_rpmsg

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use libc::{
    EAGAIN, EDESTADDRREQ, EINVAL, EMSGSIZE, EPERM, EPIPE, O_NONBLOCK, POLLERR, POLLHUP, POLLIN,
};
use strobe_cases::machine::{command, slowness};
use strobe_cases::raw::rpmsg::*;
use strobe_cases::raw::{asleep_in, become_member, fork, ioctl, references, until, wait};
use strobe_cases::rpmsg::*;

const PARAMETERS: &str = "/sys/module/lab_virtio_rpmsg/parameters";
/// How many messages go both ways.
const MANY: u64 = 10_000;
/// Under way at once: fewer than an endpoint holds.
const WINDOW: u64 = 200;
/// Buffers of the transport in each direction.
const BUFFERS: u64 = 256;

/// The remote processor, plugged in and taking messages when this is made and when it is dropped.
struct Remote(());

impl Remote {
    fn well() -> Remote {
        let remote = Remote(());
        remote.set("stalled", 0);
        remote.plug();
        remote
    }

    fn set(&self, name: &str, value: u64) {
        fs::write(Path::new(PARAMETERS).join(name), value.to_string()).expect(name);
    }

    fn get(&self, name: &str) -> u64 {
        let text = fs::read_to_string(Path::new(PARAMETERS).join(name)).expect(name);
        text.trim().parse().expect("a number")
    }

    fn pull(&self) {
        self.set("plugged", 0);
        assert!(!Path::new(CONTROL).exists(), "the channel goes with it");
    }

    /// It announces its service a little later, and then the control node is there.
    fn plug(&self) {
        self.set("plugged", 1);
        until("the control node", || Path::new(CONTROL).exists());
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.set("stalled", 0);
            self.plug();
        }
    }
}

/// How often the remote goes.
fn rounds() -> u64 {
    if slowness() == 1 { 100 } else { 20 }
}

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message.try_into().expect("a number"))
}

/// How often the kernel's log says so.
fn said(what: &str) -> usize {
    const READ_ALL: i32 = 3;
    let mut log = vec![0u8; 1 << 20];
    // SAFETY: the call writes no more than so many bytes there.
    let length = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), log.len() as i32) };
    log.truncate(length.try_into().expect("the log"));
    String::from_utf8_lossy(&log).matches(what).count()
}

#[test]
fn ten_thousand_messages_go_there_and_back_counted_and_in_order() {
    let remote = Remote::well();
    let before = (remote.get("taken"), remote.get("given"));
    let endpoint = endpoint(ANY, REMOTE, 0);
    let back = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..MANY {
                while n >= back.load(Ordering::Acquire) + WINDOW {
                    thread::yield_now();
                }
                assert_eq!(send(&endpoint, &n.to_le_bytes()), Ok(8));
            }
        });
        for n in 0..MANY {
            assert_eq!(number(&receive(&endpoint).expect("a message")), n);
            back.store(n + 1, Ordering::Release);
        }
    });
    let said = stats(&endpoint).expect("stats");
    assert_eq!((said.sent, said.received, said.dropped), (MANY, MANY, 0));
    let after = (remote.get("taken"), remote.get("given"));
    assert_eq!(after, (before.0 + MANY, before.1 + MANY));
}

#[test]
fn a_message_is_as_long_as_a_buffer_has_room_for_and_comes_back_whole() {
    let _remote = Remote::well();
    let endpoint = endpoint(ANY, REMOTE, 0);
    assert_eq!(stats(&endpoint).expect("stats").mtu as usize, MTU);
    let longest: Vec<u8> = (0..MTU).map(|n| n as u8).collect();
    for length in [0, 1, 7, MTU] {
        assert_eq!(send(&endpoint, &longest[..length]), Ok(length));
        assert_eq!(receive(&endpoint).as_deref(), Ok(&longest[..length]));
    }
    assert_eq!(send(&endpoint, &[0; MTU + 1]), Err(EMSGSIZE));
}

#[test]
fn who_finds_no_buffer_is_told_so_or_waits_until_the_remote_takes_messages_again() {
    let remote = Remote::well();
    let (hasty, patient) = (endpoint(ANY, REMOTE, O_NONBLOCK), endpoint(ANY, REMOTE, 0));
    remote.set("stalled", 1);
    for n in 0..BUFFERS {
        assert_eq!(send(&hasty, &n.to_le_bytes()), Ok(8), "{n}");
    }
    assert_eq!(send(&hasty, b"one more"), Err(EAGAIN));
    thread::scope(|scope| {
        let (_, waiting) = asleep_in(scope, libc::SYS_write, || send(&patient, b"patient"));
        remote.set("stalled", 0);
        assert_eq!(waiting.join().expect("the writer"), Ok(7));
    });
    assert_eq!(receive(&patient).as_deref(), Ok(&b"patient"[..]));
    for n in 0..BUFFERS {
        until("it", || state(&hasty) & POLLIN != 0);
        assert_eq!(number(&receive(&hasty).expect("a message")), n);
    }
}

/// Sends numbers until it cannot, and answers with what it was told.
fn send_on(endpoint: &OwnedFd, has_begun: &AtomicBool) -> i32 {
    for n in 0u64.. {
        match send(endpoint, &n.to_le_bytes()) {
            Ok(_) => has_begun.store(true, Ordering::Release),
            Err(errno) => return errno,
        }
    }
    0
}

/// Takes numbers, each greater than the one before, until there is none and none will come.
fn receive_on(endpoint: &OwnedFd) -> (u64, i32) {
    let (mut taken, mut next) = (0, 0);
    loop {
        match receive(endpoint) {
            Ok(message) => {
                let n = number(&message);
                assert!(n >= next, "{n} after {next}");
                (taken, next) = (taken + 1, n + 1);
            }
            Err(errno) => return (taken, errno),
        }
    }
}

#[test]
fn the_remote_goes_in_the_midst_of_traffic_and_everybody_learns_it() {
    let remote = Remote::well();
    let before = references("strobe_rpmsg");
    let mut all = 0;
    for round in 0..rounds() {
        let pair = [endpoint(ANY, REMOTE, 0), endpoint(ANY, REMOTE + 1, 0)];
        let begun = [AtomicBool::new(false), AtomicBool::new(false)];
        thread::scope(|scope| {
            let writers = [0, 1].map(|i| {
                let (end, begun) = (&pair[i], &begun[i]);
                scope.spawn(move || send_on(end, begun))
            });
            let readers = [0, 1].map(|i| {
                let end = &pair[i];
                scope.spawn(move || receive_on(end))
            });
            until("traffic", || {
                begun.iter().all(|it| it.load(Ordering::Acquire))
            });
            remote.pull();
            for writer in writers {
                assert_eq!(writer.join().expect("a writer"), EPIPE, "round {round}");
            }
            for reader in readers {
                let (taken, errno) = reader.join().expect("a reader");
                assert_eq!(errno, EPIPE, "round {round}");
                all += taken;
            }
        });
        for end in &pair {
            assert_eq!(state(end), POLLHUP | POLLERR);
        }
        drop(pair);
        assert_eq!(references("strobe_rpmsg"), before);
        remote.plug();
    }
    println!("{all} messages came back in {} rounds", rounds());
}

#[test]
fn a_message_to_no_address_is_refused_before_the_bus_complains_of_it() {
    let _remote = Remote::well();
    let before = said("invalid addr");
    for flags in [0, O_NONBLOCK] {
        let endpoint = endpoint(ANY, ANY, flags);
        for _ in 0..10 {
            assert_eq!(send(&endpoint, b"to whom?"), Err(EDESTADDRREQ));
        }
    }
    assert_eq!(said("invalid addr"), before);
}

/// strobe_rpmsg with the stock driver's names, until this is dropped.
struct StockNames(Remote);

impl StockNames {
    fn new() -> StockNames {
        let stock = StockNames(Remote::well());
        stock.load("stock_names=1");
        stock.plug();
        stock
    }

    fn load(&self, words: &str) {
        self.0.set("plugged", 0);
        let line = format!("modprobe strobe_rpmsg {words}");
        let is_loaded = command("rmmod strobe_rpmsg") && command(line.trim());
        assert!(is_loaded || thread::panicking(), "{line}");
    }

    fn plug(&self) {
        self.0.set("plugged", 1);
        until("the control node", || Path::new(STOCK_CONTROL).exists());
    }
}

impl Drop for StockNames {
    fn drop(&mut self) {
        // In any case: other tests need the names.
        self.load("");
    }
}

/// What comes, but for what the remote has answered to a channel of the same address that was released meanwhile.
fn heard(endpoint: &OwnedFd) -> Result<Vec<u8>, i32> {
    loop {
        match receive(endpoint) {
            Ok(late) if late == b"and then" => {}
            other => return other,
        }
    }
}

/// The node of the first endpoint, by the stock driver's name.
const STOCK_NODE: &str = "/dev/rpmsg0";
/// Addresses of a channel of the host's own.
const OWN: (u32, u32) = (600, REMOTE + 7);

#[test]
fn a_channel_of_the_hosts_own_is_made_and_released_and_its_default_endpoint_is_a_node() {
    let stock = StockNames::new();
    let control = open(STOCK_CONTROL).expect("the control node");
    let announced = stock.0.get("announced");
    let make = |call| channel(&control, call, "rpmsg-raw", OWN.0, OWN.1);
    for _ in 0..rounds() {
        assert_eq!(make(CREATE_DEV), Ok(0));
        let endpoint = open(STOCK_NODE).expect("the default endpoint");
        let said = stats(&endpoint).expect("stats");
        assert_eq!((said.address, said.dst), OWN);
        send(&endpoint, b"hello").expect("sent");
        assert_eq!(heard(&endpoint).as_deref(), Ok(&b"hello"[..]));
        assert_eq!(destroy(&endpoint), Err(EINVAL));
        send(&endpoint, b"and then").expect("sent");
        assert_eq!(make(RELEASE_DEV), Ok(0));
        assert!(!Path::new(STOCK_NODE).exists());
        assert_eq!(state(&endpoint) & (POLLHUP | POLLERR), POLLHUP | POLLERR);
        assert_eq!(make(RELEASE_DEV), Err(EINVAL), "there is none");
    }
    // Once as it comes and once as it goes.
    until("the remote's knowledge", || {
        stock.0.get("announced") == announced + 2 * rounds()
    });
    assert_eq!(make(CREATE_DEV), Ok(0));
    assert_eq!(make(CREATE_DEV), Err(libc::ENXIO), "there is one");
    let own = channel(&control, RELEASE_DEV, "strobe_rpmsg", ANY, ANY);
    assert_eq!(own, Err(libc::EBUSY), "it is the one that is asked");
    let whole = ioctl(
        &control,
        CREATE_DEV,
        &mut EptInfo {
            name: [b'x'; 32],
            src: ANY,
            dst: ANY,
        },
    );
    assert_eq!(whole, Err(EINVAL));
    // With the remote goes the channel, and then neither call has anything to do.
    let endpoint = open(STOCK_NODE).expect("the default endpoint");
    stock.0.set("plugged", 0);
    assert_eq!(heard(&endpoint), Err(EPIPE));
    for call in [CREATE_DEV, RELEASE_DEV] {
        assert_eq!(make(call), Err(libc::ENETRESET));
    }
}

#[test]
fn only_root_makes_and_releases_channels() {
    let _remote = Remote::well();
    // What the udev rule of an installed strobe does.
    chown(CONTROL, None, Some(STROBE)).expect("the group");
    fs::set_permissions(CONTROL, Permissions::from_mode(0o660)).expect("the mode");
    let member = fork(|| {
        become_member(&[STROBE]);
        let control = control();
        for call in [CREATE_DEV, RELEASE_DEV] {
            assert_eq!(
                channel(&control, call, "rpmsg-raw", OWN.0, OWN.1),
                Err(EPERM)
            );
        }
        0
    });
    assert_eq!(wait(member), 0);
}

#[test]
fn the_example_and_a_program_for_the_series_run_on_the_stock_bus_beside_a_default_endpoint() {
    let _stock = StockNames::new();
    let control = open(STOCK_CONTROL).expect("the control node");
    for has_default in [false, true] {
        let words = if has_default {
            // Its node has the first number: the example's is the next.
            assert_eq!(
                channel(&control, CREATE_DEV, "rpmsg-raw", OWN.0, OWN.1),
                Ok(0)
            );
            vec!["100", STOCK_CONTROL, "/dev/rpmsg1"]
        } else {
            vec!["100"]
        };
        for program in ["rpmsg_ways", "rpmsg32", "rpmsg_series32"] {
            let done = Command::new(program).args(&words).output().expect(program);
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let errors = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(
                done.status.success() && errors.is_empty(),
                "{program}: {text}{errors}"
            );
        }
    }
}
