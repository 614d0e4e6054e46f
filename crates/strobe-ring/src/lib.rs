// SPDX-License-Identifier: MIT OR Apache-2.0
//! The row ring of strobe: one producer writes rows, any number of readers look on, nobody waits for
//! anybody, and every row that a reader was too slow for is counted.
//!
//! No syscalls and no dependencies: the memory may be a mapping of the kernel engine's ring, a memfd, a
//! file, or the model checker's. The design is in `docs/design/ring.md`, the contract in
//! `include/uapi/strobe.h`.
//!
//! ```
//! use strobe_ring::{
//!     Begin, End, Engine, Geometry, Header, MemoryMut, Reader, RowShape, StartTimes, Writer,
//! };
//!
//! // The producer: a ring of 8 rows of 2 channels, for a run of 3 rows.
//! let geometry = Geometry::new(RowShape::of_channels(2), 8, 3)?;
//! let header = Header { geometry, clock: 1, period_ns: 0, run: 1, engine: Engine::User, absent: false };
//! let mut writer = Writer::create(MemoryMut::zeroed(geometry.bytes() as usize), &header)?;
//! let mut reader = Reader::attach(writer.for_reader(), Begin::Oldest)?;
//! writer.start(StartTimes::default())?;
//! for time in [100, 200, 300] {
//!     writer.push(time, 0, &[7, 8]);
//! }
//! writer.finish(End::Done, 300);
//!
//! // The reader.
//! let mut buffer = vec![0; 16 * reader.row_words()];
//! while !reader.ended() {
//!     let batch = reader.read(&mut buffer);
//!     assert_eq!(batch.lost, 0);
//!     for row in batch.rows() {
//!         assert!(row.faults.is_empty());
//!         assert_eq!(row.values, [7, 8]);
//!     }
//! }
//! assert_eq!(reader.delivered(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "64-bit words of a read-only mapping cannot be loaded atomically here: use read() on a ring fd"
);

mod barrier;
mod batch;
mod geometry;
mod header;
pub mod layout;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod memory;
#[cfg(loom)]
#[path = "memory_loom.rs"]
mod memory;
mod reader;
mod shape;
mod sync;
mod writer;

#[cfg(loom)]
pub use barrier::{Rule, break_rule};
pub use batch::{Batch, Row, Rows};
pub use geometry::{Geometry, GeometryError, oldest};
pub use header::{AttachError, Header, Snapshot, StartTimes};
pub use layout::{Engine, Missed, State, Status};
pub use memory::{Memory, MemoryMut};
pub use reader::{AfterLoss, Begin, Reader};
pub use shape::{Faults, RowShape};
pub use writer::{CreateError, End, NewRow, Writer, WrongState};
