// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of `include/uapi/strobe.h` with nothing in between: what a test wants to be wrong
//! arrives wrong.
#![allow(unsafe_code)]

use std::fmt::{Debug, Display};
use std::fs::{self, File};
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

mod system;
mod user;

pub use system::*;
pub use user::*;

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident = $bytes:literal { $($field:ident: $type:ty),* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)] // the header has them
        pub struct $name { $(pub $field: $type),* }
        const _: () = assert!(size_of::<$name>() == $bytes);
        // SAFETY: integers and arrays of integers.
        unsafe impl Plain for $name {}
        impl $name {
            /// All fields are 0.
            pub fn zero() -> Self {
                // SAFETY: it is Plain.
                unsafe { std::mem::zeroed() }
            }
        }
    )*};
}

structures! {
    /// `struct strobe_list`.
    List = 40 {
        size: u32, flags: u32, run: u32, entry_size: u32, buffer: u64, room: u32, count: u32,
        generation: u64
    }
    /// `struct strobe_entry`; `detail` is its union.
    Entry = 288 {
        kind: u32, id: u32, parent: u32, flags: u32, name: [u8; 64], text: [u8; 80],
        detail: [u64; 16]
    }
    /// `struct strobe_step`.
    Step = 80 { op: u32, flags: u32, value: u64, name: [u8; 64] }
    /// `struct strobe_create`.
    Create = 144 {
        size: u32, flags: u32, event: [u8; 64], period_ns: u64, capacity: u64, limit: u64,
        steps: u64, step_count: u32, step_size: u32, clock: u32, priority: u32, answer: u64,
        answer_size: u32, reserved: u32, program: u64
    }
    /// `struct strobe_program`.
    Program = 48 {
        size: u32, flags: u32, insns: u64, insn_count: u32, state: u32, derived: u64,
        derived_count: u32, derived_size: u32, tunables: u32, reserved: u32
    }
    /// `struct strobe_derived`; `value` begins with its type.
    Derived = 112 {
        name: [u8; 64], kind: u32, cost_class: u32, unit: [u8; 16], scale: u64, offset: u64,
        bits: u32, cost_ns: u32
    }
    /// `struct strobe_created`.
    Created = 56 {
        fd: i32, run: u32, fault_step: u32, why: u32, channels: u32, outputs: u32, row_size: u32,
        row_stride: u32, capacity: u64, ring_bytes: u64, cost_ns: u64
    }
    /// `struct strobe_control`.
    Control = 56 {
        size: u32, op: u32, flags: u32, count: u32, state: u32, error: i32, head: u64,
        triggers: u64, skipped: u64, cause: i32, reserved: u32
    }
    /// `struct strobe_reader`.
    Reader = 48 {
        size: u32, flags: u32, run: u32, reserved: u32, first: u64, fd: i32, channels: u32,
        outputs: u32, row_size: u32, ring_bytes: u64
    }
    /// `struct strobe_arm`.
    Arm = 16 { size: u32, flags: u32, rows: u64 }
    /// `struct strobe_tune`.
    Tune = 24 { size: u32, flags: u32, run: u32, tunable: u32, value: u64 }
    /// `struct strobe_features`.
    Features = 40 {
        size: u32, flags: u32, major: u16, minor: u16, create_flags: u32, reader_flags: u32,
        incompat: u32, causes: u32, steps_max: u32, features: u64
    }
}

macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr),* $(,)?) => {
        $(#[allow(missing_docs)] pub const $name: $type = $value;)*
    };
}

numbers! {
    LIST: u32 = 0xDA00, CREATE: u32 = 0xDA01, CONTROL: u32 = 0xDA02, READER: u32 = 0xDA03,
    ARM: u32 = 0xDA04, FEATURES: u32 = 0xDA05, TUNE: u32 = 0xDA06,
    READ: u32 = 1, WRITE: u32 = 2,
    STATUS: u32 = 0, START: u32 = 1, PAUSE: u32 = 2, RESUME: u32 = 3, STOP: u32 = 4,
    TRIGGER: u32 = 5,
    READY: u32 = 0, RUNNING: u32 = 1, PAUSED: u32 = 2, DONE: u32 = 3, STOPPED: u32 = 4,
    FAILED: u32 = 5,
    DRY_RUN: u32 = 1, SHARED: u32 = 2, NONBLOCK: u32 = 1, FROM_NOW: u64 = u64::MAX,
    SKIPS: u32 = 1, NO_STEP: u32 = u32::MAX, RUN: u32 = 5, ENTRY_SHARED: u32 = 4,
    // Offsets in the ring's header.
    INCOMPAT: usize = 52, OUTPUTS: usize = 72, ROW_SIZE: usize = 76, SKIPPED: usize = 240,
    LIMIT: usize = 32, DATA_OFFSET: usize = 40, CLOCK: usize = 48, HEAD: usize = 128,
    STATE: usize = 144, ERROR: usize = 148,
}

pub mod program;
pub mod rpmsg;

