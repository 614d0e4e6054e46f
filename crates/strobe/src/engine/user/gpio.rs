// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPIO lines: their edges as events, their levels as channels, and lines to drive as outputs.
//!
//! An edge has the kernel's time stamp and number. The kernel keeps [`QUEUE`] of them; what was thrown away
//! when that was full shows in the numbers, and is missed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gpiocdev_uapi::v2::{self, LineConfig, LineEdgeEvent, LineFlags, LineValues};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::provider::{
    ChannelOpener, EventOpener, OutputOpener, Provider, ReadChannel, Row, WriteOutput,
};
use super::settings::{Settings, WaitMode};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Event as ListedEvent};
use crate::channel::{Channel, Class};
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::{Edge, Event, EventSpec};

mod chip;

use chip::{Chip, system};

/// Edges that the kernel keeps for us. It gives no more.
pub const QUEUE: u32 = 1024;
/// Words of an edge, as it is read.
const WORDS: usize = size_of::<LineEdgeEvent>() / 8;
/// [`LineEdgeEvent::kind`] of an edge that goes up.
const RISING: u32 = 1;

/// The GPIO lines of one run, which may use a line for more than one purpose.
#[derive(Default)]
pub struct Gpio {
    lines: Mutex<Vec<Line>>,
}

struct Line {
    chip: PathBuf,
    offset: u32,
    /// Once it is opened.
    file: Option<Arc<File>>,
}

/// A line that is there and free. It is as it was: it becomes an input or an output when it is opened.
struct FoundLine {
    chip: Chip,
    offset: u32,
}

impl Gpio {
    /// Edges of a line.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn edges(
        &self,
        chip: &str,
        line: &str,
        edge: Edge,
        wait: WaitMode,
    ) -> Result<Edges, String> {
        self.open_edges(&self.find(chip, line, false)?, edge, wait)
    }

    /// Level of a line, which is made an input if this run does not use it otherwise.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn level(&self, chip: &str, line: &str) -> Result<Level, String> {
        self.open_level(&self.find(chip, line, true)?)
    }

    /// A line to drive. It keeps the level it has until it is driven.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn drive(&self, chip: &str, line: &str) -> Result<Drive, String> {
        self.open_drive(&self.find(chip, line, false)?)
    }

    fn open_edges(&self, found: &FoundLine, edge: Edge, wait: WaitMode) -> Result<Edges, String> {
        let flags = match edge {
            Edge::Rising => LineFlags::EDGE_RISING,
            Edge::Falling => LineFlags::EDGE_FALLING,
            Edge::Both => LineFlags::EDGE_RISING | LineFlags::EDGE_FALLING,
        };
        let cannot =
            "cannot raise an event on that edge; read it on another event, such as a timer";
        let line = self.open(found, flags | LineFlags::INPUT, cannot)?;
        let unblocked =
            fcntl_getfl(&line).and_then(|flags| fcntl_setfl(&line, flags | OFlags::NONBLOCK));
        unblocked.map_err(|errno| errno.to_string())?;
        Ok(Edges {
            line,
            spin: wait == WaitMode::Spin,
            from: 0,
            seen: 0,
            high: false,
        })
    }

    fn open_level(&self, found: &FoundLine) -> Result<Level, String> {
        let line = self.open(found, LineFlags::INPUT, "cannot be an input")?;
        Ok(Level(line))
    }

    fn open_drive(&self, found: &FoundLine) -> Result<Drive, String> {
        let cannot = "cannot be an output";
        // As it is, and only then an output of that level: no pulse.
        let line = self.open(found, LineFlags::empty(), cannot)?;
        let level = read(&line).unwrap_or(false);
        let mut config = LineConfig {
            flags: LineFlags::OUTPUT,
            ..LineConfig::default()
        };
        config.add_values(&LineValues::from_slice(&[level]));
        v2::set_line_config(&line, config)
            .map_err(|error| format!("{cannot} ({})", system(error)))?;
        Ok(Drive(line))
    }

    /// The line, for this run; `shared` if the run may use it for another purpose, too.
    fn find(&self, chip: &str, line: &str, shared: bool) -> Result<FoundLine, String> {
        let chip = Chip::find(chip)?;
        let offset = chip.line(line)?;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = |known: &Line| known.offset == offset && known.chip == chip.path();
        match lines.iter().any(is_ours) {
            true if shared => {}
            true => {
                return Err(format!(
                    "line {offset} of {} is used twice by this run: name an output before the channel that \
                     reads it, and drive no line whose edges are the event",
                    chip.title()
                ));
            }
            false => {
                chip.is_free(offset)?;
                lines.push(Line {
                    chip: chip.path().to_owned(),
                    offset,
                    file: None,
                });
            }
        }
        Ok(FoundLine { chip, offset })
    }

    /// The line, configured like this if this run has not opened it before.
    fn open(&self, found: &FoundLine, flags: LineFlags, cannot: &str) -> Result<Arc<File>, String> {
        let FoundLine { chip, offset } = found;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = |known: &&mut Line| known.offset == *offset && known.chip == chip.path();
        let known = lines.iter_mut().find(is_ours);
        if let Some(Line {
            file: Some(file), ..
        }) = &known
        {
            return Ok(Arc::clone(file));
        }
        let config = LineConfig {
            flags,
            ..LineConfig::default()
        };
        let file = Arc::new(chip.request(*offset, config, QUEUE, cannot)?);
        if let Some(known) = known {
            known.file = Some(Arc::clone(&file));
        }
        Ok(file)
    }
}

