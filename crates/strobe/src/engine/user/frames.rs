// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a co-processor, through an endpoint of rpmsg: each frame is a trigger, and what was sampled are channels, as
//! the board file describes it. The same board file as for the kernel engine, the same names, the same values.
//!
//! The frame that has come last stays where it is until the next: a run on another event may read it too.

mod credits;
mod remote;

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use strobe_ring::Missed;

use super::card::about;
use super::field::Bits;
use super::provider::{ChannelOpener, EventOpener, Provider, ReadChannel, Row};
use super::settings::{Settings, WaitMode};
use super::trigger::{Cadence, EventSource, Trigger, WaitOutcome};
use crate::accounting::Accounting;
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::channel::Channel;
use crate::clock::{RunClock, monotonic};
use crate::error::Error;
use crate::event::{Event, EventSpec};
use credits::{Credits, QUEUE_KIB, QUEUE_MESSAGES, QUIET_NS};
use remote::Remote;
use strobe_board::frame::{Command, Counters, Decoder, HEADER_SIZE};
use strobe_board::{Board, Hardware};
use strobe_hw::rpmsg::{self, Address, Control, Endpoint};
use strobe_hw::wakeup::Wakeup;

/// Frames of a message, at most.
const FRAMES_MAX: usize = 255;
/// To read a word of the last frame, roughly.
const ACCESS_NS: u32 = 2;
/// So long a remote that has no room for START or STOP is asked again.
const PATIENCE_NS: u64 = 100_000_000;
/// And so often.
const AGAIN_NS: u64 = 1_000_000;
/// Who spins looks at the clock once in so many times.
const LOOKS: u32 = 64;

/// Provides the one device of a board file for a co-processor.
pub struct Frames {
    board: Board,
    last: Arc<Last>,
    /// Where sysfs is, which knows the remotes.
    sysfs: PathBuf,
}

/// The last frame, and what was counted.
struct Last {
    /// Its words. Written by the thread of the run that listens; read by threads of runs.
    words: Box<[AtomicU64]>,
    /// As [`Counters::channels`]. Written and read as `words`.
    counters: [AtomicU64; 5],
    /// A run listens: a co-processor has one stream.
    taken: AtomicBool,
}

impl Frames {
    /// For a board of this kind; `None` for another.
    pub fn new(board: Board) -> Option<Frames> {
        let bytes = board.frame_bytes()?;
        let last = Last {
            words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            counters: Default::default(),
            taken: AtomicBool::new(false),
        };
        Some(Frames {
            board,
            last: Arc::new(last),
            sysfs: remote::SYSFS.into(),
        })
    }

    fn part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (device, part) = name.split_once('.')?;
        (device == self.board.name).then_some(part)
    }

    fn about(&self, part: &str, description: &str) -> Channel {
        let name = format!("{}.{part}", self.board.name);
        Channel::plain(&name, description, "", ACCESS_NS)
    }

    /// The remote that has the service.
    fn remote(&self) -> Result<(&str, Remote), String> {
        let Hardware::Rpmsg { service, address } = &self.board.hardware else {
            return Err("the board is not of a co-processor".to_owned());
        };
        Ok((service, remote::find(&self.sysfs, service, *address)?))
    }

    /// An endpoint to it.
    fn endpoint(&self) -> Result<Endpoint, String> {
        let (service, remote) = self.remote()?;
        let made = Control::open(&remote.control)
            .and_then(|control| control.create(&Address::to(service, remote.address)));
        made.map_err(|error| error.to_string())
    }

    fn source(&self, wait: WaitMode) -> Result<Source, String> {
        let claim = Claim::of(&self.last).ok_or(
            "another run of this process uses it, and a co-processor has one stream only; end that run",
        )?;
        let queue_kib = remote::queue_kib(&self.sysfs).unwrap_or(QUEUE_KIB);
        Source::new(claim, self.endpoint()?, queue_kib, wait)
    }
}

