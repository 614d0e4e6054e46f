// SPDX-License-Identifier: MIT OR Apache-2.0
//! Board files: what is refused and how it is said, and what a board is compiled to.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strobe_board::{Access, Block, Board, Hardware, Kind};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &str) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = fs::read_dir(tree().join(directory))
        .expect("the directory is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    list.sort();
    list
}

fn board(text: &str) -> Board {
    Board::from_toml("test.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn full() -> Board {
    Board::read(&tree().join("tests/blob/full.toml")).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Every file of boards/bad says in its `# expect: LINE: ...` comments all that is wrong with it.
#[test]
fn a_bad_board_is_refused_with_all_its_faults_their_lines_and_remedies() {
    let (cards, instruments) = (files("boards/bad"), files("boards/bad/instruments"));
    assert!(cards.len() >= 50, "{} bad boards", cards.len());
    assert!(
        instruments.len() >= 40,
        "{} bad instruments",
        instruments.len()
    );
    let chips = files("boards/bad/chips");
    assert!(chips.len() >= 20, "{} bad chips", chips.len());
    for path in cards.into_iter().chain(instruments).chain(chips) {
        let text = fs::read_to_string(&path).expect("a bad board can be read");
        let expected: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# expect: "))
            .collect();
        assert!(
            !expected.is_empty(),
            "{} says not what is wrong with it",
            path.display()
        );
        let file = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a plain name");
        let faults = Board::from_toml(file, &text).expect_err(file).to_string();
        let found: Vec<&str> = faults
            .lines()
            .map(|line| &line[file.len() + 1..])
            .map(str::trim_start)
            .collect();
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn every_board_of_the_tree_is_right() {
    let files = files("boards");
    assert!(files.iter().any(|path| path.ends_with("edu.toml")));
    for path in files {
        if let Err(faults) = Board::read(&path) {
            panic!("{faults}");
        }
    }
}

#[test]
fn a_board_file_means_what_it_says() {
    let full = full();
    assert_eq!(full.summary(), "5 channels, 2 outputs, 3 events");
    assert_eq!(full.hardware.stem(), "pci-1234-abcd-1af4-1100");
    let names: Vec<&str> = full
        .channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "level_of_the_liquid_in_the_tank",
            "position",
            "flag-b",
            "flag-c",
            "pending"
        ],
        "in the order of the file"
    );
    let position = &full.channels[1];
    assert_eq!(
        (position.shift, position.bits, position.kind),
        (20, 32, Kind::Signed)
    );
    assert_eq!((position.scale, position.offset), (0.001, -12.5));
    assert_eq!(
        (full.channels[2].shift, full.channels[2].bits),
        (full.channels[3].shift, full.channels[3].bits)
    );
    assert_eq!(full.channels[0].kind, Kind::Float);
    assert_eq!(full.registers[1].access, Access::WriteOnly);
    assert!(full.registers[3].big_endian);
}

#[test]
fn a_table_may_be_written_inline_or_below_a_header() {
    let rest =
        "[board]\nname = \"b\"\n[match]\npci = \"1234:0001\"\n[bar.0]\nsize = 64\n[channel.x]\n";
    let inline = board(&format!("{rest}[register]\nx = {{ offset = 8 }}\n"));
    let below = board(&format!("{rest}[register.x]\noffset = 8\n"));
    assert_eq!(inline, below);
}

#[test]
fn the_c_header_reads_what_rust_has_compiled() {
    for path in files("boards")
        .into_iter()
        .chain([tree().join("tests/blob/full.toml")])
    {
        let board = Board::read(&path).expect("it is right");
        if board.is_for_user_engine_only() {
            continue;
        }
        let blob = board.compile().expect("a board for a driver");
        assert_eq!(
            dumped(&blob),
            expected(&board, blob.len()),
            "{}",
            path.display()
        );
    }
}

#[test]
fn the_checksum_is_that_of_zlib_over_all_that_follows_it() {
    let blob = full().compile().expect("a board for a driver");
    assert_eq!(blob[16..20], crc32(&blob[20..]));
}

/// What tests/blob/dump.c finds in a blob.
fn dumped(blob: &[u8]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("dump");
    let done = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-I"])
        .arg(tree().join("include"))
        .arg("-o")
        .arg(&program)
        .arg(tree().join("tests/blob/dump.c"))
        .status()
        .expect("cc can be run");
    assert!(done.success(), "tests/blob/dump.c does not compile");
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(blob)
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The same from the board itself; numbers of the contract are written out here.
fn expected(board: &Board, size: usize) -> String {
    let mut text = String::new();
    let interrupt = board.interrupt.map_or((0, 0), |interrupt| {
        let kind = match interrupt.kind.to_string().as_str() {
            "intx" => 1,
            "msi" => 2,
            "line" => 4,
            "message" => 5,
            _ => 3,
        };
        (kind, interrupt.vectors)
    });
    let writes: Vec<_> = board
        .setup
        .iter()
        .chain(board.events.iter().flat_map(|event| {
            event
                .silence
                .iter()
                .chain(&event.enable)
                .chain(&event.disable)
        }))
        .collect();
    let (vendor, device, subsystem) = match board.hardware {
        Hardware::Pci {
            vendor,
            device,
            subsystem,
        } => (vendor, device, subsystem),
        Hardware::Rpmsg { .. } | Hardware::Platform { .. } => (0, 0, None),
        _ => panic!("no driver has it"),
    };
    let (subvendor, subdevice) = subsystem.unwrap_or((0xffff, 0xffff));
    writeln!(
        text,
        "magic=1 version=1 size={size} whole=1 covered=20 irq={}",
        interrupt.0
    )
    .unwrap();
    writeln!(
        text,
        "ids={vendor:04x}:{device:04x}:{subvendor:04x}:{subdevice:04x} counts={},{},{},{},{} vectors={} setup=0+{} reserved=0",
        board.bars.len(),
        board.channels.len(),
        board.outputs.len(),
        board.events.len(),
        writes.len(),
        interrupt.1,
        board.setup.len(),
    )
    .unwrap();
    writeln!(text, "name={} text={}", board.name, board.description).unwrap();
    for bar in &board.bars {
        writeln!(
            text,
            "bar number={} reserved=0 size={}",
            bar.number, bar.size
        )
        .unwrap();
    }
    let register = |index: usize, shift: u8, bits: u8, flags: u32| {
        let register = &board.registers[index];
        let bar = board
            .bars
            .iter()
            .position(|bar| {
                Block::Bar(bar.number) == register.block || register.block == Block::Frame
            })
            .expect("declared");
        let bits = if bits == 0 { 8 * register.width } else { bits };
        let flags = flags | if register.big_endian { 2 } else { 0 };
        format!(
            " bar={bar} width={} shift={shift} bits={bits} flags={flags} reserved=0 offset={}",
            register.width, register.offset
        )
    };
    for channel in &board.channels {
        let flags = match channel.kind {
            Kind::Unsigned => 0,
            Kind::Signed => 1,
            Kind::Float => 4,
        };
        writeln!(
            text,
            "channel name={} unit={} text={} scale={:016x} offset={:016x}{}",
            channel.name,
            channel.unit,
            channel.description,
            channel.scale.to_bits(),
            channel.offset.to_bits(),
            register(channel.register, channel.shift, channel.bits, flags),
        )
        .unwrap();
    }
    for output in &board.outputs {
        writeln!(
            text,
            "output name={} unit={} text={} scale={:016x} offset={:016x}{}",
            output.name,
            output.unit,
            output.description,
            output.scale.to_bits(),
            output.offset.to_bits(),
            register(output.register, 0, 0, 0),
        )
        .unwrap();
    }
    let mut first = board.setup.len();
    for event in &board.events {
        let (pending, mask) = match event.pending {
            Some(pending) => (register(pending.register, 0, 0, 0), pending.mask),
            None => (
                " bar=0 width=0 shift=0 bits=0 flags=0 reserved=0 offset=0".into(),
                0,
            ),
        };
        let mut span = |count: usize| {
            let span = format!("{}+{count}", if count == 0 { 0 } else { first });
            first += count;
            span
        };
        writeln!(
            text,
            "event name={} text={} flags={} vector={} missed={}{pending} mask={mask} \
             silence={} enable={} disable={} reserved=0",
            event.name,
            event.description,
            u8::from(event.pending.is_some()),
            event.vector,
            event.missed.map_or(0, |channel| channel + 1),
            span(event.silence.len()),
            span(event.enable.len()),
            span(event.disable.len()),
        )
        .unwrap();
    }
    for write in writes {
        let (flags, value) = match write.value {
            strobe_board::WriteValue::Fixed(value) => (0, value),
            strobe_board::WriteValue::Pending => (1, 0),
        };
        writeln!(
            text,
            "write{} flags={flags} reserved=0 value={value}",
            register(write.register, 0, 0, 0)
        )
        .unwrap();
    }
    text + "end=1\n"
}

#[test]
fn a_board_of_a_platform_device_has_lines() {
    let path = tree().join("tests/blob/platform.toml");
    let text = fs::read_to_string(&path).expect("a board file");
    let board = board(&text);
    assert_eq!(board.hardware.stem(), "platform-vendor,core");
    assert_eq!(board.hardware.to_string(), "platform vendor,core");
    assert!(!board.is_for_user_engine_only());
    let dump = dumped(&board.compile().expect("a board for a driver"));
    assert!(dump.contains(" irq=4\nids=0000:0000:ffff:ffff "), "{dump}");
    for (right, wrong, fault) in [
        ("kind = \"line\"", "kind = \"msix\"", "\"line\""),
        (
            "platform = \"vendor,core\"",
            "pci = \"1234:5678\"",
            "\"intx\"",
        ),
        (
            "vendor,core",
            "vendor/core",
            "`platform` is \"vendor/core\"",
        ),
        ("[match]", "[match]\nuio = \"x\"", "`platform`"),
    ] {
        let faults = Board::from_toml("test.toml", &text.replace(right, wrong));
        let faults = faults.expect_err(wrong).to_string();
        assert!(faults.contains(fault), "{wrong}: {faults}");
    }
}

#[test]
fn a_board_of_a_co_processor_describes_a_frame() {
    let board = Board::read(&tree().join("boards/adc-frames.toml")).expect("it is right");
    let hardware = Hardware::Rpmsg {
        service: "adc-frames".into(),
        address: Some(0x400),
    };
    assert_eq!(board.hardware, hardware);
    assert_eq!(
        board.hardware.to_string(),
        "rpmsg adc-frames, address 0x400"
    );
    assert_eq!(board.frame_bytes(), Some(32));
    assert!(!board.is_for_user_engine_only());
    assert_eq!(board.summary(), "7 channels, 0 outputs, 1 event");
    for register in &board.registers {
        assert_eq!(
            (&register.block, register.access),
            (&Block::Frame, Access::ReadOnly)
        );
    }
    let blob = board.compile().expect("a board for a driver");
    let dump = dumped(&blob);
    assert!(
        dump.contains(" irq=5\nids=0000:0000:ffff:ffff counts=1,7,0,1,0 vectors=1 setup=0+0 "),
        "{dump}"
    );
    assert!(
        dump.contains("\nbar number=0 reserved=0 size=32\n"),
        "{dump}"
    );
    // header.platform
    assert_eq!(blob[48..52], crc32(b"adc-frames"));
}

/// CRC-32 as zlib has it; bitwise, so that it owes nothing to the crate that compiles boards.
fn crc32(bytes: &[u8]) -> [u8; 4] {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1))
        })
    });
    (!crc).to_le_bytes()
}

