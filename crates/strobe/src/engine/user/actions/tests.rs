// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a device whose register another value comes into between two of its channels.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::Errno;
use strobe_board::Board;
use strobe_hw::uio::fake::Fake;

use crate::catalogue::Catalogue;
use crate::channel::{Channel, Class, Type};
use crate::clock::RunClock;
use crate::engine::user::User;
use crate::engine::user::cards::Cards;
use crate::engine::user::provider::{ChannelOpener, Provider, ReadChannel, Row};
use crate::engine::user::service::Action;
use crate::engine::user::trigger::Trigger;
use crate::error::Error;
use crate::plan::{Plan, Step};

/// Two registers at one place, and the same bytes in another width and in the other order.
const TEXT: &str = r#"
[board]
name = "core"
[match]
uio = "fpga"
[register]
word = { offset = 0x10 }
same = { offset = 0x10 }
anew = { offset = 0x10, reread = true }
big = { offset = 0x10, endian = "big" }
narrow = { offset = 0x10, width = 16 }
next = { offset = 0x14 }
[channel]
word = {}
low = { register = "word", bits = "15:0" }
high = { register = "word", bits = "31:16" }
signed = { register = "word", bits = "31:16", signed = true }
same = {}
anew = {}
big = {}
narrow = {}
next = {}
[output]
next = {}
"#;
const AT: u64 = 0x10;
/// What a channel has read.
type Value = Result<u64, Option<i32>>;

/// The word before the row, and what each step `test.change` adds to it.
const BEFORE: u32 = 0xfff0_0007;
const MORE: u32 = 0x0001_0001;

/// The device's memory, which a channel changes: `test.change`, or `test.pull`, after which all is ones.
#[derive(Clone)]
struct Changing {
    fake: Arc<Fake>,
    memory: Arc<File>,
}

impl Changing {
    fn new() -> Changing {
        let fake = Fake::new();
        let _ = fake.device_of_pages(0, "fpga", 1);
        fake.map(0, 0, "", 0, 0x1000, 0);
        let mut options = File::options();
        let memory = options
            .read(true)
            .write(true)
            .open(fake.roots.dev.join("uio0"));
        let changing = Changing {
            fake: Arc::new(fake),
            memory: Arc::new(memory.expect("its memory")),
        };
        changing.put(BEFORE);
        changing
    }

    fn put(&self, word: u32) {
        let bytes = word.to_ne_bytes();
        self.memory.write_all_at(&bytes, AT).expect("to write");
    }

    /// The engine with the device.
    fn engine(&self) -> User {
        let board = Board::from_toml("core.toml", TEXT).unwrap_or_else(|faults| panic!("{faults}"));
        let cards = Cards::in_roots(board, self.fake.roots.clone());
        User::default()
            .with(Arc::new(cards))
            .with(Arc::new(self.clone()))
    }

    /// The values of one row of these steps; `=` writes an output.
    fn row(&self, steps: &[&str]) -> Vec<Value> {
        self.rows(1, steps).remove(0)
    }

    fn rows(&self, count: usize, steps: &[&str]) -> Vec<Vec<Value>> {
        let mut plan = Plan::new("soft".parse().expect("an event"));
        let step = |name: &&str| match name.strip_prefix('=') {
            Some(output) => Step::Write {
                output: output.to_owned(),
                value: 1,
            },
            None => Step::Read((*name).to_owned()),
        };
        plan.steps = steps.iter().map(step).collect();
        let engine = self.engine();
        let providers = engine.providers(RunClock::new(plan.clock));
        let described = engine.describe(&plan, &providers).expect("a plan");
        let mut prepared = described.open().expect("a run");
        let row = Row {
            time: 0,
            start: 0,
            trigger: Trigger::PLAIN,
        };
        let mut one = |action: &mut Action| match action {
            Action::Ask(_) => None,
            Action::Read(channel) => Some(channel.read(&row).map_err(|error| error.raw_os_error())),
            Action::Write(output, word) => {
                output.write(*word).expect("to write");
                None
            }
        };
        let rows = (0..count).map(|_| prepared.actions.iter_mut().filter_map(&mut one).collect());
        rows.collect()
    }
}

impl Provider for Changing {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let is_pull = match name {
            "test.change" => false,
            "test.pull" => true,
            _ => return None,
        };
        let about = Channel {
            name: name.to_owned(),
            description: String::new(),
            unit: String::new(),
            kind: Type::U64,
            class: Class::Hard,
            scale: 1.0,
            offset: 0.0,
            bits: 64,
            cost_ns: 1,
            in_use: false,
        };
        let reader = Box::new(Change(self.clone(), is_pull));
        Some(Ok(ChannelOpener::ready(about, reader)))
    }
}

