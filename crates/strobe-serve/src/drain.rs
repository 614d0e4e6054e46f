// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that moves the rows of a run from its ring into its spool.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use strobe::error::Error;
use strobe::info::RunInfo;
use strobe::reader::RunReader;
use strobe::source::RowSource;

use crate::spool::Spool;

/// How old the counters of a run may get.
const LOOK: Duration = Duration::from_millis(100);
/// Rows of this time are fetched at once: a wake-up for each would disturb the run.
const FETCH_NS: u64 = 5_000_000;

/// Drains this reader, until the run has ended and all its rows are in the spool; calls `end` then.
///
/// # Errors
/// There is no thread to be had.
pub fn spawn(
    reader: RunReader,
    spool: Arc<Spool>,
    end: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name("drain".to_owned()).spawn(move || {
        drain(reader, &spool);
        end();
    })
}

fn drain(mut reader: RunReader, spool: &Spool) {
    let fetch = rows_at_once(reader.info());
    loop {
        if spool.is_abandoned() {
            return spool.fail("this daemon no longer serves it".to_owned());
        }
        match next(&mut reader, fetch) {
            Ok(Some(block)) if block.is_empty() && block.lost() == 0 => {
                spool.look(|| Some(reader.snapshot()))
            }
            Ok(Some(block)) => spool.append(&block, || reader.snapshot()),
            Ok(None) => break,
            Err(error) => return spool.fail(error.to_string()),
        }
    }
    spool.look(|| Some(reader.snapshot()));
    match RowSource::totals(&reader) {
        Some(totals) => spool.finish(totals),
        None => spool.fail("the run ended without an account".to_owned()),
    }
}

/// The rows that are there; if there are none, waits for some of them.
fn next(reader: &mut RunReader, fetch: u64) -> Result<Option<strobe::block::Block>, Error> {
    match reader.next(Duration::ZERO)? {
        Some(block) if block.is_empty() && block.lost() == 0 => {
            // Should it fail, the next line says why.
            let _ = reader.wait(fetch, LOOK);
            match reader.next(Duration::ZERO)? {
                // It looks after the owner, too.
                Some(block) if block.is_empty() && block.lost() == 0 => {
                    reader.next(Duration::from_millis(1))
                }
                block => Ok(block),
            }
        }
        block => Ok(block),
    }
}

/// Rows to wait for: few wake-ups, but long before the ring is full.
fn rows_at_once(info: &RunInfo) -> u64 {
    let by_time = info.period_ns.map_or(1, |p| FETCH_NS / p.max(1));
    by_time.min(info.capacity / 4).max(1)
}
