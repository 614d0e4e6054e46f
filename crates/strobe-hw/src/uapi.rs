// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures and calls of `include/uapi/strobe.h`, one to one.
//!
//! Nothing here decides anything: names, units and errors become Rust in
//! `strobe::engine::kernel`. The layout is compared with the C header by the
//! tests of this module.
// The header says what each field means.
#![allow(missing_docs)]

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::fd;

pub mod program;

use program::{Program, ProgramParts};

/// The control device.
pub const DEVICE_PATH: &str = "/dev/strobe";
/// Bytes of a full name, its NUL included.
pub const NAME_SIZE: usize = 64;
/// Bytes of a unit, its NUL included.
pub const UNIT_SIZE: usize = 16;
/// Bytes of a description, its NUL included.
pub const TEXT_SIZE: usize = 80;
/// Steps of one run, at most.
pub const STEPS_MAX: usize = 1024;
/// SCHED_FIFO priority of a run's thread: the highest, and if none is given.
pub const PRIORITY_MAX: u8 = 99;
pub const PRIORITY_DEFAULT: u8 = 45;
/// What the steps of a row may cost in hard interrupt context, in nanoseconds.
pub const COST_MAX: u64 = 1_000_000;
/// Triggers of one `STROBE_TRIGGER`, at most.
pub const TRIGGER_MAX: u32 = 1_000_000;
/// Rows of one ring, at most.
pub const CAPACITY_MAX: u64 = 1 << 32;
/// "limit" of a run that goes on until it is stopped.
pub const NO_LIMIT: u64 = u64::MAX;

/// Kinds of catalogue entries.
pub mod kind {
    pub const DEVICE: u32 = 1;
    pub const CHANNEL: u32 = 2;
    pub const OUTPUT: u32 = 3;
    pub const EVENT: u32 = 4;
    pub const RUN: u32 = 5;
}

/// Flags of catalogue entries.
pub mod entry_flag {
    pub const IN_USE: u32 = 1 << 0;
    pub const PERIODIC: u32 = 1 << 1;
    pub const EXACT: u32 = 1 << 3;
    pub const BY_TIME: u32 = 1 << 4;
    pub const TUNABLE: u32 = 1 << 5;
}

/// What a step does.
pub mod op {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const ACT: u32 = 3;
}

/// Flags of `STROBE_CREATE`.
pub mod create_flag {
    pub const DRY_RUN: u32 = 1 << 0;
    pub const SHARED: u32 = 1 << 1;
}

/// What is wrong with a `STROBE_CREATE`, beyond its errno.
pub mod why {
    pub const EVENT: u32 = 1;
    pub const PERIOD: u32 = 2;
    pub const STEPS: u32 = 3;
    pub const STEP: u32 = 4;
    pub const NAME: u32 = 5;
    pub const BUSY: u32 = 6;
    pub const VALUE: u32 = 7;
    pub const DUE: u32 = 8;
    pub const CAPACITY: u32 = 9;
    pub const CLOCK: u32 = 10;
    pub const MEMORY: u32 = 11;
    pub const PROVIDER: u32 = 12;
    pub const PRIORITY: u32 = 13;
    pub const COST: u32 = 14;
    pub const RUNS: u32 = 15;
    pub const ASYNC: u32 = 16;
    pub const PROGRAM: u32 = 17;
    pub const DERIVED: u32 = 18;
}

/// What `STROBE_CONTROL` does.
pub mod control_op {
    pub const STATUS: u32 = 0;
    pub const START: u32 = 1;
    pub const PAUSE: u32 = 2;
    pub const RESUME: u32 = 3;
    pub const STOP: u32 = 4;
    pub const TRIGGER: u32 = 5;
}

/// `struct strobe_value`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u32,
    pub cost_class: u32,
    pub unit: [u8; UNIT_SIZE],
    pub scale: u64,
    pub offset: u64,
    pub bits: u32,
    pub cost_ns: u32,
}

/// `struct strobe_run_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RunInfo {
    pub state: u32,
    pub error: i32,
    pub channels: u32,
    pub readers: u32,
    pub uid: u32,
    pub pid: i32,
    pub capacity: u64,
    pub limit: u64,
    pub head: u64,
    pub triggers: u64,
    pub period_ns: u64,
    pub elapsed_ns: u64,
    pub skipped: u64,
    pub errors: u64,
    pub outputs: u32,
    pub reserved: u32,
}

/// The union inside `struct strobe_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Detail {
    value: Value,
    run: RunInfo,
    reserved: [u64; 16],
}

/// `struct strobe_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub kind: u32,
    pub id: u32,
    pub parent: u32,
    pub flags: u32,
    pub name: [u8; NAME_SIZE],
    pub text: [u8; TEXT_SIZE],
    pub detail: Detail,
}