impl Provider for Frames {
    fn list(&self, catalogue: &mut Catalogue) {
        catalogue.devices.push(Device {
            name: self.board.name.clone(),
            description: self.board.description.clone(),
            in_use: false,
        });
        let fields = self.board.channels.iter();
        catalogue
            .channels
            .extend(fields.map(|field| about(&self.board.name, field, ACCESS_NS)));
        let counters = Counters::CHANNELS
            .iter()
            .map(|(name, text)| self.about(name, text));
        catalogue.channels.extend(counters);
        let events = self.board.events.iter().map(|event| ListedEvent {
            name: format!("{}.{}", self.board.name, event.name),
            description: event.description.clone(),
            periodic: false,
            accounting: Accounting::Exact,
            in_use: false,
        });
        catalogue.events.extend(events);
    }

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let part = self.part(name)?;
        let last = || Arc::clone(&self.last);
        if let Some(index) = Counters::CHANNELS
            .iter()
            .position(|(name, _)| *name == part)
        {
            let (name, text) = Counters::CHANNELS.get(index)?;
            let counter = Box::new(Counter(last(), index));
            return Some(Ok(ChannelOpener::ready(self.about(name, text), counter)));
        }
        let channel = self
            .board
            .channels
            .iter()
            .find(|channel| channel.name == part)?;
        let register = self.board.registers.get(channel.register)?;
        let field = Field {
            last: last(),
            word: register.offset as usize / 8,
            bits: Bits::new(channel).above(8 * (register.offset % 8)),
        };
        let about = about(&self.board.name, channel, ACCESS_NS);
        Some(Ok(ChannelOpener::ready(about, Box::new(field))))
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<EventOpener<'_>, Error>> {
        let Event::Device(name) = event.event() else {
            return None;
        };
        let part = self.part(name)?;
        self.board.events.iter().find(|event| event.name == part)?;
        let unusable = |why| Error::Unusable {
            what: "event",
            name: name.clone(),
            why,
        };
        if let Err(why) = self.remote() {
            return Some(Err(unusable(why)));
        }
        let (name, wait) = (name.clone(), settings.wait);
        Some(Ok(EventOpener::new(
            // The co-processor numbers its frames.
            Cadence::exact(),
            move || match self.source(wait) {
                Ok(source) => Ok(Box::new(source)),
                Err(why) => Err(Error::Unusable {
                    what: "event",
                    name,
                    why,
                }),
            },
        )))
    }
}

struct Counter(Arc<Last>, usize);

impl ReadChannel for Counter {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let counter = self.0.counters.get(self.1);
        Ok(counter.map_or(0, |counter| counter.load(Ordering::Relaxed)))
    }
}

/// Some bits of a word of the frame.
struct Field {
    last: Arc<Last>,
    word: usize,
    bits: Bits,
}

impl ReadChannel for Field {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let word = self.last.words.get(self.word);
        let word = word.map_or(0, |word| word.load(Ordering::Relaxed));
        Ok(self.bits.of(word))
    }
}

/// The one run that may listen.
struct Claim(Arc<Last>);

