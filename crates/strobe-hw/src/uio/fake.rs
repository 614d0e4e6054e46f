// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of UIO devices without hardware, for tests. A device file is a fifo: what is written to it is read.

use std::fs;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tempfile::TempDir;

use super::Roots;

/// The tree; removed when it is dropped.
pub struct Fake {
    pub roots: Roots,
    _place: TempDir,
}

/// The device's side of a device file.
pub struct Node {
    path: PathBuf,
    file: File,
}

impl Fake {
    pub fn new() -> Fake {
        let place = tempfile::tempdir().expect("a directory");
        let roots = Roots {
            class: place.path().join("class"),
            dev: place.path().join("dev"),
        };
        fs::create_dir(&roots.class).expect("a directory");
        fs::create_dir(&roots.dev).expect("a directory");
        Fake {
            roots,
            _place: place,
        }
    }

    /// A device whose file is a fifo.
    pub fn device(&self, number: u32, name: &str, events: u32) -> Node {
        let path = self.describe(number, name, events);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a fifo");
        Node::open(&path)
    }

    /// A device whose file is so many pages, each 32-bit word of which is its page and its place there.
    pub fn device_of_pages(&self, number: u32, name: &str, pages: u32) -> Node {
        let path = self.describe(number, name, 0);
        let page = rustix::param::page_size() as u32;
        let words = (0..pages).flat_map(|p| (0..page).step_by(4).map(move |o| p << 16 | o));
        let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
        fs::write(&path, bytes).expect("a file");
        Node::open(&path)
    }

    fn describe(&self, number: u32, name: &str, events: u32) -> PathBuf {
        self.attribute(number, "name", name);
        self.attribute(number, "version", "1.0");
        self.events(number, events);
        self.roots.dev.join(format!("uio{number}"))
    }

    pub fn events(&self, number: u32, events: u32) {
        self.attribute(number, "event", &events.to_string());
    }

    pub fn map(&self, device: u32, number: u32, name: &str, address: u64, size: u64, offset: u64) {
        for (part, value) in [("addr", address), ("size", size), ("offset", offset)] {
            self.attribute(
                device,
                &format!("maps/map{number}/{part}"),
                &format!("{value:#x}"),
            );
        }
        self.attribute(device, &format!("maps/map{number}/name"), name);
    }

    pub fn port(&self, device: u32, number: u32, name: &str, start: u64, size: u64, kind: &str) {
        for (part, value) in [("start", start), ("size", size)] {
            self.attribute(
                device,
                &format!("portio/port{number}/{part}"),
                &format!("{value:#x}"),
            );
        }
        self.attribute(device, &format!("portio/port{number}/name"), name);
        self.attribute(device, &format!("portio/port{number}/porttype"), kind);
    }

    pub fn attribute(&self, device: u32, part: &str, value: &str) {
        let path = self.roots.class.join(format!("uio{device}")).join(part);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        fs::write(path, format!("{value}\n")).expect("an attribute");
    }

    pub fn unplug(&self, device: u32) {
        fs::remove_dir_all(self.roots.class.join(format!("uio{device}"))).expect("to unplug");
    }
}

impl Node {
    fn open(path: &Path) -> Node {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // What was not written is an error, and not waited for.
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path);
        Node {
            path: path.to_owned(),
            file: file.expect("the device file"),
        }
    }

    /// The next read of the device file sees this count.
    pub fn interrupt(&mut self, count: u32) {
        use std::io::Write;
        self.file.write_all(&count.to_ne_bytes()).expect("to write");
    }

    /// What was written to the device file.
    pub fn written(&mut self) -> u32 {
        use std::io::Read;
        let mut bytes = [0; 4];
        self.file.read_exact(&mut bytes).expect("to read");
        u32::from_ne_bytes(bytes)
    }

    /// The device file goes.
    pub fn remove(&self) {
        fs::remove_file(&self.path).expect("to remove");
    }
}
