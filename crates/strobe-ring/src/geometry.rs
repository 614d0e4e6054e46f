// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the rows of a ring lie, and which of them can be read.

use crate::barrier::guard_rows;
use crate::layout::{CAPACITY_MAX, HEADER_SIZE, STRIDE_UNIT};
use crate::shape::RowShape;
use std::fmt;

/// The oldest row that can be read when `head` rows have been made: row i is whole and stays whole while
/// it is copied if and only if `oldest <= i < head`.
///
/// This is the whole arithmetic of the ring. The row being written is row `head`, and destroys row
/// `head - capacity`: that one is the guard, so the window is one row less than the capacity. The second
/// term says that rows which will never be overwritten, because row i + capacity is beyond the limit,
/// stay readable: a ring with `limit <= capacity` keeps all of its rows, without a flag for it.
pub fn oldest(head: u64, capacity: u64, limit: u64) -> u64 {
    head.saturating_sub(capacity - guard_rows())
        .min(limit.saturating_sub(capacity))
}

/// Shape of a ring: checked once, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    shape: RowShape,
    row_stride: u32,
    capacity: u64,
    limit: u64,
    data_offset: u64,
    bytes: u64,
}

impl Geometry {
    /// Shape for a new ring: the smallest stride, rows from the second page on.
    pub fn new(shape: RowShape, capacity: u64, limit: u64) -> Result<Geometry, GeometryError> {
        let row_stride = (shape.bytes())
            .checked_next_multiple_of(u64::from(STRIDE_UNIT))
            .and_then(|stride| u32::try_from(stride).ok())
            .ok_or(GeometryError::TooLarge)?;
        if capacity > CAPACITY_MAX {
            return Err(GeometryError::Capacity { capacity });
        }
        Geometry::from_parts(shape, row_stride, capacity, limit, 4096)
    }

    /// Shape as a header states it.
    pub fn from_parts(
        shape: RowShape,
        row_stride: u32,
        capacity: u64,
        limit: u64,
        data_offset: u64,
    ) -> Result<Geometry, GeometryError> {
        if row_stride % STRIDE_UNIT != 0 || u64::from(row_stride) < shape.bytes() {
            return Err(GeometryError::RowStride { row_stride, shape });
        }
        if capacity < 2 || !capacity.is_power_of_two() {
            return Err(GeometryError::Capacity { capacity });
        }
        if data_offset < HEADER_SIZE as u64 || data_offset % u64::from(STRIDE_UNIT) != 0 {
            return Err(GeometryError::DataOffset { data_offset });
        }
        let bytes = capacity
            .checked_mul(u64::from(row_stride))
            .and_then(|rows| rows.checked_add(data_offset))
            .filter(|&bytes| bytes <= isize::MAX as u64)
            .ok_or(GeometryError::TooLarge)?;
        Ok(Geometry {
            shape,
            row_stride,
            capacity,
            limit,
            data_offset,
            bytes,
        })
    }

    /// What a row consists of.
    #[inline]
    pub fn shape(&self) -> RowShape {
        self.shape
    }

    /// Values in a row.
    #[inline]
    pub fn channels(&self) -> u32 {
        self.shape.channels
    }

    /// Bytes from row to row.
    pub fn row_stride(&self) -> u32 {
        self.row_stride
    }

    /// Rows in the ring.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Rows the run will make at most.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Where row 0 lies, from the start of the ring.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Bytes of the ring, header included: what has to be mapped.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// 64-bit words of a row as a reader gets it, without the padding.
    #[inline]
    pub fn row_words(&self) -> usize {
        self.shape.words() as usize
    }

    /// Whether a row can ever be overwritten.
    pub fn is_circular(&self) -> bool {
        self.limit > self.capacity
    }

    /// The oldest row that can be read when `head` rows have been made, see [`oldest`].
    pub fn oldest(&self, head: u64) -> u64 {
        oldest(head, self.capacity, self.limit)
    }

    /// Where a reader goes on that was overtaken: half a ring behind the producer, so that it is not
    /// overtaken again at once, but never past rows that can no longer be overwritten.
    pub(crate) fn restart(&self, head: u64) -> u64 {
        head.saturating_sub(self.capacity / 2)
            .min(self.limit.saturating_sub(self.capacity))
    }

    /// First word of row `row` in the ring. In range for every number, for `bytes` was checked.
    #[inline]
    pub(crate) fn slot(&self, row: u64) -> usize {
        let bytes = self.data_offset + (row & (self.capacity - 1)) * u64::from(self.row_stride);
        (bytes / 8) as usize
    }
}

/// What is wrong with the shape of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// The stride is not a multiple of 64, or a row does not fit.
    RowStride {
        /// Bytes from row to row.
        row_stride: u32,
        /// What a row consists of.
        shape: RowShape,
    },
    /// The capacity is not a power of two, below 2 or too large.
    Capacity {
        /// Rows in the ring.
        capacity: u64,
    },
    /// The rows start inside the header, or are not aligned.
    DataOffset {
        /// Where row 0 lies.
        data_offset: u64,
    },
    /// The ring is larger than the address space.
    TooLarge,
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeometryError::RowStride { row_stride, shape } => {
                let (channels, need) = (shape.channels, shape.bytes());
                write!(
                    f,
                    "row stride of {row_stride} bytes: rows of {channels} channels need a multiple of 64, at least {need}"
                )
            }
            GeometryError::Capacity { capacity } => {
                write!(
                    f,
                    "capacity of {capacity} rows: it must be a power of two, from 2 to {CAPACITY_MAX}"
                )
            }
            GeometryError::DataOffset { data_offset } => {
                write!(
                    f,
                    "rows at byte {data_offset}: they must start at a multiple of 64 behind the header"
                )
            }
            GeometryError::TooLarge => {
                f.write_str("a ring larger than the address space: ask for fewer rows or channels")
            }
        }
    }
}

impl std::error::Error for GeometryError {}
