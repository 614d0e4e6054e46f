// SPDX-License-Identifier: MIT OR Apache-2.0
//! strobe frames: what the firmware of a co-processor samples, in messages.
//!
//! docs/reference/frames.md is the protocol, firmware/strobe_frames.c the other side. A [`Decoder`] has one stream at a
//! time: [`Decoder::start`] makes the message that asks for it, and each message that comes goes through
//! [`Decoder::feed`], which tells rows from what is missing and from what is refused.
//!
//! ```
//! use strobe_board::frame::Decoder;
//!
//! let mut decoder = Decoder::new(16)?;
//! let start = decoder.start(0);
//! assert_eq!(&start.encode()[..4], b"SF\x01\x10");
//! let message = *b"SF\x01\x01\x01\x01\x10\x00\x03\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0";
//! for frame in decoder.feed(&message, 0)? {
//!     let frame = frame?;
//!     assert_eq!((frame.missed_before, frame.sequence, frame.time), (3, 3, 100));
//! }
//! assert_eq!((decoder.counters().rows, decoder.counters().missed), (1, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Deref;

/// Bytes before the frames of a message.
pub const HEADER_SIZE: usize = 8;
/// Bytes of a frame before its payload, and so of the shortest.
pub const FRAME_MIN: usize = 16;
/// Bytes of the longest frame: one that fills a message of rpmsg.
pub const FRAME_MAX: usize = 488;
/// All frames are a multiple of this.
pub const FRAME_STEP: usize = 8;

const MAGIC: [u8; 2] = *b"SF";
const VERSION: u8 = 1;
const FRAMES: u8 = 1;
const START: u8 = 16;
const STOP: u8 = 17;
const CREDIT: u8 = 18;

/// A frame's size that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a frame of {0} bytes is not possible; take a multiple of {FRAME_STEP} from {FRAME_MIN} to {FRAME_MAX}"
)]
pub struct BadSize(pub usize);

/// Why a message, or a frame of it, makes no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The message ends too early.
    #[error("the message has {found} bytes, and should have {wanted}")]
    Short {
        /// Bytes it has.
        found: usize,
        /// Bytes that its header says, or that a header has.
        wanted: usize,
    },
    /// The message goes on after its end.
    #[error("the message has {found} bytes, and should have {wanted}")]
    Long {
        /// Bytes it has.
        found: usize,
        /// Bytes that its header says.
        wanted: usize,
    },
    /// The message is none of frames, or not of this device's.
    #[error("the message's {field} is {found}, and should be {wanted}")]
    Malformed {
        /// Which field of the header is wrong.
        field: &'static str,
        /// What it is.
        found: u16,
        /// What it should be, or the least that it should be.
        wanted: u16,
    },
    /// All frames of the message are of a run before.
    #[error("the message belongs to stream {found}, and stream {wanted} was started last")]
    OtherStream {
        /// The message's.
        found: u8,
        /// The one that was asked for last.
        wanted: u8,
    },
    /// The frame has been here before, or comes too late.
    #[error("the frame has sequence {sequence}, and {expected} was expected")]
    OutOfOrder {
        /// The frame's.
        sequence: u32,
        /// What comes next.
        expected: u32,
    },
}

/// What has come, by what became of it. Nothing is in two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Messages, good and refused.
    pub messages: u64,
    /// Frames that became rows.
    pub rows: u64,
    /// Samples of the streams so far that did not, as the sequence tells.
    pub missed: u64,
    /// Messages that ended too early.
    pub short: u64,
    /// Messages that went on after their end.
    pub long: u64,
    /// Messages that were none of frames, or not of this device's.
    pub malformed: u64,
    /// Frames that were here before, came too late, or were of another stream.
    pub out_of_order: u64,
}

impl Counters {
    /// Those that each device has as channels, and what they are.
    pub const CHANNELS: [(&'static str, &'static str); 5] = [
        ("messages", "messages that have come"),
        ("short", "refused: less than they say"),
        ("long", "refused: more than they say"),
        ("malformed", "refused: not strobe frames of this size"),
        ("out_of_order", "frames refused: late, or duplicates"),
    ];

