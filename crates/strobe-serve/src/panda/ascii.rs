// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as text, for people.

use std::fmt::Write;

use super::capture::{Capture, row_bytes};

/// A line for each of these rows.
pub fn text(captures: &[Capture], rows: &[u8]) -> String {
    let mut text = String::new();
    for row in rows.chunks_exact(row_bytes(captures).max(1)) {
        let mut rest = row;
        for capture in captures {
            let Some((cell, behind)) = rest.split_at_checked(capture.bytes()) else {
                break;
            };
            rest = behind;
            let bits = cell
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            // Writing into a text cannot fail.
            let _ = match capture.type_name() {
                "double" => write!(text, " {}", f64::from_bits(bits)),
                "int64" => write!(text, " {}", bits as i64),
                _ => write!(text, " {bits}"),
            };
        }
        text.push('\n');
    }
    text
}
