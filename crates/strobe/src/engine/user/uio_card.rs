// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that a UIO driver has: registers in the maps that the driver exports, and its interrupt. What the
//! maps have, sysfs says, and not the board file.

use std::sync::Arc;

use strobe_board::{Block, Board, Register as BoardRegister, outside};
use strobe_hw::uio::{Map, MappedMemory, Roots, Uio};

use super::card::Place;
use super::presence::{Kind, Presence};

/// A device.
struct UioCard(Uio);

/// The devices of this name, in the order of their numbers.
pub(super) fn find(roots: &Roots, name: &str, version: Option<&str>) -> Vec<Box<dyn Place>> {
    let mut all = Uio::list_in(roots).unwrap_or_default();
    all.retain(|uio| uio.name == name && version.is_none_or(|version| uio.version == version));
    let place = |uio| Box::new(UioCard(uio)) as Box<dyn Place>;
    all.into_iter().map(place).collect()
}

impl UioCard {
    fn map_of(&self, block: &Block) -> Option<&Map> {
        self.0.maps.iter().find(|map| match block {
            Block::Map(number) => map.number == *number,
            Block::NamedMap(name) => map.name == *name,
            Block::Bar(_) | Block::Frame | Block::Chip(_) => false,
        })
    }

    /// Its maps, for people.
    fn maps(&self) -> String {
        let one = |map: &Map| match map.name.as_str() {
            "" => map.number.to_string(),
            name => format!("{} ({name})", map.number),
        };
        let maps: Vec<String> = self.0.maps.iter().map(one).collect();
        match maps.as_slice() {
            [] => "it has no maps; a PCI card is matched by its ids".to_owned(),
            maps => format!("it has {}", maps.join(", ")),
        }
    }
}

impl Place for UioCard {
    fn check(&self, board: &Board, register: &BoardRegister, _: bool) -> Result<(), String> {
        let (block, offset) = (&register.block, u64::from(register.offset));
        let wrong = |what: String| Err(format!("{}:{}: {what}", board.file, register.line));
        let Some(map) = self.map_of(block) else {
            let maps = self.maps();
            return wrong(format!("{} has no {block}; {maps}; correct `map`", self.0));
        };
        let bytes = map.size.saturating_sub(map.offset);
        if offset + u64::from(register.width) > bytes {
            return wrong(format!(
                "{block} of {} has 0x{bytes:x} bytes, and {} lies outside; correct the offset or `map`",
                self.0,
                outside(offset, bytes)
            ));
        }
        if (map.offset + offset) % u64::from(register.width.max(1)) != 0 {
            return wrong(format!(
                "{block} of {} begins at 0x{:x}, so the register is not aligned; correct `width`",
                self.0, map.offset
            ));
        }
        Ok(())
    }

    fn map(&self, block: &Block, writable: bool) -> Result<MappedMemory, String> {
        let Some(map) = self.map_of(block) else {
            return Err(format!("{} has no {block}", self.0));
        };
        let memory = self.0.map(map.number, writable);
        memory.map_err(|error| error.to_string())
    }

    fn presence(&self) -> Result<Arc<Presence>, String> {
        let presence = Presence::of(&self.0.class(), Kind::Uio);
        presence.map_err(|error| format!("UIO device {} cannot be watched: {error}", self.0))
    }

    fn uio(&self) -> Result<Uio, String> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::cards::Cards;
    use super::super::provider::{Opener, Provider, Row};
    use super::super::settings::{Settings, WaitMode};
    use crate::catalogue::Catalogue;
    use crate::clock::RunClock;
    use crate::engine::user::trigger::{Trigger, WaitOutcome};
    use crate::info::Clock;
    use strobe_board::Board;
    use strobe_hw::uio::fake::Fake;
    use strobe_hw::wakeup::wakeup;

    const ROW: Row = Row {
        time: 0,
        start: 0,
        trigger: Trigger::PLAIN,
    };

    const TEXT: &str = r#"
[board]
name = "core"
[match]
uio = "fpga"
[register]
first = { offset = 0x10 }
named = { map = "regs", offset = 0x20 }
status = { map = 2, offset = 0x24 }
control = { map = 2, offset = 0x28, access = "wo" }
outside = { map = 2, offset = 0x1000 }
end = { map = 2, offset = 0xfb8, width = 64 }
nowhere = { map = 7, offset = 0 }
[channel]
first = {}
named = {}
outside = {}
end = { register = "nowhere" }
[output]
control = {}
[event.done]
pending = { register = "status", mask = 0xff }
silence = [{ register = "control", write = "pending" }]
enable = [{ register = "control", write = 0xe }]
disable = [{ register = "control", write = 0xd }]
"#;

