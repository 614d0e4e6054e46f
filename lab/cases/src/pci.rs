// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cards of the guest, their drivers, and the lab's own cards through the outputs and channels of either engine.

use std::fs;
use std::path::{Path, PathBuf};

use strobe::engine::user::{Settings, User};
use strobe::plan::{Plan, Step};
use strobe::run::OwnedRun;
use strobe_board::{Board, Hardware, Policy, System};

use crate::{Engine, Kernel, plan};

/// Cards with this device id, in the order of their addresses.
pub fn cards(device: u16) -> Vec<PathBuf> {
    let id = format!("{device:#06x}");
    let devices = fs::read_dir("/sys/bus/pci/devices").expect("a PCI bus");
    let mut paths: Vec<PathBuf> = devices.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        fs::read_to_string(path.join("device")).is_ok_and(|found| found.trim() == id)
    });
    paths.sort();
    paths
}

/// A card that a driver was given; it goes back to none at the end.
pub struct Bound(PathBuf);

impl Bound {
    /// Gives it to the driver.
    pub fn to(driver: &str, card: &Path) -> Bound {
        fs::write(card.join("driver_override"), driver).expect("to choose a driver");
        let address = card.file_name().and_then(|name| name.to_str());
        fs::write("/sys/bus/pci/drivers_probe", address.expect("an address")).expect("to probe");
        let bound = card.join("driver").canonicalize().expect("a driver");
        assert!(bound.ends_with(driver), "{bound:?}");
        Bound(card.to_owned())
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let name = self.0.file_name().unwrap_or_default();
        let _ = fs::write(self.0.join("driver/unbind"), &*name.to_string_lossy());
        let _ = fs::write(self.0.join("driver_override"), "\n");
    }
}

/// An engine that has the cards of some boards of /boards, as long as this lives.
pub struct Fitted<E> {
    /// The engine.
    pub engine: E,
    _cards: Vec<Bound>,
}

/// All cards of these boards, each a name in /boards.
fn fitted(driver: &str, boards: &[&str], mut each: impl FnMut(Board, &str)) -> Vec<Bound> {
    let mut bound = Vec::new();
    for name in boards {
        let file = format!("/boards/{name}.toml");
        let text = fs::read_to_string(&file).expect("a board file");
        let board = Board::from_toml(&file, &text).expect("a good board");
        let Hardware::Pci { device, .. } = board.hardware else {
            panic!("{name} is no PCI card");
        };
        each(board, &text);
        let cards = cards(device);
        assert!(!cards.is_empty(), "no card for {name}");
        bound.extend(cards.iter().map(|card| Bound::to(driver, card)));
    }
    bound
}

/// The kernel engine, with these boards.
pub fn kernel(boards: &[&str]) -> Fitted<Kernel> {
    let cards = fitted("strobe_board", boards, |board, text| {
        System::default()
            .install(&board, text, Policy::FilesOnly)
            .expect("to install it");
    });
    Fitted {
        engine: Kernel::open(),
        _cards: cards,
    }
}

/// The user engine, with these boards.
pub fn user(boards: &[&str]) -> Fitted<crate::User> {
    user_of(User::new(Settings::default()), boards)
}

/// This user engine, with these boards.
pub fn user_of(engine: User, boards: &[&str]) -> Fitted<crate::User> {
    let mut engine = Some(engine);
    let cards = fitted("uio_pci_generic", boards, |board, _| {
        engine = engine.take().map(|engine| engine.with_board(board));
    });
    Fitted {
        engine: crate::User(engine.expect("an engine")),
        _cards: cards,
    }
}

/// Each sentence about these boards, for both engines.
#[macro_export]
macro_rules! both {
    ($boards:ident: $($sentence:ident,)*) => {
        mod kernel {
            $(#[test]
            fn $sentence() {
                super::$sentence(&$crate::pci::kernel(&super::$boards).engine);
            })*
        }
        mod user {
            $(#[test]
            fn $sentence() {
                super::$sentence(&$crate::pci::user(&super::$boards).engine);
            })*
        }
    };
}

/// A lab card's own count of a source's interrupts, and those of them that it merged.
pub fn counted(engine: &impl Engine, card: &str, source: &str) -> (u64, u64) {
    let names = ["raised", "coalesced"].map(|what| format!("{card}.{source}_{what}"));
    let row = once(engine, &[], &[&names[0], &names[1]]);
    (row[0], row[1])
}

/// Writes an output as a step.
pub fn set(output: &str, value: u64) -> Step {
    Step::Write {
        output: output.into(),
        value,
    }
}

/// Does these steps, and answers the one row that they make.
pub fn once(engine: &impl Engine, writes: &[(&str, u64)], channels: &[&str]) -> Vec<u64> {
    row(&engine.run(&steps("soft", None, writes, channels)))
}

/// Triggers a run on `soft` once, and answers the row.
pub fn row(run: &dyn OwnedRun) -> Vec<u64> {
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    run.trigger(1).expect("to trigger");
    let mut buffer = vec![0; reader.ring().row_words()];
    let batch = reader.read(&mut buffer);
    let row = batch.rows().next().expect("a row");
    assert!(row.faults.is_empty(), "{row:?}");
    row.values.to_vec()
}

/// Writes outputs.
pub fn put(engine: &impl Engine, writes: &[(&str, u64)]) {
    once(engine, writes, &[]);
}

/// Reads one channel.
pub fn get(engine: &impl Engine, channel: &str) -> u64 {
    once(engine, &[], &[channel])[0]
}

/// A plan whose rows begin with writes.
pub fn steps(event: &str, limit: Option<u64>, writes: &[(&str, u64)], channels: &[&str]) -> Plan {
    let mut plan = plan(event, channels);
    plan.limit = limit;
    let writes = writes.iter().map(|(output, value)| set(output, *value));
    plan.steps.splice(0..0, writes);
    plan
}
