// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names, texts and words of a board file, and what they may be.

use std::ops::Range;

use super::table::Table;

/// Longest name of a channel, output, event or register.
pub(super) const NAME_MAX: usize = 31;
/// Longest description, in bytes.
const TEXT_MAX: usize = 79;
/// Longest unit, in bytes.
pub(super) const UNIT_MAX: usize = 15;
/// Longest name of a UIO device or of one of its maps, in bytes.
const UIO_NAME_MAX: usize = 79;

/// The name if it may be one; otherwise that is noted.
pub(super) fn name_at(
    table: &Table<'_>,
    name: &str,
    at: &Range<usize>,
    most: usize,
) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.bytes().all(plain) {
        table.fault_at(
            at,
            format!(
                "\"{}\" is not a valid name; use letters, digits, `_` and `-`, and begin with a \
             letter",
                name.escape_debug()
            ),
        );
        return None;
    }
    if name.len() > most {
        table.fault_at(
            at,
            format!(
                "the name has {} characters; at most {most} are possible, choose a shorter one",
                name.len()
            ),
        );
        return None;
    }
    Some(name.into())
}

/// A text that fits its place and can be printed on one line.
pub(super) fn text(table: &mut Table<'_>, key: &'static str, most: usize) -> String {
    let Some((text, at)) = table.string(key) else {
        return String::new();
    };
    if text.chars().any(char::is_control) {
        table.fault_at(
            &at,
            format!("`{key}` has a control character; write it on one line, without tabs"),
        );
    } else if text.len() > most {
        table.fault_at(
            &at,
            format!(
                "`{key}` has {} bytes, and {most} fit; shorten it",
                text.len()
            ),
        );
    }
    text.into()
}

pub(super) fn description(table: &mut Table<'_>) -> String {
    text(table, "description", TEXT_MAX)
}

/// A word that can stand in one line of sysfs, as its reader sees it; anything else is noted.
pub(super) fn line(table: &Table<'_>, key: &str, word: &str, at: &Range<usize>) -> Option<String> {
    let fits = (1..=UIO_NAME_MAX).contains(&word.len());
    if !fits || word.trim() != word || word.chars().any(char::is_control) {
        table.fault_at(at, format!(
            "`{key}` is \"{}\"; write it as `strobe uio list` shows it, with 1 to {UIO_NAME_MAX} bytes", word.escape_debug()));
        return None;
    }
    Some(word.to_owned())
}

/// What of a register is not in a block of this size, in which it does not fit.
pub fn outside(offset: u64, size: u64) -> String {
    match offset >= size {
        true => format!("offset 0x{offset:x}"),
        false => format!("the end of offset 0x{offset:x}"),
    }
}
