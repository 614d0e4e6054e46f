// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line that a card of strobe shares with the card of another driver, whichever comes first. On PREEMPT_RT the other's
//! handler is a thread, and the line is masked until that is done: to that all who share it have to agree.
// lab: --device edu,addr=0x05 --module uio_pci_generic

use std::fs;
use std::path::Path;

use strobe::engine::kernel::KernelRun;
use strobe::run::OwnedRun;
use strobe::uio::Device;
use strobe_board::{Board, Policy, System};
use strobe_cases::account::{begin, until};
use strobe_cases::machine::patience;
use strobe_cases::pci::{Bound, steps};
use strobe_cases::uio::{self, Edu};
use strobe_cases::{Engine, Kernel, plan};

const BOARD: &str = "/boards/edu-intx.toml";
/// In slots that share a line.
const OURS: &str = "0000:00:01.0";
const OTHERS: &str = "0000:00:05.0";

/// The card of strobe: installed, and bound, until this is dropped.
struct Ours {
    engine: Kernel,
    board: Board,
    _card: Bound,
}

impl Ours {
    fn new() -> Ours {
        let toml = fs::read_to_string(BOARD).expect(BOARD);
        let board = Board::from_toml(BOARD, &toml).expect("a good board");
        System::default()
            .install(&board, &toml, Policy::FilesOnly)
            .expect("to install");
        let card = Path::new("/sys/bus/pci/devices").join(OURS);
        Ours {
            engine: Kernel::open(),
            board,
            _card: Bound::to("strobe_board", &card),
        }
    }

    /// A run on the card's interrupt, started.
    fn listen(&self) -> KernelRun {
        let run = self.engine.run(&plan("edu.irq", &["edu.irq_status"]));
        run.start().expect("to start");
        run
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = System::default().remove(&self.board.hardware);
    }
}

/// The other card, and the file of its driver: whoever opens it is told of its interrupts.
struct Others(Edu, Device);

impl Others {
    fn new() -> Others {
        let edu = Edu::bind(OTHERS);
        let device = uio::open(&edu.node());
        device.enable().expect("to enable");
        Others(edu, device)
    }

    /// Raises its interrupt, and waits until it has come.
    fn raise(&mut self) {
        self.0.raise(1);
        let interrupt = self.1.wait_timeout(patience(60)).expect("to wait");
        assert!(interrupt.is_some(), "the other driver has had none");
        self.0.ack(1);
        self.1.enable().expect("to enable");
    }
}

fn each_gets_its_own(ours: &Ours, run: &KernelRun, others: &mut Others) {
    const TIMES: u64 = 50;
    let lines = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    let shared = |line: &str| line.contains("strobe:") && line.contains("uio_pci_generic");
    assert!(lines.lines().any(shared), "not one line:\n{lines}");
    let (reader, _) = begin(run);
    let before = reader.snapshot().triggers;
    let raise = ours
        .engine
        .run(&steps("soft", None, &[("edu.raise", 1)], &[]));
    raise.start().expect("to start");
    for number in 1..=TIMES {
        raise.trigger(1).expect("to trigger");
        until("our interrupt", || {
            reader.snapshot().triggers >= before + number
        });
        others.raise();
    }
    assert_eq!(reader.snapshot().triggers, before + TIMES);
}

#[test]
fn a_driver_that_comes_to_the_line_during_a_run_is_let_in() {
    let ours = Ours::new();
    let run = ours.listen();
    let mut others = Others::new();
    each_gets_its_own(&ours, &run, &mut others);
    run.stop().expect("to stop");
    others.raise();
}

#[test]
fn a_run_that_starts_on_the_line_of_another_driver_is_let_in() {
    let ours = Ours::new();
    let mut others = Others::new();
    let run = ours.listen();
    each_gets_its_own(&ours, &run, &mut others);
    drop(others);
    run.stop().expect("to stop");
}

/// Whether a card asserts its line; the command register decides if that gets through.
fn asserts(card: &str) -> bool {
    let config = Path::new("/sys/bus/pci/devices").join(card).join("config");
    let bytes = fs::read(config).expect("its configuration");
    bytes[6] & 8 != 0
}

/// The kernel lets the line through when the next driver enables the card, and that has no handler yet: nobody would care, and
/// the line would be switched off for all its cards.
#[test]
fn a_card_that_is_given_back_does_not_assert_the_line() {
    let ours = Ours::new();
    let raise = &steps("soft", None, &[("edu.raise", 1)], &[]);
    let raise = ours.engine.run(raise);
    raise.start().expect("to start");
    raise.trigger(1).expect("to trigger");
    assert!(asserts(OURS), "nobody listens");
    drop((raise, ours));
    assert!(!asserts(OURS));
}