impl Entry {
    /// The name, as text.
    pub fn name(&self) -> &str {
        let end = self
            .name
            .iter()
            .position(|&byte| byte == 0)
            .expect("a name ends in NUL");
        std::str::from_utf8(&self.name[..end]).expect("names are ASCII")
    }

    /// Of a run: enum strobe_state.
    pub fn state(&self) -> u32 {
        self.detail[0] as u32
    }

    /// Of a run: ring fds that are open.
    pub fn readers(&self) -> u32 {
        (self.detail[1] >> 32) as u32
    }
}

/// Any ioctl, with any address.
pub fn ioctl_at(fd: RawFd, number: u32, address: usize) -> Answer {
    sys(libc::SYS_ioctl, &[fd as usize, number as usize, address])
}

/// Any ioctl, with a structure.
pub fn ioctl<T: Plain>(fd: &impl AsRawFd, number: u32, arg: &mut T) -> Answer {
    ioctl_at(fd.as_raw_fd(), number, std::ptr::from_mut(arg) as usize)
}

/// The control device, open for looking alone.
pub fn looking() -> OwnedFd {
    File::open("/dev/strobe").expect("/dev/strobe opens").into()
}

/// The control device.
pub fn control() -> OwnedFd {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/strobe")
        .expect("/dev/strobe opens")
        .into()
}

/// Text in an array that NULs fill up.
pub fn named(text: &str) -> [u8; 64] {
    let mut name = [0; 64];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// A step.
pub fn step(op: u32, name: &str, value: u64) -> Step {
    Step {
        op,
        flags: 0,
        value,
        name: named(name),
    }
}

/// A request that is right; `steps` must live until it is used.
pub fn request(event: &str, period_ns: u64, capacity: u64, steps: &[Step]) -> Create {
    Create {
        size: size_of::<Create>() as u32,
        event: named(event),
        period_ns,
        capacity,
        steps: steps.as_ptr() as u64,
        step_count: steps.len() as u32,
        step_size: size_of::<Step>() as u32,
        ..Create::zero()
    }
}

/// STROBE_CREATE, and its answer, which is there on failure, too. What is in the answer's place
/// before is not looked at.
pub fn ask(control: &impl AsRawFd, request: &Create) -> (Answer, Created) {
    let mut answer = Created {
        fd: 77,
        run: 77,
        fault_step: 77,
        why: 77,
        channels: 77,
        outputs: 77,
        ..Created::zero()
    };
    let mut request = Create {
        answer: std::ptr::from_mut(&mut answer) as u64,
        answer_size: size_of::<Created>() as u32,
        ..*request
    };
    let asked = request;
    let result = ioctl(control, CREATE, &mut request);
    assert_eq!(request, asked, "the question is not written");
    (result, answer)
}

/// STROBE_CREATE of a run that is to be: its owner fd, and the answer.
pub fn create(control: &impl AsRawFd, request: &Create) -> Result<(OwnedFd, Created), i32> {
    let (result, answer) = ask(control, request);
    result.map(|_| (adopt(answer.fd), answer))
}

/// A run of the event "soft" that reads sim.counter, and its id.
pub fn soft(control: &impl AsRawFd, capacity: u64, limit: u64) -> (OwnedFd, u32) {
    let steps = [step(READ, "sim.counter", 0)];
    let request = Create {
        limit,
        ..request("soft", 0, capacity, &steps)
    };
    let (owner, answer) = create(control, &request).expect("a run");
    (owner, answer.run)
}

/// STROBE_FEATURES.
pub fn features(control: &impl AsRawFd) -> Result<Features, i32> {
    let mut arg = Features {
        size: size_of::<Features>() as u32,
        ..Features::zero()
    };
    ioctl(control, FEATURES, &mut arg).map(|_| arg)
}

/// STROBE_CONTROL.
pub fn order(owner: &impl AsRawFd, op: u32, count: u32) -> Result<Control, i32> {
    let (result, answer) = order_answered(owner, op, count);
    result.map(|_| answer)
}

/// The same with its answer, which is there on failure, too.
pub fn order_answered(owner: &impl AsRawFd, op: u32, count: u32) -> (Answer, Control) {
    let mut arg = Control {
        size: size_of::<Control>() as u32,
        op,
        count,
        ..Control::zero()
    };
    let result = ioctl(owner, CONTROL, &mut arg);
    (result, arg)
}

/// STROBE_READER, from an owner fd (`run` 0) or the control device.
pub fn reader(fd: &impl AsRawFd, run: u32, first: u64, flags: u32) -> Result<OwnedFd, i32> {
    let size = size_of::<Reader>() as u32;
    let mut arg = Reader {
        size,
        flags,
        run,
        first,
        ..Reader::zero()
    };
    ioctl(fd, READER, &mut arg).map(|_| adopt(arg.fd))
}

/// STROBE_ARM.
pub fn arm(ring: &impl AsRawFd, rows: u64) -> Answer {
    ioctl(
        ring,
        ARM,
        &mut Arm {
            size: size_of::<Arm>() as u32,
            flags: 0,
            rows,
        },
    )
}

/// The rows that one read() returns, of one channel each.
pub fn rows(ring: &impl AsRawFd, room: usize) -> Result<Vec<[u64; 5]>, i32> {
    let mut rows = vec![[0u64; 5]; room];
    let args = [
        ring.as_raw_fd() as usize,
        rows.as_mut_ptr() as usize,
        room * 40,
    ];
    let bytes = sys(libc::SYS_read, &args)?;
    assert_eq!(bytes % 40, 0, "whole rows");
    rows.truncate(bytes / 40);
    Ok(rows)
}

/// A run of "soft" that is running, with one channel whose value is the number of the row, and its
/// reader.
pub struct Soft {
    /// Its owner.
    pub owner: OwnedFd,
    /// The reader.
    pub ring: OwnedFd,
}

impl Soft {
    /// Starts it.
    pub fn new(capacity: u64, flags: u32) -> Soft {
        let (owner, _) = soft(&control(), capacity, 0);
        order(&owner, START, 0).expect("started");
        let ring = reader(&owner, 0, 0, flags).expect("a reader");
        Soft { owner, ring }
    }

    /// So many rows.
    pub fn trigger(&self, count: u32) {
        order(&self.owner, TRIGGER, count).expect("triggered");
    }

    /// Ends it.
    pub fn stop(&self) {
        order(&self.owner, STOP, 0).expect("stopped");
    }

    /// The ring of its reader.
    pub fn map(&self, length: usize) -> Map {
        map(&self.ring, length).expect("a mapping")
    }

    /// Numbers of the rows that one read() returns.
    pub fn rows(&self, room: usize) -> Result<Vec<u64>, i32> {
        numbers(&self.ring, room)
    }
}

/// mmap(), the usual way.
pub fn map(ring: &impl AsRawFd, length: usize) -> Result<Map, i32> {
    Map::new(
        ring.as_raw_fd(),
        length,
        libc::PROT_READ,
        libc::MAP_SHARED,
        0,
    )
}

/// Numbers of the rows that one read() returns; each must be whole.
pub fn numbers(ring: &impl AsRawFd, room: usize) -> Result<Vec<u64>, i32> {
    let rows = rows(ring, room)?;
    for [row, trigger, _, status, value] in &rows {
        assert_eq!((row, row, 0), (trigger, value, *status), "a whole row");
    }
    Ok(rows.iter().map(|row| row[0]).collect())
}

/// The whole catalogue, or a run's part of it, and its generation.
pub fn list(control: &impl AsRawFd, run: u32) -> Result<(Vec<Entry>, u64), i32> {
    let mut entries = vec![Entry::zero(); 4096];
    let mut arg = List {
        size: size_of::<List>() as u32,
        run,
        entry_size: size_of::<Entry>() as u32,
        buffer: entries.as_mut_ptr() as u64,
        room: entries.len() as u32,
        ..List::zero()
    };
    ioctl(control, LIST, &mut arg)?;
    entries.truncate(arg.count as usize);
    Ok((entries, arg.generation))
}

/// What a call that fails must not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    /// Of the catalogue.
    pub generation: u64,
    /// Of each entry: kind, id, flags; of a run also its state and readers.
    pub entries: Vec<(u32, u32, u32, u32, u32)>,
    /// References to strobe.ko and strobe_sample.ko.
    pub references: (i64, i64),
    /// Open fds of this process.
    pub fds: usize,
}

