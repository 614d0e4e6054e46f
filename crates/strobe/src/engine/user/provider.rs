// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who has channels, outputs and events for the user engine.

use std::any::Any;
use std::io;

use super::settings::Settings;
use super::trigger::{Cadence, EventSource, Trigger};
use crate::catalogue::Catalogue;
use crate::channel::Channel;
use crate::error::Error;
use crate::event::EventSpec;

/// What is known of a row while it is made.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its stamp, on the run's clock.
    pub time: u64,
    /// When the run was started, on the same clock.
    pub start: u64,
    /// Its trigger.
    pub trigger: Trigger,
}

/// A channel, ready to be read by the thread of a run. Nothing is allocated there.
pub trait ReadChannel: Send {
    /// Called once, by the thread that will read it, before the first row.
    ///
    /// # Errors
    /// Those of the channel; the run does not start then.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The word of this row. An error makes it 0, and the row says that the channel failed; ENODEV ends the
    /// run, for the device went away.
    ///
    /// # Errors
    /// Those of the channel.
    fn read(&mut self, row: &Row) -> io::Result<u64>;

    /// Itself, if it is of a kind that the engine treats otherwise: of the fields of one register, some may be cut from
    /// what another one reads.
    fn as_any(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// An output, ready to be written by the thread of a run.
pub trait WriteOutput: Send {
    /// Writes the word; errors as those of [`ReadChannel::read`].
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, word: u64) -> io::Result<()>;
}

/// What was found of a name: what it is, and how to open it. Until it is opened, nothing is changed in hardware: a
/// plan is described as a whole before any part of it is opened, and a dry run ends there.
pub struct Opener<'p, A, T: ?Sized> {
    /// What it is.
    pub about: A,
    open: Box<dyn FnOnce() -> Result<Box<T>, Error> + 'p>,
}

/// A channel that was found.
pub type ChannelOpener<'p> = Opener<'p, Channel, dyn ReadChannel>;
/// An output that was found; the `bits` of what it is bound what may be written.
pub type OutputOpener<'p> = Opener<'p, Channel, dyn WriteOutput>;
/// An event that was found.
pub type EventOpener<'p> = Opener<'p, Cadence, dyn EventSource>;

impl<'p, A, T: ?Sized> Opener<'p, A, T> {
    /// What is opened like this. An error says that it is there, but cannot be used.
    pub fn new(about: A, open: impl FnOnce() -> Result<Box<T>, Error> + 'p) -> Self {
        let open = Box::new(open);
        Opener { about, open }
    }

    /// What needs no opening, or was opened without a change of anything.
    pub fn ready(about: A, part: Box<T>) -> Self
    where
        T: 'p,
    {
        Opener::new(about, move || Ok(part))
    }

    /// Opens it, for one run.
    ///
    /// # Errors
    /// Why it cannot be used, and the remedy.
    pub fn open(self) -> Result<Box<T>, Error> {
        (self.open)()
    }
}

/// Something that has channels, outputs or events: the clock, the simulator, a board, files, GPIO lines.
///
/// `None` says that the name is not one of this provider; an error says that it is, but cannot be used.
/// What is opened belongs to one run, and ends with it.
pub trait Provider: Send + Sync {
    /// Adds what is here to the catalogue; what there are too many of, such as files, is left out.
    fn list(&self, catalogue: &mut Catalogue);

    /// The channel of this name.
    fn channel(&self, _name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        None
    }

    /// The output of this name.
    fn output(&self, _name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        None
    }

    /// The source of this event.
    fn event(
        &self,
        _event: &EventSpec,
        _settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        None
    }
}
