// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a card: its interrupt through UIO, or a busy wait for the bits of its `pending` register.

use std::io;

use strobe_board::{Event, Write as BoardWrite, WriteValue};
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::card::Card;
use super::field::{Load, Store};
use super::settings::WaitMode;
use super::trigger::{EventSource, Trigger, WaitOutcome};
use super::uio;
use crate::clock::{RunClock, monotonic};

/// A busy wait that has found nothing for so long lets others run between two looks.
const SPIN_NS: u64 = 100_000_000;
/// And then looks this often.
const LOOK_NS: u64 = 100_000;

/// Whether all that the event needs is there; nothing is opened.
pub(super) fn check(card: &Card<'_>, event: &Event, wait: WaitMode) -> Result<(), String> {
    if let Some(pending) = &event.pending {
        card.check(pending.register, false)?;
    }
    for write in [&event.silence, &event.enable, &event.disable]
        .into_iter()
        .flatten()
    {
        card.check(write.register, true)?;
    }
    card.uio()?;
    match event.pending.is_none() && wait == WaitMode::Spin {
        true => Err("a busy wait needs a `pending` register in the board file".to_owned()),
        false => Ok(()),
    }
}

/// The source of a card's event.
pub(super) fn source(
    card: &Card<'_>,
    event: &Event,
    wait: WaitMode,
) -> Result<Box<dyn EventSource>, String> {
    let pending = match event.pending {
        Some(pending) => Some((card.load(pending.register)?, pending.mask)),
        None => None,
    };
    let lists = Lists {
        silence: writes(card, &event.silence)?,
        enable: writes(card, &event.enable)?,
        disable: writes(card, &event.disable)?,
    };
    // The UIO driver keeps the interrupt quiet, also while it is not waited for.
    let uio = card.uio()?;
    if wait == WaitMode::Spin {
        let Some((pending, mask)) = pending else {
            return Err("a busy wait needs a `pending` register in the board file".to_owned());
        };
        let count = 0;
        return Ok(Box::new(PolledRegister {
            pending,
            mask,
            lists,
            seen: 0,
            count,
        }));
    }
    let device = uio::opened(&uio).map_err(|error| error.to_string())?;
    Ok(Box::new(Interrupt {
        uio: uio::Source::new(device, wait),
        pending,
        lists,
        seen: 0,
        missed: 0,
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
fn look(pending: &Option<(Load, u64)>) -> io::Result<u64> {
    match pending {
        Some((load, mask)) => Ok(load.get()? & mask),
        None => Ok(0),
    }
}

/// Interrupts, counted by UIO.
struct Interrupt {
    uio: uio::Source,
    pending: Option<(Load, u64)>,
    lists: Lists,
    /// What was pending when the last trigger came.
    seen: u64,
    /// Interrupts that came unseen, before one that was not of this event.
    missed: u64,
}

impl EventSource for Interrupt {
    fn begin(&mut self, clock: &RunClock, now: u64) -> io::Result<Option<u64>> {
        put(&self.lists.enable, 0);
        put(&self.lists.silence, look(&self.pending)?);
        self.missed = 0;
        self.uio.begin(clock, now)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        loop {
            let WaitOutcome::Trigger(mut trigger) = self.uio.wait(clock, wakeup)? else {
                return Ok(WaitOutcome::Wakeup);
            };
            self.missed += trigger.missed;
            self.seen = look(&self.pending)?;
            if self.pending.is_some() && self.seen == 0 {
                // Another event of this card, or nobody's.
                self.uio.enable()?;
                continue;
            }
            trigger.missed = std::mem::take(&mut self.missed);
            return Ok(WaitOutcome::Trigger(trigger));
        }
    }

    fn done(&mut self) -> io::Result<()> {
        put(&self.lists.silence, self.seen);
        self.uio.enable()
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let (cause, mut missed) = self.uio.unserved();
        let another = self.pending.is_some() && !look(&self.pending).is_ok_and(|seen| seen != 0);
        if another {
            missed = missed.saturating_sub(1);
        }
        (cause, std::mem::take(&mut self.missed) + missed)
    }

    fn end(&mut self) {
        put(&self.lists.disable, 0);
    }
}

/// Bits of a register, looked at again and again.
struct PolledRegister {
    pending: Load,
    mask: u64,
    lists: Lists,
    seen: u64,
    count: u64,
}

impl EventSource for PolledRegister {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        put(&self.lists.enable, 0);
        put(&self.lists.silence, self.pending.get()? & self.mask);
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        // First, for a bit that is never silent would leave no time for it.
        if wakeup.is_pending() {
            return Ok(WaitOutcome::Wakeup);
        }
        let begun = monotonic();
        let mut now = begun;
        loop {
            // Several looks for one at the clock, which costs as much as many.
            for _ in 0..16 {
                self.seen = self.pending.get()? & self.mask;
                if self.seen != 0 {
                    self.count += 1;
                    return Ok(WaitOutcome::Trigger(Trigger {
                        count: self.count,
                        ..Trigger::PLAIN
                    }));
                }
                std::hint::spin_loop();
            }
            if wakeup.is_pending() {
                return Ok(WaitOutcome::Wakeup);
            }
            if now - begun > SPIN_NS {
                wakeup.sleep_until(Some(now + LOOK_NS))?;
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

#[cfg(test)]
mod tests {
    use super::super::presence::{Kind, Presence};
    use super::*;
    use crate::info::Clock;
    use std::os::unix::fs::FileExt;
    use strobe_hw::map::Region;
    use strobe_hw::wakeup::wakeup;

    /// A card in a file, whose first word is its pending register.
    fn looking(dir: &std::path::Path) -> (std::fs::File, PolledRegister) {
        std::fs::write(dir.join("config"), [0x34, 0x12]).expect("to write");
        let mut options = std::fs::File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(dir.join("resource0")).expect("a file");
        file.set_len(4096).expect("a page");
        let card = Presence::of(dir, Kind::Card).expect("a card");
        let region = Region::map(&file, 0, 4096, true).expect("a region");
        let register = |offset| region.register(offset, 4).expect("a register");
        let store = |offset| Store::new(register(offset), std::sync::Arc::clone(&card), false);
        let lists = Lists {
            silence: vec![(store(4), None)],
            enable: vec![(store(8), Some(1))],
            disable: vec![(store(8), Some(0))],
        };
        let looking = PolledRegister {
            pending: Load::new(register(0), std::sync::Arc::clone(&card), false),
            mask: 0xff,
            lists,
            seen: 0,
            count: 0,
        };
        (file, looking)
    }

    fn word(file: &std::fs::File, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, offset).expect("to read");
        u32::from_ne_bytes(bytes)
    }

    #[test]
    fn the_bell_is_heard_by_a_busy_wait_for_a_bit_that_is_never_silent() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, mut looking) = looking(dir.path());
        let clock = RunClock::new(Clock::Monotonic);
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        looking.begin(&clock, 0).expect("to begin");
        file.write_all_at(&0x10a_u32.to_ne_bytes(), 0)
            .expect("to write");
        for count in 1..3 {
            let Ok(WaitOutcome::Trigger(trigger)) = looking.wait(&clock, &mut wakeup) else {
                panic!("no trigger");
            };
            assert_eq!(trigger.count, count);
            looking.done().expect("to silence");
            assert_eq!((word(&file, 4), word(&file, 8)), (0x0a, 1));
        }
        waker.wake();
        assert_eq!(
            looking.wait(&clock, &mut wakeup).ok(),
            Some(WaitOutcome::Wakeup)
        );
        looking.end();
        assert_eq!(word(&file, 8), 0);
    }

    #[test]
    fn a_card_that_is_gone_is_not_written_to_at_the_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, mut looking) = looking(dir.path());
        let clock = RunClock::new(Clock::Monotonic);
        looking.begin(&clock, 0).expect("to begin");
        std::fs::write(dir.path().join("config"), [0xff; 2]).expect("to write");
        assert!(!Presence::of(dir.path(), Kind::Card).expect("a card").look());
        looking.end();
        assert_eq!(word(&file, 8), 1, "another card may be there");
    }
}
