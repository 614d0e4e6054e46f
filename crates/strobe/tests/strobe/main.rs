// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library, as a program uses it. All are one program, which is linked once.

mod examples;
mod locked_memory;
mod readers;
mod real_time_loop;
mod run_rows;
mod waits;

use std::io;
use std::time::{Duration, Instant};

use strobe::engine::user::UserRun;
use strobe::engine::user::registry::{AttachedRun, Error, Registry};
use strobe::reader::RunReader;
use strobe::run::Run;

/// How long an owner is asked again that does not answer. On a busy machine it may be late for once.
const PATIENCE: Duration = Duration::from_secs(60);

/// The run, as another program has it.
fn attached(run: &UserRun) -> AttachedRun {
    let begun = Instant::now();
    loop {
        match Registry::of_this_user().attach(run.info().run) {
            Err(Error::Silent { .. }) if begun.elapsed() < PATIENCE => {}
            attached => return attached.expect("the run"),
        }
    }
}

/// Has the reader woken at each row.
fn wake_at_each_row(reader: &RunReader) {
    let begun = Instant::now();
    loop {
        match reader.wake_at_each_row() {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && begun.elapsed() < PATIENCE => {
            }
            woken => return woken.expect("to be woken"),
        }
    }
}
