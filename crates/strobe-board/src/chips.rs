// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is different in the board file of a chip on a bus: [match], [chip], and the numbers and pages of registers.

use std::cell::RefCell;
use std::ops::Range;

use super::chip::{Chip, DUMMY_MAX, Wire};
use super::fault::hint;
use super::resolve::Registers;
use super::table::Table;
use super::{Access, Block, Hardware};

fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn i2c(text: &str) -> Option<Wire> {
    let (bus, address) = text.split_once('-')?;
    let plain = address.len() == 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = u16::from_str_radix(address, 16).ok().filter(|_| plain)?;
    let bus = number(bus)?;
    (0x03..=0x77)
        .contains(&address)
        .then_some(Wire::I2c { bus, address })
}

fn spi(text: &str) -> Option<Wire> {
    let (bus, select) = text.split_once('.')?;
    Some(Wire::Spi {
        bus: number(bus)?,
        select: number(select)?,
    })
}

/// The chip that [match] means.
pub(super) fn hardware(mut table: Table<'_>, is_spi: bool) -> Option<Hardware> {
    let (key, other) = match is_spi {
        true => ("spi", "i2c"),
        false => ("i2c", "spi"),
    };
    table.forbid(
        other,
        "`i2c` and `spi` name two devices; keep the one that the chip is on",
    );
    let (text, at) = table.string(key)?;
    let wire = match is_spi {
        true => spi(text),
        false => i2c(text),
    };
    if wire.is_none() {
        let example = match is_spi {
            true => "bus and chip select, such as \"0.0\" for /dev/spidev0.0",
            false => {
                "bus and address, such as \"1-0048\" for address 0x48 of /dev/i2c-1; chips have 0x03 to 0x77"
            }
        };
        table.fault_at(
            &at,
            format!("`{key}` is \"{}\"; write {example}", text.escape_debug()),
        );
    }
    table.finish();
    wire.map(Hardware::Chip)
}

/// Notes what a chip cannot have.
pub(super) fn forbid(root: &mut Table<'_>) {
    for (key, why) in [
        ("bar", "a chip has no BARs; leave out [bar.N]"),
        (
            "interrupt",
            "the interrupt of a chip is a GPIO line; leave out [interrupt], and record on gpio:CHIP/LINE:rising",
        ),
        (
            "event",
            "the interrupt of a chip is a GPIO line; leave out [event.NAME], and record on gpio:CHIP/LINE:rising",
        ),
    ] {
        root.forbid(key, why);
    }
}

/// What the table [chip] says.
pub(super) struct Said {
    chip: Chip,
    is_spi: bool,
    /// The name of the register that selects a page, and where it stands.
    page: Option<(String, Range<usize>)>,
    /// Where the table is, or that which it belongs to.
    at: Range<usize>,
    /// The pages of registers: where, whose, which.
    pages: RefCell<Vec<(Range<usize>, String, u64)>>,
}

/// Reads the table [chip]; `at` is where it is missing.
pub(super) fn said(root: &mut Table<'_>, is_spi: bool, at: Range<usize>) -> Said {
    let mut said = Said {
        chip: Chip {
            number: 1,
            read: 0,
            write: 0,
            dummy: 0,
            speed: 1_000_000,
            mode: 0,
            page: None,
        },
        is_spi,
        page: None,
        at,
        pages: RefCell::default(),
    };
    let Some(mut table) = root.table("chip") else {
        return said;
    };
    said.at = table.at.clone();
    let chip = &mut said.chip;
    match table.integer("register_bits", 0..=16) {
        Some((bits @ (0 | 8 | 16), _)) => chip.number = bits as u8 / 8,
        Some((bits, at)) => table.fault_at(
            &at,
            format!("`register_bits` is {bits}; it must be 8 or 16, or 0 for a chip without register numbers"),
        ),
        None => {}
    }
    let has_numbers = chip.number > 0;
    if is_spi {
        let most = match chip.number {
            0 => 0,
            1 => 0xff,
            _ => 0xffff,
        };
        let mut number = |key, most, usual: u64| {
            let number = table.integer(key, 0..=most);
            number.map_or(usual, |(number, _)| number)
        };
        chip.read = number("read", most, 0) as u16;
        chip.write = number("write", most, 0) as u16;
        chip.dummy = number("dummy", DUMMY_MAX, 0) as u8;
        chip.mode = number("mode", 3, 0) as u8;
        if let Some((speed, _)) = table.integer("speed", 1000..=100_000_000) {
            chip.speed = speed as u32;
        }
    } else {
        for key in ["read", "write", "dummy", "mode", "speed"] {
            table.forbid(key, &format!("only SPI has `{key}`; leave it out"));
        }
    }
    if let Some((name, at)) = table.string("page") {
        if !has_numbers {
            table.fault_at(
                &at,
                "a chip without register numbers has one page; leave `page` out",
            );
        }
        said.page = Some((name.to_owned(), at));
    }
    table.finish();
    said
}

