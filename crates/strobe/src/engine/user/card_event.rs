// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a card: its interrupt through UIO, or a busy wait for the bits of its `pending` register.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::event::PollFlags;
use strobe_ring::Missed;

use super::bell::Bell;
use super::board::Card;
use super::clock::{monotonic, RunClock};
use super::field::{Field, Store};
use super::presence::gone;
use super::trigger::{EventSource, Trigger, Woken};
use super::WaitMode;
use crate::board::{Event, Write as BoardWrite, WriteValue};

/// A busy wait that has found nothing for so long lets others run between two looks.
const SPIN_NS: u64 = 100_000_000;
/// And then looks this often.
const LOOK_NS: u64 = 100_000;

/// Where the command register is in configuration space, and its bit that disables INTx. It is written as a
/// whole: some hypervisors raise a waiting interrupt only if the lower byte is written, too.
const COMMAND: u64 = 4;
const INTX_DISABLE: u16 = 1 << 10;

/// The source of a card's event.
pub(super) fn source(
    card: &Card<'_>,
    event: &Event,
    wait: WaitMode,
) -> Result<Box<dyn EventSource>, String> {
    let pending = match event.pending {
        Some(pending) => Some((card.whole(pending.register)?, pending.mask)),
        None => None,
    };
    let lists = Lists {
        silence: writes(card, &event.silence)?,
        enable: writes(card, &event.enable)?,
        disable: writes(card, &event.disable)?,
    };
    // The UIO driver keeps the interrupt quiet, also while it is not waited for.
    let uio = card.uio()?;
    let events = card.path.join("uio").join(&uio).join("event");
    let path = format!("/dev/{uio}");
    if wait == WaitMode::Spin {
        let Some((pending, mask)) = pending else {
            return Err("a busy wait needs a `pending` register in the board file".to_owned());
        };
        let count = 0;
        return Ok(Box::new(Looking {
            pending,
            mask,
            lists,
            seen: 0,
            count,
        }));
    }
    let open = File::options().read(true).write(true).open(&path);
    let uio = open.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{path}: no permission; be root, or let a udev rule give it to your group")
        }
        _ => format!("{path}: {error}"),
    })?;
    let command = match card.driver().as_deref() {
        Some("uio_pci_generic") => {
            let path = card.path.join("config");
            let failed = |error| format!("{}: {error}; be root", path.display());
            let config = File::options()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(failed)?;
            let mut command = [0; 2];
            config
                .read_exact_at(&mut command, COMMAND)
                .map_err(failed)?;
            Some((config, u16::from_le_bytes(command) & !INTX_DISABLE))
        }
        _ => None,
    };
    Ok(Box::new(Interrupt {
        uio,
        events,
        command,
        pending,
        lists,
        seen: 0,
        count: 0,
    }))
}

/// Stores, done in their order.
type Writes = Vec<(Store, Option<u64>)>;

struct Lists {
    silence: Writes,
    enable: Writes,
    disable: Writes,
}

fn writes(card: &Card<'_>, list: &[BoardWrite]) -> Result<Writes, String> {
    let one = |write: &BoardWrite| {
        let value = match write.value {
            WriteValue::Fixed(value) => Some(value),
            WriteValue::Pending => None,
        };
        Ok((card.store(write.register)?, value))
    };
    list.iter().map(one).collect()
}

/// Writes a list; what was pending goes where the list says so.
fn put(list: &Writes, pending: u64) {
    for (store, value) in list {
        store.put(value.unwrap_or(pending));
    }
}

/// What is pending of this event, and not of another.
fn look(pending: &Option<(Field, u64)>) -> io::Result<u64> {
    match pending {
        Some((field, mask)) => Ok(field.value()? & mask),
        None => Ok(0),
    }
}

