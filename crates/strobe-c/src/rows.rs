// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows, one block after the other, from a run or from a recording.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::ptr;
use std::time::Duration;

use strobe::reader::RunReader;
use strobe::source::RowSource;

use crate::block::strobe_block;
use crate::call::{self, Failure, call, held, place, seen, text};
use crate::run::{strobe_account, strobe_run};

/// What `strobe_rows_next` has found.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum strobe_next {
    /// It failed.
    STROBE_ERROR = -1,
    /// Nothing came in time.
    STROBE_NOTHING = 0,
    /// A block, which is to be freed.
    STROBE_BLOCK = 1,
    /// All rows were given: the run has ended, or the recording.
    STROBE_END = 2,
}

#[allow(
    clippy::large_enum_variant,
    reason = "each is in a box of its own: the handle that the program has"
)]
enum Source {
    Ring(RunReader),
    File(Box<dyn RowSource>),
}

/// The rows of a run or of a recording, with a place of its own: two readers of one run do not disturb each other. One
/// thread at a time may use it.
pub struct strobe_rows(Source);

impl strobe_rows {
    fn source(&mut self) -> &mut dyn RowSource {
        match &mut self.0 {
            Source::Ring(reader) => reader,
            Source::File(rows) => rows.as_mut(),
        }
    }

    fn ring(&self) -> call::Result<&RunReader> {
        match &self.0 {
            Source::Ring(reader) => Ok(reader),
            Source::File(_) => Err(Failure::new(
                "rows",
                "they come from a recording, which has no descriptor",
                "call strobe_rows_next, which does not wait",
            )),
        }
    }
}

/// The rows of a run, from the oldest one in its ring on. They stay readable when the run is freed. NULL if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_of_run(run: *const strobe_run) -> *mut strobe_rows {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let run = unsafe { seen(run, "run") }?;
        let reader = run.run().reader()?;
        Ok(call::handle(strobe_rows(Source::Ring(reader))))
    })
}

/// The rows of a recording, `.arrows` or `.h5`. NULL if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_of_file(path: *const c_char) -> *mut strobe_rows {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let path = unsafe { text(path, "path of a recording") }?;
        let rows = strobe_files::open(Path::new(path)).map_err(Failure::text)?;
        Ok(call::handle(strobe_rows(Source::File(rows))))
    })
}

/// Frees it; blocks that it has given stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_free(rows: *mut strobe_rows) {
    // SAFETY: as the header demands.
    unsafe { call::free(rows) };
}

/// The next rows. If there are none yet, it waits for the first one so many milliseconds at most; -1: as long as it
/// takes. Answers an `enum strobe_next`; `*block` is NULL unless that is STROBE_BLOCK. A block without rows tells of a loss.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_next(
    rows: *mut strobe_rows,
    timeout_ms: c_int,
    block: *mut *mut strobe_block,
) -> c_int {
    /// A wait without end is many of these.
    const LONG: Duration = Duration::from_secs(3600);
    call(strobe_next::STROBE_ERROR as c_int, || {
        // SAFETY: as the header demands.
        let rows = unsafe { held(rows, "rows") }?;
        let to = place(block, "the place for the block")?;
        // SAFETY: as the header demands.
        unsafe { to.write(ptr::null_mut()) };
        let wait = u64::try_from(timeout_ms).map(Duration::from_millis);
        loop {
            match rows.source().next(wait.unwrap_or(LONG))? {
                None => return Ok(strobe_next::STROBE_END as c_int),
                Some(next) if next.is_empty() && next.lost() == 0 => {
                    if wait.is_ok() {
                        return Ok(strobe_next::STROBE_NOTHING as c_int);
                    }
                }
                Some(next) => {
                    // SAFETY: as the header demands.
                    unsafe { to.write(call::handle(strobe_block(next))) };
                    return Ok(strobe_next::STROBE_BLOCK as c_int);
                }
            }
        }
    })
}

/// A descriptor for poll, epoll and what is built on them. It becomes ready once it is armed and there is something to
/// read. It belongs to the rows: it is not to be closed. -1 if it failed, as for a recording.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_fd(rows: *const strobe_rows) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        Ok(unsafe { seen(rows, "rows") }?.ring()?.as_fd().as_raw_fd())
    })
}

/// Makes the descriptor ready when there are so many more rows, or the run has ended. It may be ready early. Call this
/// first, then `strobe_rows_next` with a timeout of 0 until it finds nothing, then wait for the descriptor; and again.
/// 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_arm(rows: *const strobe_rows, more: u64) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let ring = unsafe { seen(rows, "rows") }?.ring()?;
        let failed = |error| Failure::new("rows", error, "make a new reader of the run");
        ring.arm(more.max(1)).map_err(failed)?;
        Ok(0)
    })
}

/// The account of the run as far as it is known; `lost` are the rows that were lost here. Once all rows were given, rows
/// that were read + lost = rows, if reading began with the first one. -1 if it failed, as of a recording before its end,
/// or that was cut off: nobody knows then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_rows_account(
    rows: *const strobe_rows,
    account: *mut strobe_account,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let found = match &unsafe { seen(rows, "rows") }?.0 {
            Source::Ring(reader) => strobe_account::of(&reader.snapshot(), reader.ring().lost()),
            Source::File(file) => {
                let unknown = || {
                    Failure::new(
                        "recording",
                        "the recording has no account",
                        "read it to its end, if it has one",
                    )
                };
                strobe_account::of_totals(&file.totals().ok_or_else(unknown)?)
            }
        };
        // SAFETY: as the header demands.
        unsafe { found.give(account) }?;
        Ok(0)
    })
}
