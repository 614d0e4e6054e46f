// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words to the terminal, and exit statuses. Nothing here panics if nobody
//! listens.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Everything that was asked for is there.
pub const COMPLETE: u8 = 0;
/// Nothing was done.
pub const COULD_NOT_RUN: u8 = 1;
/// The run ended, but something was missed, lost or failed.
pub const NOT_WHOLE: u8 = 3;
/// Ended by a signal, or because nobody reads any more.
pub const INTERRUPTED: u8 = 130;

/// A line on standard error.
pub fn say(message: impl Display) {
    // One write, so that lines of several programs do not mix. If standard
    // error is closed there is nowhere to say so.
    let _ = io::stderr().write_all(format!("{message}\n").as_bytes());
}

/// The message of an error on standard error, and the status for it.
pub fn fail(error: impl Display) -> ExitCode {
    say(format_args!("strobe: {error}"));
    COULD_NOT_RUN.into()
}

/// The answer of a command on standard output. A reader that has gone away
/// has seen enough; anything else is an error.
pub fn answer(text: &str) -> ExitCode {
    let mut stdout = io::stdout();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(format_args!("standard output: {error}"))
        }
        _ => COMPLETE.into(),
    }
}

/// What a measurement has found, on standard output: as one JSON object, or in words. The status is the one given.
pub fn found<T: Serialize>(
    outcome: &T,
    json: bool,
    text: impl FnOnce(&T) -> String,
    status: u8,
) -> ExitCode {
    let said = match json {
        true => serde_json::to_string(outcome).map(|json| json + "\n"),
        false => Ok(text(outcome)),
    };
    match said {
        Ok(said) => answer(&said),
        Err(error) => return fail(error),
    };
    status.into()
}

/// The status of a measurement.
pub fn status(interrupted: bool, is_whole: bool) -> u8 {
    match is_whole {
        _ if interrupted => INTERRUPTED,
        true => COMPLETE,
        false => NOT_WHOLE,
    }
}

/// Rows of cells as lines with aligned columns, each line after `indent`.
pub fn table<const N: usize>(indent: &str, rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(move |row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = indent.to_owned();
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bb", ""], ["ccc", "d", "e"]].map(|row| row.map(String::from));
        assert_eq!(table("  ", &rows), "  a    bb\n  ccc  d   e\n");
    }
}
