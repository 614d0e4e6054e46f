// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversations with instruments. Each instrument has a thread, which alone speaks to it: a row asks, and waits for the
//! answer or takes the latest one. What does not come is a [`Fault`], never an answer of before.
//!
//! A `Line` carries one question at a time: texts, Modbus, or transfers of a bus. Texts and Modbus go over a `Stream`: TCP,
//! a serial line, a USB device.
//!
//! A [`Chip`] has registers instead, on the same buses; who reads one of them waits for it.
#![forbid(unsafe_code)]

mod bus;
mod chip;
mod conversation;
mod count;
mod fault;
mod latest;
mod line;
mod modbus;
mod queue;
mod reach;
mod stream;
mod text;

pub use chip::Chip;
pub use conversation::Conversation;
pub use count::Counts;
pub use fault::Fault;
pub use latest::Latest;
pub use queue::Errand;
