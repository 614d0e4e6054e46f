// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the header of a ring says: checked when a reader attaches, and its live part at any time.

use crate::barrier;
use crate::geometry::{Geometry, GeometryError};
use crate::layout::{
    Engine, RingHeader, State, HEADER_SIZE, KNOWN_INCOMPAT, MISSED_CAUSES, RING_MAGIC, RING_MAJOR,
};
use crate::memory::Memory;
use crate::sync::Ordering;
use std::fmt;
use std::mem::offset_of;

/// The constant part of a header: what a run is, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Shape of the ring.
    pub geometry: Geometry,
    /// Clock of all times: [`CLOCK_MONOTONIC`](crate::layout::CLOCK_MONOTONIC) or
    /// [`CLOCK_TAI`](crate::layout::CLOCK_TAI).
    pub clock: u32,
    /// Period of a timer event; 0 for others.
    pub period_ns: u64,
    /// Id of the run.
    pub run: u32,
    /// Who fills the ring.
    pub engine: Engine,
}

impl Header {
    /// Reads and checks the constant part; every word of it once.
    pub(crate) fn load(memory: &Memory) -> Result<Header, AttachError> {
        if memory.bytes() < HEADER_SIZE {
            return Err(AttachError::NoHeader {
                bytes: memory.bytes() as u64,
            });
        }
        let constant = Constant::load(memory);
        let magic = constant.u64(offset_of!(RingHeader, magic));
        if magic == RING_MAGIC.swap_bytes() {
            return Err(AttachError::ForeignByteOrder);
        }
        if magic != RING_MAGIC {
            return Err(AttachError::Magic { magic });
        }
        let major = constant.u16(offset_of!(RingHeader, major));
        if major != RING_MAJOR {
            return Err(AttachError::Major { major });
        }
        let unknown = constant.u32(offset_of!(RingHeader, incompat)) & !KNOWN_INCOMPAT;
        if unknown != 0 {
            return Err(AttachError::Incompat { unknown });
        }
        let header_size = constant.u32(offset_of!(RingHeader, header_size));
        let data_offset = constant.u64(offset_of!(RingHeader, data_offset));
        if (header_size as usize) < HEADER_SIZE || u64::from(header_size) > data_offset {
            return Err(AttachError::HeaderSize {
                header_size,
                data_offset,
            });
        }
        let geometry = Geometry::from_parts(
            constant.u32(offset_of!(RingHeader, channels)),
            constant.u32(offset_of!(RingHeader, row_stride)),
            constant.u64(offset_of!(RingHeader, capacity)),
            constant.u64(offset_of!(RingHeader, limit)),
            data_offset,
        )
        .map_err(AttachError::Geometry)?;
        if geometry.bytes() > memory.bytes() as u64 {
            return Err(AttachError::CutOff {
                bytes: memory.bytes() as u64,
                need: geometry.bytes(),
            });
        }
        Ok(Header {
            geometry,
            clock: constant.u32(offset_of!(RingHeader, clock)),
            period_ns: constant.u64(offset_of!(RingHeader, period_ns)),
            run: constant.u32(offset_of!(RingHeader, run)),
            engine: Engine::from_raw(constant.u32(offset_of!(RingHeader, engine))),
        })
    }
}

/// A copy of the constant part.
struct Constant([u8; Constant::SIZE]);

impl Constant {
    const SIZE: usize = offset_of!(RingHeader, start_time);

    fn load(memory: &Memory) -> Constant {
        let mut bytes = [0; Constant::SIZE];
        let (first, others) = bytes.split_at_mut(8);
        first.copy_from_slice(&barrier::magic(memory).to_ne_bytes()); // I
        for (word, to) in memory.words()[1..].iter().zip(others.chunks_exact_mut(8)) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        Constant(bytes)
    }

    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[offset + i])
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_ne_bytes(self.at(offset))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.at(offset))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.at(offset))
    }
}

/// When a run started, on three clocks at the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// On the ring's clock, ns.
    pub time: u64,
    /// On CLOCK_REALTIME, ns.
    pub realtime: u64,
    /// On CLOCK_TAI, ns.
    pub tai: u64,
    /// When trigger 0 of a timer was due, on the ring's clock; 0 for other events.
    pub first_due: u64,
}

