// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a subscriber goes on that has been here before.

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::consumer::SequenceInfo;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use super::message::Head;
use super::publish::with_sources;

/// Where the first row is that is not in the subscriber's files yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// This one, or what was lost from it on.
    Row(u64),
    /// Nowhere: it has had everything, with the account.
    Over,
}

/// Looks it up in the stream, behind the last message up to which all are acknowledged. What comes first cannot tell: new
/// messages come at once, and those that were given to who was killed come again after some time.
///
/// # Errors
/// The bus is away.
pub async fn resume(stream: &Stream, subject: &str, floor: SequenceInfo) -> Result<Resume, String> {
    let is_new = floor.consumer_sequence == 0;
    let acknowledged = floor.stream_sequence;
    let mut from = acknowledged + 1;
    loop {
        match stream.get_first_raw_message_by_subject(subject, from).await {
            Ok(message) => match Head::read(&message.headers) {
                Some(head) if is_new => return Ok(Resume::Row(head.begun)),
                Some(head) => {
                    let row = behind(&head, before(&message.headers), acknowledged);
                    return Ok(Resume::Row(row));
                }
                // Of somebody else.
                None => from = message.sequence + 1,
            },
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => break,
            Err(error) => return Err(with_sources(&error)),
        }
    }
    let last = stream.get_last_raw_message_by_subject(subject).await;
    let last = last.map_err(|error| with_sources(&error))?;
    let head = Head::read(&last.headers);
    let head = head.ok_or_else(|| format!("{subject}: a message of another publisher"))?;
    Ok(match head.end {
        true => Resume::Over,
        false => Resume::Row(head.next),
    })
}

/// The message of the same subject before the one with these headers, by its number in the stream.
fn before(headers: &HeaderMap) -> Option<u64> {
    let before = headers.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)?;
    before.as_str().parse().ok()
}

/// The row after the last one that was acknowledged: that with which the first message goes on that was not. If there were
/// others between the two, which the stream has not any more, all that it has not any more counts as lost: how much of it
/// was acknowledged is not known.
fn behind(first: &Head, before: Option<u64>, acknowledged: u64) -> u64 {
    match before {
        Some(before) if before > acknowledged => first.begun,
        _ => first.begin(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_behind_what_was_acknowledged_and_what_was_removed_since_is_lost() {
        let first = Head {
            first: 110,
            next: 120,
            lost: 10,
            begun: 5,
            ..Head::default()
        };
        assert_eq!(behind(&first, Some(7), 7), 100, "right behind it");
        assert_eq!(behind(&first, Some(7), 9), 100, "others' are between");
        assert_eq!(behind(&first, Some(8), 7), 5, "message 8 was removed");
        assert_eq!(behind(&first, None, 7), 100, "a copy of the stream");
        assert_eq!(before(&first.headers("a", 7)), Some(7));
    }
}
