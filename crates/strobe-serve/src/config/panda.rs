// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be said of the PandA ports: `[panda]`.

use std::net::IpAddr;

use serde::Deserialize;
use strobe::error::Words;
use strobe::select::EnginePreference;

/// What a configuration says; what it does not say has a default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address to listen on; without it, the ports are closed.
    pub listen: Option<IpAddr>,
    /// The word that is needed to listen elsewhere than on this machine: the protocol knows no users, so that whoever
    /// reaches the ports can arm and disarm.
    pub anyone: bool,
    /// Port of commands.
    pub control: u16,
    /// Port of rows.
    pub data: u16,
    /// Channels that are captured to begin with.
    pub capture: Vec<String>,
    /// Who makes the rows.
    pub engine: Engine,
    /// Connections of commands at most.
    pub clients: usize,
    /// Connections of rows at most.
    pub readers: usize,
    /// Runs of this port whose rows are kept, the one that is under way included.
    pub keep: usize,
}

/// Who makes the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The kernel module where it has what is chosen, else the user engine.
    #[default]
    Auto,
    /// The kernel module.
    Kernel,
    /// A real-time thread of the daemon.
    User,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: None,
            anyone: false,
            control: 8888,
            data: 8889,
            capture: Vec::new(),
            engine: Engine::Auto,
            clients: 32,
            readers: 64,
            keep: 8,
        }
    }
}

impl Config {
    /// Whether these ports may be opened.
    ///
    /// # Errors
    /// Others could reach them, and nobody has said that they may.
    pub fn check(&self) -> Result<(), Words> {
        match self.listen {
            Some(address) => self.allow(address, format!("[panda] listen = \"{address}\"")),
            None => Ok(()),
        }
    }

    /// Whether `object` may listen there.
    ///
    /// # Errors
    /// Others could reach it, and nobody has said that they may.
    pub fn allow(&self, address: IpAddr, object: String) -> Result<(), Words> {
        match address.is_loopback() || self.anyone {
            true => Ok(()),
            false => Err(Words::new(
                object,
                "everybody who reaches these ports can arm and disarm, because the protocol has no users",
            )
            .mend("listen on 127.0.0.1, or add anyone = true to [panda]")),
        }
    }
}

impl Engine {
    /// The same for a recipe.
    pub fn wanted(self) -> EnginePreference {
        match self {
            Engine::Auto => EnginePreference::Auto,
            Engine::Kernel => EnginePreference::Kernel,
            Engine::User => EnginePreference::User,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_open_to_others_only_where_that_is_said() {
        let read = |text: &str| toml::from_str::<Config>(text).expect("a configuration");
        assert!(read("listen = \"127.0.0.1\"").check().is_ok());
        assert!(read("listen = \"::1\"").check().is_ok());
        assert!(read("").check().is_ok());
        let refused = read("listen = \"0.0.0.0\"").check().expect_err("a refusal");
        assert!(refused.to_string().contains("anyone = true"));
        let anyone = read("listen = \"0.0.0.0\"\nanyone = true");
        assert!(anyone.check().is_ok());
        // A socket of the service manager is no other.
        let any = IpAddr::from([0, 0, 0, 0]);
        assert!(anyone.allow(any, "socket".to_owned()).is_ok());
        assert!(read("").allow(any, "socket".to_owned()).is_err());
    }
}
