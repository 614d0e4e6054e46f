// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that come in the order of their rows, as a source of rows.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use strobe::block::{Block, Place};
use strobe::error::{Error, Words};
use strobe::info::{RunInfo, Totals};
use strobe::source::RowSource;

use super::message::{self, Head};

/// The rows of one run, as they come from the bus.
pub struct MessageRows {
    subject: String,
    info: Arc<RunInfo>,
    /// The row that comes next.
    next: u64,
    last: Option<Place>,
    /// Rows that did not come, since the first one that was wanted.
    lost: u64,
    messages: Receiver<(Head, Vec<u8>)>,
    totals: Option<Totals>,
    is_over: bool,
}

impl MessageRows {
    /// Of this run, from this row on.
    pub fn new(
        subject: String,
        info: RunInfo,
        next: u64,
        messages: Receiver<(Head, Vec<u8>)>,
    ) -> Self {
        MessageRows {
            subject,
            info: Arc::new(info),
            next,
            last: (next == 0).then_some(Place::START),
            lost: 0,
            messages,
            totals: None,
            is_over: false,
        }
    }

    /// The rows of a message that were not given yet, and what was lost before them.
    fn block(&mut self, head: Head, bytes: Vec<u8>) -> Result<Block, Words> {
        let said = message::read(&self.subject, bytes)?;
        let (shape, words) = (self.info.shape(), said.words);
        if said.info.shape() != shape {
            let why = "rows with other columns than the run";
            return Err(Words::new(&self.subject, why));
        }
        let width = shape.words() as usize;
        let count = words.len() / width;
        let skip = usize::try_from(self.next.saturating_sub(head.first)).unwrap_or(count);
        let rows = skip.min(count)..count;
        let first = self.next.max(head.first);
        let lost = first - self.next;
        self.next = first + rows.len() as u64;
        self.lost += lost;
        let info = Arc::clone(&self.info);
        Ok(Block::new(
            info,
            Arc::new(words),
            rows,
            (first, lost),
            &mut self.last,
        ))
    }

    /// The account. Rows before it that did not come are lost.
    fn end(&mut self, head: Head, bytes: Vec<u8>) -> Result<Option<Block>, Words> {
        if !bytes.is_empty() {
            self.totals = message::read(&self.subject, bytes)?.totals;
        }
        self.is_over = true;
        let lost = head.first.saturating_sub(self.next);
        Ok((lost > 0).then(|| self.nothing(lost)))
    }

    /// No rows, after so many that are lost.
    fn nothing(&mut self, lost: u64) -> Block {
        self.next += lost;
        self.lost += lost;
        let info = Arc::clone(&self.info);
        let numbers = (self.next, lost);
        Block::new(info, Arc::default(), 0..0, numbers, &mut self.last)
    }
}

impl RowSource for MessageRows {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        if self.is_over {
            return Ok(None);
        }
        match self.messages.recv_timeout(wait) {
            Ok((head, bytes)) if head.end => self.end(head, bytes).map_err(Error::Rows),
            Ok((head, bytes)) => self.block(head, bytes).map(Some).map_err(Error::Rows),
            Err(RecvTimeoutError::Timeout) => Ok(Some(self.nothing(0))),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// That of the run. What its own reader has lost did not come here either: it is among what was lost on the way.
    fn totals(&self) -> Option<Totals> {
        let totals = self.totals.clone()?;
        Some(Totals {
            lost: self.lost,
            ..totals
        })
    }

    /// Whether it was told to stop before the run's end came.
    fn is_torn(&self) -> bool {
        !self.is_over
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel as pipe;

    use strobe::channel::Type;
    use strobe::samples::{channel, info, totals};

    use super::*;

    const WAIT: Duration = Duration::from_secs(120);

    /// Rows up to before this one, the first of them, and what was lost before; as a message.
    fn sent(info: &RunInfo, first: u64, next: u64, lost: u64) -> (Head, Vec<u8>) {
        let words = (first..next).flat_map(|row| [row, row, 2_000 + row, 0, row]);
        let (info, words) = (Arc::new(info.clone()), Arc::new(words.collect()));
        let rows = 0..(next - first) as usize;
        let block = Block::new(info, words, rows, (first, lost), &mut None);
        (
            Head::of(&block, 0),
            message::rows(&block).expect("a message"),
        )
    }

    fn end(info: &RunInfo, first: u64) -> (Head, Vec<u8>) {
        let head = Head {
            first,
            next: first,
            end: true,
            ..Head::default()
        };
        let account = message::account(info, Some(&totals(first)));
        (head, account.expect("an account"))
    }

    /// First row, rows and loss of each block, and what was lost by the account.
    fn taken(info: &RunInfo, messages: Vec<(Head, Vec<u8>)>) -> (Vec<(u64, usize, u64)>, u64) {
        let (sender, receiver) = pipe();
        for message in messages {
            sender.send(message).expect("a message");
        }
        let mut incoming = MessageRows::new("a".to_owned(), info.clone(), 0, receiver);
        let mut blocks = Vec::new();
        while let Some(block) = incoming.next(WAIT).expect("rows") {
            blocks.push((block.first(), block.len(), block.lost()));
        }
        (blocks, incoming.totals().expect("an account").lost)
    }

    #[test]
    fn rows_that_did_not_come_are_lost_in_the_account_whatever_the_runs_own_says() {
        let info = info(vec![channel("a.x", Type::U64)]);
        assert_eq!(totals(12).lost, 4);
        // The beginning has gone, the publisher has lost some, and the last ones did not come.
        let messages = vec![
            sent(&info, 3, 5, 0),
            sent(&info, 8, 10, 3),
            sent(&info, 9, 11, 0),
            end(&info, 12),
        ];
        let blocks = vec![(3, 2, 3), (8, 2, 3), (10, 1, 0), (12, 0, 1)];
        assert_eq!(taken(&info, messages), (blocks, 7));
    }

    #[test]
    fn a_run_whose_last_rows_are_lost_is_taken_to_its_end() {
        let info = info(vec![channel("a.x", Type::U64)]);
        let messages = vec![
            sent(&info, 0, 5, 0),
            sent(&info, 20, 20, 15),
            end(&info, 20),
        ];
        let blocks = vec![(0, 5, 0), (20, 0, 15)];
        assert_eq!(taken(&info, messages), (blocks, 15));
    }
}
