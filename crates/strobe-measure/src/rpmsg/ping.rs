// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a message takes to a remote that sends it back.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use strobe::quantity::show_ns;
use strobe::stats::{Figures, Stats};
use strobe::stop::Stop;
use strobe_hw::rpmsg::{Endpoint, Error};

/// How often it is looked whether the transport has room again.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// Messages.
    pub count: u64,
    /// Bytes of each.
    pub size: u16,
    /// How long to wait for one, ns.
    pub timeout: u64,
}

/// What was found out.
#[derive(Serialize)]
pub struct Outcome {
    /// A signal came: this is what there was until then.
    pub interrupted: bool,
    /// Address of the endpoint.
    pub src: u32,
    /// Messages that were sent.
    pub sent: u64,
    /// Those that came back as they were.
    pub back: u64,
    /// Those that came back otherwise, or that are none of ours.
    pub strange: u64,
    /// Why it ended early; null if it did not.
    pub error: Option<String>,
    /// From the sending to the return, ns; null if none came back.
    pub took_ns: Option<Figures>,
}

/// Sends messages, and takes them back.
///
/// # Errors
/// Not even the first one could be sent.
pub fn measure(endpoint: &Endpoint, asked: &Options, stop: &Stop) -> Result<Outcome, Failure> {
    // A call that waits for room would know no timeout, and no signal.
    endpoint.set_nonblocking(true)?;
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
    while outcome.sent < asked.count && !stop.is_interrupted() && outcome.error.is_none() {
        match once(endpoint, asked, stop, &mut outcome, &mut answer) {
            Ok(Some(ns)) => took.add(ns),
            Ok(None) => {}
            Err(error) if outcome.sent == 0 => return Err(error),
            Err(error) => outcome.error = Some(error.to_string()),
        }
    }
    outcome.interrupted = stop.is_interrupted();
    outcome.took_ns = took.figures();
    Ok(outcome)
}

/// Why there was no message more.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The endpoint's reason.
    #[error(transparent)]
    Rpmsg(#[from] Error),
    /// The transport takes no message.
    #[error("the transport had no room for a message for {}; does the remote take messages?", show_ns(*.0 as f64))]
    NoRoom(u64),
}

/// One message, there and back; `None` if it did not come in time.
fn once(
    endpoint: &Endpoint,
    asked: &Options,
    stop: &Stop,
    outcome: &mut Outcome,
    answer: &mut [u8],
) -> Result<Option<i64>, Failure> {
    let mut message = vec![0xa5; asked.size.into()];
    if let Some(head) = message.first_chunk_mut() {
        *head = outcome.sent.to_le_bytes();
    }
    let begun = Instant::now();
    let deadline = begun + Duration::from_nanos(asked.timeout);
    while !has_sent(endpoint, &message)? {
        if stop.is_interrupted() {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            return Err(Failure::NoRoom(asked.timeout));
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
