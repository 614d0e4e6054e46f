// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of a ring, as `include/uapi/strobe.h` fixes it.
//!
//! The two `repr(C)` structures are never laid over the memory of a ring (it changes under us); they
//! give the offsets, and a test compares every one of them with what a C compiler says.

use std::fmt;

/// First word of a ring. Byte-swapped, the ring is of a machine of foreign byte order.
pub const RING_MAGIC: u64 = 0x0100_4542_4F52_5453;
/// Version of the contract and of the layout; a reader refuses another one.
pub const RING_MAJOR: u16 = 1;
/// Grows when fields are added; a reader ignores it.
pub const RING_MINOR: u16 = 6;
/// Bits of [`RingHeader::incompat`] that this reader understands.
pub const KNOWN_INCOMPAT: u32 = INCOMPAT_FAULTS | INCOMPAT_SKIPPED | INCOMPAT_ABSENT;
/// Bit of [`RingHeader::incompat`]: rows have fault words behind their values.
pub const INCOMPAT_FAULTS: u32 = 1 << 0;
/// Bit of [`RingHeader::incompat`]: rows end with a count of skipped triggers.
pub const INCOMPAT_SKIPPED: u32 = 1 << 1;
/// Bit of [`RingHeader::incompat`]: rows may be absent. A row whose first word is not its number is lost.
pub const INCOMPAT_ABSENT: u32 = 1 << 2;
/// [`RingHeader::limit`] of a run that goes on until it is stopped.
pub const NO_LIMIT: u64 = u64::MAX;
/// Length of [`RingHeader::missed`].
pub const MISSED_CAUSES: usize = 8;
/// Rows of one ring, at most.
pub const CAPACITY_MAX: u64 = 1 << 32;
/// The row stride is a multiple of this, so that a reader of the newest row does not share a cache line
/// with the row that is being written.
pub const STRIDE_UNIT: u32 = 64;
/// Bytes of [`RingHeader`].
pub const HEADER_SIZE: usize = size_of::<RingHeader>();
/// Words of a row before its values: row, trigger, time, status.
pub const ROW_HEADER_WORDS: usize = size_of::<RowHeader>() / 8;
/// `clock` of a ring whose times are CLOCK_MONOTONIC.
pub const CLOCK_MONOTONIC: u32 = 1;
/// `clock` of a ring whose times are CLOCK_TAI.
pub const CLOCK_TAI: u32 = 11;

/// Bit of a row's status: first row after a pause or a suspend.
pub const ROW_RESUMED: u64 = 1 << 0;
/// Bit of a row's status: of a timer, a whole period late, or more.
pub const ROW_LATE: u64 = 1 << 1;
/// All flags of a row's status.
pub const ROW_FLAGS: u64 = ROW_RESUMED | ROW_LATE;
/// Bits of a row's status: what failed of the first [`STATUS_FAULTS`] channels and outputs.
pub const ROW_FAULTS: u64 = !0 << 32;
/// So many channels and outputs have their fault in the status; those behind have it in fault words.
pub const STATUS_FAULTS: u32 = 32;

/// `struct strobe_ring_header`: the first 256 bytes of a ring. The contract documents every field.
#[allow(missing_docs)]
#[repr(C)]
pub struct RingHeader {
    // Constant: written before anybody else can see the ring, never again.
    pub magic: u64,
    pub major: u16,
    pub minor: u16,
    pub header_size: u32,
    pub row_stride: u32,
    pub channels: u32,
    pub capacity: u64,
    pub limit: u64,
    pub data_offset: u64,
    pub clock: u32,
    pub incompat: u32,
    pub period_ns: u64,
    pub run: u32,
    pub engine: u32,
    pub outputs: u32,
    pub row_size: u32,
    pub reserved0: u64,
    // Start: written once, before the state leaves READY.
    pub start_time: u64,
    pub start_realtime: u64,
    pub start_tai: u64,
    pub first_due: u64,
    pub reserved1: u64,
    // Live: written by the producer alone. A block of its own, 128 bytes from the start.
    pub head: u64,
    pub triggers: u64,
    pub state: u32,
    pub error: i32,
    pub wake: u32,
    pub reserved2: u32,
    pub missed: [u64; MISSED_CAUSES],
    pub errors: u64,
    pub end_time: u64,
    pub skipped: u64,
    pub reserved3: u64,
}

