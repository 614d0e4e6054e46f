// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest beside it, if it is installed: what a timer of this machine takes to wake a thread of the same priority.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use strobe::stop::Stop;

/// What it says, us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cyclictest {
    /// The least.
    pub min_us: u64,
    /// The mean.
    pub avg_us: u64,
    /// The greatest.
    pub max_us: u64,
}

/// Why there is nothing to compare with. None of this is a fault of what is measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not installed.
    #[error(
        "cyclictest is not installed, so there is nothing to compare with: apt install rt-tests"
    )]
    Missing,
    /// The system's reason.
    #[error("cyclictest could not be run: {0}")]
    Run(#[from] io::Error),
    /// What it has said.
    #[error("cyclictest failed: {0}")]
    Failed(String),
    /// A signal came.
    #[error("cyclictest was interrupted")]
    Interrupted,
}

/// Lets it wake up so many times, at this distance.
pub fn run(priority: u8, period_us: u64, loops: u64, stop: &Stop) -> Result<Cyclictest, Error> {
    let words = [
        "--quiet".to_owned(),
        "--mlockall".to_owned(),
        // Else it keeps all CPUs from sleeping, which a run does not do: that would be another machine.
        "--default-system".to_owned(),
        format!("--priority={priority}"),
        format!("--interval={period_us}"),
        format!("--loops={loops}"),
        "--threads=1".to_owned(),
    ];
    let mut command = Command::new("cyclictest");
    command.args(words).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing,
        _ => Error::Run(error),
    })?;
    while child.try_wait()?.is_none() {
        if stop.interrupt.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = said(&mut child)?;
    of(&said).ok_or(Error::Failed(said))
}

/// It says less than a pipe holds.
fn said(child: &mut Child) -> io::Result<String> {
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said)?;
    }
    if let Some(stderr) = &mut child.stderr {
        stderr.read_to_string(&mut said)?;
    }
    Ok(said.trim().to_owned())
}

/// Of a line such as `T: 0 (  123) P:60 I:1000 C:   1000 Min:      5 Act:   11 Avg:   52 Max:     134`.
fn of(said: &str) -> Option<Cyclictest> {
    let line = said.lines().rev().find(|line| line.starts_with("T:"))?;
    let after = |key: &str| -> Option<u64> {
        let (_, rest) = line.split_once(key)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some(Cyclictest {
        min_us: after("Min:")?,
        avg_us: after("Avg:")?,
        max_us: after("Max:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_figures_are_found_in_its_last_line() {
        let said = "# /dev/cpu_dma_latency set to 0us\n\
                    T: 0 (  123) P:60 I:1000 C:   1000 Min:      5 Act:   11 Avg:   52 Max:     134";
        let figures = Cyclictest {
            min_us: 5,
            avg_us: 52,
            max_us: 134,
        };
        assert_eq!(of(said), Some(figures));
        assert_eq!(of("policy: FAILED"), None);
    }
}