/// The live part of a header at one moment.
///
/// When the state is final, all of it is exact and `triggers - head` is the sum of `missed`. Before, the
/// counters are of slightly different moments: each is right, their differences may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the run is.
    pub state: State,
    /// Rows made.
    pub head: u64,
    /// Triggers known.
    pub triggers: u64,
    /// Triggers that made no row, by cause: see [`Missed::NAMES`](crate::layout::Missed::NAMES).
    pub missed_by: [u64; MISSED_CAUSES],
    /// Rows in which a channel failed.
    pub errors: u64,
    /// Negative errno of a failed run, else 0.
    pub error: i32,
    /// When the run started; all 0 before.
    pub start: StartTimes,
    /// When the run ended, on the ring's clock; 0 before.
    pub end_time: u64,
}

impl Snapshot {
    pub(crate) fn load(memory: &Memory) -> Snapshot {
        // The state first, as for the head: what is seen with a final state is final.
        let (state, head) = barrier::state_then_head(memory);
        let word = |offset| memory.word(offset).load(Ordering::Relaxed);
        let missed = offset_of!(RingHeader, missed);
        Snapshot {
            state,
            head,
            triggers: word(offset_of!(RingHeader, triggers)),
            missed_by: std::array::from_fn(|cause| word(missed + 8 * cause)),
            errors: word(offset_of!(RingHeader, errors)),
            error: memory
                .half(offset_of!(RingHeader, error))
                .load(Ordering::Relaxed) as i32,
            start: StartTimes {
                time: word(offset_of!(RingHeader, start_time)),
                realtime: word(offset_of!(RingHeader, start_realtime)),
                tai: word(offset_of!(RingHeader, start_tai)),
                first_due: word(offset_of!(RingHeader, first_due)),
            },
            end_time: word(offset_of!(RingHeader, end_time)),
        }
    }

    /// Triggers that made no row, whatever the cause.
    pub fn missed(&self) -> u64 {
        self.missed_by
            .iter()
            .fold(0, |sum, &n| sum.saturating_add(n))
    }
}

/// Why memory cannot be read as a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// Too short even for the header.
    NoHeader {
        /// Bytes there are.
        bytes: u64,
    },
    /// It does not begin as a ring does.
    Magic {
        /// What it begins with.
        magic: u64,
    },
    /// Written by a machine of the other byte order.
    ForeignByteOrder,
    /// Another version of the layout.
    Major {
        /// The version.
        major: u16,
    },
    /// It needs abilities that this reader does not have.
    Incompat {
        /// Bits of them.
        unknown: u32,
    },
    /// The header is smaller than that of the first version, or reaches into the rows.
    HeaderSize {
        /// Bytes of the header.
        header_size: u32,
        /// Where row 0 lies.
        data_offset: u64,
    },
    /// The shape is impossible.
    Geometry(GeometryError),
    /// There are fewer bytes than the header tells.
    CutOff {
        /// Bytes there are.
        bytes: u64,
        /// Bytes of the ring.
        need: u64,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::NoHeader { bytes } => {
                write!(
                    f,
                    "not a ring: {bytes} bytes, and its header alone has {HEADER_SIZE}"
                )
            }
            AttachError::Magic { magic } => {
                write!(
                    f,
                    "not a ring: it begins with {magic:#018x} instead of {RING_MAGIC:#018x}"
                )
            }
            AttachError::ForeignByteOrder => {
                f.write_str("a ring of a machine of the other byte order: read it there")
            }
            AttachError::Major { major } => {
                write!(f, "a ring of layout version {major}, this program reads {RING_MAJOR}: use a program as new as the ring's engine")
            }
            AttachError::Incompat { unknown } => {
                write!(f, "a ring with features unknown to this program ({unknown:#x}): use one as new as the ring's engine")
            }
            AttachError::HeaderSize {
                header_size,
                data_offset,
            } => {
                write!(f, "damaged ring: a header of {header_size} bytes, rows at byte {data_offset}; the header needs {HEADER_SIZE} bytes before the rows")
            }
            AttachError::Geometry(error) => write!(f, "damaged ring: {error}"),
            AttachError::CutOff { bytes, need } => {
                write!(
                    f,
                    "only {bytes} bytes of a ring of {need}: map or copy all of it"
                )
            }
        }
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AttachError::Geometry(error) => Some(error),
            _ => None,
        }
    }
}
