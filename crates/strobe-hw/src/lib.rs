// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of strobe touches hardware, or needs `unsafe`: above this crate and `strobe-ring` nothing does.
//!
//! [`map`] maps registers, [`uio`] and [`rpmsg`] speak to those drivers, [`rt`] sets up real-time threads, [`wakeup`]
//! wakes them. The others are calls of the kernel, each made safe.

#[cfg(feature = "internals")]
pub mod allocations;
pub mod counter;
pub mod cpu_latency_request;
pub mod cycles;
pub mod fd;
pub mod hpet;
#[cfg(feature = "internals")]
pub mod interrupt;
pub mod map;
pub mod mmap;
pub mod perf;
pub mod rpmsg;
pub mod rt;
pub mod uapi;
pub mod uio;
#[cfg(feature = "io-uring")]
pub mod uring;
pub mod usbtmc;
pub mod wakeup;
