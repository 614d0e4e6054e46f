// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg ping`: how long a message takes to a remote that sends it back.

use std::io;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use strobe::quantity::{duration_ns, show_ns};
use strobe::rpmsg::{Endpoint, Error};
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;

use super::Where;
use crate::record::handle_signals;
use crate::report;
use crate::term::{self, fail};

/// How often it is looked whether the transport has room again.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Send messages that the remote sends back, one at a time, and see how long each takes
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: Where,

    /// Messages
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: u64,

    /// Bytes of each
    #[arg(long, value_name = "BYTES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(8..))]
    size: u16,

    /// How long to wait for one
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_ns)]
    timeout: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Outcome {
    interrupted: bool,
    src: u32,
    sent: u64,
    /// Those that came back as they were.
    back: u64,
    /// Those that came back otherwise, or that are none of ours.
    strange: u64,
    /// Why it ended early; null if it did not.
    error: Option<String>,
    /// From the sending to the return, ns; null if none came back.
    took_ns: Option<Figures>,
}

pub fn run(args: &Args) -> ExitCode {
    let stop = Stop::default();
    if let Err(error) = handle_signals(&stop) {
        return fail(format_args!("signals cannot be handled: {error}"));
    }
    // A call that waits for room would know no timeout, and no Ctrl-C.
    let endpoint = args
        .place
        .endpoint()
        .and_then(|endpoint| endpoint.set_nonblocking(true).map(|()| endpoint));
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(error) => return fail(error),
    };
    let mut outcome = Outcome {
        interrupted: false,
        src: endpoint.address(),
        sent: 0,
        back: 0,
        strange: 0,
        error: None,
        took_ns: None,
    };
    let mut took = Stats::around(0);
    let mut answer = vec![0; 65_536];
    while outcome.sent < args.count && !stop.is_interrupted() && outcome.error.is_none() {
        match once(&endpoint, args, &stop, &mut outcome, &mut answer) {
            Ok(Some(ns)) => took.add(ns),
            Ok(None) => {}
            Err(error) if outcome.sent == 0 => return fail(error),
            Err(error) => outcome.error = Some(error.to_string()),
        }
    }
    outcome.interrupted = stop.is_interrupted();
    outcome.took_ns = took.figures();
    let is_whole = outcome.back == outcome.sent && outcome.error.is_none();
    let status = term::status(outcome.interrupted, is_whole);
    term::found(&outcome, args.json, text, status)
}

/// Why there was no message more.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Rpmsg(#[from] Error),
    #[error("the transport has had no room for a message in {}: is the remote taking any?", show_ns(*.0 as f64))]
    NoRoom(u64),
}

/// One message, there and back; `None` if it did not come in time.
fn once(
    endpoint: &Endpoint,
    args: &Args,
    stop: &Stop,
    outcome: &mut Outcome,
    answer: &mut [u8],
) -> Result<Option<i64>, Failure> {
    let mut message = vec![0xa5; args.size.into()];
    if let Some(head) = message.first_chunk_mut() {
        *head = outcome.sent.to_le_bytes();
    }
    let begun = Instant::now();
    let deadline = begun + Duration::from_nanos(args.timeout);
    while !has_sent(endpoint, &message)? {
        if stop.is_interrupted() {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            return Err(Failure::NoRoom(args.timeout));
        }
        sleep(LOOK_EVERY);
    }
    outcome.sent += 1;
    while endpoint.wait(deadline.saturating_duration_since(Instant::now()))? {
        let length = endpoint.receive(answer)?;
        let ns = begun.elapsed().as_nanos();
        if answer.get(..length) == Some(&message[..]) {
            outcome.back += 1;
            return Ok(i64::try_from(ns).ok());
        }
        outcome.strange += 1;
    }
    Ok(None)
}

/// Whether the transport had room for it.
fn has_sent(endpoint: &Endpoint, message: &[u8]) -> Result<bool, Error> {
    match endpoint.send(message) {
        Err(Error::Call { source, .. }) if source.kind() == io::ErrorKind::WouldBlock => Ok(false),
        sent => sent.map(|()| true),
    }
}

fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "from 0x{:x}: {} sent, {} came back, {} strange\n",
        outcome.src, outcome.sent, outcome.back, outcome.strange
    );
    if let Some(figures) = &outcome.took_ns {
        let rows = [
            report::head("took"),
            report::line("there and back", Some(figures)),
        ];
        text += &term::table("", &rows);
        text += &format!("a message a {}\n", show_ns(figures.mean));
    }
    if let Some(error) = &outcome.error {
        text += &format!("ended: {error}\n");
    }
    text
}
