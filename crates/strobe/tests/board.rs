// SPDX-License-Identifier: MIT OR Apache-2.0
//! Board files: what is refused and how it is said, what a board is compiled to, how it is installed.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strobe::board::{Access, Block, Board, Hardware, InstallError, Kind, Outcome, Policy, System};

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
    let files = files("boards/bad");
    assert!(files.len() >= 50, "{} bad boards", files.len());
    for path in files {
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
        let blob = board.compile();
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
    let blob = full().compile();
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
        Hardware::Rpmsg { .. } => (0, 0, None),
        _ => panic!("neither PCI nor rpmsg"),
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
            "event name={} text={} flags={} vector={} reserved=0{pending} mask={mask} \
             silence={} enable={} disable={} reserved=0",
            event.name,
            event.description,
            u8::from(event.pending.is_some()),
            event.vector,
            span(event.silence.len()),
            span(event.enable.len()),
            span(event.disable.len()),
        )
        .unwrap();
    }
    for write in writes {
        let (flags, value) = match write.value {
            strobe::board::WriteValue::Fixed(value) => (0, value),
            strobe::board::WriteValue::Pending => (1, 0),
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

/// A machine of files: as much of sysfs as `install` uses. Nothing happens by itself in it.
struct Machine {
    root: tempfile::TempDir,
    system: System,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| root.path().join(path);
        for directory in [
            "bus/devices",
            "bus/drivers/strobe_board",
            "bus/drivers/uio_pci_generic",
            "modules-load.d",
        ] {
            fs::create_dir_all(at(directory)).expect("a directory");
        }
        let system = System {
            firmware: at("firmware/strobe"),
            pci: at("bus"),
            platform: at("platform"),
            rpmsg: at("rpmsg"),
            autoload: at("modules-load.d"),
            modprobe: "false".into(),
        };
        Machine { root, system }
    }

    fn card(&self, address: &str, driver: Option<&str>) -> PathBuf {
        let card = self.system.pci.join("devices").join(address);
        fs::create_dir_all(&card).expect("a directory");
        for (file, text) in [
            ("vendor", "0x1234\n"),
            ("device", "0x11e8\n"),
            ("driver_override", "(null)\n"),
        ] {
            fs::write(card.join(file), text).expect("a file");
        }
        if let Some(driver) = driver {
            symlink(
                self.system.pci.join("drivers").join(driver),
                card.join("driver"),
            )
            .expect("a link");
        }
        card
    }

    fn install(&self, policy: Policy) -> Result<strobe::board::Installed, InstallError> {
        let text = fs::read_to_string(tree().join("boards/edu.toml")).expect("boards/edu.toml");
        self.system.install(&board(&text), &text, policy)
    }

    /// What was written last into a file of the bus.
    fn written(&self, file: &str) -> String {
        fs::read_to_string(self.system.pci.join(file)).unwrap_or_default()
    }
}

#[test]
fn an_installed_board_is_a_blob_and_its_text_and_can_be_found_by_name() {
    let machine = Machine::new();
    let installed = machine.install(Policy::Free).expect("it installs");
    assert!(installed.bindings.is_empty() && installed.at_boot);
    let edu = Board::read(&tree().join("boards/edu.toml")).expect("it is right");
    assert_eq!(fs::read(&installed.blob).expect("the blob"), edu.compile());
    assert_eq!(
        installed.blob,
        machine.system.firmware.join("pci-1234-11e8.board")
    );
    for name in ["edu", "pci-1234-11e8"] {
        let text = machine.system.find(name).expect("it is found");
        let mut found = Board::read(&text).expect("it is the text");
        assert_eq!(found.file, text.to_string_lossy());
        found.file.clone_from(&edu.file);
        assert_eq!(found, edu);
    }
    let error = machine
        .system
        .find("edi")
        .expect_err("there is none")
        .to_string();
    assert!(
        error.contains("`edi`") && error.contains("installed: pci-1234-11e8"),
        "{error}"
    );
    let mut left: Vec<_> = fs::read_dir(&machine.system.firmware)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["pci-1234-11e8.board", "pci-1234-11e8.toml"],
        "no temporary file stays"
    );

    machine.system.remove(&edu.hardware).expect("it is removed");
    assert_eq!(fs::read_dir(&machine.system.firmware).unwrap().count(), 0);
    assert_eq!(
        fs::read_dir(machine.root.path().join("modules-load.d"))
            .unwrap()
            .count(),
        0
    );
    let error = machine
        .system
        .remove(&edu.hardware)
        .expect_err("it is gone")
        .to_string();
    assert!(error.contains("pci-1234-11e8.board"), "{error}");
}

