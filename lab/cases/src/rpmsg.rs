// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for the lab's rpmsg transport, lab_rpmsg, and for the programs on both of its ends.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use crate::machine::{command, slowness};
use crate::raw::rpmsg::{NONBLOCK, asked, create, receive, send};

/// The control node of strobe_rpmsg.
pub const CONTROL: &str = "/dev/strobe_rpmsg0";
/// That of the stock driver.
pub const STOCK_CONTROL: &str = "/dev/rpmsg_ctrl0";
/// The group of those who may have endpoints, in the guest's /etc/group.
pub const STROBE: u32 = 500;
/// The least address that a program on the remote can have.
pub const REMOTE: u32 = 0x400;

/// The longest message.
pub const MTU: usize = 496;

const PARAMETERS: &str = "/sys/module/lab_rpmsg/parameters";

/// The remote processor: plugged in, taking and losing nothing, when this is made and when it is dropped.
pub struct Processor(());

impl Processor {
    /// `hard`: its messages arrive in hard interrupt context.
    pub fn new(hard: bool) -> Processor {
        let processor = Processor(());
        processor.reset();
        processor.set("hard", hard.into());
        processor
    }

    fn reset(&self) {
        for name in ["hard", "stalled", "asks", "shut", "drop", "look"] {
            self.set(name, 0);
        }
        self.plug();
    }

    /// Sets a parameter of the transport.
    pub fn set(&self, name: &str, value: u64) {
        let path = Path::new(PARAMETERS).join(name);
        fs::write(&path, value.to_string()).unwrap_or_else(|why| panic!("{name}={value}: {why}"));
    }

    /// Messages that the transport has lost.
    pub fn dropped(&self) -> u64 {
        self.get("dropped")
    }

    /// Bytes of these.
    pub fn dropped_bytes(&self) -> u64 {
        self.get("dropped_bytes")
    }

    /// Bytes that were not zero of the memory that endpoints were made with, of as much of it as `look` says.
    pub fn unclean(&self) -> u64 {
        self.get("unclean")
    }

    fn get(&self, name: &str) -> u64 {
        let text = fs::read_to_string(Path::new(PARAMETERS).join(name)).expect("a parameter");
        text.trim().parse().expect("a number")
    }

    /// It goes.
    pub fn pull(&self) {
        self.set("plugged", 0);
    }

    /// It comes, and its nodes with it.
    pub fn plug(&self) {
        self.set("plugged", 1);
        // What the udev rule of an installed strobe does.
        chown(CONTROL, None, Some(STROBE)).expect("a control node");
        fs::set_permissions(CONTROL, Permissions::from_mode(0o660)).expect("its mode");
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.reset();
        }
    }
}

/// Both ways that a message can arrive; each with a processor as new.
pub fn contexts() -> impl Iterator<Item = Processor> {
    [false, true].into_iter().map(Processor::new)
}

/// Opens a node for reading and writing.
pub fn open(path: &str) -> std::io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open(path)?.into())
}

/// A control node that has to be there.
pub fn control() -> OwnedFd {
    open(CONTROL).unwrap_or_else(|why| panic!("{CONTROL}: {why}"))
}

/// An endpoint with this address, which sends to that one.
pub fn endpoint(src: u32, dst: u32, flags: i32) -> OwnedFd {
    let nonblock = if flags & libc::O_NONBLOCK == 0 {
        0
    } else {
        NONBLOCK
    };
    create(&control(), &mut asked(src, dst, nonblock)).expect("an endpoint")
}

/// Messages that found no room in the endpoints of this process, those of its runs among them.
pub fn overflown() -> u64 {
    let files = fs::read_dir("/proc/self/fdinfo").expect("its files");
    let texts = files.flatten().map(|file| fs::read_to_string(file.path()));
    let dropped = |text: String| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("rpmsg-dropped:"));
        line.map(|number| number.trim().parse::<u64>().expect("a number"))
    };
    texts.flatten().filter_map(dropped).sum()
}

/// A word of the endpoint's fdinfo.
pub fn fdinfo(endpoint: &OwnedFd, name: &str) -> String {
    let file = format!("/proc/self/fdinfo/{}", endpoint.as_raw_fd());
    let text = fs::read_to_string(file).expect("fdinfo");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {text}"))
        .trim()
        .into()
}

/// A program on the remote, which has all of its addresses.
pub struct Program(OwnedFd);

impl Program {
    /// The only one.
    pub fn start() -> Program {
        Program(open("/dev/lab_remote").expect("the remote has no other program"))
    }

    /// Sends a message from an address of its own to one of the host.
    pub fn send(&self, src: u32, dst: u32, bytes: &[u8]) -> Result<(), i32> {
        let message = [&src.to_le_bytes(), &dst.to_le_bytes(), bytes].concat();
        send(&self.0, &message).map(|_| ())
    }

    /// Waits for a message of the host: who has sent it, to whom, and what.
    pub fn receive(&self) -> (u32, u32, Vec<u8>) {
        let message = receive(&self.0).expect("a message of the host");
        let word = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().expect("a word"));
        (word(0), word(4), message[8..].to_vec())
    }
}

/// What is loaded on top of the stock drivers, in order.
const MODULES: [&str; 2] = ["strobe_rpmsg", "lab_rpmsg"];

/// The modules loaded with other parameters until this is dropped.
pub struct Reloaded(());

impl Reloaded {
    /// Parameters of strobe_rpmsg and of lab_rpmsg.
    pub fn with(strobe: &str, lab: &str) -> Reloaded {
        let reloaded = Reloaded(());
        unload();
        for (module, words) in MODULES.into_iter().zip([strobe, lab]) {
            let line = format!("modprobe {module} {words}");
            assert!(command(line.trim()), "{line}");
        }
        reloaded
    }
}

impl Drop for Reloaded {
    fn drop(&mut self) {
        unload();
        for module in MODULES {
            assert!(command(&format!("modprobe {module}")), "{module}");
        }
    }
}

/// Unloads both: that they can be is a finding of its own.
pub fn unload() {
    for module in MODULES.into_iter().rev() {
        assert!(command(&format!("rmmod {module}")), "{module} can go");
    }
}

/// The firmware of a co-processor on the remote, which samples frames of 32 bytes from START to STOP.
pub struct Coprocessor {
    program: Child,
    said: BufReader<ChildStdout>,
}

impl Coprocessor {
    /// It is to sample so often, and sends so many frames a message.
    pub fn start(samples: u64, frames_a_message: u64) -> Coprocessor {
        // As fast as it can most of it would be throttled.
        let period_us = 50 * slowness();
        let mut program = Command::new("coprocessor")
            .args([32, frames_a_message, samples, period_us].map(|word| word.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let said = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut coprocessor = Coprocessor { program, said };
        assert_eq!(coprocessor.line(), "ready");
        coprocessor
    }

    /// Waits until it has sampled all: how often, and how much of it was not sent.
    pub fn sampled(&mut self) -> (u64, u64) {
        let line = self.line();
        let numbers = line
            .strip_prefix("sampled ")
            .and_then(|line| line.split_once(" missed "));
        let (sampled, missed) = numbers.unwrap_or_else(|| panic!("`{line}`"));
        (
            sampled.parse().expect("a number"),
            missed.parse().expect("a number"),
        )
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

impl Drop for Coprocessor {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