impl Claim {
    fn of(last: &Arc<Last>) -> Option<Claim> {
        // Acquire, with the Release below: what the run before has written is there.
        let taken = last.taken.swap(true, Ordering::Acquire);
        (!taken).then(|| Claim(Arc::clone(last)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// A frame of the message: how many were missed before it, which one of the stream it is, and where it begins.
type Waiting = (u32, u32, usize);

/// Frames, of messages that come through an endpoint.
struct Source {
    claim: Claim,
    endpoint: Endpoint,
    decoder: Decoder,
    credits: Credits,
    /// How long a remote without room for a command is asked again, in ns.
    patience_ns: u64,
    wait: WaitMode,
    /// How often a spinning thread has looked in vain.
    looks: u32,
    /// Of a frame.
    bytes: usize,
    /// One byte more than the longest can have: what is too long is seen to be.
    message: Vec<u8>,
    /// The good frames of the message.
    frames: Vec<Waiting>,
    /// The first of them that made no row yet.
    next: usize,
}

impl Source {
    fn new(
        claim: Claim,
        endpoint: Endpoint,
        queue_kib: usize,
        wait: WaitMode,
    ) -> Result<Source, String> {
        let bytes = 8 * claim.0.words.len();
        let decoder = Decoder::new(bytes).map_err(|error| error.to_string())?;
        let nonblocking = endpoint.set_nonblocking(true);
        nonblocking.map_err(|error| error.to_string())?;
        let mtu = endpoint.stats().map_or(0, |stats| stats.mtu as usize);
        Ok(Source {
            claim,
            endpoint,
            // What a program before has started is hardly taken for ours.
            decoder: decoder.after_stream(monotonic() as u8),
            credits: Credits::new(credits::room(queue_kib, bytes, mtu)),
            patience_ns: PATIENCE_NS,
            wait,
            looks: 0,
            bytes,
            message: vec![0; mtu.max(HEADER_SIZE + FRAMES_MAX * bytes) + 1],
            frames: Vec::with_capacity(FRAMES_MAX),
            next: 0,
        })
    }

    /// The next frame of the message, to be read by the channels.
    fn take(&mut self) -> Option<Trigger> {
        let (missed, sequence, at) = *self.frames.get(self.next)?;
        self.next += 1;
        let frame = self.message.get(at..at + self.bytes).unwrap_or_default();
        for (word, bytes) in std::iter::zip(&self.claim.0.words, frame.chunks_exact(8)) {
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        Some(Trigger {
            missed: missed.into(),
            cause: Missed::Source,
            count: sequence.into(),
            ..Trigger::PLAIN
        })
    }

    /// Takes the next message; whether there was one.
    fn receive(&mut self) -> io::Result<bool> {
        self.frames.clear();
        self.next = 0;
        let length = match self.endpoint.receive(&mut self.message) {
            Ok(length) => length,
            Err(error) if would_wait(&error) => return Ok(false),
            Err(error) => return Err(failed(&error)),
        };
        let message = self.message.get(..length).unwrap_or_default();
        // What is refused is counted.
        if let Ok(frames) = self.decoder.feed(message, 0) {
            let starts = (HEADER_SIZE..).step_by(self.bytes);
            let good = std::iter::zip(frames, starts).filter_map(|(frame, at)| {
                let frame = frame.ok()?;
                Some((frame.missed_before, frame.sequence, at))
            });
            self.frames.extend(good);
        }
        self.credits.took(self.waiting());
        self.count();
        Ok(true)
    }

    /// Samples of the message of which there is no row yet: frames, and those missed before them.
    fn waiting(&self) -> u64 {
        let left = self.frames.get(self.next..).unwrap_or_default();
        left.iter().map(|(missed, ..)| u64::from(*missed) + 1).sum()
    }

    /// Nothing waits: gives credits, if it is time. When to look again, in ns from now.
    fn grant(&mut self) -> io::Result<u64> {
        let now = monotonic();
        if self.credits.is_due(now) {
            let credit = self.decoder.credit(self.credits.each());
            match self.endpoint.send(&credit.encode()) {
                Ok(()) => self.credits.granted(now),
                // It stays due.
                Err(error) if would_wait(&error) => return Ok(AGAIN_NS),
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(QUIET_NS)
    }

    /// Sends START or STOP, also to a remote that has no room just now.
    fn command(&self, command: Command) -> io::Result<()> {
        let until = monotonic() + self.patience_ns;
        loop {
            match self.endpoint.send(&command.encode()) {
                Err(error) if would_wait(&error) && monotonic() < until => {
                    std::thread::sleep(Duration::from_nanos(AGAIN_NS));
                }
                sent => return sent.map_err(|error| failed(&error)),
            }
        }
    }

    fn count(&self) {
        let now = self.decoder.counters().channels();
        for (counter, value) in std::iter::zip(&self.claim.0.counters, now) {
            counter.store(value, Ordering::Relaxed);
        }
    }
}

/// Nothing is there, or there is no room.
fn would_wait(error: &rpmsg::Error) -> bool {
    error.errno() == Some(Errno::AGAIN.raw_os_error())
}

/// A remote that has gone ends the run as any device does.
fn failed(error: &rpmsg::Error) -> io::Error {
    let errno = error.errno().unwrap_or(Errno::IO.raw_os_error());
    io::Error::from_raw_os_error(errno)
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        let start = self.decoder.start(self.credits.each());
        // What is left of the stream before leaves its room to this one, and is refused.
        for _ in 0..QUEUE_MESSAGES {
            if !self.receive()? {
                break;
            }
        }
        self.count();
        self.command(start)?;
        self.credits.granted(monotonic());
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        loop {
            if let Some(trigger) = self.take() {
                return Ok(WaitOutcome::Trigger(trigger));
            }
            if wakeup.is_pending() {
                return Ok(WaitOutcome::Wakeup);
            }
            if self.receive()? {
                continue;
            }
            if self.wait == WaitMode::Spin {
                self.looks = self.looks.wrapping_add(1);
                if self.credits.is_low() || self.looks % LOOKS == 0 {
                    self.grant()?;
                }
                std::hint::spin_loop();
            } else {
                let most = self.grant()?;
                wakeup.sleep_at_most(most, self.endpoint.as_fd(), PollFlags::IN)?;
            }
        }
    }

    fn unserved(&mut self) -> (Missed, u64) {
        (Missed::Source, self.waiting())
    }

    fn end(&mut self) {
        // A remote that does not hear it runs out of credits.
        let _ = self.command(self.decoder.stop());
    }
}

#[cfg(test)]
mod tests;
