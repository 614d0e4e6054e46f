// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in a message: rows as an Arrow IPC stream that needs nothing else, and where they belong as headers.

use std::io;

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use strobe::block::Block;
use strobe::error::Words;
use strobe::info::{RunInfo, Totals};
use strobe_files::journal::{self, Journal};
use strobe_files::sink::arrow::ArrowStream;

/// Where the rows of a message belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of the first row.
    pub first: u64,
    /// The row after the last one.
    pub next: u64,
    /// Rows that were lost right before the first one.
    pub lost: u64,
    /// Triggers that were missed, as far as that is known from these rows.
    pub missed: u64,
    /// Whether the run has ended: the account is in the message then, and no rows.
    pub end: bool,
    /// The first row that was to be published: 0, but of another program's run, which may be older than the daemon.
    pub begun: u64,
}

impl Head {
    /// That of these rows.
    pub fn of(block: &Block, begun: u64) -> Head {
        Head {
            begun,
            first: block.first(),
            next: block.first() + block.len() as u64,
            lost: block.lost(),
            missed: block.missed(),
            end: false,
        }
    }

    /// Headers of a message about this run, which is only kept right after the one of this number in its subject.
    pub fn headers(&self, run: &str, after: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let kind = if self.end { "end" } else { "rows" };
        let id = format!("{run}/{kind}/{}", self.first);
        headers.insert(NATS_MESSAGE_ID, id.as_str());
        headers.insert(
            NATS_EXPECTED_LAST_SUBJECT_SEQUENCE,
            after.to_string().as_str(),
        );
        headers.insert("strobe-run", run);
        let numbers = [self.first, self.next, self.lost, self.missed];
        for (name, number) in NAMES.into_iter().zip(numbers) {
            headers.insert(name, number.to_string().as_str());
        }
        headers.insert("strobe-end", if self.end { "1" } else { "0" });
        headers.insert("strobe-begun", self.begun.to_string().as_str());
        headers
    }

    /// From the headers of a message; `None`: it is not one of ours.
    pub fn read(headers: &HeaderMap) -> Option<Head> {
        let number = |name: &str| headers.get(name)?.as_str().parse::<u64>().ok();
        let [first, next, lost, missed] = NAMES.map(number);
        let (first, next) = (first?, next?);
        (first <= next).then_some(Head {
            first,
            next,
            lost: lost?.min(first),
            missed: missed?,
            end: headers
                .get("strobe-end")
                .is_some_and(|end| end.as_str() == "1"),
            begun: number("strobe-begun").unwrap_or(0).min(first),
        })
    }

    /// The row after everything that is accounted for before these rows.
    pub fn begin(&self) -> u64 {
        self.first - self.lost
    }
}

const NAMES: [&str; 4] = [
    "strobe-first",
    "strobe-next",
    "strobe-lost",
    "strobe-missed",
];

/// Rows as bytes.
///
/// # Errors
/// They are not those of the run.
pub fn rows(block: &Block) -> io::Result<Vec<u8>> {
    let stream = ArrowStream::new(block.info(), None);
    let mut stream = stream.map_err(io::Error::other)?;
    let mut bytes = stream.schema();
    bytes.extend(stream.batch(block)?);
    bytes.extend(stream.end()?);
    Ok(bytes)
}

/// The account of a run as bytes; without one, what is known of the run.
///
/// # Errors
/// None that is known.
pub fn account(info: &RunInfo, totals: Option<&Totals>) -> io::Result<Vec<u8>> {
    if let Some(totals) = totals {
        return strobe_files::sink::arrow::account(info, totals);
    }
    let stream = ArrowStream::new(info, None);
    let mut stream = stream.map_err(io::Error::other)?;
    let mut bytes = stream.schema();
    bytes.extend(stream.end()?);
    Ok(bytes)
}

/// What a message says.
pub struct MessageContent {
    /// The run.
    pub info: RunInfo,
    /// Its account, if it is over.
    pub totals: Option<Totals>,
    /// Rows, word by word.
    pub words: Vec<u64>,
}

/// Rows or an account again. Whoever may publish can send anything.
///
/// # Errors
/// These bytes are neither.
pub fn read(subject: &str, bytes: Vec<u8>) -> Result<MessageContent, Words> {
    let foreign = |error: journal::Error| {
        let words = Words::new(subject, error.words().to_string());
        words.mend("check who else publishes there; subjects keep users apart on the bus")
    };
    let mut journal = Journal::of_bytes("a message".to_owned(), bytes).map_err(foreign)?;
    let mut words = Vec::new();
    while let Some(rows) = journal.read().map_err(foreign)? {
        words.extend_from_slice(rows.words());
    }
    Ok(MessageContent {
        info: journal.info().clone(),
        totals: journal.totals().cloned(),
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_headers_is_read_again_and_rubbish_is_nothing() {
        let head = Head {
            first: 10,
            next: 30,
            lost: 4,
            missed: 2,
            end: false,
            begun: 3,
        };
        let mut headers = head.headers("a/b", 7);
        assert_eq!(Head::read(&headers), Some(head));
        assert_eq!(head.begin(), 6);
        assert_eq!(
            headers
                .get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)
                .map(|v| v.as_str()),
            Some("7")
        );
        headers.insert("strobe-next", "9");
        assert_eq!(Head::read(&headers), None, "before the first");
        headers.insert("strobe-next", "-1");
        assert_eq!(Head::read(&headers), None);
        assert_eq!(Head::read(&HeaderMap::new()), None);
    }
}
