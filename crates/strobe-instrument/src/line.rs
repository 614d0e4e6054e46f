// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries one question at a time to an instrument.

use std::time::{Duration, Instant};

use strobe_board::instrument::{Command, Reply};

use crate::fault::Trouble;

/// Carries one question at a time.
pub(crate) trait Line: Send {
    /// Asks, and puts the answer into `answer`, which is empty.
    fn ask(
        &mut self,
        command: &Command,
        reply: Reply,
        answer: &mut Vec<u8>,
        until: Instant,
    ) -> Result<(), Trouble>;

    /// Tells; there is no answer but that it was sent.
    fn tell(&mut self, command: &Command, value: f64, until: Instant) -> Result<(), Trouble>;

    /// Throws away what comes, until nothing has come for this long; then the next answer is that to the next question.
    /// `None`: it cannot be had like this, but by reaching the instrument again.
    fn settle(&mut self, _quiet: Duration) -> Option<Result<(), Trouble>> {
        None
    }
}
