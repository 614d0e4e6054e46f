// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that belong to the program, by columns.

use std::ffi::c_char;
use std::ptr;

use strobe::block::{Block, TypedColumn};
use strobe::channel::column_names;

use crate::call::{self, Failure, Result, call, give, seen, text};

/// Some rows of a run, and what is missing before and between them. It does not change: all threads may use it.
pub struct strobe_block(pub Block);

impl strobe_block {
    fn column(&self, index: usize) -> Result<TypedColumn<'_>> {
        let count = self.0.info().channels.len();
        let none = || {
            Failure::new(
                "block",
                format!("no column {index}"),
                &format!("it has {count}"),
            )
        };
        self.0.column_at(index).ok_or_else(none)
    }
}

/// Frees it, and its words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_free(block: *mut strobe_block) {
    // SAFETY: as the header demands.
    unsafe { call::free(block) };
}

/// A number of a block.
///
/// # Safety
/// As of [`seen`].
unsafe fn number(block: *const strobe_block, of: impl FnOnce(&Block) -> u64) -> u64 {
    call(0, || {
        // SAFETY: as the caller promises.
        Ok(of(&unsafe { seen(block, "block") }?.0))
    })
}

/// How many rows it has. It may have none, and tell of a loss.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_rows(block: *const strobe_block) -> usize {
    // SAFETY: as the header demands.
    unsafe { number(block, |block| block.len() as u64) as usize }
}

/// The number of its first row; without rows, of the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_first(block: *const strobe_block) -> u64 {
    // SAFETY: as the header demands.
    unsafe { number(block, Block::first) }
}

/// Rows that were overwritten before they were read, right before its first one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_lost(block: *const strobe_block) -> u64 {
    // SAFETY: as the header demands.
    unsafe { number(block, Block::lost) }
}

/// Triggers that should have made a row and did not, from the row before it to its last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_missed(block: *const strobe_block) -> u64 {
    // SAFETY: as the header demands.
    unsafe { number(block, Block::missed) }
}

/// All its words, row after row, as `struct strobe_row` of strobe.h (the contract) has them; `strobe_block_width` words
/// are a row. They belong to the block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_words(block: *const strobe_block) -> *const u64 {
    call(ptr::null(), || {
        // SAFETY: as the header demands.
        Ok(unsafe { seen(block, "block") }?.0.words().as_ptr())
    })
}

/// How many words a row has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_width(block: *const strobe_block) -> usize {
    // SAFETY: as the header demands.
    unsafe { number(block, |block| block.width() as u64) as usize }
}

/// The column of this name; -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_column(
    block: *const strobe_block,
    name: *const c_char,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        let (block, name) = unsafe { (&seen(block, "block")?.0, text(name, "name of a column")?) };
        block.column(name).map_err(Failure::text)?;
        let names = column_names(&block.info().channels);
        Ok(names
            .iter()
            .position(|there| there == name)
            .map_or(-1, |index| index as isize))
    })
}

/// Writes when each row was made, ns on the clock of the run, `room` of them at most. Answers how many rows there are, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_times(
    block: *const strobe_block,
    times: *mut u64,
    room: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        unsafe { give(seen(block, "block")?.0.times(), times, room) }
    })
}

/// Writes the number of each row's trigger, as `strobe_block_times` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_triggers(
    block: *const strobe_block,
    triggers: *mut u64,
    room: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        unsafe { give(seen(block, "block")?.0.triggers(), triggers, room) }
    })
}

/// Writes the values of a column in their unit, NaN where the channel failed, as `strobe_block_times` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_values(
    block: *const strobe_block,
    column: usize,
    values: *mut f64,
    room: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        unsafe { give(seen(block, "block")?.column(column)?.values(), values, room) }
    })
}

/// Writes the words of a column as they were read, before scale and offset, as `strobe_block_times` does. That of a row in
/// which the channel failed means nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_raw(
    block: *const strobe_block,
    column: usize,
    words: *mut u64,
    room: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        unsafe { give(seen(block, "block")?.column(column)?.raw(), words, room) }
    })
}

/// Writes 1 for each row in which the column's channel failed, else 0, as `strobe_block_times` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_block_failed(
    block: *const strobe_block,
    column: usize,
    failed: *mut u8,
    room: usize,
) -> isize {
    call(-1, || {
        // SAFETY: as the header demands.
        unsafe {
            give(
                seen(block, "block")?.column(column)?.failed().map(u8::from),
                failed,
                room,
            )
        }
    })
}