struct Change(Changing, bool);

impl ReadChannel for Change {
    fn read(&mut self, _: &Row) -> std::io::Result<u64> {
        let Change(changing, is_pull) = self;
        if *is_pull {
            changing.memory.write_all_at(&[0xff; 0x1000], 0)?;
            // What sysfs says of it cannot be read any more.
            std::fs::write(changing.fake.roots.class.join("uio0/name"), "")?;
            return Ok(0);
        }
        let mut bytes = [0; 4];
        changing.memory.read_exact_at(&mut bytes, AT)?;
        changing.put(u32::from_ne_bytes(bytes).wrapping_add(MORE));
        Ok(0)
    }
}

/// After so many changes.
fn word(changes: u32) -> Value {
    Ok(u64::from(BEFORE.wrapping_add(changes * MORE)))
}

fn low(changes: u32) -> Value {
    word(changes).map(|word| word & 0xffff)
}

fn high(changes: u32) -> Value {
    word(changes).map(|word| word >> 16)
}

const CHANGED: Value = Ok(0);
const GONE: Value = Err(Some(Errno::NODEV.raw_os_error()));

#[test]
fn fields_of_a_register_are_cut_from_one_access() {
    let row = Changing::new().row(&[
        "core.low",
        "test.change",
        "core.high",
        "core.signed",
        "test.change",
        "core.word",
        "core.same",
    ]);
    let signed = high(0).map(|value| value | !0xffff);
    assert_eq!(
        row,
        [low(0), CHANGED, high(0), signed, CHANGED, word(0), word(0)]
    );
}

#[test]
fn a_channel_that_stands_twice_is_read_twice() {
    let changing = Changing::new();
    let row = changing.row(&[
        "core.low",
        "test.change",
        "core.low",
        "test.change",
        "core.high",
        "core.high",
        "core.low",
    ]);
    // Those that stand once are of the first access, and the second `high` is of the second.
    let expected = [low(0), CHANGED, low(1), CHANGED, high(0), high(1), low(2)];
    assert_eq!(row, expected);
}

#[test]
fn after_a_write_a_register_is_read_again() {
    let changing = Changing::new();
    let row = changing.row(&[
        "core.low",
        "test.change",
        "=core.next",
        "core.high",
        "test.change",
        "core.word",
    ]);
    assert_eq!(row, [low(0), CHANGED, high(1), CHANGED, word(1)]);
}

#[test]
fn a_register_that_wants_it_is_read_for_each_channel() {
    let row = Changing::new().row(&["core.word", "test.change", "core.anew", "core.low"]);
    assert_eq!(row, [word(0), CHANGED, word(1), low(0)]);
}

#[test]
fn another_place_width_or_order_of_bytes_is_another_register() {
    let row = Changing::new().row(&[
        "core.word",
        "test.change",
        "core.big",
        "core.narrow",
        "core.next",
        "core.low",
    ]);
    let big = word(1).map(|word| u64::from((word as u32).swap_bytes()));
    assert_eq!(row, [word(0), CHANGED, big, low(1), Ok(0x14), low(0)]);
}

#[test]
fn each_row_reads_anew() {
    let rows = Changing::new().rows(3, &["core.low", "test.change", "core.high"]);
    let expected = [0, 1, 2].map(|changes| [low(changes), CHANGED, high(changes)]);
    assert_eq!(rows, expected);
}

#[test]
fn an_access_that_finds_the_device_gone_is_none_of_its_fields_values() {
    let row = Changing::new().row(&["core.low", "test.pull", "core.high", "core.next"]);
    // Who goes after an access has not been seen by it.
    assert_eq!(row, [low(0), CHANGED, high(0), GONE]);
    let row = Changing::new().row(&["test.pull", "core.low", "core.high", "core.word"]);
    assert_eq!(row, [CHANGED, GONE, GONE, GONE]);
}

#[test]
fn all_ones_of_a_device_that_is_there_are_a_value() {
    let changing = Changing::new();
    changing.put(u32::MAX);
    let row = changing.row(&["core.low", "core.high", "core.word"]);
    assert_eq!(row, [Ok(0xffff), Ok(0xffff), Ok(0xffff_ffff)]);
}
