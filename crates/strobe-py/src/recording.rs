// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a recording, with what a program makes of them, and from one of them on.

use std::path::PathBuf;
use std::time::Duration;

use strobe::block::Block;
use strobe::computed_rows::ComputedRows;
use strobe::error::Error;
use strobe::info::{RunInfo, Totals};
use strobe::program::ProgramText;
use strobe::source::RowSource;

/// A recording, and the program that runs on its rows.
#[derive(Clone)]
pub struct Recording {
    pub path: PathBuf,
    pub program: ProgramText,
}

impl Recording {
    pub fn rows(&self) -> Result<Box<dyn RowSource>, Error> {
        let rows = strobe_files::open(&self.path)?;
        Ok(match self.program.is_empty() {
            true => rows,
            false => Box::new(ComputedRows::new(rows, &self.program)?),
        })
    }
}

/// Rows from this one on. The account is that of all.
pub struct Since {
    pub rows: Box<dyn RowSource>,
    pub begin: u64,
}

impl RowSource for Since {
    fn info(&self) -> &RunInfo {
        self.rows.info()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        loop {
            let next = self.rows.next(wait)?;
            match next {
                // What was lost before it is nobody's loss who begins behind it.
                Some(block) if !block.is_empty() => {
                    let block = block.since(self.begin);
                    if !block.is_empty() {
                        return Ok(Some(block));
                    }
                }
                next => return Ok(next),
            }
        }
    }

    fn totals(&self) -> Option<Totals> {
        self.rows.totals()
    }

    fn is_torn(&self) -> bool {
        self.rows.is_torn()
    }
}
