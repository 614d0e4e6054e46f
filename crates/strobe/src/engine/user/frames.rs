// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a co-processor, through an endpoint of rpmsg: each frame is a trigger, and what was sampled are channels, as
//! the board file describes it. The same board file as for the kernel engine, the same names, the same values.
//!
//! The frame that has come last stays where it is until the next: a run on another event may read it too.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use strobe_ring::Missed;

use super::bell::Bell;
use super::board::about;
use super::clock::{monotonic, RunClock};
use super::field::Bits;
use super::provider::{FoundChannel, Provider, ReadChannel, Row};
use super::trigger::{EventSource, Trigger, Woken};
use super::{Settings, WaitMode};
use crate::board::{Board, Hardware};
use crate::catalogue::{Catalogue, Device, Event as ListedEvent};
use crate::channel::{Channel, Class, Type};
use crate::engine::Error;
use crate::event::{Event, EventSpec};
use crate::rpmsg::frame::{Counters, Decoder, HEADER_SIZE};
use crate::rpmsg::{self, Address, Control, Endpoint};

/// Frames of a message, at most.
const FRAMES_MAX: usize = 255;
/// To read a word of the last frame, roughly.
const ACCESS_NS: u32 = 2;

/// Provides the one device of a board file for a co-processor.
pub struct Frames {
    board: Board,
    last: Arc<Last>,
    /// The bus in sysfs, which knows the addresses of services.
    bus: PathBuf,
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
            bus: "/sys/bus/rpmsg/devices".into(),
        })
    }

    fn part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (device, part) = name.split_once('.')?;
        (device == self.board.name).then_some(part)
    }

    fn about(&self, part: &str, description: &str) -> Channel {
        Channel {
            name: format!("{}.{part}", self.board.name),
            description: description.to_owned(),
            unit: String::new(),
            kind: Type::U64,
            class: Class::Hard,
            scale: 1.0,
            offset: 0.0,
            bits: 64,
            cost_ns: ACCESS_NS,
            in_use: false,
        }
    }

    /// Where the remote is: as the board says, or as the bus knows.
    fn address(&self) -> Result<Address, String> {
        let Hardware::Rpmsg { service, address } = &self.board.hardware else {
            return Err("the board is not of a co-processor".to_owned());
        };
        let found = address.or_else(|| announced(&self.bus, service));
        let address = found.ok_or_else(|| {
            format!(
                "nobody announces the service {service} ({}); start the remote, or say in the board file where it is: \
                 [match] address = 0x400",
                self.bus.display()
            )
        })?;
        Ok(Address::to(service, address))
    }

    fn source(&self, wait: WaitMode) -> Result<Source, String> {
        let claim = Claim::of(&self.last).ok_or(
            "another run of this process has it, and a co-processor has one stream; end that run",
        )?;
        let said = |error: rpmsg::Error| error.to_string();
        let endpoint = Control::find(None)
            .and_then(|control| control.create(&self.address().map_err(rpmsg::Error::Address)?))
            .map_err(said)?;
        endpoint.set_nonblocking(true).map_err(said)?;
        let mtu = endpoint.stats().map_err(said)?.mtu as usize;
        let bytes = self.board.frame_bytes().unwrap_or(0);
        let decoder = Decoder::new(bytes).map_err(|error| error.to_string())?;
        Ok(Source {
            claim,
            endpoint,
            // What a program before has started is hardly taken for ours.
            decoder: decoder.after_stream(monotonic() as u8),
            wait,
            bytes,
            message: vec![0; mtu.max(HEADER_SIZE + FRAMES_MAX * bytes)],
            frames: Vec::with_capacity(FRAMES_MAX),
            next: 0,
        })
    }
}