impl Entry {
    /// An entry for the kernel to fill in.
    pub const EMPTY: Entry = Entry {
        kind: 0,
        id: 0,
        parent: 0,
        flags: 0,
        name: [0; NAME_SIZE],
        text: [0; TEXT_SIZE],
        detail: Detail { reserved: [0; 16] },
    };

    /// The detail of a channel or an output.
    pub fn value(&self) -> Value {
        // SAFETY: all 128 bytes of the union are always initialised, and each
        // member is made of integers, for which every bit pattern is valid.
        unsafe { self.detail.value }
    }

    /// The detail of a run.
    pub fn run(&self) -> RunInfo {
        // SAFETY: as for `value`.
        unsafe { self.detail.run }
    }
}

/// `struct strobe_list`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct List {
    pub size: u32,
    pub flags: u32,
    pub run: u32,
    pub entry_size: u32,
    pub buffer: u64,
    pub room: u32,
    pub count: u32,
    pub generation: u64,
}

/// `struct strobe_step`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Step {
    pub op: u32,
    pub flags: u32,
    pub value: u64,
    pub name: [u8; NAME_SIZE],
}

/// `struct strobe_create`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Create {
    pub size: u32,
    pub flags: u32,
    pub event: [u8; NAME_SIZE],
    pub period_ns: u64,
    pub capacity: u64,
    pub limit: u64,
    pub steps: u64,
    pub step_count: u32,
    pub step_size: u32,
    pub clock: u32,
    pub priority: u32,
    pub answer: u64,
    pub answer_size: u32,
    pub reserved: u32,
    pub program: u64,
}

impl Create {
    /// A request in which everything is left to the kernel.
    pub const EMPTY: Create = Create {
        size: 0,
        flags: 0,
        event: [0; NAME_SIZE],
        period_ns: 0,
        capacity: 0,
        limit: 0,
        steps: 0,
        step_count: 0,
        step_size: 0,
        clock: 0,
        priority: 0,
        answer: 0,
        answer_size: 0,
        reserved: 0,
        program: 0,
    };
}

/// `struct strobe_created`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Created {
    pub fd: i32,
    pub run: u32,
    pub fault_step: u32,
    pub why: u32,
    pub channels: u32,
    pub outputs: u32,
    pub row_size: u32,
    pub row_stride: u32,
    pub capacity: u64,
    pub ring_bytes: u64,
    pub cost_ns: u64,
}

impl Created {
    /// What is known should the kernel not come to answer: nothing.
    pub const NOTHING: Created = Created {
        fd: -1,
        run: 0,
        fault_step: u32::MAX,
        why: 0,
        channels: 0,
        outputs: 0,
        row_size: 0,
        row_stride: 0,
        capacity: 0,
        ring_bytes: 0,
        cost_ns: 0,
    };
}

/// `struct strobe_features`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub size: u32,
    pub flags: u32,
    pub major: u16,
    pub minor: u16,
    pub create_flags: u32,
    pub reader_flags: u32,
    pub incompat: u32,
    pub causes: u32,
    pub steps_max: u32,
    pub features: u64,
}

/// `struct strobe_control`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Control {
    pub size: u32,
    pub op: u32,
    pub flags: u32,
    pub count: u32,
    pub state: u32,
    pub error: i32,
    pub head: u64,
    pub triggers: u64,
    pub skipped: u64,
    pub cause: i32,
    pub reserved: u32,
}

/// `struct strobe_reader`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Reader {
    pub size: u32,
    pub flags: u32,
    pub run: u32,
    pub reserved: u32,
    pub first: u64,
    pub fd: i32,
    pub channels: u32,
    pub outputs: u32,
    pub row_size: u32,
    pub ring_bytes: u64,
}

/// `struct strobe_arm`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Arm {
    pub size: u32,
    pub flags: u32,
    pub rows: u64,
}

/// `struct strobe_tune`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Tune {
    pub size: u32,
    pub flags: u32,
    pub run: u32,
    pub tunable: u32,
    pub value: u64,
}

const MAGIC: u8 = 0xDA;
const LIST: Opcode = opcode::none(MAGIC, 0x00);
const CREATE: Opcode = opcode::none(MAGIC, 0x01);
const CONTROL: Opcode = opcode::none(MAGIC, 0x02);
const READER: Opcode = opcode::none(MAGIC, 0x03);
const ARM: Opcode = opcode::none(MAGIC, 0x04);
const FEATURES: Opcode = opcode::none(MAGIC, 0x05);
const TUNE: Opcode = opcode::none(MAGIC, 0x06);

fn size_of_u32<T>() -> u32 {
    // Every structure here is far below 4 GiB.
    std::mem::size_of::<T>() as u32
}