/// Counts what is there.
pub fn census(control: &impl AsRawFd) -> Census {
    let (entries, generation) = list(control, 0).expect("a catalogue");
    let brief = |e: &Entry| {
        let (state, readers) = if e.kind == RUN {
            (e.state(), e.readers())
        } else {
            (0, 0)
        };
        (e.kind, e.id, e.flags, state, readers)
    };
    Census {
        generation,
        entries: entries.iter().map(brief).collect(),
        references: (references("strobe"), references("strobe_sample")),
        fds: fs::read_dir("/proc/self/fd").expect("/proc").count(),
    }
}

/// References to a module; -1 if it is not loaded.
pub fn references(module: &str) -> i64 {
    let file = format!("/sys/module/{module}/refcnt");
    fs::read_to_string(file).map_or(-1, |text| text.trim().parse().expect("a number"))
}

/// A parameter of strobe.ko that has another value until this is dropped.
pub struct Parameter(String, String);

impl Parameter {
    /// Sets it.
    pub fn set(name: &str, value: impl Display) -> Parameter {
        let file = format!("/sys/module/strobe/parameters/{name}");
        let before = fs::read_to_string(&file).expect("the parameter can be read");
        fs::write(&file, value.to_string()).expect("the parameter can be written");
        Parameter(file, before)
    }
}

impl Drop for Parameter {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, &self.1);
    }
}

/// What is not as it should be; a table is gone through to its end before the test fails.
#[derive(Default)]
pub struct Findings(Vec<String>);

impl Findings {
    /// Notes a difference.
    pub fn equal<T: PartialEq + Debug>(&mut self, what: impl Display, got: T, want: T) {
        if got != want {
            self.0.push(format!("{what}: got {got:?}, want {want:?}"));
        }
    }
}

impl Drop for Findings {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{}", self.0.join("\n"));
        }
    }
}
