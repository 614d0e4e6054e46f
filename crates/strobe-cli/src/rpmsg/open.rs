// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg open`: an endpoint on the terminal.

use std::io::{self, BufRead, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use strobe::record::Stop;
use strobe::rpmsg::{Endpoint, Error};

use super::Where;
use crate::jitter::round::is_interrupted;
use crate::record::handle_signals;
use crate::term::{self, fail, say};

/// How often it is looked whether it shall end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Send each line of standard input as a message, and print a line for each that comes
///
/// Bytes that are no printable text are shown, and may be written, as in
/// \x1b; a backslash is \\.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: Where,

    /// End after so many messages have come; otherwise with Ctrl-C, or when the remote goes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    let endpoint = match args.place.endpoint() {
        Ok(endpoint) => Arc::new(endpoint),
        Err(error) => return fail(error),
    };
    say(format_args!("strobe: endpoint 0x{:x}", endpoint.address()));
    let sender = Arc::clone(&endpoint);
    // It ends with this program: a thread that reads a terminal cannot be told to end.
    std::thread::spawn(move || send_lines(&sender));
    match print_messages(&endpoint, args.count, &stop) {
        Ok(()) => term::status(is_interrupted(&stop), true).into(),
        Err(error) => {
            say(format_args!("strobe: {error}"));
            term::NOT_WHOLE.into()
        }
    }
}

fn send_lines(endpoint: &Endpoint) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let sent = match unescaped(&line) {
            Some(bytes) => endpoint.send(&bytes).map_err(|error| error.to_string()),
            None => Err("a backslash is written \\\\, and any byte as in \\x1b".to_owned()),
        };
        if let Err(why) = sent {
            say(format_args!("strobe: not sent: {why}"));
        }
    }
}

fn print_messages(endpoint: &Endpoint, count: Option<u64>, stop: &Stop) -> Result<(), Error> {
    let mut message = vec![0; 65_536];
    let mut seen = 0;
    while count.is_none_or(|count| seen < count) && !is_interrupted(stop) {
        if !endpoint.wait(LOOK_EVERY)? {
            continue;
        }
        let length = endpoint.receive(&mut message)?;
        let bytes = message.get(..length).unwrap_or_default();
        let mut stdout = io::stdout().lock();
        // Who does not read any more has seen enough.
        if writeln!(stdout, "{}", escaped(bytes))
            .and_then(|()| stdout.flush())
            .is_err()
        {
            break;
        }
        seen += 1;
    }
    Ok(())
}

/// A line for a message.
fn escaped(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|&byte| match byte {
            b'\\' => "\\\\".chars().collect::<Vec<_>>(),
            b' '..=b'~' => vec![char::from(byte)],
            _ => format!("\\x{byte:02x}").chars().collect(),
        })
        .collect()
}

/// The message of a line; `None` if a backslash means nothing.
fn unescaped(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                after
            }
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_line_and_a_line_is_these_bytes() {
        let all: Vec<u8> = (0..=255).collect();
        let line = escaped(&all);
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(unescaped(&line), Some(all));
        assert_eq!(unescaped("ä"), Some("ä".as_bytes().to_vec()));
        for wrong in ["\\", "\\n", "\\x1", "\\xgg"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }
}
