// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the way from an event to its row takes: in the kernel engine, of a UIO device, of a GPIO line, by a counter
//! of a board; and how long it takes to wake a thread.

pub mod delays;
pub mod gpio;
pub mod hook;
pub mod kernel;
pub mod steps;
pub mod uio;
pub mod wake;
