// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of counters, by their device files: `counter:NAME/CHANNEL:EVENT`. The counts of the same counter that such a run
//! reads are those at the event: its driver reads them then, and tells them with it.
//!
//! The driver tells each count by itself, and its queue drops what has no room without a word. What belongs to one event has
//! one time; an event of which a part is missing makes no row, and is missed. If all parts of one were dropped, nobody knows.
//!
//! All who open the file share one queue, and the first who closes it ends the events of all. So runs of strobe lock the
//! counter; of other programs nothing is known.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::PollFlags;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use strobe_hw::counter::{self, RECORD, Record, Watch};
use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::provider::{ChannelOpener, EventOpener, Provider, ReadChannel, Row};
use super::settings::{Settings, WaitMode};
use super::sysfs::device::{Group, devices};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Event as Listed};
use crate::channel::Channel;
use crate::clock::RunClock;
use crate::error::Error;
use crate::event::{Event, EventSpec};

const DEVICES: Group = Group::new("counter", "bus/counter/devices", Some("name"));
/// Counts of one event, at most.
const SLOTS: usize = 64;

/// Counts of the last event, and the errno of each that was not read. Written by the source of triggers, read by the
/// channels, all in the thread of the run.
struct Latest {
    words: [AtomicU64; SLOTS],
    errnos: [AtomicU8; SLOTS],
}

impl Latest {
    fn new() -> Arc<Latest> {
        Arc::new(Latest {
            words: [const { AtomicU64::new(0) }; SLOTS],
            errnos: [const { AtomicU8::new(0) }; SLOTS],
        })
    }
}

/// Provides them, to one run.
pub struct Counters {
    root: PathBuf,
    dev: PathBuf,
    /// The counter whose event triggers this run, if one does.
    watched: Mutex<Option<WatchedCounter>>,
}

/// A counter that is watched.
struct WatchedCounter {
    device: PathBuf,
    /// What is told at its event, in the order of their slots.
    components: Vec<[u8; 4]>,
    latest: Arc<Latest>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            root: "/sys".into(),
            dev: "/dev".into(),
            watched: Mutex::new(None),
        }
    }
}

impl Counters {
    fn open(&self, channel: u8, event: u8, wait: WaitMode) -> Result<Source, String> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = watched.as_ref().ok_or("it has gone")?;
        // Before its file is opened: closing that again would end the events of who has it.
        let lock = lock(&watched.device)?;
        let node = watched.device.file_name();
        let node = node.map(|name| self.dev.join(name)).unwrap_or_default();
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(&node);
        let file = file.map_err(|error| {
            let remedy = match Errno::from_io_error(&error) {
                Some(Errno::BUSY) => "another program has it open; end that program",
                _ => "be root, or add a udev rule that gives you access",
            };
            format!("{}: {error}; {remedy}", node.display())
        })?;
        let components = match watched.components.as_slice() {
            [] => vec![counter::NOTHING],
            components => components.to_vec(),
        };
        let watch = |component| Watch {
            component,
            event,
            channel,
        };
        let mut source = Source::new(
            file,
            components.into_iter().map(watch).collect(),
            Arc::clone(&watched.latest),
            wait,
        );
        source.lock = Some(lock);
        // Whether the counter has such an event is known when it is asked for.
        source.watch().map_err(|error| {
            format!(
                "its driver refuses that event ({error}); see its events in {}",
                watched.device.display()
            )
        })?;
        Ok(source)
    }
}

/// Keeps other runs from this counter, as long as the answer is kept: its directory in sysfs is locked.
fn lock(device: &Path) -> Result<File, String> {
    let failed = |error: io::Error| format!("{}: {error}", device.display());
    let directory = File::open(device).map_err(failed)?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(directory),
        Err(Errno::WOULDBLOCK) => Err("another run takes its events; end that run".to_owned()),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// A count of the last event.
struct Slot {
    latest: Arc<Latest>,
    slot: usize,
}

impl ReadChannel for Slot {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let errno = self.latest.errnos.get(self.slot);
        match errno.map_or(0, |errno| errno.load(Ordering::Relaxed)) {
            0 => Ok(self
                .latest
                .words
                .get(self.slot)
                .map_or(0, |word| word.load(Ordering::Relaxed))),
            errno => Err(io::Error::from_raw_os_error(errno.into())),
        }
    }
}

/// Events of a counter.
struct Source {
    file: File,
    /// Kept until the file is closed.
    lock: Option<File>,
    watches: Vec<Watch>,
    latest: Arc<Latest>,
    spin: bool,
    /// The event that is not whole yet: its time, and which of its parts have come.
    time: u64,
    parts: u64,
    count: u64,
    /// Events before this are forgotten.
    from: u64,
    on: bool,
}