#[test]
fn a_map_is_named_by_its_number_or_its_name_and_is_the_first_unless_said() {
    let text = "[board]\nname = \"b\"\n[match]\nuio = \"a device\"\nversion = \"2\"\n[channel.x]\n[register]\n\
                x = { offset = 8 }\ny = { offset = 0, map = 3 }\nz = { offset = 0, map = \"regs\" }\n";
    let board = board(text);
    let blocks: Vec<String> = board
        .registers
        .iter()
        .map(|register| register.block.to_string())
        .collect();
    assert_eq!(blocks, ["map 0", "map 3", "map regs"]);
    assert_eq!(board.hardware.to_string(), "UIO a device, version 2");
    let lines: Vec<usize> = board
        .registers
        .iter()
        .map(|register| register.line)
        .collect();
    assert_eq!((board.file.as_str(), lines), ("test.toml", vec![8, 9, 10]));
}

#[test]
fn every_whole_board_in_the_documents_is_right() {
    let mut found = 0;
    for document in [
        "docs/reference/board.md",
        "docs/how-to/new-board.md",
        "docs/how-to/instruments.md",
    ] {
        let text = fs::read_to_string(tree().join(document)).expect(document);
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            if let Err(faults) = Board::from_toml(document, block) {
                panic!("{faults}\nin\n{block}");
            }
            found += 1;
        }
    }
    assert_eq!(found, 16);
}