/// `STROBE_LIST`: fills `room`; the answer says how many entries there are.
pub fn list(fd: BorrowedFd<'_>, run: u32, room: &mut [Entry]) -> io::Result<List> {
    let mut list = List {
        size: size_of_u32::<List>(),
        run,
        entry_size: size_of_u32::<Entry>(),
        buffer: room.as_mut_ptr() as u64,
        room: u32::try_from(room.len()).unwrap_or(u32::MAX),
        ..List::default()
    };
    // SAFETY: LIST takes a `struct strobe_list`, which `List` is, and stores at
    // most `room` entries of `entry_size` bytes at `buffer`, which is `room`.
    unsafe { ioctl(fd, Updater::<LIST, List>::new(&mut list))? };
    Ok(list)
}

/// `STROBE_FEATURES`.
pub fn features(fd: BorrowedFd<'_>) -> io::Result<Features> {
    let mut features = Features {
        size: size_of_u32::<Features>(),
        ..Features::default()
    };
    // SAFETY: FEATURES takes a `struct strobe_features`, which `Features` is,
    // and touches no other memory of ours.
    unsafe { ioctl(fd, Updater::<FEATURES, Features>::new(&mut features))? };
    Ok(features)
}

/// `STROBE_CREATE`: the owner fd, if one was made. `answer` is filled in after
/// an error, too.
pub fn create(
    fd: BorrowedFd<'_>,
    create: &Create,
    steps: &[Step],
    program: Option<&ProgramParts>,
    answer: &mut Created,
) -> io::Result<Option<OwnedFd>> {
    *answer = Created::NOTHING;
    let program = program.map(Program::of);
    let program = program.as_ref();
    let mut create = Create {
        size: size_of_u32::<Create>(),
        steps: steps.as_ptr() as u64,
        step_count: u32::try_from(steps.len()).unwrap_or(u32::MAX),
        step_size: size_of_u32::<Step>(),
        answer: std::ptr::from_mut(answer) as u64,
        answer_size: size_of_u32::<Created>(),
        program: program.map_or(0, |program| std::ptr::from_ref(program) as u64),
        ..*create
    };
    // SAFETY: CREATE takes a `struct strobe_create`, which `Create` is; it only
    // reads `step_count` steps of `step_size` bytes at `steps`, and a `struct
    // strobe_program` at `program`, which is none or ours, with two arrays that
    // are `insns` and `derived` of who has called; and writes at
    // most `answer_size` bytes at `answer`, which is a `struct strobe_created`
    // that nobody else uses meanwhile.
    unsafe { ioctl(fd, Updater::<CREATE, Create>::new(&mut create))? };
    Ok(fd::adopt(answer.fd))
}

/// `STROBE_CONTROL`. `answer` is filled in after an error, too.
pub fn control(fd: BorrowedFd<'_>, op: u32, count: u32, answer: &mut Control) -> io::Result<()> {
    *answer = Control {
        size: size_of_u32::<Control>(),
        op,
        count,
        ..Control::default()
    };
    // SAFETY: CONTROL takes a `struct strobe_control`, which `Control` is, and
    // touches no other memory of ours.
    unsafe { ioctl(fd, Updater::<CONTROL, Control>::new(answer)) }
}

/// `STROBE_READER`: a ring fd, and how many bytes to map.
pub fn reader(fd: BorrowedFd<'_>, run: u32) -> io::Result<(OwnedFd, u64)> {
    let mut reader = Reader {
        size: size_of_u32::<Reader>(),
        run,
        fd: -1,
        ..Reader::default()
    };
    // SAFETY: READER takes a `struct strobe_reader`, which `Reader` is, and
    // touches no other memory of ours.
    unsafe { ioctl(fd, Updater::<READER, Reader>::new(&mut reader))? };
    let fd = fd::adopt(reader.fd).ok_or(io::Errno::BADF)?;
    Ok((fd, reader.ring_bytes))
}

/// `STROBE_ARM`.
pub fn arm(fd: BorrowedFd<'_>, rows: u64) -> io::Result<()> {
    let mut arm = Arm {
        size: size_of_u32::<Arm>(),
        flags: 0,
        rows,
    };
    // SAFETY: ARM takes a `struct strobe_arm`, which `Arm` is, and touches no
    // other memory of ours.
    unsafe { ioctl(fd, Updater::<ARM, Arm>::new(&mut arm)) }
}

/// `STROBE_TUNE`: on the control device of this run, on an owner fd of run 0.
pub fn tune(fd: BorrowedFd<'_>, run: u32, tunable: u32, value: u64) -> io::Result<()> {
    let mut tune = Tune {
        size: size_of_u32::<Tune>(),
        flags: 0,
        run,
        tunable,
        value,
    };
    // SAFETY: TUNE takes a `struct strobe_tune`, which `Tune` is, and touches no
    // other memory of ours.
    unsafe { ioctl(fd, Updater::<TUNE, Tune>::new(&mut tune)) }
}

#[cfg(test)]
mod tests;
