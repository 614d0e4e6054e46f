// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients of the PandA ports get; the stock ones are tried by tests/panda.

mod client;
mod gates;
mod positions;
mod readers;
mod samples;
mod sequences;