    /// In that order.
    pub fn channels(&self) -> [u64; 5] {
        [
            self.messages,
            self.short,
            self.long,
            self.malformed,
            self.out_of_order,
        ]
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame<'m> {
    /// Samples before this one, after the last good one, that did not arrive.
    pub missed_before: u32,
    /// Number of the sample in its stream; wraps.
    pub sequence: u32,
    /// The firmware's own; 0 if all is well.
    pub status: u32,
    /// When it was sampled, on the remote's clock, in its ticks.
    pub time: u64,
    /// When its message arrived, as [`Decoder::feed`] was told.
    pub arrival: u64,
    /// All of the frame; offsets of a board file's registers are from its start.
    pub bytes: &'m [u8],
}

impl<'m> Frame<'m> {
    /// What was sampled.
    pub fn payload(&self) -> &'m [u8] {
        self.bytes.get(FRAME_MIN..).unwrap_or_default()
    }
}

/// The host's side of a device that sends frames.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame_bytes: usize,
    stream: u8,
    expected: u32,
    counters: Counters,
}

impl Decoder {
    /// For frames of so many bytes. Nothing was started yet; frames of stream 0 are taken.
    pub fn new(frame_bytes: usize) -> Result<Self, BadSize> {
        if !(FRAME_MIN..=FRAME_MAX).contains(&frame_bytes) || frame_bytes % FRAME_STEP != 0 {
            return Err(BadSize(frame_bytes));
        }
        Ok(Decoder {
            frame_bytes,
            stream: 0,
            expected: 0,
            counters: Counters::default(),
        })
    }

    /// Begins with the stream after this one. Take any number, such as a clock's, so that what a program before has
    /// started, and is still on its way, is hardly taken for one's own.
    pub fn after_stream(self, stream: u8) -> Self {
        Decoder { stream, ..self }
    }

    /// Makes the message that starts the next stream, and forgets the one before. The remote may send so many frames
    /// before it needs [`Decoder::credit`]; 0: as many as it likes.
    pub fn start(&mut self, credits: u32) -> Command {
        self.stream = self.stream.wrapping_add(1);
        self.expected = 0;
        Command::Start {
            stream: self.stream,
            credits,
        }
    }

    /// Makes the message that sets how many frames the remote may send from now on, whatever it might before.
    pub fn credit(&self, credits: u32) -> Command {
        Command::Credit {
            stream: self.stream,
            credits,
        }
    }

    /// Makes the message that ends the stream. Frames that were sampled before may still come.
    pub fn stop(&self) -> Command {
        Command::Stop {
            stream: self.stream,
        }
    }

    /// What has come so far, of all streams.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes a message that arrived at that time, and gives its frames, or why it has none.
    ///
    /// Frames that are not taken from the iterator are missed, and the next frame says so.
    pub fn feed<'d, 'm>(
        &'d mut self,
        message: &'m [u8],
        arrival: u64,
    ) -> Result<Frames<'d, 'm>, Refusal> {
        self.counters.messages += 1;
        let checked = self.check(message);
        if let Err(refusal) = &checked {
            match refusal {
                Refusal::Short { .. } => self.counters.short += 1,
                Refusal::Long { .. } => self.counters.long += 1,
                Refusal::Malformed { .. } => self.counters.malformed += 1,
                Refusal::OtherStream { .. } | Refusal::OutOfOrder { .. } => {
                    self.counters.out_of_order += u64::from(message.get(4).copied().unwrap_or(0));
                }
            }
        }
        let body = checked?;
        Ok(Frames {
            frames: body.chunks_exact(self.frame_bytes),
            arrival,
            decoder: self,
        })
    }

