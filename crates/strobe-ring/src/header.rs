// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the header of a ring says: checked when a reader attaches, and its live part at any time.

use crate::barrier;
use crate::geometry::{Geometry, GeometryError};
use crate::layout::{
    Engine, HEADER_SIZE, INCOMPAT_ABSENT, INCOMPAT_SKIPPED, KNOWN_INCOMPAT, MISSED_CAUSES,
    RING_MAGIC, RING_MAJOR, RING_MINOR, RingHeader, State,
};
use crate::memory::Memory;
use crate::shape::RowShape;
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
    /// Whether rows may be absent, as in the replay of a recording that lacks some: see
    /// [`Writer::absent`](crate::Writer::absent).
    pub absent: bool,
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
        let incompat = constant.u32(offset_of!(RingHeader, incompat));
        let unknown = incompat & !KNOWN_INCOMPAT;
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
        let shape = RowShape {
            channels: constant.u32(offset_of!(RingHeader, channels)),
            outputs: constant.u32(offset_of!(RingHeader, outputs)),
            skipped: incompat & INCOMPAT_SKIPPED != 0,
        };
        let row_size = constant.u32(offset_of!(RingHeader, row_size));
        if u64::from(row_size) != shape.bytes() || shape.incompat() & !incompat != 0 {
            return Err(AttachError::RowSize {
                row_size,
                incompat,
                shape,
            });
        }
        let geometry = Geometry::from_parts(
            shape,
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
            absent: incompat & INCOMPAT_ABSENT != 0,
        })
    }

    /// Writes the header of a new ring; the magic last, so that it is never seen half made.
    pub(crate) fn store(&self, memory: &Memory) {
        let mut bytes = [0; HEADER_SIZE];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        macro_rules! put {
            ($($field:ident: $value:expr,)*) => {
                $(put(offset_of!(RingHeader, $field), &$value.to_ne_bytes());)*
            };
        }
        let geometry = &self.geometry;
        let shape = geometry.shape();
        put! {
            major: RING_MAJOR,
            minor: RING_MINOR,
            header_size: (HEADER_SIZE as u32),
            row_stride: geometry.row_stride(),
            channels: shape.channels,
            capacity: geometry.capacity(),
            limit: geometry.limit(),
            data_offset: geometry.data_offset(),
            clock: self.clock,
            incompat: shape.incompat() | (u32::from(self.absent) * INCOMPAT_ABSENT),
            period_ns: self.period_ns,
            run: self.run,
            engine: self.engine.to_raw(),
            outputs: shape.outputs,
            row_size: (shape.bytes() as u32),
        }

        let halves = offset_of!(RingHeader, state)..offset_of!(RingHeader, missed);
        for offset in halves.clone().step_by(4) {
            memory.half(offset).store(0, Ordering::Relaxed);
        }
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            if !halves.contains(&(index * 8)) {
                let word = word.try_into().map_or(0, u64::from_ne_bytes);
                memory.word(index * 8).store(word, Ordering::Relaxed);
            }
        }
        barrier::make_known(memory); // I
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
/// When the state is final, all of it is exact: `triggers` is the sum of `head`, [`missed`](Snapshot::missed)
/// and `skipped`. Before, the counters are of slightly different moments: each is right, their differences may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the run is.
    pub state: State,
    /// Rows made.
    pub head: u64,
    /// Triggers known.
    pub triggers: u64,
    /// Triggers that were left out on purpose: no loss.
    pub skipped: u64,
    /// Triggers that should have made a row and did not, by cause: see [`Missed::NAMES`](crate::layout::Missed::NAMES).
    pub missed_by: [u64; MISSED_CAUSES],
    /// Rows in which a channel or an output failed.
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
            skipped: word(offset_of!(RingHeader, skipped)),
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

    /// Triggers that should have made a row and did not, whatever the cause. What was skipped is not among them.
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
    /// The size of a row is not that of its channels, its fault words and its skipped word.
    RowSize {
        /// Bytes of a row.
        row_size: u32,
        /// Which words there are behind the values.
        incompat: u32,
        /// What a row consists of.
        shape: RowShape,
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
                    "not a ring: {bytes} bytes, and the header alone has {HEADER_SIZE}"
                )
            }
            AttachError::Magic { magic } => {
                write!(
                    f,
                    "not a ring: it begins with {magic:#018x} instead of {RING_MAGIC:#018x}"
                )
            }
            AttachError::ForeignByteOrder => {
                f.write_str("a ring from a machine with the other byte order: read it there")
            }
            AttachError::Major { major } => {
                write!(
                    f,
                    "a ring with layout version {major}, and this program reads version {RING_MAJOR}: use a program as \
                     new as the ring's engine"
                )
            }
            AttachError::Incompat { unknown } => {
                write!(
                    f,
                    "a ring with features unknown to this program ({unknown:#x}): use one as new as the ring's engine"
                )
            }
            AttachError::HeaderSize {
                header_size,
                data_offset,
            } => {
                write!(
                    f,
                    "damaged ring: a header of {header_size} bytes, rows at byte {data_offset}; the header needs {HEADER_SIZE} bytes before the rows"
                )
            }
            AttachError::RowSize {
                row_size,
                incompat,
                shape,
            } => {
                let RowShape {
                    channels, outputs, ..
                } = shape;
                let (need, bits) = (shape.bytes(), shape.incompat());
                write!(
                    f,
                    "damaged ring: rows of {row_size} bytes and features {incompat:#x}; {channels} channels and {outputs} outputs need {need} bytes and {bits:#x}"
                )
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
