// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of the user engine, for tests and the bench of this project: other programs have no promise of them.

pub use crate::engine::user::hpet::Hpet;
pub use crate::engine::user::memfd::{RingFile, ring_memory};
