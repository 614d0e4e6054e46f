// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards: text files that describe a device's registers, interrupts, channels, outputs and events.
//!
//! A board file is TOML; docs/reference/board.md explains every key. [`Board::from_toml`] reads one and
//! answers either a [`Board`] in which every reference is resolved and every range checked, or *all* that is
//! wrong with it. [`Board::compile`] makes the blob that strobe_board.ko loads as firmware, and [`System`]
//! puts it where the kernel finds it.
#![forbid(unsafe_code)]

use std::path::Path;

mod blob;
pub mod chip;
mod chips;
pub mod fault;
mod find;
mod for_user;
pub mod frame;
mod hardware;
#[cfg(feature = "install")]
mod install;
pub mod instrument;
mod kind;
mod matching;
mod model;
mod parse;
mod pci;
mod resolve;
mod rpmsg;
pub mod table;
mod words;

pub use fault::{Fault, Faults};
pub use find::{NotFound, find};
pub use for_user::ForUserEngine;
pub use hardware::Hardware;
pub use kind::Kind;
pub use model::{
    Access, Bar, Block, Board, Channel, Event, FileChannel, Interrupt, InterruptKind, Output,
    Pending, Register, Write, WriteValue,
};
pub use words::outside;

#[cfg(feature = "install")]
pub use install::{Binding, InstallError, Installed, Outcome, Policy, System};

impl Board {
    /// Reads a board file's text; `file` names it in what is said about it.
    pub fn from_toml(file: &str, text: &str) -> Result<Board, Faults> {
        parse::board(file, text)
    }

    /// Reads a board file.
    pub fn read(path: &Path) -> Result<Board, Faults> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Board::from_toml(&file, &text),
            Err(error) => Err(Faults::whole(
                &file,
                format!("{error}; give the name of a board file that can be read"),
            )),
        }
    }

    /// The blob that strobe_board.ko or strobe_frames.ko takes; see include/uapi/strobe_board.h.
    ///
    /// # Errors
    /// No driver can take the board, only the user engine.
    pub fn compile(&self) -> Result<Vec<u8>, ForUserEngine> {
        match self.for_user_engine_only() {
            Some(why) => Err(why),
            None => Ok(blob::compile(self)),
        }
    }
}
