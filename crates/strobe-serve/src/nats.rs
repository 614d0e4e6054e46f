// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of many machines on one bus: NATS JetStream.
//!
//! Each run has a subject of its own, `strobe.MACHINE.NAME.START-ID`, and each message some of its rows, with the numbers
//! that tell where they belong (`message`). [`publish`] brings them to the stream, and [`subscribe`] takes them from
//! there, each row once: what was kept is known from the last message of the subject, and a message is only kept if it
//! comes right after that one.

use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use strobe::error::Words;

mod bus_recording;
#[cfg(test)]
mod fuzz;
mod join;
mod message;
mod message_rows;
mod order;
pub mod publish;
mod resume;
mod run_receiver;
pub mod subscribe;

/// First word of all subjects.
const PREFIX: &str = "strobe";
/// How long an answer of the bus may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);

/// The bus, which may be away: it is looked for as long as it takes.
async fn connect(url: &str) -> Result<Context, Words> {
    let connected = ConnectOptions::new()
        .retry_on_initial_connect()
        .request_timeout(Some(PATIENCE))
        .connect(url)
        .await;
    let client = connected.map_err(|error| {
        Words::new(shown(url), error.to_string())
            .mend("give the address of a NATS server: nats://HOST:4222")
    })?;
    let mut context = jetstream::new(client);
    context.set_timeout(PATIENCE);
    Ok(context)
}

/// A stream for rows: it refuses what it has no room for, instead of forgetting what it has.
fn stream(name: &str, bytes: Option<i64>) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![format!("{PREFIX}.>")],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        max_bytes: bytes.unwrap_or(-1),
        ..Config::default()
    }
}

/// An address as it may be shown: without the user, the password and the token that it may have.
pub fn shown(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}{place}")
}

/// One word of a subject.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let word: String = (text.chars())
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    match word.is_empty() {
        true => "_".to_owned(),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_an_address_does_not_see_the_password() {
        assert_eq!(shown("nats://bus:4222"), "nats://bus:4222");
        assert_eq!(shown("tls://me:p@ss@bus.lab"), "tls://bus.lab");
        assert_eq!(shown("nats://token@[::1]:4222"), "nats://[::1]:4222");
        assert_eq!(shown("me:secret@bus"), "bus");
        assert_eq!(shown("nats://me:a/b,c@bus"), "nats://bus");
    }

    #[test]
    fn a_name_is_one_word_of_a_subject() {
        assert_eq!(word("scan-1"), "scan-1");
        assert_eq!(word("a.b *>\n"), "a_b____");
        assert_eq!(word(""), "_");
    }
}
