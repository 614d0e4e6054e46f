// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of each kind on cards that forget everything in a suspend; each of their rows is looked at.

use std::fs;
use std::path::Path;

use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::OwnedRun;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::machine::pin;
use strobe_cases::pci::{Bound, cards, steps};
use strobe_cases::{Account, Engine, Kept, Kernel, plan, suspend};
use strobe_ring::{Snapshot, State};

const ROUNDS: usize = 20;
/// The cause of what is missed while the machine is suspended.
const SUSPENDED: usize = 4;
const PERIOD: u64 = 1_000_000;
/// So many rows between two suspends, at least.
const ROWS: u64 = 10;
/// Of the counter.
const ID: u64 = 0x6c61_1ab1;

/// The lab's counter, whose timer runs because it was set up; and an edu card.
struct Cards {
    engine: Kernel,
    boards: Vec<Board>,
    _bound: Vec<Bound>,
}

impl Cards {
    fn new() -> Cards {
        let read = |file: &str| fs::read_to_string(Path::new("/boards").join(file)).expect(file);
        let setup = format!(
            "\n[setup]\nwrites = [{{ register = \"period\", write = {PERIOD} }}, {{ register = \"run\", write = 1 }}]\n"
        );
        let texts = [read("lab-counter.toml") + &setup, read("edu-intx.toml")];
        let boards = texts.map(|text| {
            let board = Board::from_toml("a board", &text).expect("a good board");
            System::default()
                .install(&board, &text, Policy::FilesOnly)
                .expect("to install");
            board
        });
        let found = [0x1ab1, 0x11e8].map(|device| cards(device).remove(0));
        Cards {
            engine: Kernel::open(),
            boards: boards.into(),
            _bound: found.map(|card| Bound::to("strobe_board", &card)).into(),
        }
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        for board in &self.boards {
            let _ = System::default().remove(&board.hardware);
        }
    }
}

/// A run, all of its rows, and its name.
struct Watched {
    run: KernelRun,
    reader: RunReader,
    account: Account,
    what: &'static str,
}

impl Watched {
    fn start(cards: &Cards, what: &'static str, event: &str, channels: &[&str]) -> Watched {
        let run = cards.engine.run(&Plan {
            ring: Some(16384),
            ..plan(event, channels)
        });
        let (reader, account) = begin(&run);
        run.start().expect("to start");
        Watched {
            run,
            reader,
            account,
            what,
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.reader.snapshot()
    }

    fn until_rows(&self, more: u64) {
        let before = self.snapshot().head;
        until(self.what, || {
            let now = self.snapshot();
            assert_eq!(now.state, State::Running, "{}: {now:?}", self.what);
            now.head >= before + more
        });
    }

    fn missed(&self) -> u64 {
        self.snapshot().missed_by[SUSPENDED]
    }

    fn read(&mut self) {
        read_now(&mut self.reader, &mut self.account);
    }

    /// All is accounted for, each row is whole, and one row after each suspend says so.
    fn settle(mut self) -> (Account, Snapshot) {
        let what = self.what;
        self.run.stop().expect("to stop");
        self.read();
        let end = self.snapshot();
        self.account.settle(&end);
        assert_eq!((end.state, end.error), (State::Stopped, 0), "{what}");
        assert_eq!(end.errors, 0, "{what}: {end:?}");
        assert_eq!(self.account.lost, 0, "{what}");
        let resumed = self.account.rows.iter().filter(|row| row.status.resumed());
        assert_eq!(
            resumed.count(),
            ROUNDS,
            "{what}: first rows after a suspend"
        );
        (self.account, end)
    }
}

/// They go on after each suspend, with a gap that is named, and their cards set up; a timer stays on its processor.
pub fn go_on(processor: usize) {
    let cards = Cards::new();
    let of_counter = ["counter.id", "counter.period", "counter.run"];
    let timer = {
        let _pinned = pin(processor);
        let channels = [&of_counter[..], &["clock.late", "cpu.id"]].concat();
        Watched::start(&cards, "timer", "timer:1kHz", &channels)
    };
    let mut watched = [
        timer,
        Watched::start(&cards, "message", "counter.eoc", &of_counter),
        Watched::start(&cards, "line", "edu.irq", &["edu.id", "edu.irq_status"]),
        Watched::start(
            &cards,
            "thread",
            "timer:100Hz",
            &["counter.run", "sim.slow"],
        ),
    ];
    let soft = Watched::start(&cards, "soft", "soft", &["counter.run"]);
    let raise = cards
        .engine
        .run(&steps("timer:100Hz", None, &[("edu.raise", 1)], &[]));
    raise.start().expect("to start");
    for round in 0..=ROUNDS {
        soft.run.trigger(3).expect("to trigger");
        for run in &mut watched {
            run.until_rows(ROWS);
            run.read();
        }
        if round < ROUNDS {
            let slept = suspend::to_ram();
            let missed = watched.each_ref().map(Watched::missed);
            println!("{round}: away for {slept:.2?}; missed {missed:?}");
        }
    }
    raise.stop().expect("to stop");
    let soft = soft.settle();
    assert_eq!(soft.0.rows.len() as u64, soft.1.triggers);
    let [timer, message, line, thread] = watched.map(Watched::settle);
    for (_, end) in [&timer, &thread] {
        assert!(end.missed_by[SUSPENDED] >= ROUNDS as u64, "{end:?}");
    }
    for (_, end) in [&message, &line] {
        assert_eq!(end.missed_by[SUSPENDED], 0, "nobody can count them");
    }
    for row in timer.0.rows.iter().chain(&message.0.rows) {
        assert_eq!(row.values[..3], [ID, PERIOD, 1], "{row:?}");
    }
    // The grid has not moved, nor has the run.
    let due = |row: &Kept| row.time - row.values[3] - row.trigger * PERIOD;
    let first = due(&timer.0.rows[0]);
    assert!(timer.0.rows.iter().all(|row| due(row) == first));
    assert!(timer.0.column(4).all(|cpu| cpu == processor as u64));
}
