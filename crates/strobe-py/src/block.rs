// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that belong to who has got them. NumPy looks at them where they are.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Some rows of a run, and what is missing before and between them.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Block(pub strobe::block::Block);

#[pymethods]
impl Block {
    #[getter]
    fn first(&self) -> u64 {
        self.0.first()
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost()
    }

    #[getter]
    fn missed(&self) -> u64 {
        self.0.missed()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Where the words of the rows are, for NumPy: it keeps this block for as long as it looks there.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", "<u8")?;
        interface.set_item("shape", (self.0.len(), self.0.width()))?;
        // Nobody may write there: the block has clones.
        interface.set_item("data", (self.0.words().as_ptr().addr(), true))?;
        Ok(interface)
    }
}
