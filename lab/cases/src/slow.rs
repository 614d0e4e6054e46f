// SPDX-License-Identifier: MIT OR Apache-2.0
//! A channel of the user engine that takes long now and then.

use std::io;
use std::thread;
use std::time::Duration;

use strobe::catalogue::Catalogue;
use strobe::channel::{Channel, Class, Type};
use strobe::engine::Error;
use strobe::engine::user::provider::{ChannelOpener, Provider, ReadChannel, Row};

/// Has the channel `slow.count`, which counts its reads.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// Of so many reads one takes long.
    pub every: u64,
    /// How long.
    pub sleep: Duration,
}

struct Slow {
    slowness: Slowness,
    count: u64,
}

impl ReadChannel for Slow {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        self.count += 1;
        if self.count % self.slowness.every == 0 {
            thread::sleep(self.slowness.sleep);
        }
        Ok(self.count)
    }
}

/// A channel of a test's own.
pub fn made_up(name: &str) -> Channel {
    Channel {
        name: name.to_owned(),
        description: String::new(),
        unit: String::new(),
        kind: Type::U64,
        class: Class::Sleep,
        scale: 1.0,
        offset: 0.0,
        bits: 64,
        cost_ns: 100,
        in_use: false,
    }
}

impl Provider for Slowness {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, Error>> {
        let reader = Box::new(Slow {
            slowness: *self,
            count: 0,
        });
        (name == "slow.count").then(|| Ok(ChannelOpener::ready(made_up(name), reader)))
    }
}
