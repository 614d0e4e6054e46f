// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages in the order of their rows, each row once, as a source of rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use strobe::block::{Block, Place};
use strobe::error::{Error, Words};
use strobe::info::{RunInfo, Totals};
use strobe::source::RowSource;

use super::message::{self, Head};

/// How long rows wait for those before them, until these are lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Brings messages into the order of their rows: the bus gives one again that was not acknowledged, and then it comes
/// after those that follow it.
pub struct Order<T> {
    /// The row that comes next.
    next: u64,
    waiting: BTreeMap<(u64, bool), (Head, T)>,
    since: Instant,
}

impl<T> Order<T> {
    /// From this row on.
    pub fn new(next: u64) -> Self {
        Order {
            next,
            waiting: BTreeMap::new(),
            since: Instant::now(),
        }
    }

    /// Takes a message. What has nothing new is given back.
    pub fn take(&mut self, head: Head, message: T) -> Option<T> {
        if head.next <= self.next && !head.end {
            return Some(message);
        }
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        let key = (head.begin(), head.end);
        match self.waiting.get(&key) {
            // Sent again by who did not know that it was kept, perhaps with other rows.
            Some((known, _)) if known.next >= head.next => Some(message),
            _ => (self.waiting.insert(key, (head, message))).map(|(_, before)| before),
        }
    }

    /// The next message, if it is there.
    pub fn next(&mut self) -> Option<(Head, T)> {
        let (key, (head, _)) = self.waiting.first_key_value()?;
        let is_next = head.begin() <= self.next;
        if !is_next && self.since.elapsed() < PATIENCE {
            return None;
        }
        let key = *key;
        self.since = Instant::now();
        let (head, message) = self.waiting.remove(&key)?;
        self.next = self.next.max(head.next);
        Some((head, message))
    }
}

/// The rows of one run, as they come from the bus.
pub struct Incoming {
    subject: String,
    info: Arc<RunInfo>,
    /// The row that comes next.
    next: u64,
    last: Option<Place>,
    messages: Receiver<(Head, Vec<u8>)>,
    totals: Option<Totals>,
}

impl Incoming {
    /// Of this run, from this row on.
    pub fn new(
        subject: String,
        info: RunInfo,
        next: u64,
        messages: Receiver<(Head, Vec<u8>)>,
    ) -> Self {
        Incoming {
            subject,
            info: Arc::new(info),
            next,
            last: (next == 0).then_some(Place::START),
            messages,
            totals: None,
        }
    }

    /// The rows of a message that were not given yet, and what was lost before them.
    fn block(&mut self, head: Head, bytes: Vec<u8>) -> Result<Block, Words> {
        let mut journal = message::read(&self.subject, bytes, head.first)?;
        let shape = self.info.shape();
        let mut words = Vec::new();
        while let Some(rows) = journal.read().map_err(|error| error.words())? {
            if journal_shape(&rows) != shape.words() as usize {
                return Err(Words::new(
                    &self.subject,
                    "rows with other columns than the run",
                ));
            }
            words.extend_from_slice(rows.words());
        }
        let width = shape.words() as usize;
        let count = words.len() / width;
        let skip = usize::try_from(self.next.saturating_sub(head.first)).unwrap_or(count);
        let rows = skip.min(count)..count;
        let first = self.next.max(head.first);
        let lost = first - self.next;
        self.next = first + rows.len() as u64;
        let info = Arc::clone(&self.info);
        Ok(Block::new(
            info,
            Arc::new(words),
            rows,
            (first, lost),
            &mut self.last,
        ))
    }

    fn nothing(&mut self) -> Block {
        let info = Arc::clone(&self.info);
        let numbers = (self.next, 0);
        Block::new(info, Arc::default(), 0..0, numbers, &mut self.last)
    }
}

fn journal_shape(rows: &strobe::ring::Rows<'_>) -> usize {
    rows.words().len().checked_div(rows.len()).unwrap_or(0)
}

impl RowSource for Incoming {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        match self.messages.recv_timeout(wait) {
            Ok((head, bytes)) if head.end => {
                if !bytes.is_empty() {
                    let journal = message::read(&self.subject, bytes, head.first);
                    self.totals = journal.map_err(Error::Rows)?.totals().cloned();
                }
                Ok(None)
            }
            Ok((head, bytes)) => self.block(head, bytes).map(Some).map_err(Error::Rows),
            Err(RecvTimeoutError::Timeout) => Ok(Some(self.nothing())),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn totals(&self) -> Option<Totals> {
        self.totals.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first: u64, next: u64, lost: u64) -> Head {
        Head {
            first,
            next,
            lost,
            missed: 0,
            end: false,
        }
    }

    #[test]
    fn messages_come_in_the_order_of_their_rows_and_none_twice() {
        let mut order = Order::new(0);
        assert_eq!(order.take(head(10, 20, 0), "b"), None);
        assert!(order.next().is_none(), "rows 0 to 9 may still come");
        assert_eq!(order.take(head(10, 15, 0), "b again"), Some("b again"));
        assert_eq!(order.take(head(3, 10, 3), "a"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("a"));
        assert_eq!(order.take(head(3, 10, 3), "a again"), Some("a again"));
        let end = Head {
            end: true,
            ..head(20, 20, 0)
        };
        assert_eq!(order.take(end, "end"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("b"));
        assert_eq!(order.take(head(18, 25, 0), "c, in part"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("c, in part"));
        assert_eq!(order.next().map(|(_, message)| message), Some("end"));
    }
}
