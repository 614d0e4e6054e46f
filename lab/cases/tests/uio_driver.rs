// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver of examples/uio-driver: it makes a card silent and no more, on a line that it shares, and what it maps is
//! the card's own memory, each of it by a number of its own.
//!
//! Another card has two memories, of which the second is plain; the driver is told to take it.
// lab: --module uio_edu --device edu,addr=0x05 --device pci-testdev
// lab: --device ivshmem-plain,memdev=plain --qemu=-object --qemu=memory-backend-ram,id=plain,size=1M

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use strobe::engine::user::{Settings, User};
use strobe::map::Region;
use strobe::uio::{Device, Roots, Uio};
use strobe_board::Board;
use strobe_cases::machine::patience;
use strobe_cases::pci::{Bound, cards, once};

const EDU: u16 = 0x11e8;
const PLAIN: u16 = 0x1110;
const BYTES: u64 = 1 << 20;
const STATUS: u64 = 0x24;
const RAISE: u64 = 0x60;

/// Opens the UIO device of a card.
fn device(card: &Path) -> Device {
    let mut names = fs::read_dir(card.join("uio")).expect("a UIO device");
    let name = names.next().expect("one").expect("an entry").file_name();
    let uio = Uio::find(&name.to_string_lossy()).expect("a device");
    uio.open().expect("to open it")
}

#[test]
fn each_interrupt_is_counted_and_the_handler_has_made_the_card_silent() {
    const RAISED: u32 = 1000;
    let mut device = device(&cards(EDU)[0]);
    let registers = device.map(0).expect("its registers");
    let register = |offset| registers.register(offset, 4).expect("a register");
    assert_eq!(register(0).read(), 0x0100_00ed);
    let before = device.about().read_events().expect("a count");
    for _ in 0..RAISED {
        register(RAISE).write(1);
        let got = device.wait_timeout(patience(30)).expect("to wait");
        assert_eq!(got.expect("an interrupt").missed, 0);
        assert_eq!(register(STATUS).read(), 0);
    }
    let after = device.about().read_events().expect("a count");
    assert_eq!(after - before, RAISED);
    let more = device.wait_timeout(Duration::from_millis(10));
    assert_eq!(more.expect("to wait"), None);
}

/// `strobe uio` with these words.
fn uio(words: &[&str]) -> Output {
    let done = Command::new("strobe").arg("uio").args(words).output();
    done.expect("strobe runs")
}

#[test]
fn a_register_is_read_and_written_from_the_command_line() {
    let device = device(&cards(EDU)[0]);
    let node = device.about().node();
    let read = |place: &str| {
        let done = uio(&["read", &node, place]);
        let said = if done.status.success() {
            done.stdout
        } else {
            done.stderr
        };
        String::from_utf8(said).expect("text").trim_end().to_owned()
    };
    assert_eq!(read("map0+0"), "0x010000ed");
    // The card answers what is written there with all its bits turned.
    let done = uio(&["write", &node, "map0+0x4", "0x12345678"]);
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    assert_eq!(read("map0+0x4:32"), "0xedcba987");
    for (place, said) in [
        ("map7+0", "no map 7; it has 0"),
        ("map0+2", "no register map0+0x2:32"),
        ("map0+0x10000000", "no register"),
        ("port0+0", "no ports 0; it has none"),
        ("0x10", "write map0+0x10"),
    ] {
        assert!(read(place).contains(said), "{place}: {}", read(place));
    }
    let done = uio(&["write", &node, "map0+4:8", "256"]);
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("does not fit into 8 bits"),
        "{done:?}"
    );
}

#[test]
fn the_card_behind_a_device_is_listed() {
    let card = &cards(EDU)[0];
    let device = device(card);
    let parent = device.about().parent.clone().expect("a card");
    let name = card.file_name().expect("an address").to_string_lossy();
    assert_eq!(
        (
            parent.name.as_str(),
            parent.bus.as_str(),
            parent.driver.as_str()
        ),
        (&*name, "pci", "uio_edu")
    );
    let has = |name: &str, value: &str| {
        parent
            .attributes
            .contains(&(name.to_owned(), value.to_owned()))
    };
    assert!(
        has("vendor", "0x1234") && has("device", "0x11e8"),
        "{parent:?}"
    );
    let said = uio(&["list"]).stdout;
    let said = String::from_utf8(said).expect("text");
    let line = format!("  device {name}, on pci, driver uio_edu, vendor 0x1234, device 0x11e8");
    assert!(said.contains(&line), "{said}");
}

