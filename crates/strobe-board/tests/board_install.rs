// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a board is installed: its files, and whom its hardware is given to. On a machine of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use strobe_board::{Block, Board, Hardware, InstallError, Outcome, Policy, System};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn board(text: &str) -> Board {
    Board::from_toml("test.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
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

    fn install(&self, policy: Policy) -> Result<strobe_board::Installed, InstallError> {
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
    let blob = edu.compile().expect("a board of a card");
    assert_eq!(fs::read(&installed.blob).expect("the blob"), blob);
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
        error.starts_with("board host: ") && error.contains("only the user engine reads"),
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
            error.starts_with("board uio_dummy: only the user engine reaches its UIO device"),
            "{error}"
        );
    }
    assert!(!machine.system.firmware.exists(), "nothing was written");
}

#[test]
fn a_board_of_a_chip_is_for_the_user_engine_and_has_no_blob() {
    let board = Board::read(&tree().join("boards/ads1115.toml")).expect("it is right");
    assert_eq!(board.hardware.to_string(), "I2C 1-0048");
    assert!(board.is_for_user_engine_only() && board.events.is_empty());
    let why = board.compile().expect_err("no driver has it").to_string();
    assert_eq!(
        why,
        "board ads1115: only the user engine reads its chip on I2C or SPI, whose transfers sleep; there is nothing to \
         install"
    );
    let machine = Machine::new();
    let refused = machine.system.install(&board, "", Policy::FilesOnly);
    assert_eq!(refused.expect_err("no blob").to_string(), why);
    assert!(!machine.system.firmware.exists(), "nothing was written");
}

#[test]
fn a_board_is_found_by_its_whole_name_also_if_that_has_points() {
    let text = fs::read_to_string(tree().join("tests/blob/platform.toml")).expect("a board file");
    let text = text.replace("\"vendor,core\"", "\"vendor,core-1.00.a\"");
    let (board, machine) = (board(&text), Machine::new());
    let installed = machine.system.install(&board, &text, Policy::FilesOnly);
    let files = ["board", "toml"].map(|kind| {
        let name = format!("platform-vendor,core-1.00.a.{kind}");
        machine.system.firmware.join(name)
    });
    assert_eq!(installed.expect("to install").blob, files[0]);
    assert!(files.iter().all(|file| file.exists()));
    let _ = machine.system.remove(&board.hardware);
    assert!(!files.iter().any(|file| file.exists()));
}

#[test]
fn a_board_of_a_platform_device_gives_the_device_to_the_driver() {
    let path = tree().join("tests/blob/platform.toml");
    let text = fs::read_to_string(&path).expect("a board file");
    let board = board(&text);
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