/// `struct strobe_row`, without the words that follow it: see [`RowShape`](crate::RowShape).
#[allow(missing_docs)]
#[repr(C)]
pub struct RowHeader {
    pub row: u64,
    pub trigger: u64,
    pub time: u64,
    pub status: u64,
}

/// Where a run is (`enum strobe_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Created, not started.
    Ready,
    /// Triggers make rows.
    Running,
    /// Triggers are not counted.
    Paused,
    /// All rows of the limit were made.
    Done,
    /// Ended on request.
    Stopped,
    /// Ended by a failure; the header's error says which.
    Failed,
    /// A state that a later version knows. All of them are final.
    Other(u32),
}

impl State {
    /// The state that a ring's header holds.
    pub fn from_raw(raw: u32) -> State {
        match raw {
            0 => State::Ready,
            1 => State::Running,
            2 => State::Paused,
            3 => State::Done,
            4 => State::Stopped,
            5 => State::Failed,
            other => State::Other(other),
        }
    }

    /// As the header holds it.
    pub fn to_raw(self) -> u32 {
        match self {
            State::Ready => 0,
            State::Running => 1,
            State::Paused => 2,
            State::Done => 3,
            State::Stopped => 4,
            State::Failed => 5,
            State::Other(other) => other,
        }
    }

    /// Whether the run has ended: nothing in the ring will change any more.
    pub fn is_final(self) -> bool {
        self.to_raw() >= State::Done.to_raw()
    }

    /// One lower-case word, for people and for JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Running => "running",
            State::Paused => "paused",
            State::Done => "done",
            State::Stopped => "stopped",
            State::Failed => "failed",
            State::Other(_) => "ended",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a trigger made no row (`enum strobe_missed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Grid points of a timer that had passed before the timer was served.
    Overrun = 0,
    /// The row before was still unfinished.
    Busy = 1,
    /// The run would have taken more than its budget of the CPU.
    Throttled = 2,
    /// Triggers that the source itself reports it could not deliver.
    Source = 3,
    /// Grid points of a timer that passed while the machine was suspended.
    Suspended = 4,
}

impl Missed {
    /// Names of all causes that a header has room for, in the order of its `missed` counters. Causes
    /// that this version does not know have a name too, for they count as well.
    pub const NAMES: [&'static str; MISSED_CAUSES] = [
        "overrun",
        "busy",
        "throttled",
        "source",
        "suspended",
        "cause5",
        "cause6",
        "cause7",
    ];

    /// One lower-case word, for people and for JSON.
    pub fn name(self) -> &'static str {
        Missed::NAMES[self as usize]
    }
}

/// Who fills a ring (`enum strobe_engine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The kernel module.
    Kernel,
    /// A thread of a program.
    User,
    /// One that a later version knows.
    Other(u32),
}

impl Engine {
    /// The engine that a ring's header names.
    pub fn from_raw(raw: u32) -> Engine {
        match raw {
            1 => Engine::Kernel,
            2 => Engine::User,
            other => Engine::Other(other),
        }
    }

    /// As the header holds it.
    pub fn to_raw(self) -> u32 {
        match self {
            Engine::Kernel => 1,
            Engine::User => 2,
            Engine::Other(other) => other,
        }
    }

    /// One lower-case word, for people and for JSON.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Kernel => "kernel",
            Engine::User => "user",
            Engine::Other(_) => "other",
        }
    }
}

/// Status word of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u64);

impl Status {
    /// First row after a pause or a suspend: the time since the row before says nothing about the period.
    pub fn resumed(self) -> bool {
        self.0 & ROW_RESUMED != 0
    }

    /// The row came a whole period late, or more.
    pub fn late(self) -> bool {
        self.0 & ROW_LATE != 0
    }
}
