// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PandABlocks protocol: control on one port, rows on another, as the stock clients want them.
//!
//! Parsers and answers know no connections: `line` and `command` read, `control` answers from the `panel`, whose
//! `model` is made of the machine's catalogue. `arm` makes runs of what is chosen there, as `sampling` says; `sequencer` and
//! `compare` trigger them, in software or as row programs, and `stream` sends their rows. docs/reference/panda.md says what is
//! offered.

mod acquisition;
mod answer;
mod arm;
mod ascii;
mod capture;
mod changes;
mod command;
mod compare;
mod control;
mod devices;
mod enable;
mod field;
mod frame_rows;
mod get;
mod header;
mod line;
mod model;
mod number;
mod options;
mod orphan;
mod panel;
mod ports;
mod put;
mod reason;
mod rows;
mod sampling;
mod sequence;
mod sequencer;
mod stream;
mod table;
mod triggers;
mod values;
mod wire;

#[cfg(test)]
mod fuzz;

pub use crate::config::panda::Config;
pub use orphan::end_orphans;
pub use ports::{bind, serve};
