// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows from anywhere: from the ring of a run, from a recording, or from a server.

use std::time::Duration;

use strobe_ring::Snapshot;

use crate::block::Block;
use crate::error::Error;
use crate::info::{RunInfo, Totals};

/// Something that gives the rows of one run, one block after the other.
pub trait RowSource: Send {
    /// What is known of the run. Its start times are known when it has started.
    fn info(&self) -> &RunInfo;

    /// The next rows. If there are none yet, waits for them at most so long, and answers an empty block if none came;
    /// `None` after the last ones.
    ///
    /// # Errors
    /// There are no more rows to be had from here, though there should be.
    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error>;

    /// The account of the run, once all rows were given; `None` if it is not known, as of a recording that was cut off.
    fn totals(&self) -> Option<Totals>;

    /// Whether the rows end in the middle of something; known when all were given.
    fn is_torn(&self) -> bool {
        false
    }
}

/// The rows of a run, and where the run is meanwhile: for who watches it.
#[doc(hidden)]
pub trait Live: RowSource {
    /// State and counters of the run, now.
    fn snapshot(&self) -> Snapshot;

    /// Now, on the clock of the run.
    fn now(&self) -> u64;

    /// Why nothing more will be seen of the run, if its snapshot does not say it.
    fn gone(&self) -> Option<String>;
}