#[test]
fn a_card_of_another_driver_is_left_alone_unless_forced() {
    let machine = Machine::new();
    let card = machine.card("0000:00:05.0", Some("uio_pci_generic"));
    let left = Outcome::Other("uio_pci_generic".into());

    let installed = machine.install(Policy::Free).expect("it installs");
    assert_eq!(installed.bindings[0].outcome, left);
    assert_eq!(machine.written("drivers_probe"), "", "it was not touched");
    assert_eq!(
        fs::read_to_string(card.join("driver_override")).unwrap(),
        "(null)\n"
    );

    machine.install(Policy::Force).expect("it installs");
    assert_eq!(
        fs::read_to_string(card.join("driver_override")).unwrap(),
        "strobe_board"
    );
    assert_eq!(
        machine.written("drivers/uio_pci_generic/unbind"),
        "0000:00:05.0"
    );
    assert_eq!(machine.written("drivers_probe"), "0000:00:05.0");
}

#[test]
fn a_card_is_bound_anew_if_its_board_has_changed_and_only_then() {
    let machine = Machine::new();
    machine.card("0000:00:05.0", Some("strobe_board"));
    fs::create_dir_all(&machine.system.firmware).unwrap();
    fs::write(
        machine.system.firmware.join("pci-1234-11e8.board"),
        "another",
    )
    .unwrap();

    let installed = machine.install(Policy::Free).expect("it installs");
    assert_eq!(installed.bindings[0].outcome, Outcome::Bound(None));
    assert_eq!(
        machine.written("drivers/strobe_board/unbind"),
        "0000:00:05.0"
    );
    fs::remove_file(machine.system.pci.join("drivers/strobe_board/unbind")).unwrap();
    machine.install(Policy::Free).expect("it installs");
    assert_eq!(
        machine.written("drivers/strobe_board/unbind"),
        "",
        "a run that uses it goes on"
    );
}

#[test]
fn a_card_that_the_driver_refuses_is_reported_as_free() {
    let machine = Machine::new();
    machine.card("0000:00:05.0", None);
    let installed = machine.install(Policy::Free).expect("it installs");
    assert_eq!(installed.bindings[0].outcome, Outcome::Free);
    assert_eq!(
        machine.written("drivers_probe"),
        "0000:00:05.0",
        "it was offered"
    );
}

#[test]
fn a_forced_card_is_given_back_when_the_board_is_removed() {
    let machine = Machine::new();
    let card = machine.card("0000:00:05.0", Some("strobe_board"));
    fs::write(card.join("driver_override"), "strobe_board\n").unwrap();
    machine.install(Policy::Free).expect("it installs");
    let edu = Board::read(&tree().join("boards/edu.toml")).expect("it is right");
    machine.system.remove(&edu.hardware).expect("it is removed");
    assert_eq!(
        fs::read_to_string(card.join("driver_override")).unwrap(),
        "\n"
    );
    assert_eq!(
        machine.written("drivers/strobe_board/unbind"),
        "0000:00:05.0"
    );
}

#[test]
fn without_the_driver_the_error_names_the_remedy() {
    let machine = Machine::new();
    fs::remove_dir(machine.system.pci.join("drivers/strobe_board")).unwrap();
    let error = machine
        .install(Policy::Free)
        .expect_err("there is no driver")
        .to_string();
    assert!(
        error.contains("strobe_board") && error.contains("sudo"),
        "{error}"
    );
    assert!(
        machine.install(Policy::FilesOnly).is_ok(),
        "files need no driver"
    );
}

#[test]
fn a_board_of_files_is_for_the_user_engine_and_is_not_installed() {
    let path = tree().join("boards/host.toml");
    let board = Board::read(&path).expect("it is right");
    assert_eq!((&board.hardware, board.files.len()), (&Hardware::Files, 4));
    let free = &board.files[2];
    assert_eq!(
        (free.path.as_str(), free.word, free.scale),
        ("/proc/meminfo", 8, 1024.0)
    );
    let machine = Machine::new();
    let error = machine.system.install(&board, "", Policy::FilesOnly);
    let error = error.expect_err("a driver cannot read files").to_string();
    assert!(
        error.starts_with("board host: ") && error.contains("--board"),
        "{error}"
    );
    assert!(!machine.system.firmware.join("files.board").exists());
}

#[test]
fn a_board_of_a_uio_device_is_for_the_user_engine_and_is_not_installed() {
    let board = Board::read(&tree().join("boards/uio_dummy.toml")).expect("it is right");
    let hardware = Hardware::Uio {
        name: "uio_dummy".into(),
        version: None,
    };
    assert_eq!(board.hardware, hardware);
    assert!(board.is_for_user_engine_only() && board.bars.is_empty());
    assert_eq!(board.registers[1].block, Block::NamedMap("state".into()));
    assert_eq!(board.registers[1].offset, 8);
    let machine = Machine::new();
    let refused = [
        machine
            .system
            .install(&board, "", Policy::FilesOnly)
            .map(|_| ()),
        machine.system.remove(&board.hardware).map(|_| ()),
    ];
    for error in refused {
        let error = error.expect_err("no driver has it").to_string();
        assert!(
            error.starts_with("board uio_dummy: it is for a UIO device")
                && error.contains("--board FILE"),
            "{error}"
        );
    }
    assert!(!machine.system.firmware.exists(), "nothing was written");
}