/// Where a register is, by its table.
pub(super) fn register(table: &mut Table<'_>, said: &Said) -> Option<Block> {
    for key in ["bar", "map"] {
        table.forbid(key, &format!("a chip is one block; leave `{key}` out"));
    }
    if said.page.is_none() {
        table.forbid(
            "page",
            "no register selects a page; add page = \"NAME\" to [chip], or leave `page` out",
        );
        return Some(Block::Chip(None));
    }
    let page = table.integer("page", 0..=u32::MAX.into());
    let Some((page, at)) = page else {
        return (!table.has("page")).then_some(Block::Chip(None));
    };
    let mut pages = said.pages.borrow_mut();
    pages.push((at, table.object.clone(), page));
    Some(Block::Chip(Some(page as u32)))
}

/// Notes what is wrong with the number of a register.
pub(super) fn check_number(table: &Table<'_>, said: &Said, offset: u64, at: &Range<usize>) {
    let (chip, bits) = (&said.chip, 8 * u32::from(said.chip.number));
    if offset >> bits != 0 {
        let remedy = match bits {
            0 => "write 0, or correct `register_bits` of [chip]",
            _ => "correct it, or `register_bits` of [chip]",
        };
        table.fault_at(
            at,
            format!(
                "offset 0x{offset:x} has more than {bits} bits, and so many are sent; {remedy}"
            ),
        );
    }
    for (key, added) in [("read", chip.read), ("write", chip.write)] {
        if offset & u64::from(added) != 0 {
            table.fault_at(
                at,
                format!("offset 0x{offset:x} has bits of `{key}` of [chip]; correct one of them"),
            );
        }
    }
}

/// The chip, all its registers being known; what is wrong with its pages is noted.
pub(super) fn chip(root: &Table<'_>, said: &Said, registers: &Registers<'_>) -> Option<Chip> {
    let mut chip = said.chip;
    let list = &registers.list;
    let fault = |at: &Range<usize>, message: String| root.fault_of(at, "[chip]", message);
    let ways = [Access::reads, Access::writes].map(|way| list.iter().any(|r| way(r.access)));
    if said.is_spi && chip.number > 0 && chip.read == chip.write && ways == [true; 2] {
        fault(
            &said.at,
            "the chip cannot tell reading from writing; add `read` or `write`, such as read = 0x80, the bits that its \
             manual adds to a register's number, or give all registers access = \"ro\""
                .to_owned(),
        );
    }
    let Some((name, at)) = &said.page else {
        return Some(chip);
    };
    let known = list.iter().position(|register| register.name == *name);
    let Some(register) = known.and_then(|index| list.get(index)) else {
        if !registers.has(name) {
            let hint = hint(name, list.iter().map(|register| register.name.as_str()));
            fault(
                at,
                format!(
                    "there is no register `{name}`; add [register.{name}], or name another: {hint}"
                ),
            );
        }
        return None;
    };
    if !register.access.writes() {
        fault(
            at,
            format!(
                "register {name} is read-only, and has to select pages; choose another, or give it access = \"rw\""
            ),
        );
    }
    if register.block != Block::Chip(None) {
        fault(
            at,
            format!(
                "register {name} selects pages, so it must be in all of them; leave its `page` out"
            ),
        );
    }
    for (at, object, page) in said.pages.borrow().iter() {
        if *page > register.all_ones() {
            root.fault_of(
                at,
                object,
                format!(
                    "page 0x{page:x} does not fit register {name}, which has {} bits; correct it, or the `width` of {name}",
                    register.bits()
                ),
            );
        }
    }
    chip.page = known;
    Some(chip)
}
