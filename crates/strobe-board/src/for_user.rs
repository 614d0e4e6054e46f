// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards that the kernel engine has no use for.

/// Why a board has no blob: no driver reads such a device, in interrupts or at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForUserEngine {
    /// It has channels that are files.
    #[error(
        "board {0}: only the user engine reads its channels that are files; leave them out to install the board"
    )]
    Files(String),
    /// A device that another driver has, and that PCI does not know.
    #[error("board {0}: only the user engine reaches its UIO device; there is nothing to install")]
    Uio(String),
    /// An instrument, which no driver speaks to.
    #[error(
        "board {0}: only the user engine speaks to its instrument; there is nothing to install"
    )]
    Instrument(String),
    /// A chip on a bus whose transfers sleep.
    #[error(
        "board {0}: only the user engine reads its chip on I2C or SPI, whose transfers sleep; there is nothing to install"
    )]
    Chip(String),
}
