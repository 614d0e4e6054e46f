// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the Python package `strobe` stands on: runs, readers and blocks of the library, whatever they come from.
//!
//! It is as thin as can be: names, views and defaults are in `python/strobe`. What is long or has many parts goes over as
//! JSON, the encoding of the project. Whatever waits lets other threads of Python run, and looks for signals.
#![forbid(unsafe_code)]
#![allow(missing_docs)] // python/strobe/_strobe.pyi has them

mod arrow;
mod block;
mod error;
mod machine;
mod measure;
mod ours;
mod patient;
mod reader;
mod recording;
mod run;
mod text;

use pyo3::prelude::*;

// All that Python can reach is frozen, and locks what changes.
#[pymodule(gil_used = false)]
mod _strobe {
    #[pymodule_export]
    use crate::arrow::{block_stream, reader_stream};
    #[pymodule_export]
    use crate::block::Block;
    #[pymodule_export]
    use crate::machine::{Machine, connect};
    #[pymodule_export]
    use crate::measure::{doctor, jitter};
    #[pymodule_export]
    use crate::reader::{LostRows, Reader};
    #[pymodule_export]
    use crate::run::{Run, open, recipe, replay};
}
