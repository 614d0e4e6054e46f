// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows by way of NATS, with a server of NATS that is started for each test.

mod common;
mod joined;
mod killed;
mod taken;
mod told;
