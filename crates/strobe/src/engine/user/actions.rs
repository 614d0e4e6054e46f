// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a plan become what a row does, in that order.
//!
//! Channels that are fields of one register are cut from one access, which is that of the first of them: they are
//! of one instant, and cost one access to the bus. A register is read again after a write, since that may have
//! changed it; for a channel that a row has twice; and where its board file wants that (`reread`).
//!
//! An instrument is asked as early as that goes: when the row begins, or after the last write. So several of them answer at
//! the same time.

use super::field::{Cut, Field};
use super::instrument::{AnswerChannel, AnswerRequest};
use super::provider::{ReadChannel, WriteOutput};
use super::service::Action;

/// What a row does, so far.
#[derive(Default)]
pub(super) struct Actions {
    done: Vec<Action>,
    /// The accesses to registers that no write has followed.
    fresh: Vec<Access>,
    /// The questions to instruments that no write has followed, and where the next one goes.
    asked: Vec<Question>,
    early: usize,
}

/// A question to an instrument.
struct Question {
    source: Source,
    asking: AnswerRequest,
    /// The channels that are cut from its answer.
    channels: Vec<String>,
}

/// Which instrument, and which of its questions.
type Source = (*const strobe_instrument::Conversation, usize);

/// An access to a register.
struct Access {
    /// The place of the action that makes it.
    action: usize,
    /// The channels that are cut from it.
    channels: Vec<String>,
}

impl Actions {
    /// Then it reads this channel.
    pub(super) fn read(&mut self, name: &str, mut reader: Box<dyn ReadChannel>) {
        let cut = as_field(reader.as_mut()).map(|field| self.cut(name, field));
        match cut {
            Some(Some(cut)) => reader = Box::new(cut),
            Some(None) => self.fresh.push(Access {
                action: self.done.len(),
                channels: vec![name.to_owned()],
            }),
            None => {}
        }
        if let Some(waiting) = as_waiting(reader.as_mut()) {
            self.ask(name, waiting);
        }
        self.done.push(Action::Read(reader));
    }

    /// Has an instrument asked for a channel, unless it is already.
    fn ask(&mut self, name: &str, waiting: &mut AnswerChannel) {
        let source = waiting.source();
        let has = |question: &&mut Question| {
            question.source == source && !question.channels.iter().any(|channel| channel == name)
        };
        if let Some(question) = self.asked.iter_mut().find(has) {
            waiting.share(&question.asking);
            question.channels.push(name.to_owned());
            return;
        }
        let asking = waiting.asking();
        self.asked.push(Question {
            source,
            asking: asking.again(),
            channels: vec![name.to_owned()],
        });
        self.done.insert(self.early, Action::Ask(asking));
        self.early += 1;
        self.fresh.iter_mut().for_each(|access| access.action += 1);
    }

    /// Then it writes this word.
    pub(super) fn write(&mut self, writer: Box<dyn WriteOutput>, word: u64) {
        self.fresh.clear();
        self.asked.clear();
        self.done.push(Action::Write(writer, word));
        self.early = self.done.len();
    }

    /// All that it does.
    pub(super) fn finish(self) -> Vec<Action> {
        self.done
    }

    /// The field, if the row has its register already.
    fn cut(&mut self, name: &str, field: &Field) -> Option<Cut> {
        if field.is_read_anew() {
            return None;
        }
        let mut others = self.fresh.iter_mut();
        others.find_map(|access| {
            if access.channels.iter().any(|channel| channel == name) {
                return None;
            }
            let Action::Read(first) = self.done.get_mut(access.action)? else {
                return None;
            };
            let cut = as_field(first.as_mut())?.cut(field)?;
            access.channels.push(name.to_owned());
            Some(cut)
        })
    }
}

fn as_waiting(reader: &mut dyn ReadChannel) -> Option<&mut AnswerChannel> {
    reader.as_any()?.downcast_mut()
}

fn as_field(reader: &mut dyn ReadChannel) -> Option<&mut Field> {
    reader.as_any()?.downcast_mut()
}

#[cfg(test)]
mod tests;
