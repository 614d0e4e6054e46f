// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may take its time: what a server is asked, and what has to wait for a device, a disk or the thread of a run. Ctrl-C
//! ends the wait for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::Failure;

/// How often it is looked for signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// The answer of what may take long. Other threads of Python run meanwhile. Who is interrupted leaves its thread alone; that
/// ends with the answer, or with the patience of the connection.
pub fn patient<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let mut answer = Answer::of(work)?;
    loop {
        match answer.heard(py, LOOK)? {
            Some(answer) => return Ok(answer),
            None => py.check_signals()?,
        }
    }
}

/// What a thread of its own will answer.
pub struct Answer<T> {
    answer: Receiver<T>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Answer<T> {
    /// Begins this work.
    pub fn of(work: impl FnOnce() -> T + Send + 'static) -> PyResult<Answer<T>> {
        let (done, answer) = sync_channel(1);
        let thread = Builder::new().name("waits".to_owned()).spawn(move || {
            // Who was interrupted listens no more.
            let _ = done.send(work());
        });
        let none = |error| {
            Failure::of(
                "strobe",
                format!("no thread could be started to wait: {error}"),
            )
        };
        Ok(Answer {
            answer,
            thread: Some(thread.map_err(none)?),
        })
    }

    /// The answer, if it comes within this time.
    pub fn heard(&mut self, py: Python<'_>, wait: Duration) -> PyResult<Option<T>> {
        let Answer { answer, thread } = self;
        let heard = py.detach(move || {
            let heard = answer.recv_timeout(wait);
            // Who has the answer has no thread any more.
            if let Some(thread) = thread.take_if(|_| heard.is_ok()) {
                let _ = thread.join();
            }
            heard
        });
        match heard {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::of("strobe", "the thread that waits did not finish").into())
            }
        }
    }
}
