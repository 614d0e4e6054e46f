// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is here: devices, channels, outputs, events and runs.

use serde::{Deserialize, Serialize, Serializer};
use strobe_ring::State;

use crate::accounting::Accounting;
use crate::channel::Channel;

/// A unit of hardware, or the simulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// A run uses it.
    pub in_use: bool,
}

/// A source of triggers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// A period must be given.
    pub periodic: bool,
    /// How it accounts for what its source drops.
    #[serde(default)]
    pub accounting: Accounting,
    /// A run uses it.
    pub in_use: bool,
}

/// A run, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunStatus {
    /// Its number.
    pub run: u32,
    /// Who makes its rows.
    pub engine: &'static str,
    /// Name of its event.
    pub event: String,
    /// Name of the program that created it.
    pub program: String,
    /// Where it is.
    #[serde(serialize_with = "state_name")]
    pub state: State,
    /// Negative errno of a failed run, else 0.
    pub error: i32,
    /// Values in a row.
    pub channels: u32,
    /// Readers of its ring.
    pub readers: u32,
    /// Who owns it.
    pub uid: u32,
    /// Process that created it.
    pub pid: i32,
    /// Rows in its ring.
    pub capacity: u64,
    /// Rows it will make at most; `None`: until it is stopped.
    pub limit: Option<u64>,
    /// Rows made.
    pub rows: u64,
    /// Triggers known.
    pub triggers: u64,
    /// Triggers that should have made a row and did not.
    pub missed: u64,
    /// Triggers that were left out on purpose.
    pub skipped: u64,
    /// Rows in which a channel or an output failed.
    pub errors: u64,
    /// Of its timer; 0 for other events.
    pub period_ns: u64,
    /// Since its start.
    pub elapsed_ns: u64,
}

fn state_name<S: Serializer>(state: &State, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

/// All that one engine has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Changes whenever something comes or goes.
    pub generation: u64,
    /// Units of hardware.
    pub devices: Vec<Device>,
    /// What a row can read.
    pub channels: Vec<Channel>,
    /// What a row can write.
    pub outputs: Vec<Channel>,
    /// What can make rows.
    pub events: Vec<Event>,
    /// What is under way. A server says it elsewhere, by numbers of its own.
    #[serde(skip_deserializing)]
    pub runs: Vec<RunStatus>,
}

impl Catalogue {
    /// What to use instead of the channel `name`, which is not there.
    #[doc(hidden)]
    pub fn instead_of_channel(&self, name: &str) -> String {
        let names = self.channels.iter().map(|c| c.name.as_str());
        self.instead(name, names, "channel")
    }

    /// What to use instead of the output `name`, which is not there.
    #[doc(hidden)]
    pub fn instead_of_output(&self, name: &str) -> String {
        let names = self.outputs.iter().map(|c| c.name.as_str());
        self.instead(name, names, "output")
    }

    /// What to use instead of an event that is not there.
    #[doc(hidden)]
    pub fn instead_of_event(&self) -> String {
        let names: Vec<&str> = self.events.iter().map(|e| e.name.as_str()).collect();
        match names.as_slice() {
            [] => "there are no events".to_owned(),
            names => format!("there are {}", names.join(", ")),
        }
    }

    /// If the device is there, what it has; else the devices that have such a
    /// thing.
    fn instead<'a>(
        &'a self,
        name: &str,
        names: impl Iterator<Item = &'a str>,
        what: &str,
    ) -> String {
        let split: Vec<(&str, &str)> = names.filter_map(|n| n.split_once('.')).collect();
        let wanted = name.split_once('.').map_or(name, |(device, _)| device);
        let parts: Vec<&str> = split
            .iter()
            .filter(|(device, _)| *device == wanted)
            .map(|(_, part)| *part)
            .collect();
        if !parts.is_empty() {
            return format!("{wanted} has {}", parts.join(", "));
        }
        if self.devices.iter().any(|d| d.name == wanted) {
            return format!("{wanted} has no {what}");
        }
        let mut devices: Vec<&str> = split.iter().map(|(device, _)| *device).collect();
        devices.dedup();
        match devices.as_slice() {
            [] => format!("no device has an {what}").replace("an channel", "a channel"),
            devices => format!("there is no device {wanted}, only {}", devices.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Type;
    use crate::samples::channel;

    fn catalogue() -> Catalogue {
        let device = |name: &str| Device {
            name: name.into(),
            description: String::new(),
            in_use: false,
        };
        Catalogue {
            devices: vec![device("clock"), device("sim"), device("bare")],
            channels: ["clock.time", "sim.counter", "sim.ramp"]
                .map(|n| channel(n, Type::U64))
                .into(),
            ..Catalogue::default()
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_names_that_are_there() {
        let c = catalogue();
        assert_eq!(c.instead_of_channel("sim.foo"), "sim has counter, ramp");
        assert_eq!(
            c.instead_of_channel("adc.x"),
            "there is no device adc, only clock, sim"
        );
        assert_eq!(c.instead_of_channel("bare.x"), "bare has no channel");
        assert_eq!(c.instead_of_output("adc.x"), "no device has an output");
        assert_eq!(c.instead_of_event(), "there are no events");
    }
}
