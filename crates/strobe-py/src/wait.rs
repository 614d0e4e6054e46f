// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting that can be ended by Ctrl-C.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often it is looked for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Asks `ready` again and again, for at most so long, until it answers something; it waits itself, at most for the time it
/// is given. `None`: the time is over.
///
/// # Errors
/// What a handler of signals raises.
pub fn wait<T: Send>(
    py: Python<'_>,
    at_most: Option<Duration>,
    mut ready: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    let end = at_most.and_then(|time| Instant::now().checked_add(time));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let slice = left.map_or(LOOK, |left| left.min(LOOK));
        if let Some(found) = py.detach(|| ready(slice)) {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if left.is_some_and(|left| left <= slice) {
            return Ok(None);
        }
    }
}
