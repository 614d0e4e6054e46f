// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was sent last. Clients that read the same rows at about the same time share it: it is made once, not for each.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use strobe::block::Block;

use super::query::Format;

/// How many are kept of all runs together, at most: 4 MiB, for each has about 128 KiB.
const KEPT: usize = 32;

/// Bytes of rows, by what they are.
#[derive(Default)]
pub struct Batches(Mutex<VecDeque<(Batch, Bytes)>>);

/// All that the bytes of some rows depend on.
#[derive(Debug, PartialEq, Eq)]
struct Batch {
    run: u32,
    format: Format,
    columns: Option<Arc<[String]>>,
    rows: Range<u64>,
}

/// What one client reads.
#[derive(Clone)]
pub struct Wanted {
    pub run: u32,
    pub format: Format,
    /// The channels; `None`: all.
    pub columns: Option<Arc<[String]>>,
}

impl Batches {
    /// The bytes of these rows: those that somebody else was given, or what this makes.
    pub fn get<E>(
        &self,
        wanted: &Wanted,
        blocks: &[Block],
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let Some(rows) = consecutive(blocks) else {
            return make().map(Bytes::from);
        };
        let batch = Batch {
            run: wanted.run,
            format: wanted.format,
            columns: wanted.columns.clone(),
            rows,
        };
        let made = |kept: &VecDeque<(Batch, Bytes)>| {
            let found = kept.iter().rev().find(|(of, _)| *of == batch);
            found.map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = made(&self.lock()) {
            return Ok(bytes);
        }
        // Not while others wait: should two make the same, that does no harm.
        let bytes = Bytes::from(make()?);
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((batch, bytes.clone()));
        Ok(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Batch, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of these rows, if none is missing between them: only then they say which rows there are.
fn consecutive(blocks: &[Block]) -> Option<Range<u64>> {
    let first = blocks.first()?.first();
    let mut end = first;
    for block in blocks {
        if block.first() != end {
            return None;
        }
        end += block.len() as u64;
    }
    (end > first).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    use super::*;

    fn block(first: u64, rows: u64) -> Block {
        let info = Arc::new(info(vec![channel("a.x", Type::U64)]));
        let words = (first..first + rows).flat_map(|row| [row, row, 0, 0, row]);
        let words = Arc::new(words.collect::<Vec<_>>());
        let mut last = Some(Place::START);
        Block::new(info, words, 0..rows as usize, (first, 0), &mut last)
    }

    fn wanted(run: u32, format: Format, columns: Option<&str>) -> Wanted {
        let columns = columns.map(|name| [name.to_owned()].into());
        Wanted {
            run,
            format,
            columns,
        }
    }

    #[test]
    fn only_the_same_rows_of_the_same_run_in_the_same_form_are_shared() {
        let batches = Batches::default();
        let get = |wanted: &Wanted, blocks: &[Block], byte: u8| {
            let made = batches.get(wanted, blocks, || Ok::<_, ()>(vec![byte]));
            made.expect("bytes")[0]
        };
        let arrow = wanted(1, Format::Arrow, None);
        assert_eq!(get(&arrow, &[block(0, 3)], 1), 1);
        assert_eq!(get(&arrow, &[block(0, 3)], 2), 1);
        // In other pieces they are the same rows.
        assert_eq!(get(&arrow, &[block(0, 1), block(1, 2)], 2), 1);
        for (other, rows) in [
            (arrow.clone(), vec![block(0, 2)]),
            (arrow.clone(), vec![block(1, 2)]),
            // A row between them is missing, so that others have more.
            (arrow.clone(), vec![block(0, 1), block(2, 1)]),
            (wanted(2, Format::Arrow, None), vec![block(0, 3)]),
            (wanted(1, Format::Csv, None), vec![block(0, 3)]),
            (wanted(1, Format::Arrow, Some("a.x")), vec![block(0, 3)]),
        ] {
            assert_eq!(get(&other, &rows, 3), 3);
        }
        assert!(batches.lock().len() < KEPT);
        for first in 0..2 * KEPT as u64 {
            get(&arrow, &[block(100 * first, 1)], 4);
        }
        assert_eq!(batches.lock().len(), KEPT);
        assert_eq!(get(&arrow, &[block(0, 3)], 5), 5, "that was long ago");
    }
}
