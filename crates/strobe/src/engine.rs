// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines: who makes rows.
//!
//! What is above the ring does not know which engine fills it; all it needs is a [`Run`](crate::run::Run).

use crate::channel::Channel;

pub mod kernel;
mod run_part;
pub mod user;

pub use crate::error::Error;

/// What a run would be.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DryRun {
    /// Who would make the rows.
    pub engine: &'static str,
    /// The values of a row, in their order.
    pub channels: Vec<Channel>,
    /// Bytes from row to row.
    pub row_bytes: u32,
    /// Rows in the ring.
    pub ring_rows: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Rough time the steps of one row take.
    pub cost_ns: u64,
}
