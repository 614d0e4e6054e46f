// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chip of a board file, on an I2C or SPI bus. Its registers are channels that sleep: the thread of the run waits for
//! the transfers of the bus.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use strobe_board::{Board, Hardware};
use strobe_instrument::Chip;

use super::card::{about, about_output};
use super::chip_register::ChipRegister;
use super::field::Field;
use super::provider::{ChannelOpener, OutputOpener, Provider};
use crate::catalogue::{Catalogue, Device};
use crate::channel::{Channel, Class};
use crate::error::Error;

/// Rough time of a transfer: a few bytes at 400 kHz.
const TRANSFER_NS: u32 = 100_000;

/// Provides the channels and outputs of a chip.
pub struct Chips {
    board: Board,
    /// The chip, while a run has a register of it.
    chip: Mutex<Weak<Mutex<Chip>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Chips {
    /// That of a board file, if it is about one.
    pub fn new(board: &Board) -> Option<Chips> {
        matches!(board.hardware, Hardware::Chip(_)).then(|| Chips {
            board: board.clone(),
            chip: Mutex::default(),
        })
    }

    /// The chip: that which is open already, or opened now.
    fn chip(&self) -> Result<Arc<Mutex<Chip>>, String> {
        let mut held = lock(&self.chip);
        if let Some(chip) = held.upgrade() {
            return Ok(chip);
        }
        let chip = Arc::new(Mutex::new(Chip::open(&self.board)?));
        *held = Arc::downgrade(&chip);
        Ok(chip)
    }

    fn register(&self, index: usize) -> Result<ChipRegister, String> {
        let described = self.board.registers.get(index);
        let described = described.ok_or("the board has no such register")?;
        Ok(ChipRegister::new(self.chip()?, described.clone()))
    }

    fn part<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(self.board.name.as_str())?
            .strip_prefix('.')
    }

    fn unusable(what: &'static str, name: &str) -> impl FnOnce(String) -> Error + use<> {
        let name = name.to_owned();
        move |why| Error::Unusable { what, name, why }
    }
}

/// A channel or output, as it is listed: whoever uses it sleeps.
fn sleeps(channel: Channel) -> Channel {
    Channel {
        class: Class::Sleep,
        cost_ns: TRANSFER_NS,
        ..channel
    }
}

impl Provider for Chips {
    fn list(&self, catalogue: &mut Catalogue) {
        let (board, device) = (&self.board, &self.board.name);
        catalogue.devices.push(Device {
            name: device.clone(),
            description: board.description.clone(),
            in_use: false,
        });
        let channels = board.channels.iter();
        let channels = channels.map(|channel| sleeps(about(device, channel, TRANSFER_NS)));
        catalogue.channels.extend(channels);
        let outputs = board.outputs.iter();
        let outputs = outputs.map(|output| sleeps(about_output(device, board, output)));
        catalogue.outputs.extend(outputs);
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let part = self.part(name)?;
        let mut channels = self.board.channels.iter();
        let channel = channels.find(|channel| channel.name == part)?;
        let unusable = Chips::unusable("channel", name);
        let about = sleeps(about(&self.board.name, channel, TRANSFER_NS));
        Some(Ok(ChannelOpener::new(about, move || {
            let register = self.register(channel.register).map_err(unusable)?;
            Ok(Box::new(Field::of_chip(register, channel)))
        })))
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let part = self.part(name)?;
        let mut outputs = self.board.outputs.iter();
        let output = outputs.find(|output| output.name == part)?;
        let unusable = Chips::unusable("output", name);
        let about = sleeps(about_output(&self.board.name, &self.board, output));
        Some(Ok(OutputOpener::new(about, move || {
            let register = self.register(output.register).map_err(unusable)?;
            Ok(Box::new(register))
        })))
    }
}
