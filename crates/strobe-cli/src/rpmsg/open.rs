// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg open`: an endpoint on the terminal.

use std::io::{self, BufRead, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strobe::quantity::duration_ns;
use strobe::rpmsg::{Endpoint, Error};
use strobe::stop::Stop;

use super::Where;
use crate::record::handle_signals;
use crate::term::{self, fail, say};

/// How often it is looked whether it shall end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Send each line of standard input as a message, and print a line for each message received
///
/// Bytes that are not printable text are shown and written as in \x1b; a backslash is \\.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: Where,

    /// End after receiving so many messages; otherwise at the end of standard
    /// input, with Ctrl-C, or when the remote goes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// After the end of standard input, wait so long for each further message
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_ns, conflicts_with = "count")]
    linger: u64,
}

/// What has become of the lines.
#[derive(Default)]
struct Input {
    /// There are no more.
    at_end: AtomicBool,
    /// Some were not sent.
    failed: AtomicBool,
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
    let input = Arc::new(Input::default());
    let (sender, lines) = (Arc::clone(&endpoint), Arc::clone(&input));
    // It ends with this program: a thread that reads a terminal cannot be told to end.
    std::thread::spawn(move || send_lines(&sender, &lines));
    let printed = print_messages(&endpoint, args, &input, &stop);
    let mut is_whole = !input.failed.load(Ordering::Relaxed);
    if let Err(error) = printed {
        say(format_args!("strobe: {error}"));
        is_whole = false;
    }
    if let Some(dropped) = endpoint
        .stats()
        .map(|it| it.dropped)
        .ok()
        .filter(|it| *it > 0)
    {
        say(format_args!(
            "strobe: {dropped} messages are lost: they came faster than they could be printed"
        ));
        is_whole = false;
    }
    term::status(stop.is_interrupted(), is_whole).into()
}

fn send_lines(endpoint: &Endpoint, input: &Input) {
    // Bytes, since a line need not be text.
    let lines = io::stdin().lock().split(b'\n');
    for line in lines.map_while(Result::ok) {
        let sent = match unescaped(&line) {
            Some(bytes) => endpoint.send(&bytes).map_err(|error| error.to_string()),
            None => Err("a backslash is written \\\\, and any byte as in \\x1b".to_owned()),
        };
        if let Err(why) = sent {
            input.failed.store(true, Ordering::Relaxed);
            say(format_args!("strobe: not sent: {why}"));
        }
    }
    input.at_end.store(true, Ordering::Release);
}

fn print_messages(
    endpoint: &Endpoint,
    args: &Args,
    input: &Input,
    stop: &Stop,
) -> Result<(), Error> {
    let mut message = vec![0; 65_536];
    let mut seen = 0;
    let mut last = Instant::now();
    while args.count.is_none_or(|count| seen < count) && !stop.is_interrupted() {
        let is_over = args.count.is_none() && input.at_end.load(Ordering::Acquire);
        if !is_over {
            last = Instant::now();
        }
        if !endpoint.wait(LOOK_EVERY)? {
            if is_over && last.elapsed() >= Duration::from_nanos(args.linger) {
                break;
            }
            continue;
        }
        let length = endpoint.receive(&mut message)?;
        last = Instant::now();
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
fn unescaped(line: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line;
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
        assert_eq!(unescaped(line.as_bytes()), Some(all));
        assert_eq!(unescaped("ä".as_bytes()), Some("ä".as_bytes().to_vec()));
        for wrong in ["\\", "\\n", "\\x1", "\\xgg"] {
            assert_eq!(unescaped(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