impl Source {
    fn new(file: File, watches: Vec<Watch>, latest: Arc<Latest>, wait: WaitMode) -> Source {
        Source {
            file,
            lock: None,
            watches,
            latest,
            spin: wait == WaitMode::Spin,
            time: 0,
            parts: 0,
            count: 0,
            from: 0,
            on: false,
        }
    }

    /// Asks for all of it, from the next enabling on.
    fn watch(&self) -> io::Result<()> {
        self.watches
            .iter()
            .try_for_each(|watch| Ok(counter::add_watch(&self.file, *watch)?))
    }

    fn record(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD];
        match rustix::io::read(&self.file, &mut bytes) {
            Ok(RECORD) => Ok(Some(Record::of(&bytes))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Ok(_) => Err(Errno::IO.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The next event that is whole, with what was missed before it.
    fn take(&mut self, missed: &mut u64) -> io::Result<Option<Trigger>> {
        let all = u64::MAX >> (64 - self.watches.len().clamp(1, SLOTS));
        while let Some(record) = self.record()? {
            let slot = self.watches.iter().position(|watch| *watch == record.watch);
            // Before that, it belongs to the time before a start.
            let Some(slot) = slot.filter(|_| record.time >= self.from) else {
                continue;
            };
            let part = 1 << slot;
            if self.parts != 0 && (record.time != self.time || self.parts & part != 0) {
                *missed += 1;
                self.parts = 0;
            }
            (self.time, self.parts) = (record.time, self.parts | part);
            if let Some((word, errno)) = self
                .latest
                .words
                .get(slot)
                .zip(self.latest.errnos.get(slot))
            {
                word.store(record.value, Ordering::Relaxed);
                errno.store(record.errno, Ordering::Relaxed);
            }
            if self.parts == all {
                self.parts = 0;
                self.count += *missed + 1;
                return Ok(Some(Trigger {
                    missed: std::mem::take(missed),
                    cause: Missed::Source,
                    time: record.time,
                    count: self.count,
                    ..Trigger::PLAIN
                }));
            }
        }
        Ok(None)
    }
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        // What a pause has left.
        while self.record()?.is_some() {}
        (self.parts, self.count) = (0, 0);
        // Each enabling takes what was asked for since the last one.
        if self.on {
            self.watch()?;
        }
        counter::enable(&self.file)?;
        self.on = true;
        Ok(None)
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        let mut missed = 0;
        while !wakeup.is_pending() {
            if let Some(trigger) = self.take(&mut missed)? {
                let time = clock.of_monotonic(trigger.time);
                return Ok(WaitOutcome::Trigger(Trigger { time, ..trigger }));
            }
            match self.spin {
                true => std::hint::spin_loop(),
                false => {
                    wakeup.sleep_for_device(self.file.as_fd(), PollFlags::IN)?;
                }
            }
        }
        Ok(WaitOutcome::Wakeup)
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let (mut missed, mut torn) = (0, 0);
        // More than the queue has are not there, unless new ones come all the time; what cannot be read is not known.
        for _ in 0..4096 {
            let Ok(Some(trigger)) = self.take(&mut torn) else {
                break;
            };
            missed += trigger.missed + 1;
        }
        (Missed::Source, missed + torn)
    }

    fn end(&mut self) {
        // It can only be that the device has gone.
        let _ = counter::disable(&self.file);
    }
}

fn unusable(what: &'static str, name: &str, why: String) -> Error {
    let name = name.to_owned();
    Error::Unusable { what, name, why }
}

impl Provider for Counters {
    fn list(&self, catalogue: &mut Catalogue) {
        for (name, path) in devices(&DEVICES, &self.root) {
            if path
                .file_name()
                .is_some_and(|node| self.dev.join(node).exists())
            {
                catalogue.events.push(Listed {
                    name: format!("counter:{name}/0:index"),
                    description: "an event of the counter".to_owned(),
                    periodic: false,
                    accounting: Accounting::None,
                    in_use: false,
                });
            }
        }
    }

    /// Only the counts of the counter that triggers the run: the others are those of files.
    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let (device, part) = name.strip_prefix("counter:")?.split_once('/')?;
        let number = part.strip_prefix("count")?.parse::<u8>().ok()?;
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let path = DEVICES.find(&self.root, device).ok()?;
        let watched = watched.as_mut().filter(|watched| watched.device == path)?;
        if !path.join(part).is_dir() {
            return None;
        }
        let component = counter::count(number);
        let known = watched
            .components
            .iter()
            .position(|known| *known == component);
        let slot = known.unwrap_or(watched.components.len());
        if slot >= SLOTS {
            let why = format!("an event gives at most {SLOTS} counts");
            return Some(Err(unusable("channel", name, why)));
        }
        if known.is_none() {
            watched.components.push(component);
        }
        let about = Channel::plain(name, "count at the event", "", 10);
        let latest = Arc::clone(&watched.latest);
        Some(Ok(ChannelOpener::ready(
            about,
            Box::new(Slot { latest, slot }),
        )))
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Counter {
            name: device,
            channel,
            what,
        } = event.event()
        else {
            return None;
        };
        let name = event.to_string();
        let device = match DEVICES.find(&self.root, device) {
            Ok(device) => device,
            Err(why) => return Some(Err(unusable("event", &name, why))),
        };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        *watched = Some(WatchedCounter {
            device,
            components: Vec::new(),
            latest: Latest::new(),
        });
        let (wait, channel, what) = (settings.wait, *channel, *what);
        Some(Ok(EventOpener::new(Cadence::default(), move || {
            // All channels of the run are known by now.
            let source = self.open(channel, what, wait);
            source
                .map(|source| Box::new(source) as _)
                .map_err(|why| unusable("event", &name, why))
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::user::trigger::Trigger;
    use crate::info::Clock;
    use rustix::pipe::pipe;
    use std::io::Write;
    use strobe_hw::wakeup::wakeup;

    const ROW: Row = Row {
        time: 0,
        start: 0,
        trigger: Trigger::PLAIN,
    };

    /// A device file that tells what is written to the other end, and has no calls.
    fn source(counts: &[u8]) -> (File, Source, Vec<Slot>) {
        let (read, write) = pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&read, true).expect("not to block");
        let watch = |count: &u8| Watch {
            component: counter::count(*count),
            event: 3,
            channel: 0,
        };
        let latest = Latest::new();
        let slot = |slot| Slot {
            latest: Arc::clone(&latest),
            slot,
        };
        let slots = (0..counts.len()).map(slot).collect();
        let watches = counts.iter().map(watch).collect();
        let source = Source::new(read.into(), watches, Arc::clone(&latest), WaitMode::Block);
        (write.into(), source, slots)
    }

    fn tell(to: &mut File, time: u64, count: u8, value: u64, errno: u8) {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&time.to_ne_bytes());
        bytes[8..16].copy_from_slice(&value.to_ne_bytes());
        bytes[16..].copy_from_slice(&[2, 2, count, 0, 3, 0, errno, 0]);
        to.write_all(&bytes).expect("to write");
    }

    #[test]
    fn what_has_one_time_is_one_event_in_whatever_order_and_a_torn_one_is_missed() {
        let (mut node, mut source, mut slots) = source(&[0, 1]);
        let clock = RunClock::new(Clock::Monotonic);
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut next = |source: &mut Source| match source.wait(&clock, &mut wakeup) {
            Ok(WaitOutcome::Trigger(trigger)) => (trigger.time, trigger.missed, trigger.count),
            other => panic!("{other:?}"),
        };
        tell(&mut node, 10, 0, 100, 0);
        tell(&mut node, 10, 1, 200, 0);
        assert_eq!(next(&mut source), (10, 0, 1));
        let mut values = || {
            slots
                .iter_mut()
                .map(|slot| slot.read(&ROW).ok())
                .collect::<Vec<_>>()
        };
        assert_eq!(values(), [Some(100), Some(200)]);
        // The driver tells the last watch first; and one of the parts of 20 was dropped.
        tell(&mut node, 20, 1, 201, 0);
        tell(&mut node, 30, 1, 202, 0);
        tell(&mut node, 30, 0, 102, 19);
        assert_eq!(next(&mut source), (30, 1, 3));
        assert_eq!(
            values(),
            [None, Some(202)],
            "the errno of a count is that of its channel"
        );
        waker.wake();
        tell(&mut node, 40, 0, 1, 0);
        tell(&mut node, 40, 1, 1, 0);
        tell(&mut node, 50, 0, 1, 0);
        tell(&mut node, 60, 0, 1, 0);
        tell(&mut node, 60, 1, 1, 0);
        assert_eq!(source.unserved(), (Missed::Source, 3));
    }

    #[test]
    fn a_counter_that_is_not_there_is_answered_with_those_that_are() {
        let empty = tempfile::tempdir().expect("a directory");
        let counters = Counters {
            root: empty.path().to_owned(),
            ..Counters::default()
        };
        let event: EventSpec = "counter:encoder/0:index".parse().expect("an event");
        let found = counters
            .event(&event, &Settings::default())
            .expect("of this");
        let error = found.err().expect("refused").to_string();
        assert!(error.contains("is its driver loaded?"), "{error}");
        assert!(
            counters.channel("counter:encoder/count0").is_none(),
            "those of files"
        );
    }
}