/// The clock of a PC, as if a UIO device had it: a place and a value, of which one says that its battery is good.
#[test]
fn ports_are_read_and_written_by_who_has_the_right_to_them() {
    let class = std::env::temp_dir().join("ports/uio0");
    for (file, text) in [
        ("name", "clock"),
        ("version", "1"),
        ("event", "0"),
        ("portio/port0/name", "cmos"),
        ("portio/port0/start", "0x70"),
        ("portio/port0/size", "0x2"),
        ("portio/port0/porttype", "port_x86"),
    ] {
        let path = class.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, format!("{text}\n")).expect("a file");
    }
    let roots = Roots {
        class: class.parent().expect("a directory").to_owned(),
        ..Roots::default()
    };
    let clock = Uio::find_in(&roots, "clock").expect("the device");
    let ports = clock.ports(0).expect("its ports");
    ports.write(0, 1, 0x0d).expect("a port");
    assert_eq!(ports.read(1, 1), Some(0x80));
    assert_eq!((ports.read(2, 1), ports.read(1, 2)), (None, None));
    drop(ports);
    let refused = std::thread::spawn(move || {
        let mut mine = capabilities(None).expect("those of this thread");
        mine.effective.remove(CapabilitySet::SYS_RAWIO);
        set_capabilities(None, mine).expect("to give one up");
        clock.ports(0).expect_err("no right").to_string()
    });
    let said = refused.join().expect("the thread");
    assert!(said.contains("CAP_SYS_RAWIO"), "{said}");
}

#[test]
fn an_interrupt_of_another_card_on_the_line_is_left_to_that_card() {
    let (one, other) = (cards(EDU)[0].clone(), cards(EDU)[2].clone());
    let line = |card: &Path| fs::read_to_string(card.join("irq")).expect("a line");
    assert_eq!(line(&one), line(&other), "the test needs both on one");
    let mut devices = [device(&one), device(&other)];
    let before = devices[0].about().read_events().expect("a count");
    let raise = devices[1].map(0).expect("its registers");
    for _ in 0..100 {
        raise.register(RAISE, 4).expect("a register").write(1);
        let got = devices[1].wait_timeout(patience(30)).expect("to wait");
        assert_eq!(got.expect("an interrupt").missed, 0);
    }
    let after = devices[0].about().read_events().expect("a count");
    assert_eq!(after, before);
}

#[test]
fn map_n_is_the_memory_of_its_number_and_not_the_next_page_of_the_first() {
    let card = cards(PLAIN).remove(0);
    let _bound = Bound::to("uio_edu", &card);
    let device = device(&card);
    let maps: Vec<(&str, u64)> = device
        .about()
        .maps
        .iter()
        .map(|map| (map.name.as_str(), map.size))
        .collect();
    assert_eq!(maps, [("bar0", 4096), ("bar2", BYTES)]);
    // What the bus itself has there.
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(card.join("resource2"));
    let plain = Region::map(&file.expect("its second memory"), 0, BYTES, true).expect("to map it");
    let map = device.map(1).expect("map 1");
    assert_eq!(map.bytes(), BYTES);
    for (offset, value) in [
        (0, 0x0123_4567_89ab_cdef),
        (4096, 0xfeed),
        (BYTES - 8, u64::MAX - 1),
    ] {
        map.register(offset, 8).expect("a word").write(value);
        assert_eq!(plain.register(offset, 8).expect("a word").read(), value);
    }
    assert!(map.register(BYTES, 8).is_none());
    // Map 0 is another memory.
    let registers = device.map(0).expect("map 0");
    assert_ne!(
        registers.register(0, 8).expect("a word").read(),
        0x0123_4567_89ab_cdef
    );
}

#[test]
fn a_board_of_the_user_engine_reads_and_writes_by_the_name_of_a_map() {
    const BOARD: &str = r#"
        [board]
        name = "plain"
        [match]
        uio = "uio_edu"
        version = "1"
        [register]
        word = { map = "bar2", offset = 0x1008, width = 64 }
        [register.big]
        map = 1
        offset = 0x1008
        width = 32
        endian = "big"
        access = "ro"
        [channel]
        word = {}
        big = {}
        [output]
        word = {}
    "#;
    // The edu cards have no such map, and the same name.
    let edu: Vec<_> = cards(EDU);
    for card in &edu {
        let name = card
            .file_name()
            .expect("an address")
            .to_string_lossy()
            .into_owned();
        fs::write(card.join("driver/unbind"), name).expect("to take it from the driver");
    }
    let bound = Bound::to("uio_edu", &cards(PLAIN)[0]);
    let board = Board::from_toml("plain.toml", BOARD).unwrap_or_else(|faults| panic!("{faults}"));
    let engine = strobe_cases::User(User::new(Settings::default()).with_board(board));
    let row = once(
        &engine,
        &[("plain.word", 0x0102_0304_0506_0708)],
        &["plain.word", "plain.big"],
    );
    assert_eq!(row, [0x0102_0304_0506_0708, 0x0807_0605]);
    drop(bound);
    for card in &edu {
        let name = card
            .file_name()
            .expect("an address")
            .to_string_lossy()
            .into_owned();
        fs::write("/sys/bus/pci/drivers/uio_edu/bind", name).expect("to give it back");
    }
}
