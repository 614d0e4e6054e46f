// SPDX-License-Identifier: MIT OR Apache-2.0
//! What belongs to the process that has made it. A child of it has neither its threads nor a say in its runs.

use std::mem;
use std::process;

use pyo3::PyResult;
use strobe::error::Words;

use crate::error::Failure;

/// Something with threads, locks or connections, which a fork does not copy.
pub struct Ours<T> {
    what: Option<T>,
    process: u32,
}

impl<T> Ours<T> {
    /// Made by this process.
    pub fn new(what: T) -> Ours<T> {
        Ours {
            what: Some(what),
            process: process::id(),
        }
    }

    /// Whether this process has made it.
    pub fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// It, in the process that has made it; `object` is its name.
    pub fn get(&self, object: &str) -> PyResult<&T> {
        let ours = self.what.as_ref().filter(|_| self.is_ours());
        let words = || {
            Words::new(object, "the process has forked since it was made")
                .mend("make runs, readers and connections in the process that uses them")
        };
        Ok(ours.ok_or_else(|| Failure::from(words()))?)
    }
}

impl<T> Drop for Ours<T> {
    fn drop(&mut self) {
        // A child would wait for threads that it does not have, and close what its parent uses.
        if !self.is_ours() {
            mem::forget(self.what.take());
        }
    }
}
