// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe plot RUN`: the rows that are in the ring of a run of this machine.

use std::time::Duration;

use strobe::block::Block;
use strobe::error::Error as EngineError;
use strobe::info::{RunInfo, Totals};
use strobe::machine::Machine;
use strobe::runs::{Place, RunName};
use strobe::source::RowSource;

use super::Error;
use super::trace::Trace;
use crate::rows::{self, place};

/// Rows that were read once: the run may overwrite them before they are read again.
#[derive(Clone)]
struct Rows {
    info: RunInfo,
    /// In order, from the last one on.
    blocks: Vec<Block>,
    totals: Option<Totals>,
}

impl RowSource for Rows {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, _: Duration) -> Result<Option<Block>, EngineError> {
        Ok(self.blocks.pop())
    }

    fn totals(&self) -> Option<Totals> {
        self.totals.clone()
    }
}

/// What is drawn of the run of this name, and what it is called.
pub(super) fn trace(machine: &dyn Machine, name: &RunName) -> Result<(Trace, String), Error> {
    let place = place(machine, name)?;
    let rows = now(machine, place)?;
    let trace = Trace::read(&mut |_| Ok(Box::new(rows.clone())))?;
    Ok((trace, place.to_string()))
}

/// The rows that are there now, for a run may make others faster than they are read.
fn now(machine: &dyn Machine, place: Place) -> Result<Rows, Error> {
    let mut run = machine.live(place).map_err(rows::Error::from)?;
    let before = run.snapshot();
    let mut blocks = Vec::new();
    while let Some(block) = run.next(Duration::ZERO)? {
        let next = block.first() + block.len() as u64;
        blocks.push(block);
        if next >= before.head && !before.state.is_final() {
            break;
        }
    }
    blocks.reverse();
    Ok(Rows {
        info: run.info().clone(),
        blocks,
        totals: run.totals(),
    })
}
