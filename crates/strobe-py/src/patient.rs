// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a server is asked may take its time. Ctrl-C ends the wait for it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::Failure;

/// How often it is looked for signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// The answer of what may take long: a thread of its own waits for it. Other threads of Python run meanwhile. Who is
/// interrupted leaves that thread alone; it ends with the answer, or with the patience of the connection.
pub fn patient<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, answer) = sync_channel(1);
    let thread = Builder::new().name("server".to_owned()).spawn(move || {
        // Who was interrupted listens no more.
        let _ = done.send(work());
    });
    thread.map_err(|error| {
        Failure::of(
            "server",
            format!("no thread could be started to ask it: {error}"),
        )
    })?;
    let answer = Mutex::new(answer);
    loop {
        let heard = py.detach(|| {
            let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.recv_timeout(LOOK)
        });
        match heard {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(
                    Failure::of("server", "the thread that asked it did not finish").into(),
                );
            }
        }
    }
}
