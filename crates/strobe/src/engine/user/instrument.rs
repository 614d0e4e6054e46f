// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instrument of a board file: what it can be asked are channels, what it can be told are outputs.
//!
//! A channel that waits is asked for at the start of the row, or after the last write before it: so instruments answer at
//! the same time, and channels of one answer are asked for once.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use strobe_board::instrument::{self as board, AGE, COUNTERS, Instrument, Mode};
use strobe_board::{Board, Kind};
use strobe_instrument::{Conversation, Counts, Errand, Fault, Latest};

use super::provider::{ChannelOpener, OutputOpener, Provider, ReadChannel, Row, WriteOutput};
use crate::catalogue::{Catalogue, Device};
use crate::channel::{Channel, Class, Type};
use crate::error::Error;

/// Rough time of a question, until it is answered.
const QUESTION_NS: u32 = 1_000_000;
/// Rough time to look at what is there.
const LOOK_NS: u32 = 50;

/// Provides the channels and outputs of an instrument.
pub struct Instruments {
    name: String,
    description: String,
    instrument: Instrument,
    /// The conversation, while a run has a part of it.
    conversation: Mutex<Weak<Conversation>>,
}

/// A channel, by the part of its name after the device.
enum Part<'i> {
    Value(&'i board::Channel),
    Age(&'i board::Channel),
    Counter(usize),
}

impl Instruments {
    /// That of a board file, if it is about one.
    pub fn new(board: &Board) -> Option<Instruments> {
        Some(Instruments {
            name: board.name.clone(),
            description: board.description.clone(),
            instrument: board.instrument.clone()?,
            conversation: Mutex::default(),
        })
    }

    /// The conversation: that which is held already, or a new one.
    fn conversation(&self) -> Result<Arc<Conversation>, String> {
        let held = self.conversation.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if let Some(conversation) = held.upgrade() {
            return Ok(conversation);
        }
        let conversation = Arc::new(Conversation::open(self.instrument.clone())?);
        *held = Arc::downgrade(&conversation);
        Ok(conversation)
    }

    fn part(&self, part: &str) -> Option<Part<'_>> {
        let channels = &self.instrument.channels;
        let of = |name: &str| channels.iter().find(|channel| channel.name == name);
        if let Some(name) = part.strip_suffix(AGE) {
            let is_latest = |channel: &&board::Channel| self.instrument.is_latest(channel);
            return of(name).filter(is_latest).map(Part::Age);
        }
        let counter = COUNTERS.iter().position(|(name, _)| *name == part);
        of(part).map(Part::Value).or(counter.map(Part::Counter))
    }

    /// All of them.
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let channels = &self.instrument.channels;
        let values = channels.iter().flat_map(|channel| {
            let age = self.instrument.is_latest(channel);
            let age = age.then_some(Part::Age(channel));
            [Some(Part::Value(channel)), age].into_iter().flatten()
        });
        values.chain((0..COUNTERS.len()).map(Part::Counter))
    }

    fn about(&self, part: &Part<'_>) -> Channel {
        let (name, description, unit) = match part {
            Part::Value(channel) => (
                channel.name.clone(),
                channel.description.clone(),
                channel.unit.clone(),
            ),
            Part::Age(channel) => (
                format!("{}{AGE}", channel.name),
                format!("how long ago {} was asked for", channel.name),
                "ns".to_owned(),
            ),
            Part::Counter(counter) => {
                let (name, description) = COUNTERS.get(*counter).copied().unwrap_or_default();
                (name.to_owned(), description.to_owned(), String::new())
            }
        };
        let name = format!("{}.{name}", self.name);
        let plain = Channel::plain(&name, &description, &unit, LOOK_NS);
        let Part::Value(channel) = part else {
            return plain;
        };
        let (class, cost_ns) = match self.instrument.is_latest(channel) {
            true => (Class::Hard, LOOK_NS),
            false => (Class::Async, QUESTION_NS),
        };
        Channel {
            kind: match channel.kind() {
                Kind::Unsigned => Type::U64,
                Kind::Signed => Type::S64,
                Kind::Float => Type::F64,
            },
            class,
            scale: channel.scale,
            offset: channel.offset,
            bits: channel.bits().into(),
            cost_ns,
            ..plain
        }
    }

    fn about_output(&self, output: &board::Output) -> Channel {
        Channel {
            name: format!("{}.{}", self.name, output.name),
            description: output.description.clone(),
            unit: output.unit.clone(),
            kind: Type::S64,
            class: Class::Async,
            scale: output.scale,
            offset: output.offset,
            bits: 64,
            cost_ns: QUESTION_NS,
            in_use: false,
        }
    }

    /// A channel, ready to be read.
    fn reader(&self, part: &Part<'_>) -> Result<Box<dyn ReadChannel>, String> {
        let conversation = self.conversation()?;
        let (Part::Value(channel) | Part::Age(channel)) = part else {
            let Part::Counter(counter) = part else {
                return Err("it is none".to_owned());
            };
            return Ok(Box::new(Counter {
                counts: Arc::clone(conversation.counts()),
                counter: *counter,
                _conversation: conversation,
            }));
        };
        let question = self.instrument.questions.get(channel.question);
        let question = question.ok_or("it has no question")?;
        let same = |index: &usize| {
            let of = self.instrument.channels.get(*index);
            of.is_some_and(|of| of.name == channel.name)
        };
        let place = question.channels.iter().position(same);
        let place = place.ok_or("its question has another answer")?;
        Ok(match question.mode {
            Mode::Wait => Box::new(AnswerChannel {
                question: channel.question,
                place,
                errand: conversation.question(channel.question),
                patience: conversation.patience(),
                conversation,
            }),
            Mode::Latest(_) => Box::new(LatestChannel {
                latest: conversation.latest(channel.question),
                place,
                is_age: matches!(part, Part::Age(_)),
                timeout: question.timeout,
                _conversation: conversation,
            }),
        })
    }
}