#[test]
fn a_board_of_a_platform_device_has_lines_and_gives_the_device_to_the_driver() {
    let path = tree().join("tests/blob/platform.toml");
    let text = fs::read_to_string(&path).expect("a board file");
    let board = board(&text);
    assert_eq!(board.hardware.stem(), "platform-vendor,core");
    assert_eq!(board.hardware.to_string(), "platform vendor,core");
    assert!(!board.is_for_user_engine_only());
    let dump = dumped(&board.compile());
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

    let machine = Machine::new();
    fs::create_dir_all(machine.system.pci.join("drivers/strobe_board")).expect("a directory");
    let device = |name: &str, alias: &str| {
        let device = machine.system.platform.join("devices").join(name);
        fs::create_dir_all(device.join("of_node")).expect("a directory");
        fs::write(device.join("modalias"), alias).expect("a file");
        fs::write(device.join("of_node/compatible"), "a,b\0vendor,core\0").expect("a file");
        device
    };
    let tree = device("fe00.core", "of:NcoreT(null)Ca,bCvendor,core\n");
    let named = device("vendor,core", "platform:vendor,core\n");
    let other = device("VEND0001:00", "acpi:VEND0001:PNP0C02:\n");
    let installed = machine.system.install(&board, &text, Policy::Free);
    let bindings = installed.expect("to install").bindings;
    let addresses: Vec<&str> = bindings.iter().map(|b| b.address.as_str()).collect();
    assert_eq!(addresses, ["fe00.core", "vendor,core"]);
    let chosen = |device: &Path| fs::read_to_string(device.join("driver_override")).ok();
    assert_eq!(chosen(&tree).as_deref(), Some("strobe_board"));
    assert_eq!(chosen(&named).as_deref(), Some("strobe_board"));
    assert_eq!(chosen(&other), None);
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
    let blob = board.compile();
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
fn a_board_of_a_co_processor_gives_its_service_to_the_driver_of_frames() {
    let machine = Machine::new();
    let bus = &machine.system.rpmsg;
    fs::create_dir_all(bus.join("drivers/strobe_frames")).expect("a directory");
    let device = |name: &str, service: &str| {
        let device = bus.join("devices").join(name);
        fs::create_dir_all(&device).expect("a directory");
        fs::write(device.join("name"), format!("{service}\n")).expect("a file");
        device
    };
    let ours = device("virtio0.adc-frames.-1.1024", "adc-frames");
    let other = device("virtio0.adc-frames2.-1.1025", "adc-frames2");
    let text = fs::read_to_string(tree().join("boards/adc-frames.toml")).expect("a board file");
    let board = board(&text);
    let installed = machine.system.install(&board, &text, Policy::Free);
    let installed = installed.expect("to install");
    assert!(installed.blob.ends_with("rpmsg-adc-frames.board"));
    let addresses: Vec<&str> = installed
        .bindings
        .iter()
        .map(|binding| binding.address.as_str())
        .collect();
    assert_eq!(addresses, ["virtio0.adc-frames.-1.1024"]);
    let chosen = |device: &Path| fs::read_to_string(device.join("driver_override")).ok();
    assert_eq!(chosen(&ours).as_deref(), Some("strobe_frames"));
    assert_eq!(chosen(&other), None);
    let probed = fs::read_to_string(bus.join("drivers_probe")).expect("it was probed");
    assert_eq!(probed, "virtio0.adc-frames.-1.1024");

    // Each driver is loaded at boot for as long as a board of its own is installed.
    machine.install(Policy::Free).expect("to install");
    let at_boot = || {
        let mut list: Vec<_> = fs::read_dir(&machine.system.autoload)
            .expect("a directory")
            .map(|entry| entry.expect("a file").file_name())
            .collect();
        list.sort();
        list
    };
    assert_eq!(at_boot(), ["strobe-board.conf", "strobe-frames.conf"]);
    machine.system.remove(&board.hardware).expect("to remove");
    assert_eq!(at_boot(), ["strobe-board.conf"]);
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
    for document in ["docs/reference/board.md", "docs/how-to/new-board.md"] {
        let text = fs::read_to_string(tree().join(document)).expect(document);
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            if let Err(faults) = Board::from_toml(document, block) {
                panic!("{faults}\nin\n{block}");
            }
            found += 1;
        }
    }
    assert_eq!(found, 7);
}
