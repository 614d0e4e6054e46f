// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--at URL`: the machine that a server tells of, instead of this one.

use strobe::error::{Error, Words};
use strobe::machine::{Machine, ThisMachine};
#[cfg(feature = "remote")]
use {
    std::path::{Path, PathBuf},
    strobe_remote::server::{Access, Hints, Server},
};

/// What a token is in, if no file is given.
#[cfg(feature = "remote")]
const TOKEN: &str = "STROBE_TOKEN";

/// The options that name a server.
#[derive(clap::Args)]
// Its name would be that of the arguments it is a part of.
#[group(skip)]
pub struct Args {
    /// Work on the machine of the server (strobe serve) at this URL:
    /// http://HOST:PORT or https://HOST:PORT
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "URL")]
    at: Option<String>,

    /// File with the token that the server asks for (default: the token in STROBE_TOKEN)
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "FILE", requires = "at")]
    token: Option<PathBuf>,

    /// File with the certificates (PEM) of the authorities to trust instead of the system's
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "FILE", requires = "at")]
    ca: Option<PathBuf>,
}

impl Args {
    /// The machine that is meant.
    pub fn machine(&self) -> Result<Box<dyn Machine>, Error> {
        #[cfg(feature = "remote")]
        if let Some(server) = self.server()? {
            return Ok(Box::new(server));
        }
        Ok(Box::new(ThisMachine::default()))
    }

    /// Whether another machine is meant.
    pub fn is_given(&self) -> bool {
        #[cfg(feature = "remote")]
        return self.at.is_some();
        #[cfg(not(feature = "remote"))]
        false
    }

    /// The server, if one was named.
    #[cfg(feature = "remote")]
    pub fn server(&self) -> Result<Option<Server>, Error> {
        let Some(url) = &self.at else {
            return Ok(None);
        };
        let token = match &self.token {
            Some(path) => Some(token_of(path)?),
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        let access = Access {
            token,
            ca: self.ca.clone(),
            hints: Hints {
                token: " (--token FILE, or the variable STROBE_TOKEN)",
                ca: " (--ca FILE)",
            },
            ..Access::default()
        };
        Server::at(url, &access).map(Some)
    }

    /// Refuses options that have a meaning on this machine only, if another one is meant.
    pub fn refuse(&self, options: &[(&'static str, bool)]) -> Result<(), Error> {
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.is_given() => {
                let words = Words::new(
                    *option,
                    "it is for this machine only, and --at names another",
                );
                Err(Error::Server(words.mend("leave out one of the two")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "remote")]
fn token_of(path: &Path) -> Result<String, Error> {
    let failed = |why: String| {
        let words = Words::new(format!("--token {}", path.display()), why);
        Error::Server(words.mend("give a file that holds one token and nothing else"))
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let token = text.trim();
    let is_one = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    match is_one {
        true => Ok(token.to_owned()),
        false => Err(failed("the file holds no token".to_owned())),
    }
}
