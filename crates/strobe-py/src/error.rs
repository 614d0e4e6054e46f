// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors: the object, the reason and the remedy, as an exception of the package.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::prelude::*;
use strobe::error::{Error, Words};

/// An error that is on its way to Python.
pub struct Failure(Words);

impl Failure {
    /// About this object.
    pub fn of(object: &str, error: impl Display) -> Failure {
        Failure(Words::new(object, error.to_string()))
    }

    /// Of a text `object: reason; remedy`.
    pub fn text(error: impl Display) -> Failure {
        let text = error.to_string();
        let (object, reason) = text.split_once(": ").unwrap_or(("strobe", &text));
        let (reason, remedy) = match reason.rsplit_once("; ") {
            Some((reason, remedy)) => (reason, Some(remedy.to_owned())),
            None => (reason, None),
        };
        Failure(Words {
            object: object.to_owned(),
            reason: reason.to_owned(),
            remedy,
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.words())
    }
}

impl From<Words> for Failure {
    fn from(words: Words) -> Failure {
        Failure(words)
    }
}

impl From<Failure> for PyErr {
    fn from(Failure(words): Failure) -> PyErr {
        let Words {
            object,
            reason,
            remedy,
        } = words;
        Python::attach(|py| {
            let class = py
                .import("strobe._error")
                .and_then(|module| module.getattr("Error"));
            match class.and_then(|class| class.call1((object, reason, remedy))) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        })
    }
}
