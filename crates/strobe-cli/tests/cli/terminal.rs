// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pseudo-terminal, and what a person would see on it.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::common::{Process, until};

/// A program on a terminal of its own.
pub struct Terminal {
    keys: File,
    /// Kept open, so that its modes can be looked at when the program has ended.
    line: File,
    screen: Arc<Mutex<vt100::Parser>>,
    modes: String,
    pub process: Process,
}

impl Terminal {
    /// Starts the program on 80 x 24.
    pub fn new(dir: &Path, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("the other side");
        unlockpt(&master).expect("the other side");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = File::from(open(name, flags, Mode::empty()).expect("the other side"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(24, 80, 0)));
        let keys = File::from(master);
        let mut output = keys.try_clone().expect("a descriptor");
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut part) {
                shown.lock().expect("no panic").process(&part[..count]);
            }
        });
        let end = || Stdio::from(line.try_clone().expect("a descriptor"));
        tcsetwinsize(&line, size(80, 24)).expect("a size");
        let modes = modes(&line);
        // In a session of its own: this is its terminal, and not the one the tests may run on.
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_strobe")])
            .args(arguments)
            .env("STROBE_RUNTIME_DIR", dir)
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn();
        let process = Process(child.expect("setsid, of util-linux"));
        Terminal {
            keys,
            line,
            screen,
            modes,
            process,
        }
    }

    /// What is to be seen.
    pub fn text(&self) -> String {
        let screen = self.screen.lock().expect("no panic");
        screen.screen().contents()
    }

    /// Waits until this is to be seen.
    pub fn sees(&self, what: &str) -> String {
        until(|| Some(self.text()).filter(|text| text.contains(what)))
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("heard");
    }

    /// Makes the window larger or smaller.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let mut screen = self.screen.lock().expect("no panic");
        screen.set_size(rows, columns);
        tcsetwinsize(&self.line, size(columns, rows)).expect("a size");
    }

    /// The exit status of the program; the terminal must be as it was.
    pub fn ends(&mut self) -> Option<i32> {
        let status = self.process.wait();
        assert_eq!(modes(&self.line), self.modes);
        until(|| {
            let parser = self.screen.lock().expect("no panic");
            let screen = parser.screen();
            (!screen.alternate_screen() && !screen.hide_cursor()).then_some(())
        });
        status
    }

    /// Whether the program has taken the terminal.
    pub fn is_taken(&self) -> bool {
        modes(&self.line) != self.modes
    }
}

fn modes(line: &File) -> String {
    format!("{:?}", tcgetattr(line).expect("its modes"))
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
