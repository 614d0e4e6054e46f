// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several tests of the program need.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::Value;

#[path = "../../../../tests/skip.rs"]
pub mod skip;

/// The program, whose runs are in this directory.
pub fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.env("STROBE_RUNTIME_DIR", dir);
    command
}

/// How many runs `strobe status` shows, once all owners have found the time to answer.
pub fn runs(dir: &Path) -> usize {
    until(|| {
        let status = strobe(dir, &["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("one JSON object");
        let is_whole = status["silent"] == Value::Array(vec![]);
        is_whole.then(|| status["runs"].as_array().map_or(0, Vec::len))
    })
}

/// What the program answers of a run of another one, once the owner of that has found the time for it: on a busy machine it
/// may be late for once.
pub fn answered(command: &mut Command) -> Output {
    until(|| {
        let output = command.output().expect("the program runs");
        let is_late = |said: &[u8]| String::from_utf8_lossy(said).contains("stopped or very busy");
        (!is_late(&output.stdout) && !is_late(&output.stderr)).then_some(output)
    })
}

/// What the program answers.
pub fn strobe(dir: &Path, arguments: &[&str]) -> Output {
    let output = command(dir).args(arguments).output();
    output.expect("the program runs")
}

/// The program, as a user without rights runs it, if this one may choose; its runs are in this directory, which others
/// may look into then.
pub fn as_nobody(dir: &Path) -> Command {
    let program = dir.join("strobe");
    // By another process: of what this one writes, a child of another test may have a descriptor, and it does not run then.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_strobe")).arg(&program);
    assert!(copy.status().expect("cp").success());
    for path in [dir, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("to let others in");
    }
    let mut command = Command::new(&program);
    command.env("STROBE_RUNTIME_DIR", dir);
    if getuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command
}

/// Another process. It does not outlive its test.
pub struct Process(pub Child);

impl Process {
    /// As nobody can prevent it.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a signal");
    }

    /// Comes back when it hears this signal: before, the signal would just end it.
    pub fn until_it_hears(&self, signal: Signal) {
        let file = format!("/proc/{}/status", self.0.id());
        until(|| {
            let status = std::fs::read_to_string(&file).ok()?;
            let caught = status
                .lines()
                .find_map(|line| line.strip_prefix("SigCgt:"))?;
            let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
            (caught >> (signal.as_raw() - 1) & 1 == 1).then_some(())
        });
    }

    /// Its exit status, when it has ended.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("an end").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A recording by the user engine in another process.
pub fn recorder(dir: &Path, arguments: &[&str]) -> Process {
    recorder_with(dir, arguments, Stdio::null())
}

/// The same with this standard input.
pub fn recorder_with(dir: &Path, arguments: &[&str], input: Stdio) -> Process {
    let child = command(dir)
        .args(["record", "--engine", "user"])
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    Process(child.expect("the program runs"))
}

/// Waits for something that comes about; how long that takes does not matter.
pub fn until<T>(mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(result) = happened() {
            return result;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not happen"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
