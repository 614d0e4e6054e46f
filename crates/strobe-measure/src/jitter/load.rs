// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something else for the machine to do: stress-ng.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde::Serialize;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// All CPUs compute.
    Cpu,
    /// Memory is mapped, written and unmapped.
    Vm,
    /// Files are synchronised with the disk.
    Io,
    /// Processes wake each other.
    Switch,
}

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error(
        "stress-ng is not installed; install it (apt install stress-ng), or measure without load"
    )]
    Missing,
    /// The system's reason.
    #[error("stress-ng cannot be started: {0}")]
    Start(io::Error),
    /// It has ended too early.
    #[error("stress-ng ended before the measurement, with {0}; its messages are above")]
    Ended(ExitStatus),
}

/// The load, until this is dropped. It goes with this program, too, however that ends.
pub struct Stressor(Option<Child>);

impl Stressor {
    /// Starts it, by the command that `command` makes for a program, and that ends with this one; of no kinds there
    /// is none.
    ///
    /// # Errors
    /// It is not installed, or cannot be started.
    pub fn new(kinds: &[Load], command: fn(&str) -> Command) -> Result<Stressor, Error> {
        if kinds.is_empty() {
            return Ok(Stressor(None));
        }
        let mut command = command("stress-ng");
        command.arg("--quiet");
        for kind in kinds {
            command.args(words(*kind));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if !is_installed("stress-ng") {
            return Err(Error::Missing);
        }
        Ok(Stressor(Some(command.spawn().map_err(Error::Start)?)))
    }

    /// Whether there has been a load until now. Without one, a measurement says nothing of it.
    ///
    /// # Errors
    /// There was none.
    pub fn is_there(&mut self) -> Result<(), Error> {
        let Some(child) = &mut self.0 else {
            return Ok(());
        };
        match child.try_wait() {
            Ok(Some(status)) => Err(Error::Ended(status)),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Stressor {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        // Its own children look whether it is there, and go.
        let pid = rustix::process::Pid::from_child(child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = child.wait();
    }
}

/// As many processes as there are CPUs for `cpu`, which 0 says.
fn words(kind: Load) -> [&'static str; 2] {
    match kind {
        Load::Cpu => ["--cpu", "0"],
        Load::Vm => ["--vm", "1"],
        Load::Io => ["--io", "1"],
        Load::Switch => ["--switch", "2"],
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(program).is_file())
}
