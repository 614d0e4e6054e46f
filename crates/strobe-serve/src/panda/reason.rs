// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why rows end.

/// Why rows end, in the words of the protocol: a client knows no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// All that was asked for was done.
    Ok,
    /// Somebody ended it.
    Disarmed,
    /// This client was too slow: the spool has given up rows that it had not read.
    DataOverrun,
    /// The daemon was too slow: the ring has lost rows before they came into the spool.
    DriverDataOverrun,
    /// The run failed.
    Failed,
}

impl Reason {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Ok => "Ok",
            Reason::Disarmed => "Disarmed",
            Reason::DataOverrun => "Data overrun",
            Reason::DriverDataOverrun => "Driver data overrun",
            Reason::Failed => "DMA data error",
        }
    }
}
