// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a plan become what a row does, in that order.
//!
//! Channels that are fields of one register are cut from one access, which is that of the first of them: they are
//! of one instant, and cost one access to the bus. A register is read again after a write, since that may have
//! changed it; for a channel that a row has twice; and where its board file wants that (`reread`).

use super::field::{Cut, Field};
use super::provider::{ReadChannel, WriteOutput};
use super::service::Action;

/// What a row does, so far.
#[derive(Default)]
pub(super) struct Actions {
    done: Vec<Action>,
    /// The accesses to registers that no write has followed.
    fresh: Vec<Access>,
}

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
        self.done.push(Action::Read(reader));
    }

    /// Then it writes this word.
    pub(super) fn write(&mut self, writer: Box<dyn WriteOutput>, word: u64) {
        self.fresh.clear();
        self.done.push(Action::Write(writer, word));
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

fn as_field(reader: &mut dyn ReadChannel) -> Option<&mut Field> {
    reader.as_any()?.downcast_mut()
}

#[cfg(test)]
mod tests;
