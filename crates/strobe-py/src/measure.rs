// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this machine is good for regular rows, and how regular they are. Answers are JSON, as the program's with `--json`.

use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use serde_json::json;
use strobe::engine::user::{Lock, WaitMode};
use strobe::plan::CpuLatency;
use strobe::quantity::period_ns;
use strobe::stop::Stop;
use strobe_measure::cpu::check_cpu;
use strobe_measure::doctor::{CHECKS, CheckResult, Intent, System};
use strobe_measure::jitter::compare::{self, Comparison};
use strobe_measure::jitter::pacing::PacingSettings;

use crate::error::Failure;

/// How long `doctor` watches the machine.
const WATCHED: Duration = Duration::from_secs(1);
/// How often it looks for signals meanwhile.
const LOOKS: Duration = Duration::from_millis(50);

/// What stands in the way of regular rows, and what mends it: the lines of the checks.
#[pyfunction]
pub fn doctor(
    py: Python<'_>,
    cpu: Option<usize>,
    priority: Option<u8>,
    wait: &str,
) -> PyResult<String> {
    let modes = [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin];
    let wait = modes.into_iter().find(|mode| mode.to_string() == wait);
    let wait = wait.ok_or_else(|| Failure::text("wait: use block, hybrid or spin"))?;
    let priority = priority.unwrap_or(Intent::default().priority);
    if !(1..=99).contains(&priority) {
        return Err(Failure::text("priority: use 1 to 99, as for SCHED_FIFO").into());
    }
    check_cpu(cpu).map_err(|error| Failure::of("cpu", error))?;
    let intent = Intent {
        cpu,
        priority,
        wait,
    };
    let mut raised = Ok(());
    let lines = py.detach(|| {
        let mut system = System::this_one();
        system.watch_while(|| {
            let end = Instant::now() + WATCHED;
            while raised.is_ok() && Instant::now() < end {
                thread::sleep(LOOKS);
                raised = Python::attach(|py| py.check_signals());
            }
        });
        let fitting = CHECKS.iter().filter(|check| check.fits(&system, &intent));
        let lines: Vec<CheckResult> = fitting
            .map(|check| check.result(&system, &intent))
            .collect();
        json!(lines).to_string()
    });
    raised.map(|()| lines)
}

/// How regular rows are that nothing but their stamps is in, by these ways to wait in turn.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the keywords of Python's function"
)]
pub fn jitter(
    py: Python<'_>,
    rate: &str,
    seconds: f64,
    wait: Vec<String>,
    rounds: u32,
    policy: Option<&str>,
    cpu: Option<usize>,
    band: &str,
) -> PyResult<String> {
    let duration = Duration::try_from_secs_f64(seconds).ok();
    let duration = duration.filter(|duration| !duration.is_zero());
    let duration = duration.ok_or_else(|| Failure::text("seconds: use more than 0"))?;
    if wait.is_empty() || !(1..=1000).contains(&rounds) {
        let why = "jitter: there is nothing to measure; give at least one way to wait, and 1 to 1000 rounds";
        return Err(Failure::text(why).into());
    }
    let ways: PyResult<Vec<_>> = wait.iter().map(|way| word("wait", way)).collect();
    let comparison = Comparison {
        ways: ways?,
        asked: PacingSettings {
            period_ns: period_ns(rate).map_err(|error| Failure::of("rate", error))?,
            policy: policy.map(|policy| word("policy", policy)).transpose()?,
            cpu,
            wake_within: CpuLatency::default(),
            slack_ns: 0,
            steps: Vec::new(),
            board: None,
            // Python's memory is its own affair.
            lock: Lock::RingAndStack,
        },
        judge: None,
        band: word("band", band)?,
        load: Vec::new(),
        duration,
        rounds,
        late: None,
        keep: PathBuf::new(),
    };
    let (stop, raised) = (Stop::default(), Mutex::new(Ok(())));
    let show = |_| {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            stop.interrupt.store(true, Ordering::Relaxed);
            if let Ok(mut raised) = raised.lock() {
                *raised = Err(error);
            }
        }
    };
    // It has no load, so no program is started.
    let found =
        py.detach(|| compare::measure(&comparison, &stop, |program| Command::new(program), &show));
    raised.into_inner().unwrap_or(Ok(()))?;
    Ok(json!(found.map_err(Failure::text)?).to_string())
}

/// What a word means.
fn word<T: FromStr<Err = String>>(what: &str, text: &str) -> PyResult<T> {
    Ok(text.parse().map_err(|error| Failure::of(what, error))?)
}