    /// The frames of a message, if they are as many and as long as it says.
    fn check<'m>(&self, message: &'m [u8]) -> Result<&'m [u8], Refusal> {
        let found = message.len();
        let Some((header, body)) = message.split_first_chunk::<HEADER_SIZE>() else {
            return Err(Refusal::Short {
                found,
                wanted: HEADER_SIZE,
            });
        };
        let [magic0, magic1, version, kind, count, stream, low, high] = *header;
        let same = |field, found: u16, wanted: u16| match found == wanted {
            true => Ok(()),
            false => Err(Refusal::Malformed {
                field,
                found,
                wanted,
            }),
        };
        same(
            "magic",
            u16::from_le_bytes([magic0, magic1]),
            u16::from_le_bytes(MAGIC),
        )?;
        same("version", version.into(), VERSION.into())?;
        same("kind", kind.into(), FRAMES.into())?;
        same("count", count.min(1).into(), 1)?;
        let bytes = u16::from_le_bytes([low, high]);
        same("size of a frame", bytes, self.frame_bytes as u16)?;
        let wanted = HEADER_SIZE + usize::from(count) * self.frame_bytes;
        if found < wanted {
            return Err(Refusal::Short { found, wanted });
        }
        if found > wanted {
            return Err(Refusal::Long { found, wanted });
        }
        if stream != self.stream {
            return Err(Refusal::OtherStream {
                found: stream,
                wanted: self.stream,
            });
        }
        Ok(body)
    }

    /// What the sequence of a frame makes of it.
    fn account<'m>(&mut self, bytes: &'m [u8], arrival: u64) -> Result<Frame<'m>, Refusal> {
        let word = |at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            u32::from_le_bytes(word.copied().unwrap_or_default())
        };
        let sequence = word(0);
        let expected = self.expected;
        let missed_before = sequence.wrapping_sub(expected);
        // Half of the numbers are ahead, and half behind.
        if missed_before > u32::MAX / 2 {
            self.counters.out_of_order += 1;
            return Err(Refusal::OutOfOrder { sequence, expected });
        }
        self.expected = sequence.wrapping_add(1);
        self.counters.rows += 1;
        self.counters.missed += u64::from(missed_before);
        Ok(Frame {
            missed_before,
            sequence,
            status: word(4),
            time: u64::from(word(8)) | u64::from(word(12)) << 32,
            arrival,
            bytes,
        })
    }
}

/// The frames of one message, each either a row or refused; see [`Decoder::feed`].
#[derive(Debug)]
pub struct Frames<'d, 'm> {
    decoder: &'d mut Decoder,
    frames: std::slice::ChunksExact<'m, u8>,
    arrival: u64,
}

impl<'m> Iterator for Frames<'_, 'm> {
    type Item = Result<Frame<'m>, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.frames.next()?;
        Some(self.decoder.account(bytes, self.arrival))
    }
}

/// What the host tells the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sample, and number from 0.
    Start {
        /// What all messages of the stream carry.
        stream: u8,
        /// Frames that may be sent; 0: no limit.
        credits: u32,
    },
    /// Sample no more.
    Stop {
        /// Of START.
        stream: u8,
    },
    /// Send so many.
    Credit {
        /// Of START; one that is for another stream has no effect.
        stream: u8,
        /// Frames that may be sent from now on.
        credits: u32,
    },
}

impl Command {
    /// The message.
    pub fn encode(self) -> Encoded {
        let (kind, stream, body) = match self {
            Command::Start { stream, credits } => (START, stream, Some(credits)),
            Command::Stop { stream } => (STOP, stream, None),
            Command::Credit { stream, credits } => (CREDIT, stream, Some(credits)),
        };
        let [magic0, magic1] = MAGIC;
        let [a, b, c, d] = body.unwrap_or(0).to_le_bytes();
        Encoded {
            bytes: [
                magic0, magic1, VERSION, kind, 0, stream, 0, 0, a, b, c, d, 0, 0, 0, 0,
            ],
            length: HEADER_SIZE + body.map_or(0, |_| 8),
        }
    }
}

/// A message to the remote, in place: nothing is allocated where it is sent from.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; 16],
    length: usize,
}

impl Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
