// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a card: its interrupt through UIO, or a busy wait for the bits of its `pending` register.

use std::io;

use strobe_board::{Channel, Event, Write as BoardWrite, WriteValue};
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::card::Card;
use super::field::{Field, Load, Store};
use super::settings::WaitMode;
use super::trigger::{EventSource, Trigger, WaitOutcome};
use super::uio;
use crate::accounting::Accounting;
use crate::clock::{RunClock, monotonic};

/// A busy wait that has found nothing for so long lets others run between two looks.
const SPIN_NS: u64 = 100_000_000;
/// And then looks this often.
const LOOK_NS: u64 = 100_000;

/// What is known of interrupts that the card drops. A message that the machine has merged with another is not seen without
/// `pending`.
pub(super) fn accounting(event: &Event) -> Accounting {
    match event.missed.is_some() && event.pending.is_some() {
        true => Accounting::Exact,
        false => Accounting::None,
    }
}

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
    if let Some(counter) = card.board.missed(event) {
        card.check(counter.register, false)?;
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
    let counter = card.board.missed(event);
    let lost = counter.map(|counter| Lost::new(card, counter));
    let lost = lost.transpose()?;
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
            lost,
            lists,
            seen: 0,
            count,
        }));
    }
    let device = uio::opened(&uio).map_err(|error| error.to_string())?;
    Ok(Box::new(Interrupt {
        uio: uio::Source::new(device, wait),
        pending,
        lost,
        lists,
        seen: 0,
        missed: 0,
    }))
}

/// Triggers that the card has lost, as a counter of its own tells.
struct Lost {
    counter: Field,
    /// All bits of the counter.
    mask: u64,
    seen: u64,
}

impl Lost {
    fn new(card: &Card<'_>, channel: &Channel) -> Result<Self, String> {
        Ok(Lost {
            counter: card.field(channel)?,
            mask: u64::MAX >> (64 - u32::from(channel.bits)),
            seen: 0,
        })
    }

    /// How many since the last call. Half of the numbers are ahead, and half behind: a small step back is no loss.
    fn since(&mut self) -> io::Result<u64> {
        let now = self.counter.get()?;
        let lost = now.wrapping_sub(self.seen) & self.mask;
        self.seen = now;
        Ok(if lost > self.mask / 2 { 0 } else { lost })
    }
}

/// The same where there may be no such counter.
fn lost_since(lost: &mut Option<Lost>) -> io::Result<u64> {
    lost.as_mut().map_or(Ok(0), Lost::since)
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
    lost: Option<Lost>,
    lists: Lists,
    /// What was pending when the last trigger came.
    seen: u64,
    /// Interrupts that came unseen, before one that was not of this event.
    missed: u64,
}

impl EventSource for Interrupt {
    fn begin(&mut self, clock: &RunClock, now: u64) -> io::Result<Option<u64>> {
        let pending = look(&self.pending)?;
        if self.pending.is_none() || pending != 0 {
            put(&self.lists.silence, pending);
        }
        lost_since(&mut self.lost)?;
        put(&self.lists.enable, 0);
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
            let lost = lost_since(&mut self.lost)?;
            trigger.missed = std::mem::take(&mut self.missed) + lost;
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
        // As the interrupt would have found it; what cannot be read is not known.
        if missed > 0 {
            missed += lost_since(&mut self.lost).unwrap_or(0);
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
    lost: Option<Lost>,
    lists: Lists,
    seen: u64,
    count: u64,
}

impl EventSource for PolledRegister {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        let pending = self.pending.get()? & self.mask;
        if pending != 0 {
            put(&self.lists.silence, pending);
        }
        lost_since(&mut self.lost)?;
        put(&self.lists.enable, 0);
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
                        missed: lost_since(&mut self.lost)?,
                        cause: Missed::Source,
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
    use strobe_board::Board;
    use strobe_hw::map::Region;
    use strobe_hw::wakeup::wakeup;

    const CORE: &str = r#"
[board]
name = "core"

[match]
uio = "core"

[register.lost]
offset = 0x0c

[channel.lost]
bits = "15:0"
"#;

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
        let load = |offset| Load::new(register(offset), std::sync::Arc::clone(&card), false);
        let board = Board::from_toml("core.toml", CORE).expect("a board");
        let described = board.registers[0].clone();
        let lost = Lost {
            counter: Field::new(load(12), described, &board.channels[0]),
            mask: 0xffff,
            seen: 0,
        };
        let lists = Lists {
            silence: vec![(store(4), None)],
            enable: vec![(store(8), Some(1))],
            disable: vec![(store(8), Some(0))],
        };
        let looking = PolledRegister {
            pending: load(0),
            mask: 0xff,
            lost: Some(lost),
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
    fn what_the_card_counts_as_lost_is_missed_also_when_the_counter_wraps_around_or_is_set_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, mut looking) = looking(dir.path());
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        let write = |offset, value: u32| file.write_all_at(&value.to_ne_bytes(), offset);
        write(0, 1).expect("to write");
        // The rest of the register is not the counter.
        write(12, 0x5_fffa).expect("to write");
        looking.begin(&clock, 0).expect("to begin");
        for (counter, missed) in [
            (0x5_fffa, 0),
            (0x5_ffff, 5),
            (0x6_0003, 4),
            (0, 0),
            (1, 1),
            (0x8000, 0x7fff),
        ] {
            write(12, counter).expect("to write");
            let Ok(WaitOutcome::Trigger(trigger)) = looking.wait(&clock, &mut wakeup) else {
                panic!("no trigger");
            };
            assert_eq!(
                (trigger.missed, trigger.cause),
                (missed, Missed::Source),
                "{counter:#x}"
            );
        }
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
