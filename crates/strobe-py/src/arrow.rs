// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows by Arrow's C interface, in the capsules that polars, pyarrow, pandas and DuckDB take. Who gets a capsule moves out
//! what is in it; if nobody does, it goes with the capsule.

use std::fmt::Display;
use std::io;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use strobe::block::Block as Rows;
use strobe::info::RunInfo;
use strobe_files::sink::arrow::Batches;

use crate::block::Block;
use crate::error::Failure;
use crate::reader::Reader;

/// Rows of a batch, about.
const BATCH_ROWS: usize = 65_536;

/// The columns of the rows of a run.
pub fn schema<'py>(py: Python<'py>, info: &RunInfo) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(batches(info)?.schema().as_ref());
    let schema = schema.map_err(|error| Failure::of("rows as Arrow", error))?;
    PyCapsule::new(py, schema, Some(c"arrow_schema".to_owned()))
}

/// The rows of a block, as a stream of one batch.
#[pyfunction]
pub fn block_stream<'py>(block: &Bound<'py, Block>) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, block) = (block.py(), &block.get().0);
    let mut batches = batches(block.info())?;
    let batch = batches.batch(std::slice::from_ref(block));
    let batch = batch.map_err(|error| Failure::of("rows as Arrow", error))?;
    let schema = SchemaRef::clone(batches.schema());
    stream(py, RecordBatchIterator::new([Ok(batch)], schema))
}

/// The rows that this reader has not given yet. `gap` is called with the first row, the lost ones and the missed triggers of
/// each block that has some, `end` after the last one.
#[pyfunction]
pub fn reader_stream(
    reader: Bound<'_, Reader>,
    gap: Py<PyAny>,
    end: Py<PyAny>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let py = reader.py();
    let rows = Rest {
        batches: batches(&reader.get().info()?)?,
        reader: reader.unbind(),
        gap,
        end,
        error: None,
        is_over: false,
    };
    stream(py, rows)
}

fn stream(
    py: Python<'_>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new(py, stream, Some(c"arrow_array_stream".to_owned()))
}

fn batches(info: &RunInfo) -> PyResult<Batches> {
    Ok(Batches::new(info, None).map_err(Failure::text)?)
}

/// What a reader has not given yet.
struct Rest {
    reader: Py<Reader>,
    batches: Batches,
    gap: Py<PyAny>,
    end: Py<PyAny>,
    /// What has happened after the last batch.
    error: Option<PyErr>,
    is_over: bool,
}

impl Rest {
    /// The rows of a short while, so that those of a run that goes on are not a batch each.
    fn gather(&mut self, py: Python<'_>) -> PyResult<Option<Vec<Rows>>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        // Rows that come all the time leave nobody else a moment for it.
        py.check_signals()?;
        let reader = self.reader.get();
        let Some(first) = reader.block(py)? else {
            self.end.call0(py)?;
            return Ok(None);
        };
        let mut blocks = vec![first];
        // What is there before an error is given before it.
        self.error = reader.more(py, &mut blocks, BATCH_ROWS).err();
        for block in &blocks {
            if block.lost() > 0 || block.missed() > 0 {
                let said = (block.first(), block.lost(), block.missed());
                self.gap.call1(py, said)?;
            }
        }
        Ok(Some(blocks))
    }
}

impl Iterator for Rest {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        // Whoever calls may have the interpreter, or not; it is let go while rows are waited for.
        let batch = match Python::attach(|py| self.gather(py).map_err(|error| failed(py, error))) {
            Ok(Some(blocks)) => {
                let batch = self.batches.batch(&blocks);
                Some(batch.map_err(arrow_error))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        };
        self.is_over = !matches!(batch, Some(Ok(_)));
        batch
    }
}

impl RecordBatchReader for Rest {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(self.batches.schema())
    }
}

/// An exception has no other way through the interface than its text.
fn failed(py: Python<'_>, error: PyErr) -> ArrowError {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // It comes again as soon as Python goes on.
        let again = py
            .import("_thread")
            .and_then(|thread| thread.call_method0("interrupt_main"));
        drop(again);
        return arrow_error("interrupted");
    }
    arrow_error(error.value(py))
}

fn arrow_error(error: impl Display) -> ArrowError {
    // The text becomes one of C.
    let text = error.to_string().replace('\0', " ");
    ArrowError::IoError(text.clone(), io::Error::other(text))
}
