// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an owner says of its run: one line of JSON. What changes is in the ring.

use serde::{Deserialize, Serialize};
use strobe_hw::rt::Step;
use strobe_ring::{Engine, StartTimes};

use crate::channel::Channel;
use crate::info::{Clock, RunInfo};

/// Version of this message; another one is not understood.
const VERSION: u32 = 2;
/// Bytes of a message, at most: a row has at most 1024 channels, and none has that long a description.
pub const BYTES_MAX: usize = 4 << 20;

/// What a visitor sends who stays to read.
pub const STAYS: u8 = b'r';

/// An output that a row writes.
#[derive(Debug, Serialize, Deserialize)]
struct Output {
    name: String,
}

/// The line.
#[derive(Debug, Serialize, Deserialize)]
pub struct Message {
    version: u32,
    kernel: String,
    event: String,
    run: u32,
    tai: bool,
    period_ns: Option<u64>,
    capacity: u64,
    limit: Option<u64>,
    channels: Vec<Channel>,
    outputs: Vec<Output>,
    set_up: Vec<Step>,
    /// Name of the owner's program.
    pub program: String,
    /// Readers of the ring, in all processes.
    pub readers: u32,
}

impl Message {
    /// What there is to say.
    pub fn new(info: &RunInfo, program: &str, readers: u32) -> Self {
        Message {
            version: VERSION,
            kernel: info.kernel.clone(),
            event: info.event.clone(),
            run: info.run,
            tai: info.clock == Clock::Tai,
            period_ns: info.period_ns,
            capacity: info.capacity,
            limit: info.limit,
            channels: info.channels.clone(),
            outputs: (info.outputs.iter().cloned())
                .map(|name| Output { name })
                .collect(),
            set_up: info.set_up.clone(),
            program: program.to_owned(),
            readers,
        }
    }

    /// As it is sent.
    pub fn line(&self) -> Vec<u8> {
        // Names, texts and numbers: always possible.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// As it was received; the reason if it is not understood.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        match serde_json::from_slice(line) {
            Ok(Versioned { version: VERSION }) => {}
            Ok(_) => return Err("its program is of another version: use one as new".to_owned()),
            Err(_) => return Err("what it says is not understood".to_owned()),
        }
        serde_json::from_slice(line).map_err(|error| format!("what it says is damaged: {error}"))
    }

    /// What is known of the run, but for its start, and what only the ring says.
    pub fn info(self) -> RunInfo {
        RunInfo {
            engine: Engine::User,
            kernel: self.kernel,
            event: self.event,
            run: self.run,
            clock: if self.tai {
                Clock::Tai
            } else {
                Clock::Monotonic
            },
            period_ns: self.period_ns,
            capacity: self.capacity,
            limit: self.limit,
            start: StartTimes::default(),
            channels: self.channels,
            outputs: self.outputs.into_iter().map(|output| output.name).collect(),
            skips: false,
            set_up: self.set_up,
            doctor: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Type;
    use crate::samples::channel;
    use crate::samples::info;

    #[test]
    fn what_is_received_is_what_was_sent() {
        let mut info = info(vec![channel("sim.counter", Type::S64)]);
        info.engine = Engine::User;
        info.clock = Clock::Tai;
        info.outputs = vec!["sim.latch".into(), "sim.latch".into()];
        info.set_up.push(Step {
            what: "wait".into(),
            ok: true,
            got: "a \"word\"\nand another".into(),
        });
        let line = Message::new(&info, "strobe", 3).line();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let message = Message::parse(&line).expect("a message");
        assert_eq!((message.program.as_str(), message.readers), ("strobe", 3));
        info.start = StartTimes::default();
        assert_eq!(message.info(), info);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in ["", "{}", "[1]", "{\"version\":2}", "\u{0}\u{1}"] {
            assert!(Message::parse(text.as_bytes()).is_err(), "{text}");
        }
        let other = Message::parse(b"{\"version\":1}").expect_err("another version");
        assert!(other.contains("another version"), "{other}");
    }
}
