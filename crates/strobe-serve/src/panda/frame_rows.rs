// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of one frame, in the form in which they are had.

use std::ops::Range;
use std::sync::Arc;

use strobe::block::Block;
use strobe_files::journal::Columns;

use super::rows::Encoder;
use super::wire::Frame;
use crate::cursor::Cursor;

/// Rows with consecutive numbers.
pub enum FrameRows {
    /// As a run makes them. Only before the first block some may be lost.
    Blocks(Vec<Block>),
    /// As files have them.
    Columns(Arc<Columns>, Range<usize>),
}

impl FrameRows {
    /// The next ones, as soon as there are any, at most so many; `None` after the last ones. May be dropped at any moment.
    pub async fn next(cursor: &mut Cursor, encoder: &Encoder, at_most: usize) -> Option<FrameRows> {
        if encoder.takes_columns() {
            if let Some((columns, rows)) = cursor.columns(at_most).await {
                return Some(FrameRows::Columns(columns, rows));
            }
        }
        let block = cursor.next(at_most).await?;
        Some(FrameRows::Blocks(vec![block]))
    }

    /// Takes more of them, if these are in memory: what has come in small pieces goes out in large ones. Answers with what is
    /// for the next frame, because rows before it are lost.
    pub fn gather(&mut self, cursor: &mut Cursor, at_most: usize) -> Option<Block> {
        let mut rows = self.len();
        let FrameRows::Blocks(blocks) = self else {
            return None;
        };
        while rows < at_most {
            let block = cursor.ready(at_most - rows)?;
            if block.lost() > 0 {
                return Some(block);
            }
            rows += block.len();
            blocks.push(block);
        }
        None
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            FrameRows::Blocks(blocks) => blocks.iter().map(Block::len).sum(),
            FrameRows::Columns(_, rows) => rows.len(),
        }
    }

    /// The block before whose first row some were lost.
    pub fn after_loss(&self) -> Option<&Block> {
        match self {
            FrameRows::Blocks(blocks) => blocks.first().filter(|block| block.lost() > 0),
            FrameRows::Columns(..) => None,
        }
    }

    /// Makes the frame.
    pub fn encode(&self, encoder: &mut Encoder, frame: &mut Frame) {
        frame.begin();
        match self {
            FrameRows::Blocks(blocks) => blocks.iter().for_each(|b| encoder.encode(b, frame)),
            FrameRows::Columns(columns, rows) => {
                encoder.encode_columns(columns, rows.clone(), frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::From;
    use crate::cursor::tests::spool_of;
    use crate::panda::capture::How;
    use crate::panda::field::Extra;
    use crate::panda::rows::tests::{capture, extra};
    use strobe::channel::Type;

    #[test]
    fn rows_of_files_are_the_same_by_columns_and_row_by_row() {
        let captures = [
            extra(Extra::Duration),
            capture("sim.counter", How::Value, Type::U64, 0.5),
            extra(Extra::Row),
            extra(Extra::Trigger),
            extra(Extra::Time),
            capture("sim.counter", How::Value, Type::U64, 1.0),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let spool = spool_of(folder.path(), 5 * 8192, |row| row / 8192 == 1);
        let runtime = crate::start::runtime().expect("a runtime");
        for from in [0, 100] {
            let (mut frame, mut one) = (Frame::new(0), Frame::new(0));
            let (mut all, mut others, mut columns) = (Vec::new(), Vec::new(), 0);
            runtime.block_on(async {
                let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(from));
                let mut encoder = Encoder::new(&captures, &*cursor.info().await);
                while let Some(rows) = FrameRows::next(&mut cursor, &encoder, 1000).await {
                    if let FrameRows::Columns(..) = rows {
                        columns += rows.len();
                    }
                    rows.encode(&mut encoder, &mut frame);
                    all.extend_from_slice(&frame.whole()[8..]);
                }
                let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(from));
                let mut encoder = Encoder::new(&captures, &*cursor.info().await);
                while let Some(block) = cursor.next(1000).await {
                    one.begin();
                    encoder.encode(&block, &mut one);
                    others.extend_from_slice(&one.whole()[8..]);
                }
            });
            assert_eq!(all.len(), (5 * 8192 - from as usize) * 6 * 8);
            assert!(all == others);
            let whole = if from == 0 { 4 } else { 3 };
            assert_eq!(columns, whole * 8192);
        }
    }
}
