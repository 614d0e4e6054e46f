// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes an instance when its owner can do it no more, because it was killed: a shell that waits for the end of its
//! standard input, which comes when the owner is gone, however it went.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The kernel lets go of the files of a process that was killed one after the other, so the instance may be in use for a
/// moment longer than the guard's input is open.
const SCRIPT: &str = r#"trap '' HUP INT TERM; read -r _; n=0
while [ -d "$0" ] && ! rmdir "$0" && [ $n -lt 50 ]; do n=$((n + 1)); sleep 0.1; done"#;

#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// For the directory `name`. The place it is in is where the guard works, since a mount that only this process can
    /// name is not to be found by another.
    pub fn new(place: &Path, name: &str) -> io::Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, name])
            .current_dir(place)
            // Ctrl-C is for whoever is on the terminal.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Guard(command.spawn()?))
    }

    /// Without removing anything.
    pub fn dismiss(mut self) {
        // It may be gone already; what matters is that it does nothing more.
        let _ = self.0.kill();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
