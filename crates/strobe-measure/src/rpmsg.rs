// SPDX-License-Identifier: MIT OR Apache-2.0
//! What endpoints of co-processors take: to make them, and to send messages.

pub mod bench;
pub mod ping;
