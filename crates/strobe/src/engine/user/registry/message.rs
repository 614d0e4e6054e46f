// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an owner says of its run: one line of JSON. What changes is in the ring.

use serde::{Deserialize, Serialize};

use crate::info::RunInfo;

/// Version of this message; another one is not understood.
const VERSION: u32 = 2;
/// Bytes of a message, at most: a row has at most 1024 channels, and none has that long a description.
pub const BYTES_MAX: usize = 4 << 20;

/// The line.
#[derive(Debug, Serialize, Deserialize)]
pub struct Message {
    version: u32,
    /// The run, but for its start and what only the ring says.
    #[serde(flatten)]
    pub info: RunInfo,
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
            info: info.clone(),
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
            Ok(_) => {
                return Err(
                    "its program has another version: use the same version of strobe".to_owned(),
                );
            }
            Err(_) => return Err("its answer is not understood".to_owned()),
        }
        serde_json::from_slice(line).map_err(|error| format!("its answer is damaged: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use strobe_hw::rt::Step;
    use strobe_ring::Engine;

    use super::*;
    use crate::channel::Type;
    use crate::info::Clock;
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
        assert_eq!(message.info, info);
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
