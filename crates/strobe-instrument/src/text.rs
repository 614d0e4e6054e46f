// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions and answers in texts, as SCPI has them: each ends with the same bytes; blocks of bytes say their length.

use std::time::{Duration, Instant};

use strobe_board::instrument::{Command, Instrument, Reply};

use crate::fault::{Fault, Left, Trouble};
use crate::line::Line;
use crate::stream::{CHUNK, Stream, extra};

/// A conversation in texts.
pub(crate) struct Text {
    stream: Box<dyn Stream>,
    command_end: Vec<u8>,
    answer_end: Vec<u8>,
    longest: usize,
    /// What has come and is no answer yet.
    came: Vec<u8>,
}

/// What the bytes that have come are.
enum Seen {
    /// An answer from `start` to `end`, and its end up to `next`.
    Answer {
        start: usize,
        end: usize,
        next: usize,
    },
    /// A part of it.
    Part,
    /// No block; a text, perhaps, that says why.
    NoBlock,
}

impl Text {
    pub(crate) fn new(stream: Box<dyn Stream>, instrument: &Instrument) -> Text {
        Text {
            stream,
            command_end: instrument.command_end.clone(),
            answer_end: instrument.answer_end.clone(),
            longest: instrument.longest,
            came: Vec::new(),
        }
    }

    fn send(&mut self, command: &Command, value: f64, until: Instant) -> Result<(), Trouble> {
        let mut bytes = command.bytes_for(value).ok_or_else(no_room)?;
        bytes.extend_from_slice(&self.command_end);
        self.stream.send(&bytes, until)
    }

    /// Receives one answer.
    fn receive(
        &mut self,
        mut reply: Reply,
        answer: &mut Vec<u8>,
        until: Instant,
    ) -> Result<(), Trouble> {
        self.came.clear();
        let (mut looked, mut is_over) = (0, false);
        let mut wrong = None;
        loop {
            match seen(&self.came, looked, reply, &self.answer_end, is_over) {
                Seen::Answer { start, end, next } => {
                    answer.extend_from_slice(self.came.get(start..end).unwrap_or_default());
                    let more = self.came.len() > next;
                    // A large answer is not kept.
                    self.came = Vec::new();
                    return match (more, wrong.take()) {
                        (true, _) => Err(extra()),
                        (false, Some(trouble)) => Err(trouble),
                        (false, None) => Ok(()),
                    };
                }
                Seen::NoBlock => {
                    wrong = Some(Trouble::new(
                        Fault::Wrong,
                        Left::All,
                        "its answer is not a block",
                    ));
                    (reply, looked) = (Reply::Text, 0);
                    continue;
                }
                Seen::Part => {}
            }
            let room = (self.longest + self.answer_end.len()).saturating_sub(self.came.len());
            if room == 0 {
                self.came = Vec::new();
                return Err(Trouble::new(
                    Fault::Long,
                    Left::Nothing,
                    "its answer is longer than `longest`",
                ));
            }
            looked = self.came.len();
            let read = self.stream.receive(&mut self.came, room, until)?;
            // A read that was not filled is the last of its message.
            is_over = self.stream.is_of_messages() && read < room.min(CHUNK);
        }
    }
}

/// What the bytes are that have come; the end of a text is not in the first `looked` of them.
fn seen(came: &[u8], looked: usize, reply: Reply, end: &[u8], is_over: bool) -> Seen {
    match reply {
        Reply::Block => match block(came) {
            Block::Part => Seen::Part,
            Block::Not => Seen::NoBlock,
            Block::Of { start, size } => {
                let stop = start.saturating_add(size);
                let whole = came.get(stop..).is_some_and(|rest| rest.starts_with(end));
                match (whole, came.len() >= stop && is_over) {
                    (true, _) => Seen::Answer {
                        start,
                        end: stop,
                        next: stop + end.len(),
                    },
                    (false, true) => Seen::Answer {
                        start,
                        end: stop,
                        next: came.len(),
                    },
                    // Something else than the end follows.
                    (false, false) if came.len() >= stop + end.len() => Seen::NoBlock,
                    (false, false) => Seen::Part,
                }
            }
        },
        Reply::Text | Reply::Bytes(_) => {
            let from = looked.saturating_sub(end.len().saturating_sub(1));
            let rest = came.get(from..).unwrap_or_default();
            match rest.windows(end.len().max(1)).position(|part| part == end) {
                Some(at) => Seen::Answer {
                    start: 0,
                    end: from + at,
                    next: from + at + end.len(),
                },
                None if is_over && !came.is_empty() => Seen::Answer {
                    start: 0,
                    end: came.len(),
                    next: came.len(),
                },
                None => Seen::Part,
            }
        }
    }
}

/// A block of bytes: `#`, how many digits its size has, its size, its bytes.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    Part,
    Not,
    Of { start: usize, size: usize },
}

fn block(came: &[u8]) -> Block {
    let digits = match came {
        [] | [b'#'] => return Block::Part,
        [b'#', digits @ b'1'..=b'9', ..] => usize::from(digits - b'0'),
        _ => return Block::Not,
    };
    let start = 2 + digits;
    let written = came.get(2..came.len().min(start)).unwrap_or_default();
    if !written.iter().all(u8::is_ascii_digit) {
        return Block::Not;
    }
    if written.len() < digits {
        return Block::Part;
    }
    let number = |sum: usize, digit: &u8| sum * 10 + usize::from(digit - b'0');
    Block::Of {
        start,
        size: written.iter().fold(0, number),
    }
}

/// A value that the command has no room for.
pub(crate) fn no_room() -> Trouble {
    Trouble::new(
        Fault::Refused,
        Left::All,
        "the value does not fit into the command",
    )
}

impl Line for Text {
    fn ask(
        &mut self,
        command: &Command,
        reply: Reply,
        answer: &mut Vec<u8>,
        until: Instant,
    ) -> Result<(), Trouble> {
        self.stream.check_quiet()?;
        self.send(command, 0.0, until)?;
        self.receive(reply, answer, until)
    }

    fn tell(&mut self, command: &Command, value: f64, until: Instant) -> Result<(), Trouble> {
        self.send(command, value, until)
    }

    fn settle(&mut self, quiet: Duration) -> Option<Result<(), Trouble>> {
        self.came = Vec::new();
        self.stream.can_settle().then(|| self.stream.settle(quiet))
    }
}

#[cfg(test)]
mod tests;
