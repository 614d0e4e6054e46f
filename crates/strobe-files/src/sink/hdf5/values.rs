// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is appended to a dataset, in memory as it will be in the file: nothing is copied on its way.

use std::ops::Range;

use ::hdf5::{Dataset, Error};
use strobe::channel::Type;

/// Words of rows, by their type.
pub(super) enum Values {
    U64(Vec<u64>),
    S64(Vec<i64>),
    F64(Vec<f64>),
}

impl Values {
    pub(super) fn new(kind: Type) -> Self {
        match kind {
            Type::U64 => Values::U64(Vec::new()),
            Type::S64 => Values::S64(Vec::new()),
            Type::F64 => Values::F64(Vec::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Values::U64(values) => values.len(),
            Values::S64(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    pub(super) fn extend(&mut self, words: impl IntoIterator<Item = u64>) {
        let words = words.into_iter();
        match self {
            Values::U64(values) => values.extend(words),
            Values::S64(values) => values.extend(words.map(|word| word as i64)),
            Values::F64(values) => values.extend(words.map(f64::from_bits)),
        }
    }

    /// Another word, where there is one.
    pub(super) fn set(&mut self, index: usize, word: u64) {
        match self {
            Values::U64(values) => replace(values, index, word),
            Values::S64(values) => replace(values, index, word as i64),
            Values::F64(values) => replace(values, index, f64::from_bits(word)),
        }
    }

    /// What stands where a channel failed.
    pub(super) fn set_failed(&mut self, index: usize) {
        match self {
            Values::U64(values) => replace(values, index, u64::MAX),
            Values::S64(values) => replace(values, index, i64::MIN),
            Values::F64(values) => replace(values, index, f64::NAN),
        }
    }

    /// Into this place of a dataset of the same type.
    pub(super) fn write(&self, dataset: &Dataset, place: Range<usize>) -> Result<(), Error> {
        match self {
            Values::U64(values) => dataset.write_slice(values.as_slice(), place),
            Values::S64(values) => dataset.write_slice(values.as_slice(), place),
            Values::F64(values) => dataset.write_slice(values.as_slice(), place),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Values::U64(values) => values.clear(),
            Values::S64(values) => values.clear(),
            Values::F64(values) => values.clear(),
        }
    }
}

fn replace<T>(values: &mut [T], index: usize, value: T) {
    if let Some(place) = values.get_mut(index) {
        *place = value;
    }
}
