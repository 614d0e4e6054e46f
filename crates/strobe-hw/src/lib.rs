// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of strobe touches hardware, or needs `unsafe`: above this crate and `strobe-ring` nothing does.
//!
//! [`map`] maps registers, [`uio`] and [`rpmsg`] speak to those drivers, [`rt`] sets up real-time threads, [`bell`]
//! wakes them. The others are calls of the kernel, each made safe.

pub mod awake;
pub mod bell;
pub mod map;
pub mod mmap;
pub mod rpmsg;
pub mod rt;
pub mod uapi;
pub mod uio;