/// Edges of a line: a source of triggers.
pub struct Edges {
    line: Arc<File>,
    spin: bool,
    /// Edges before that are forgotten.
    from: u64,
    /// The kernel's number of the last one.
    seen: u32,
    high: bool,
}

impl Edges {
    /// Whether the line was high after the last edge.
    pub fn is_high(&self) -> bool {
        self.high
    }

    /// The oldest edge in the queue, with what was missed before it.
    fn take(&mut self) -> io::Result<Option<(Trigger, u64)>> {
        let mut words = [0; WORDS];
        let words = match v2::read_event(&self.line, &mut words).map_err(system) {
            Ok(count) => words.get(..count).unwrap_or_default(),
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::INTR) => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let edge = LineEdgeEvent::from_slice(words).map_err(system)?;
        let missed = edge.line_seqno.wrapping_sub(self.seen).wrapping_sub(1);
        self.seen = edge.line_seqno;
        self.high = edge.kind == RISING;
        let trigger = Trigger {
            missed: missed.into(),
            cause: Missed::Source,
            count: edge.line_seqno.into(),
            ..Trigger::PLAIN
        };
        Ok(Some((trigger, edge.timestamp_ns)))
    }
}

impl EventSource for Edges {
    fn begin(&mut self, _: &RunClock, now: u64) -> io::Result<Option<u64>> {
        while self.take()?.is_some() {}
        // An edge may be on its way into the queue.
        self.from = now;
        Ok(None)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        while !wakeup.is_pending() {
            if !self.spin && !wakeup.sleep_for(self.line.as_fd(), PollFlags::IN)? {
                continue;
            }
            if let Some((trigger, stamp)) = self.take()? {
                let time = clock.of_monotonic(stamp);
                if time >= self.from {
                    return Ok(WaitOutcome::Trigger(Trigger { time, ..trigger }));
                }
            }
            if self.spin {
                std::hint::spin_loop();
            }
        }
        Ok(WaitOutcome::Wakeup)
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let mut missed = 0;
        // More than the kernel keeps are not there, unless new ones come all the time.
        for _ in 0..QUEUE {
            // What cannot be read is not known.
            let Ok(Some((trigger, _))) = self.take() else {
                break;
            };
            missed += trigger.missed + 1;
        }
        (Missed::Source, missed)
    }
}

fn read(line: &File) -> io::Result<bool> {
    let mut values = LineValues { bits: 0, mask: 1 };
    v2::get_line_values(line, &mut values).map_err(system)?;
    Ok(values.bits & 1 != 0)
}

/// The level of a line: 1 is active.
pub struct Level(Arc<File>);

impl Level {
    /// Whether it is high now.
    ///
    /// # Errors
    /// ENODEV if the chip has gone, else those of the chip's driver.
    pub fn is_high(&self) -> io::Result<bool> {
        read(&self.0)
    }
}

impl ReadChannel for Level {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        self.is_high().map(u64::from)
    }
}

/// A line that is driven.
pub struct Drive(Arc<File>);

impl WriteOutput for Drive {
    fn write(&mut self, word: u64) -> io::Result<()> {
        let values = LineValues {
            bits: word & 1,
            mask: 1,
        };
        v2::set_line_values(&self.0, &values).map_err(system)
    }
}