impl Provider for Instruments {
    fn list(&self, catalogue: &mut Catalogue) {
        catalogue.devices.push(Device {
            name: self.name.clone(),
            description: self.description.clone(),
            in_use: false,
        });
        let channels = self.parts().map(|part| self.about(&part));
        catalogue.channels.extend(channels);
        let outputs = self.instrument.outputs.iter();
        catalogue
            .outputs
            .extend(outputs.map(|output| self.about_output(output)));
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let part = name.strip_prefix(self.name.as_str())?.strip_prefix('.')?;
        let part = self.part(part)?;
        let about = self.about(&part);
        let name = about.name.clone();
        Some(Ok(ChannelOpener::new(about, move || {
            let unusable = |why| Error::Unusable {
                what: "channel",
                name,
                why,
            };
            self.reader(&part).map_err(unusable)
        })))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let part = name.strip_prefix(self.name.as_str())?.strip_prefix('.')?;
        let mut outputs = self.instrument.outputs.iter().enumerate();
        let (number, output) = outputs.find(|(_, output)| output.name == part)?;
        let about = self.about_output(output);
        let name = about.name.clone();
        Some(Ok(OutputOpener::new(about, move || {
            let unusable = |why| Error::Unusable {
                what: "output",
                name,
                why,
            };
            let conversation = self.conversation().map_err(unusable)?;
            Ok(Box::new(InstrumentOutput {
                errand: conversation.output(number),
                patience: conversation.patience(),
                conversation,
            }))
        })))
    }
}

fn failed(fault: Fault) -> io::Error {
    fault.errno().into()
}

/// A channel whose row waits for the answer. It is asked for by an [`AnswerRequest`].
pub(super) struct AnswerChannel {
    conversation: Arc<Conversation>,
    question: usize,
    /// Its place in the answer.
    place: usize,
    errand: Arc<Errand>,
    patience: Duration,
}

/// What asks for an answer, before the row comes to its channels.
pub struct AnswerRequest {
    conversation: Arc<Conversation>,
    errand: Arc<Errand>,
}

impl AnswerChannel {
    /// What asks for it.
    pub(super) fn asking(&self) -> AnswerRequest {
        AnswerRequest {
            conversation: Arc::clone(&self.conversation),
            errand: Arc::clone(&self.errand),
        }
    }

    /// What it takes the same answer as: which instrument's, and to which question.
    pub(super) fn source(&self) -> (*const Conversation, usize) {
        (Arc::as_ptr(&self.conversation), self.question)
    }

    /// It takes the answer that this asks for.
    pub(super) fn share(&mut self, asking: &AnswerRequest) {
        self.errand = Arc::clone(&asking.errand);
    }
}

impl AnswerRequest {
    /// Asks.
    pub fn ask(&self) {
        self.conversation.give(&self.errand, 0);
    }

    /// Another one for the same answer.
    pub(super) fn again(&self) -> AnswerRequest {
        AnswerRequest {
            conversation: Arc::clone(&self.conversation),
            errand: Arc::clone(&self.errand),
        }
    }
}

impl ReadChannel for AnswerChannel {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        self.errand.wait(self.patience).map_err(failed)?;
        self.errand.channel(self.place).map_err(failed)
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}

/// A channel that has the latest answer, or its age.
struct LatestChannel {
    latest: Arc<Latest>,
    place: usize,
    is_age: bool,
    timeout: Duration,
    _conversation: Arc<Conversation>,
}

impl ReadChannel for LatestChannel {
    /// The first row has an answer, if there is one in time.
    fn begin(&mut self) -> io::Result<()> {
        let until = Instant::now() + self.timeout;
        while !self.latest.is_there() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let word = match self.is_age {
            true => self.latest.age(self.place),
            false => self.latest.word(self.place),
        };
        word.map_err(failed)
    }
}

/// A count of an instrument.
struct Counter {
    counts: Arc<Counts>,
    counter: usize,
    _conversation: Arc<Conversation>,
}

impl ReadChannel for Counter {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(self.counts.get(self.counter))
    }
}

/// An output. The row goes on when the instrument has been told, and has not refused.
struct InstrumentOutput {
    conversation: Arc<Conversation>,
    errand: Arc<Errand>,
    patience: Duration,
}

impl WriteOutput for InstrumentOutput {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.conversation.give(&self.errand, word);
        self.errand.wait(self.patience).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
