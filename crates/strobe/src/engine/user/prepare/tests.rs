// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is opened, and when.

use std::io;
use std::sync::Mutex;

use strobe_board::Board;
use strobe_hw::uio::fake::Fake;

use super::*;
use crate::catalogue::Catalogue;
use crate::channel::Type;
use crate::engine::user::cards::Cards;
use crate::engine::user::provider::{ReadChannel, Row, WriteOutput};
use crate::engine::user::settings::Settings;
use crate::engine::user::soft::Soft;
use crate::event::EventSpec;
use crate::samples::channel;

/// Hardware that remembers what was opened.
#[derive(Default)]
struct Hardware(Mutex<Vec<&'static str>>);

impl Hardware {
    fn opens(&self, what: &'static str) {
        self.0.lock().expect("a list").push(what);
    }

    fn opened(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().expect("a list"))
    }
}

struct Pin;

impl ReadChannel for Pin {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(1)
    }
}

impl WriteOutput for Pin {
    fn write(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

impl Provider for Hardware {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        (name == "pin.level").then(|| {
            Ok(ChannelOpener::new(channel(name, Type::U64), || {
                self.opens("channel");
                Ok(Box::new(Pin))
            }))
        })
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        (name == "pin.drive").then(|| {
            Ok(OutputOpener::new(channel(name, Type::U64), || {
                self.opens("output");
                Ok(Box::new(Pin))
            }))
        })
    }

    fn event(&self, event: &EventSpec, _: &Settings) -> Option<Result<EventOpener<'_>, Error>> {
        (event.to_string() == "pin.edge").then(|| {
            Ok(EventOpener::new(Cadence::default(), || {
                self.opens("event");
                Ok(Box::new(Soft))
            }))
        })
    }
}

fn plan(steps: &[&str]) -> Plan {
    let mut plan = Plan::new("pin.edge".parse().expect("an event"));
    let drive = Step::Write {
        output: "pin.drive".into(),
        value: 1,
    };
    let reads = steps.iter().map(|name| Step::Read((*name).into()));
    plan.steps = std::iter::once(drive).chain(reads).collect();
    plan
}

#[test]
fn a_dry_run_opens_nothing() {
    let hardware = Arc::new(Hardware::default());
    let engine = User::default().with(Arc::clone(&hardware) as Arc<dyn Provider>);
    let dry = engine.dry_run(&plan(&["pin.level"])).expect("a dry run");
    assert_eq!(dry.channels.len(), 1);
    assert!(hardware.opened().is_empty());
}

#[test]
fn a_plan_of_which_a_later_part_is_wrong_opens_nothing() {
    let hardware = Arc::new(Hardware::default());
    let engine = User::default().with(Arc::clone(&hardware) as Arc<dyn Provider>);
    for steps in [&["pin.level", "no.such"][..], &["clock.late"]] {
        assert!(engine.create(&plan(steps)).is_err());
        assert!(hardware.opened().is_empty(), "{steps:?}");
    }
    let mut huge = plan(&["pin.level"]);
    huge.ring = Some(1 << 40);
    assert!(engine.create(&huge).is_err());
    assert!(hardware.opened().is_empty(), "no memory for its ring");
}

#[test]
fn a_run_opens_its_event_and_then_its_steps_in_their_order() {
    let hardware = Arc::new(Hardware::default());
    let engine = User::default().with(Arc::clone(&hardware) as Arc<dyn Provider>);
    let _run = engine.create(&plan(&["pin.level"])).expect("a run");
    assert_eq!(hardware.opened(), ["event", "output", "channel"]);
}

/// More than there are places for mapped blocks in a process.
const REGISTERS: u32 = 512;

#[test]
fn a_row_may_have_many_more_registers_of_a_card_than_a_process_may_map_blocks() {
    use std::fmt::Write;

    let fake = Fake::new();
    let _ = fake.device_of_pages(0, "fpga", 1);
    fake.map(0, 0, "", 0, 0x1000, 0);
    let (mut registers, mut channels) = (String::new(), String::new());
    for number in 0..REGISTERS {
        writeln!(registers, "r{number} = {{ offset = {} }}", 4 * number).expect("text");
        writeln!(channels, "r{number} = {{}}").expect("text");
    }
    let text = format!(
        "[board]\nname = \"core\"\n[match]\nuio = \"fpga\"\n[register]\n{registers}[channel]\n{channels}"
    );
    let board = Board::from_toml("core.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let engine = User::default().with(Arc::new(Cards::in_roots(board, fake.roots.clone())));
    let mut plan = Plan::new("soft".parse().expect("an event"));
    let names = (0..REGISTERS).map(|number| Step::Read(format!("core.r{number}")));
    plan.steps = names.collect();
    let run = engine.create(&plan).map_err(|error| error.to_string());
    assert!(run.is_ok(), "{:?}", run.err());
}