/// The remote's address of a service that it has announced.
fn announced(bus: &Path, service: &str) -> Option<u32> {
    let devices = std::fs::read_dir(bus).ok()?.flatten();
    let mut devices = devices.map(|entry| entry.path());
    let text = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).ok();
    let device =
        devices.find(|path| text(path, "name").is_some_and(|name| name.trim() == service))?;
    let dst = text(&device, "dst")?;
    u32::from_str_radix(dst.trim().strip_prefix("0x")?, 16).ok()
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
            in_use: false,
        });
        catalogue.events.extend(events);
    }

    fn channel(&self, name: &str) -> Option<Result<FoundChannel, Error>> {
        let part = self.part(name)?;
        let last = || Arc::clone(&self.last);
        if let Some(index) = Counters::CHANNELS
            .iter()
            .position(|(name, _)| *name == part)
        {
            let (name, text) = Counters::CHANNELS.get(index)?;
            return Some(Ok(FoundChannel {
                about: self.about(name, text),
                reader: Box::new(Counter(last(), index)),
            }));
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
        Some(Ok(FoundChannel {
            about: about(&self.board.name, channel, ACCESS_NS),
            reader: Box::new(field),
        }))
    }

    fn event(
        &self,
        event: &EventSpec,
        settings: &Settings,
    ) -> Option<Result<Box<dyn EventSource>, Error>> {
        let Event::Device(name) = event.event() else {
            return None;
        };
        let part = self.part(name)?;
        self.board.events.iter().find(|event| event.name == part)?;
        Some(match self.source(settings.wait) {
            Ok(source) => Ok(Box::new(source)),
            Err(why) => Err(Error::Unusable {
                what: "event",
                name: name.clone(),
                why,
            }),
        })
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
        let taken = last.taken.swap(true, Ordering::Relaxed);
        (!taken).then(|| Claim(Arc::clone(last)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Relaxed);
    }
}

/// A frame of the message: how many were missed before it, which one of the stream it is, and where it begins.
type Waiting = (u32, u32, usize);

/// Frames, of messages that come through an endpoint.
struct Source {
    claim: Claim,
    endpoint: Endpoint,
    decoder: Decoder,
    wait: WaitMode,
    /// Of a frame.
    bytes: usize,
    message: Vec<u8>,
    /// The good frames of the message.
    frames: Vec<Waiting>,
    /// The first of them that made no row yet.
    next: usize,
}

impl Source {
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

    /// The next message, if there is one.
    fn receive(&mut self) -> io::Result<()> {
        self.frames.clear();
        self.next = 0;
        let length = match self.endpoint.receive(&mut self.message) {
            Ok(length) => length,
            Err(error) if error.errno() == Some(Errno::AGAIN.raw_os_error()) => return Ok(()),
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
        self.count();
        Ok(())
    }

    fn count(&self) {
        let now = self.decoder.counters().channels();
        for (counter, value) in std::iter::zip(&self.claim.0.counters, now) {
            counter.store(value, Ordering::Relaxed);
        }
    }
}

/// A remote that has gone ends the run as any device does.
fn failed(error: &rpmsg::Error) -> io::Error {
    let errno = error.errno().unwrap_or(Errno::IO.raw_os_error());
    io::Error::from_raw_os_error(errno)
}

impl EventSource for Source {
    fn begin(&mut self, _: &RunClock, _: u64) -> io::Result<Option<u64>> {
        self.frames.clear();
        self.next = 0;
        // Without back-pressure: what finds no room in the endpoint is missed.
        let start = self.decoder.start(0);
        self.endpoint
            .send(&start.encode())
            .map_err(|error| failed(&error))?;
        Ok(None)
    }

    fn wait(&mut self, _: &RunClock, bell: &mut Bell) -> io::Result<Woken> {
        loop {
            if let Some(trigger) = self.take() {
                return Ok(Woken::Trigger(trigger));
            }
            if self.wait == WaitMode::Spin {
                if bell.rang() {
                    return Ok(Woken::Bell);
                }
                std::hint::spin_loop();
            } else if !bell.sleep_for(self.endpoint.as_fd(), PollFlags::IN)? {
                if bell.rang() {
                    return Ok(Woken::Bell);
                }
                continue;
            }
            self.receive()?;
        }
    }

    fn unserved(&mut self) -> (Missed, u64) {
        let left = self.frames.get(self.next..).unwrap_or_default();
        let missed = left.iter().map(|(missed, ..)| u64::from(*missed) + 1).sum();
        (Missed::Source, missed)
    }

    fn end(&mut self) {
        // A remote that does not hear it sends what nobody takes.
        let _ = self.endpoint.send(&self.decoder.stop().encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        let text = include_str!("../../../../../boards/adc-frames.toml");
        let board = Board::from_toml("adc-frames.toml", text).expect("a board");
        Frames::new(board).expect("of a co-processor")
    }

    fn row() -> Row {
        Row {
            time: 0,
            start: 0,
            trigger: Trigger::PLAIN,
        }
    }

    #[test]
    fn fields_are_read_from_the_last_frame_with_their_signs() {
        let frames = frames();
        let word =
            |index: usize, value: u64| frames.last.words[index].store(value, Ordering::Relaxed);
        word(0, 0x0000_0007_0000_0005);
        word(1, 1_000_000);
        word(2, 0x0000_0002_ffff_fffe);
        for (name, value) in [
            ("adc.sequence", 5),
            ("adc.status", 7),
            ("adc.time", 1_000_000),
            ("adc.ch1", -2_i64 as u64),
            ("adc.ch2", 2),
            ("adc.messages", 0),
        ] {
            let mut found = frames.channel(name).expect(name).expect(name);
            assert_eq!(found.reader.read(&row()).expect("a value"), value, "{name}");
        }
        assert!(frames.channel("adc.none").is_none());
        assert!(frames.channel("other.ch1").is_none());
    }

    #[test]
    fn one_run_has_the_stream() {
        let frames = frames();
        let claim = Claim::of(&frames.last).expect("free");
        assert!(Claim::of(&frames.last).is_none());
        drop(claim);
        assert!(Claim::of(&frames.last).is_some());
    }

    #[test]
    fn without_a_channel_the_event_says_what_to_do() {
        let frames = frames();
        let event = "adc.sample".parse().expect("an event");
        if Control::list().is_empty() {
            let found = frames
                .event(&event, &Settings::default())
                .expect("of this board");
            let why = found.err().expect("refused").to_string();
            assert!(
                why.contains("adc.sample") && why.contains("strobe_rpmsg"),
                "{why}"
            );
        }
        assert!(
            !frames.last.taken.load(Ordering::Relaxed),
            "and is free again"
        );
    }

    #[test]
    fn a_service_is_found_where_the_remote_has_announced_it() {
        let bus = tempfile::tempdir().expect("a directory");
        for (device, name, dst) in [("a", "other", "0x1"), ("b", "adc-frames", "0x401")] {
            let place = bus.path().join(device);
            std::fs::create_dir(&place).expect("to make it");
            std::fs::write(place.join("name"), format!("{name}\n")).expect("to write");
            std::fs::write(place.join("dst"), format!("{dst}\n")).expect("to write");
        }
        assert_eq!(announced(bus.path(), "adc-frames"), Some(0x401));
        assert_eq!(announced(bus.path(), "adc"), None);
    }
}