    fn cards(fake: &Fake, text: &str) -> Cards {
        let board = Board::from_toml("core.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        Cards::in_roots(board, fake.roots.clone())
    }

    /// Devices 0 and 3 of the name, with maps of a page each at pages 0 and 2.
    fn fake() -> Fake {
        let fake = Fake::new();
        for number in [0, 3] {
            let _ = fake.device_of_pages(number, "fpga", 3);
            fake.map(number, 0, "", 0, 0x1000, 0);
            fake.map(number, 2, "regs", 0x40, 0x1000, 0x40);
        }
        let _ = fake.device_of_pages(1, "other", 1);
        fake
    }

    fn value(cards: &Cards, name: &str) -> Result<u64, String> {
        let found = cards.channel(name).expect("of this board");
        let opened = found.and_then(Opener::open);
        let mut reader = opened.map_err(|error| error.to_string())?;
        reader.read(&ROW).map_err(|error| error.to_string())
    }

    #[test]
    fn a_register_lies_in_the_map_that_sysfs_describes() {
        let fake = fake();
        let cards = cards(&fake, TEXT);
        assert_eq!(value(&cards, "core.first"), Ok(0x10));
        let in_map = 2 << 16 | (0x40 + 0x20);
        assert_eq!(
            value(&cards, "core.named"),
            Ok(in_map),
            "page 2, offset 0x40"
        );
        assert_eq!(value(&cards, "core2.named"), Ok(in_map));
        assert!(cards.channel("core3.named").is_none());
        let mut catalogue = Catalogue::default();
        cards.list(&mut catalogue);
        let devices: Vec<&str> = catalogue.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(devices, ["core", "core2"]);
        let events: Vec<&str> = catalogue.events.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(events, ["core.done", "core2.done"]);
        assert_eq!(catalogue.channels.len(), 8);
    }

    #[test]
    fn what_a_map_has_not_is_said_with_the_line_and_what_there_is() {
        let fake = fake();
        let cards = cards(&fake, TEXT);
        assert_eq!(
            value(&cards, "core.outside"),
            Err(
                "channel core.outside: core.toml:11: map 2 of fpga (uio0) has 0xfc0 bytes, and offset 0x1000 lies outside; \
                 correct the offset or `map`"
                    .to_owned()
            )
        );
        assert_eq!(
            value(&cards, "core2.end"),
            Err(
                "channel core2.end: core.toml:13: fpga (uio3) has no map 7; it has 0, 2 (regs); correct `map`"
                    .to_owned()
            )
        );
        let text = TEXT.replace("register = \"nowhere\"", "register = \"end\"");
        let last = 2_u64 << 16 | 0xff8 | (2 << 16 | 0xffc) << 32;
        assert_eq!(value(&self::cards(&fake, &text), "core.end"), Ok(last));
        fake.map(0, 2, "regs", 0x40, 0x1000, 0x44);
        let error = value(&self::cards(&fake, &text), "core.end").expect_err("4 bytes too few");
        assert!(
            error.contains("the end of offset 0xfb8 lies outside"),
            "{error}"
        );
    }

    #[test]
    fn another_version_is_another_device() {
        let fake = fake();
        fake.attribute(0, "version", "2.0");
        let text = TEXT.replace("\"fpga\"", "\"fpga\"\nversion = \"2.0\"");
        let cards = cards(&fake, &text);
        assert!(cards.channel("core.first").is_some());
        assert!(cards.channel("core2.first").is_none());
        fake.attribute(0, "version", "3.0");
        assert!(cards.channel("core.first").is_none());
    }

    #[test]
    fn pending_bits_make_a_trigger_and_the_writes_go_to_the_maps() {
        let fake = fake();
        let cards = cards(&fake, TEXT);
        let settings = Settings {
            wait: WaitMode::Spin,
            ..Settings::default()
        };
        let event = "core.done".parse().expect("an event");
        let source = cards.event(&event, &settings).expect("of this board");
        let mut source = source.and_then(Opener::open).expect("a source");
        let control = || {
            let bytes = std::fs::read(fake.roots.dev.join("uio0")).expect("its pages");
            let at = 2 * rustix::param::page_size() + 0x40 + 0x28;
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        // What the word has of the event: its place, 0x64.
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        source.begin(&clock, 0).expect("to begin");
        assert_eq!(control(), 0xe, "enabled, after what was before is silenced");
        let output = cards.output("core.control").expect("of this board");
        let mut output = output.and_then(Opener::open).expect("an output");
        output.write(7).expect("to write");
        assert_eq!(control(), 7);
        let woken = source.wait(&clock, &mut wakeup).expect("to wait");
        assert!(matches!(woken, WaitOutcome::Trigger(trigger) if trigger.count == 1));
        source.done().expect("to acknowledge");
        assert_eq!(control(), 0x64);
        source.end();
        assert_eq!(control(), 0xd);
        // It goes: what sysfs says of it cannot be read any more.
        fake.attribute(0, "name", "");
        let patience = Instant::now() + Duration::from_secs(30);
        let error = loop {
            assert!(Instant::now() < patience, "it has gone unnoticed");
            match source.wait(&clock, &mut wakeup) {
                Ok(WaitOutcome::Trigger(_)) => {}
                Ok(other) => panic!("nobody has rung: {other:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::NODEV.raw_os_error())
        );
        assert!(output.write(7).is_err());
    }

    #[test]
    fn an_interrupt_is_counted_by_the_device_of_the_board() {
        let fake = Fake::new();
        let mut node = fake.device(0, "fpga", 40);
        let cards = cards(
            &fake,
            "[board]\nname = \"core\"\n[match]\nuio = \"fpga\"\n[event.done]\n",
        );
        let event = "core.done".parse().expect("an event");
        let source = cards
            .event(&event, &Settings::default())
            .expect("of this board");
        let mut source = source.and_then(Opener::open).expect("a source");
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        source.begin(&clock, 0).expect("to begin");
        assert_eq!(node.written(), 1, "enabled");
        node.interrupt(43);
        let woken = source.wait(&clock, &mut wakeup).expect("to wait");
        let WaitOutcome::Trigger(trigger) = woken else {
            panic!("nobody has rung");
        };
        assert_eq!((trigger.count, trigger.missed), (43, 2));
        source.done().expect("to enable it again");
        assert_eq!(node.written(), 1);
    }
}