/// Chip and line of a channel or output.
fn place(name: &str) -> Option<Result<(&str, &str), String>> {
    let place = name.strip_prefix("gpio:")?;
    let parts = place.rsplit_once('/');
    let parts = parts.filter(|(chip, line)| !chip.is_empty() && !line.is_empty());
    Some(parts.ok_or_else(|| "write gpio:CHIP/LINE, as in gpio:gpiochip0/4".to_owned()))
}

fn about(name: &str, description: &str) -> Channel {
    Channel {
        class: Class::Sleep,
        bits: 1,
        ..Channel::plain(name, description, "", 500)
    }
}

fn unusable(what: &'static str, name: &str) -> impl FnOnce(String) -> Error + use<> {
    let name = name.to_owned();
    move |why| Error::Unusable { what, name, why }
}

impl Provider for Gpio {
    fn list(&self, catalogue: &mut Catalogue) {
        for chip in chip::all() {
            let (name, lines) = chip.name_and_lines();
            catalogue.events.push(ListedEvent {
                name: format!("gpio:{name}/LINE:both"),
                description: format!("edges of one of {lines} lines of {}", chip.title()),
                periodic: false,
                accounting: Accounting::None,
                in_use: false,
            });
        }
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let unusable = unusable("channel", name);
        let place = place(name)?;
        Some(
            match place.and_then(|(chip, line)| self.find(chip, line, true)) {
                Ok(found) => Ok(ChannelOpener::new(
                    about(name, "level of a line"),
                    move || {
                        let level = self.open_level(&found).map_err(unusable)?;
                        Ok(Box::new(level))
                    },
                )),
                Err(why) => Err(unusable(why)),
            },
        )
    }

    fn output(&self, name: &str) -> Option<Result<OutputOpener<'_>, Error>> {
        let unusable = unusable("output", name);
        let place = place(name)?;
        Some(
            match place.and_then(|(chip, line)| self.find(chip, line, false)) {
                Ok(found) => Ok(OutputOpener::new(about(name, "drives a line"), move || {
                    let drive = self.open_drive(&found).map_err(unusable)?;
                    Ok(Box::new(drive))
                })),
                Err(why) => Err(unusable(why)),
            },
        )
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Gpio { chip, line, edge } = event.event() else {
            return None;
        };
        let unusable = unusable("event", &event.to_string());
        let (edge, wait) = (*edge, settings.wait);
        Some(match self.find(chip, line, false) {
            Ok(found) => Ok(EventOpener::new(Cadence::default(), move || {
                let edges = self.open_edges(&found, edge, wait).map_err(unusable)?;
                Ok(Box::new(edges))
            })),
            Err(why) => Err(unusable(why)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(result: Option<Result<impl Sized, Error>>) -> String {
        match result {
            Some(Err(error)) => error.to_string(),
            Some(Ok(_)) => panic!("it was found"),
            None => panic!("it is of another provider"),
        }
    }

    #[test]
    fn names_of_other_providers_are_left_to_them() {
        let gpio = Gpio::default();
        assert!(gpio.channel("sim.ramp").is_none() && gpio.output("gpio.x").is_none());
        let event: EventSpec = "uio:edu".parse().expect("an event");
        assert!(gpio.event(&event, &Settings::default()).is_none());
    }

    #[test]
    fn a_chip_that_is_not_there_is_named_with_what_there_is() {
        let gpio = Gpio::default();
        let event: EventSpec = "gpio:no-such-chip/4:both".parse().expect("an event");
        let said = refusal(gpio.event(&event, &Settings::default()));
        assert!(
            said.contains("event gpio:no-such-chip/4:both: there is no chip no-such-chip;"),
            "{said}"
        );
        let said = refusal(gpio.channel("gpio:/dev/no-such-chip/4"));
        assert!(
            said.contains("there is no chip /dev/no-such-chip;"),
            "{said}"
        );
    }

    #[test]
    fn what_is_not_a_chip_is_not_taken_for_one() {
        let said = refusal(Gpio::default().output("gpio:/dev/null/4"));
        assert!(said.contains("/dev/null is not a GPIO chip"), "{said}");
    }

    #[test]
    fn a_channel_without_a_line_is_refused_with_its_form() {
        for name in ["gpio:", "gpio:chip", "gpio:/4", "gpio:chip/"] {
            let said = refusal(Gpio::default().channel(name));
            assert!(said.contains("write gpio:CHIP/LINE"), "{name}: {said}");
        }
    }
}
