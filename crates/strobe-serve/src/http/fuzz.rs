// SPDX-License-Identifier: MIT OR Apache-2.0
//! What parsers do with rubbish: they answer, and do not fall over. `STROBE_FUZZ` is how much of it there is.

use std::hint::black_box;

use axum::http::Uri;

use super::hello::Hello;
use super::query::{RowsQuery, query};
use super::recipes::{no_path, of_client};
use crate::access::Tokens;

/// Inputs for each parser.
fn inputs() -> u32 {
    let said = std::env::var("STROBE_FUZZ").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(100_000)
}

/// The same numbers each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}

/// Texts that are like what is right: parts of it, twice, mixed with each other and with what should not be there.
fn fuzz(right: &[&str], mut parse: impl FnMut(&str) -> bool) {
    const ODD: [&str; 24] = [
        "",
        "\0",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "&",
        "%",
        "%00",
        "\n",
        "#",
        "..",
        "/",
        "-1",
        "18446744073709551616",
        "1e999",
        "null",
        "\u{fffd}",
        "é",
        "\u{202e}",
        "file:",
    ];
    let mut numbers = Numbers(0x5EED);
    let mut understood = 0;
    for _ in 0..inputs() {
        let mut text = right[numbers.below(right.len())].as_bytes().to_vec();
        for _ in 0..numbers.below(6) {
            let at = numbers.below(text.len() + 1);
            let end = (at + numbers.below(12)).min(text.len());
            match numbers.below(6) {
                0 => text.truncate(at),
                1 => drop(text.drain(at..end)),
                2 => drop(text.splice(at..end, ODD[numbers.below(ODD.len())].bytes())),
                3 if at < text.len() => text[at] ^= 1 << numbers.below(8),
                4 => drop(text.splice(at..at, text[at..end].to_vec())),
                _ => {
                    let other = right[numbers.below(right.len())].as_bytes();
                    text.splice(at..end, other[numbers.below(other.len())..].iter().copied());
                }
            }
        }
        understood += u32::from(parse(black_box(&String::from_utf8_lossy(&text))));
    }
    // If nothing were understood, nothing would be tried but the first look.
    assert!(understood > inputs() / 100, "{understood}");
    assert!(understood < inputs(), "all of it");
}

#[test]
fn queries_of_rubbish_are_answered() {
    let right = [
        "from=17&to=20&columns=a.x,b%232&format=csv&on_loss=fail&follow=false",
        "from=now&follow=true",
        "from=oldest&to=18446744073709551615",
    ];
    fuzz(&right, |text| {
        let uri: Result<Uri, _> = format!("/rows?{text}").parse();
        uri.is_ok_and(|uri| query::<RowsQuery>(&uri).is_ok())
    });
}

#[test]
fn messages_of_rubbish_are_answered() {
    let right = [
        r#"{"from": 17, "columns": ["a.x", "b"], "policy": "latest", "rate": 0.5, "points": 7}"#,
        r#"{"from": "now", "policy": "every"}"#,
        "{}",
    ];
    fuzz(&right, |text| Hello::parse(text).is_ok());
}

#[test]
fn tokens_of_rubbish_are_refused_by_their_line() {
    let right = [
        "# of the lab\nview 0123456789abcdef\n\ncontrol fedcba9876543210\n",
        "view abcdefghijklmnopqrstuvwxyz\n",
    ];
    fuzz(&right, |text| match Tokens::parse(text) {
        Ok(_) => true,
        Err((line, _)) => {
            assert!((1..=text.lines().count()).contains(&line));
            false
        }
    });
}

#[test]
fn recipes_of_rubbish_name_no_file() {
    let right = [
        "event = \"timer:1kHz\"\nread = [\"sim.counter\", \"gpio:chip0/3\"]\nengine = \"user\"\nrows = 5\n",
        "event = \"soft\"\nread = [\"file:/etc/hostname\"]\nset = [\"sim.level=1\"]\nboard = \"edu\"\n",
    ];
    fuzz(&right, |text| {
        of_client("fuzz", text).is_ok_and(|recipe| {
            assert!(recipe.sinks.is_empty());
            assert!(
                recipe
                    .read
                    .iter()
                    .all(|name| no_path(name).is_ok() && !name.starts_with("file:"))
            );
            true
        })
    });
}
