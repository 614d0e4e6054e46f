// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many clients of all kinds at one run of 10 kHz: some are stuck, some are killed and others come for them. Each has its
//! account, the run has its own, and the daemon keeps nothing of who has gone.
//!
//! `STROBE_CROWD_MINUTES` says how long it lasts, with 100 clients, of which ten are killed each minute; `make soak` does
//! that. Else it is some seconds, and a fifth of them.

mod clients;
mod daemon;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use clients::{Account, Client, End, Kind, Place};
use daemon::Daemon;

const RATE: u64 = 10_000;
/// One in so many is stuck: it reads nothing before the run is over.
const STUCK: usize = 10;
/// What the daemon may keep of rows in memory: full soon, so that all that grows after that is too much.
const RECENT: u64 = 1 << 20;
/// Of all rows: who is stuck loses some.
const SPOOL: u64 = 16 << 20;
/// By so much the greatest size of the daemon in the last third of the time may exceed that in the middle third.
const GROWTH: u64 = 4 << 20;
const LOOK: Duration = Duration::from_millis(250);
/// Only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(180);

/// How much of it.
struct Size {
    clients: usize,
    seconds: u64,
    /// So many are killed each time.
    killed: usize,
    between: Duration,
    is_short: bool,
}

impl Size {
    fn asked() -> Size {
        let minutes = std::env::var("STROBE_CROWD_MINUTES").ok();
        let minutes = minutes.map(|text| text.parse::<u64>().expect("minutes"));
        match minutes {
            Some(minutes) => Size {
                clients: 100,
                seconds: 60 * minutes,
                killed: 10,
                between: Duration::from_secs(60),
                is_short: false,
            },
            None => Size {
                clients: 20,
                seconds: 12,
                killed: 2,
                between: Duration::from_secs(2),
                is_short: true,
            },
        }
    }
}

/// One who was told to go, perhaps.
struct Guest {
    is_killed: Arc<AtomicBool>,
    is_stuck: bool,
    thread: JoinHandle<Account>,
}

/// All who came.
struct Crowd {
    place: Place,
    is_over: Arc<AtomicBool>,
    guests: Vec<Guest>,
}

impl Crowd {
    fn comes(&mut self, begin: u64, is_stuck: bool) {
        let kinds = [Kind::Arrow, Kind::Csv, Kind::WebSocket, Kind::Panda];
        // Of those that are stuck, too, there are all kinds.
        let kind = kinds[(self.guests.len() + self.guests.len() / STUCK) % kinds.len()];
        let is_killed = Arc::new(AtomicBool::new(false));
        let client = Client {
            kind,
            begin,
            place: self.place,
            is_killed: Arc::clone(&is_killed),
            waits_for: is_stuck.then(|| Arc::clone(&self.is_over)),
        };
        self.guests.push(Guest {
            is_killed,
            is_stuck,
            thread: spawn(move || client.read()),
        });
    }

    /// Those that have been here longest go.
    fn goes(&self, count: usize) {
        let stay = |guest: &&Guest| !guest.is_stuck && !guest.is_killed.load(Ordering::Relaxed);
        for guest in self.guests.iter().filter(stay).take(count) {
            guest.is_killed.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_crowd_of_clients_has_its_accounts_and_leaves_nothing_behind() {
    let size = Size::asked();
    let mut daemon = Daemon::start(RECENT, SPOOL);
    let rows = RATE * size.seconds;
    let run = daemon.arm(RATE, rows);
    let fds = daemon.fds();
    let mut crowd = Crowd {
        place: daemon.place(run),
        is_over: Arc::default(),
        guests: Vec::new(),
    };
    for number in 0..size.clients {
        crowd.comes(0, number % STUCK == STUCK / 2);
    }
    daemon.open_gate();
    let (begun, mut killed, mut resident) = (Instant::now(), Instant::now(), Vec::new());
    let limit = Duration::from_secs(size.seconds) + PATIENCE;
    let view = loop {
        sleep(LOOK);
        resident.push(daemon.resident());
        let view = daemon.view(run);
        if !view["end"].is_null() {
            break view;
        }
        if killed.elapsed() > size.between {
            killed = Instant::now();
            crowd.goes(size.killed);
            let next = view["next"].as_u64().expect("a number");
            (0..size.killed).for_each(|_| crowd.comes(next, false));
        }
        assert!(begun.elapsed() < limit, "the run does not end: {view}");
    };
    crowd.is_over.store(true, Ordering::Relaxed);
    let number = |name: &str| view[name].as_u64().expect("a number");
    let made = number("rows") + number("missed") + number("skipped");
    assert_eq!((number("rows"), number("triggers")), (rows, made), "{view}");
    let guests = crowd.guests.into_iter();
    let accounts: Vec<_> = guests
        .map(|guest| (guest.is_stuck, guest.thread.join().expect("a client")))
        .collect();
    for (is_stuck, account) in &accounts {
        account.assert_exact(rows);
        // Who does not read is cut off by HTTP; who was not told to go stays, else.
        let is_allowed = *is_stuck && account.kind != Kind::Panda;
        assert!(account.end != End::Cut || is_allowed, "{account:?}");
    }
    say(&size, &view, &accounts, &resident);
    let until = Instant::now() + PATIENCE;
    while daemon.fds() > fds {
        assert!(Instant::now() < until, "{fds} files, then {}", daemon.fds());
        sleep(LOOK);
    }
    if size.is_short {
        // Memory comes to rest in minutes.
        return;
    }
    let greatest = |third: usize| {
        let third = resident.chunks(resident.len().div_ceil(3)).nth(third);
        third.and_then(|third| third.iter().max()).copied()
    };
    let (middle, last) = (greatest(1).expect("bytes"), greatest(2).expect("bytes"));
    assert!(
        last <= middle + GROWTH,
        "it grows: {middle}, then {last} bytes"
    );
}

fn say(size: &Size, view: &serde_json::Value, all: &[(bool, Account)], resident: &[u64]) {
    let count = |is: &dyn Fn(&Account) -> bool| all.iter().filter(|(_, of)| is(of)).count();
    let sum =
        |of: &dyn Fn(&Account) -> u64| all.iter().map(|(_, account)| of(account)).sum::<u64>();
    println!(
        "{} s, {} clients at once, {} in all: {} to the end, {} killed, {} cut off",
        size.seconds,
        size.clients,
        all.len(),
        count(&|of| of.end == End::Whole),
        count(&|of| of.end == End::Killed),
        count(&|of| of.end == End::Cut),
    );
    println!(
        "triggers {} rows {} missed {} lost {}; clients got {} rows and lost {}",
        view["triggers"],
        view["rows"],
        view["missed"],
        view["lost"],
        sum(&|of| of.rows),
        sum(&|of| of.lost),
    );
    let kib: Vec<_> = resident
        .chunks(resident.len().div_ceil(12))
        .filter_map(|part| part.iter().max())
        .map(|bytes| bytes >> 10)
        .collect();
    println!("resident, KiB: {kib:?}");
}