/// Interrupts, counted by UIO.
struct Interrupt {
    uio: File,
    /// UIO's count so far, in sysfs.
    events: PathBuf,
    /// Configuration space, and the command register with INTx enabled.
    command: Option<(File, u16)>,
    pending: Option<(Field, u64)>,
    lists: Lists,
    /// What was pending when the last trigger came.
    seen: u64,
    /// UIO's count of it.
    count: u32,
}

impl Interrupt {
    /// Lets the next interrupt come: by a word to the driver, or, as uio_pci_generic wants it, by clearing the
    /// bit in the card's command register that the driver sets at each interrupt.
    fn enable(&mut self) -> io::Result<()> {
        match &self.command {
            Some((config, command)) => config
                .write_all_at(&command.to_le_bytes(), COMMAND)
                .map_err(|_| gone()),
            None => match self.uio.write(&1_u32.to_ne_bytes()) {
                // The driver needs no word.
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
                Err(error) => Err(device(error)),
                Ok(_) => Ok(()),
            },
        }
    }
}

/// UIO says EIO of a device that has gone.
fn device(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EIO) => gone(),
        _ => error,
    }
}

impl EventSource for Interrupt {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        put(&self.lists.enable, 0);
        put(&self.lists.silence, look(&self.pending)?);
        self.enable()?;
        // What was raised until now is history.
        let mut poll = [rustix::event::PollFd::new(&self.uio, PollFlags::IN)];
        let at_once = rustix::event::Timespec::default();
        if rustix::event::poll(&mut poll, Some(&at_once))? > 0 {
            let mut count = [0; 4];
            self.uio.read_exact(&mut count).map_err(device)?;
            self.enable()?;
        }
        let text = std::fs::read_to_string(&self.events).map_err(|_| gone())?;
        self.count = text.trim().parse().map_err(|_| gone())?;
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, bell: &mut Bell) -> io::Result<Woken> {
        loop {
            if !bell.sleep_for(self.uio.as_fd(), PollFlags::IN)? {
                if bell.rang() {
                    return Ok(Woken::Bell);
                }
                continue;
            }
            let mut bytes = [0; 4];
            self.uio.read_exact(&mut bytes).map_err(device)?;
            let count = u32::from_ne_bytes(bytes);
            let step = count.wrapping_sub(self.count);
            self.count = count;
            self.seen = look(&self.pending)?;
            if self.pending.is_some() && self.seen == 0 {
                // Another event of this card, or nobody's.
                self.enable()?;
                continue;
            }
            return Ok(Woken::Trigger(Trigger {
                missed: u64::from(step).saturating_sub(1),
                cause: Missed::Source,
                count: count.into(),
                ..Trigger::PLAIN
            }));
        }
    }

    fn done(&mut self) -> io::Result<()> {
        put(&self.lists.silence, self.seen);
        self.enable()
    }

    fn end(&mut self) {
        put(&self.lists.disable, 0);
    }
}

/// Bits of a register, looked at again and again.
struct Looking {
    pending: Field,
    mask: u64,
    lists: Lists,
    seen: u64,
    count: u64,
}

impl EventSource for Looking {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        put(&self.lists.enable, 0);
        put(&self.lists.silence, self.pending.value()? & self.mask);
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, bell: &mut Bell) -> io::Result<Woken> {
        let begun = monotonic();
        let mut now = begun;
        loop {
            // Several looks for one at the clock, which costs as much as many.
            for _ in 0..16 {
                self.seen = self.pending.value()? & self.mask;
                if self.seen != 0 {
                    self.count += 1;
                    return Ok(Woken::Trigger(Trigger {
                        count: self.count,
                        ..Trigger::PLAIN
                    }));
                }
                std::hint::spin_loop();
            }
            if bell.rang() {
                return Ok(Woken::Bell);
            }
            if now - begun > SPIN_NS {
                bell.sleep_until(Some(now + LOOK_NS))?;
            }
            now = monotonic();
        }
    }

    fn done(&mut self) -> io::Result<()> {
        put(&self.lists.silence, self.seen);
        Ok(())
    }

    fn end(&mut self) {
        put(&self.lists.disable, 0);
    }
}
