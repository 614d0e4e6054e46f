// SPDX-License-Identifier: MIT OR Apache-2.0
//! Only the last rows of a run.

use std::collections::VecDeque;
use std::io;

use strobe::info::{RunInfo, Totals};
use strobe_ring::{RowShape, Rows};

use super::{Sink, SinkProgress, check_shape};

/// Keeps the last rows in memory, and writes them into another sink when the run has ended.
pub(crate) struct Last {
    sink: Box<dyn Sink>,
    shape: RowShape,
    /// Words of the rows that are kept at most.
    room: usize,
    rows_kept: u64,
    words: VecDeque<u64>,
}

impl Last {
    /// The last so many rows.
    pub(crate) fn new(sink: Box<dyn Sink>, rows: u64) -> Self {
        Last {
            sink,
            shape: RowShape::default(),
            room: 0,
            rows_kept: rows,
            words: VecDeque::new(),
        }
    }

    /// Memory for so many rows.
    pub(crate) fn bytes(shape: RowShape, rows: u64) -> u64 {
        rows.saturating_mul(shape.bytes())
    }
}

impl Sink for Last {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        self.shape = info.shape();
        let words = Last::bytes(self.shape, self.rows_kept) / 8;
        self.room = usize::try_from(words).unwrap_or(usize::MAX);
        // At once: a queue that grows has twice as much at the end.
        self.words
            .try_reserve_exact(self.room)
            .map_err(io::Error::other)?;
        self.sink.begin(info)
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        check_shape(rows, self.shape)?;
        let words = rows.words();
        let new = words.get(words.len().saturating_sub(self.room)..);
        let new = new.unwrap_or_default();
        let too_many = (self.words.len() + new.len()).saturating_sub(self.room);
        self.words.drain(..too_many);
        self.words.extend(new);
        Ok(())
    }

    /// Which rows are kept is not known before the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        let rows = Rows::new(self.words.make_contiguous(), self.shape);
        self.sink.write(rows)?;
        self.sink.finish(totals)
    }

    fn written(&self) -> SinkProgress {
        self.sink.written()
    }

    fn safe(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::csv::Csv;
    use std::fs::File;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    fn kept(keep: u64, batches: &[std::ops::Range<u64>]) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let csv = Csv::new(File::create(file.path()).expect("a file"));
        let mut last = Last::new(Box::new(csv), keep);
        let info = info(vec![channel("sim.counter", Type::U64)]);
        last.begin(&info).expect("begin");
        for batch in batches {
            let words: Vec<u64> = batch.clone().flat_map(|n| [n, n, n, 0, n]).collect();
            last.write(Rows::new(&words, info.shape())).expect("write");
            last.flush().expect("flush");
        }
        last.finish(None).expect("finish");
        let text = std::fs::read_to_string(file.path()).expect("text");
        let rows = text.lines().filter(|line| !line.starts_with(['#', 'r']));
        rows.filter_map(|line| line.split(',').next().map(str::to_owned))
            .collect()
    }

    #[test]
    fn the_last_rows_are_kept_however_they_come() {
        assert_eq!(kept(3, &[0..2, 2..4, 4..5]), ["2", "3", "4"]);
        assert_eq!(kept(3, &[0..2, 2..9]), ["6", "7", "8"]);
        assert_eq!(kept(3, &[0..1, 1..3]), ["0", "1", "2"]);
        assert_eq!(kept(3, &[0..1, 1..2]), ["0", "1"]);
        assert_eq!(kept(1, &[0..1, 1..2]), ["1"]);
        assert!(kept(3, &[]).is_empty());
    }
}
