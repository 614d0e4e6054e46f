// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as the bytes of an Arrow IPC stream, for a connection instead of a file.

use std::io;

use arrow_ipc::writer::StreamWriter;
use strobe::block::Block;
use strobe::info::{RunInfo, Totals};

use super::batches::{Batches, StreamError};
use super::io_error;
use crate::sink::table::schema;

/// Makes the bytes of one stream: first [`schema`](ArrowStream::schema), then batches, then [`end`](ArrowStream::end).
pub struct ArrowStream {
    batches: Batches,
    stream: StreamWriter<Vec<u8>>,
    /// Bytes of the longest batch so far: the next one has room for as many from the start.
    room: usize,
}

impl ArrowStream {
    /// Of the rows of this run; with `channels`, the row's own columns and only these.
    ///
    /// # Errors
    /// The run does not have a channel.
    pub fn new(info: &RunInfo, channels: Option<&[String]>) -> Result<Self, StreamError> {
        let batches = Batches::new(info, channels)?;
        let stream = StreamWriter::try_new(Vec::new(), batches.schema()).map_err(io_error)?;
        Ok(ArrowStream {
            batches,
            stream,
            room: 0,
        })
    }

    /// What comes first. Nothing, if it was taken already.
    pub fn schema(&mut self) -> Vec<u8> {
        std::mem::take(self.stream.get_mut())
    }

    /// A batch of these rows. Without rows the batch is empty: it shows that the connection is alive.
    ///
    /// # Errors
    /// The rows are not those of the run.
    pub fn batch(&mut self, block: &Block) -> io::Result<Vec<u8>> {
        self.batch_of(std::slice::from_ref(block))
    }

    /// One batch of the rows of all these blocks.
    ///
    /// # Errors
    /// The rows are not those of the run.
    pub fn batch_of(&mut self, blocks: &[Block]) -> io::Result<Vec<u8>> {
        let batch = self.batches.batch(blocks)?;
        self.stream.get_mut().reserve(self.room);
        self.stream.write(&batch).map_err(io_error)?;
        let bytes = self.schema();
        self.room = self.room.max(bytes.len());
        Ok(bytes)
    }

    /// What comes last.
    ///
    /// # Errors
    /// None that is known.
    pub fn end(&mut self) -> io::Result<Vec<u8>> {
        self.stream.finish().map_err(io_error)?;
        Ok(self.schema())
    }
}

/// A stream without rows that has the account of its run.
///
/// # Errors
/// None that is known.
pub fn account(info: &RunInfo, totals: &Totals) -> io::Result<Vec<u8>> {
    let schema = schema(info, Some(totals));
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).map_err(io_error)?;
    stream.finish().map_err(io_error)?;
    Ok(std::mem::take(stream.get_mut()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use arrow_ipc::reader::StreamReader;
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    use super::*;

    fn block(info: &RunInfo, words: Vec<u64>) -> Block {
        let rows = words.len() / 6;
        let (info, words) = (Arc::new(info.clone()), Arc::new(words));
        Block::new(info, words, 0..rows, (0, 0), &mut Some(Place::START))
    }

    fn batches(info: &RunInfo, channels: Option<&[String]>) -> Vec<(usize, usize)> {
        let mut stream = ArrowStream::new(info, channels).expect("a stream");
        let mut bytes = stream.schema();
        let rows = vec![0, 0, 10, 0, 7, 8, 1, 1, 20, 0, 9, 10];
        bytes.extend(stream.batch(&block(info, rows)).expect("a batch"));
        bytes.extend(stream.batch(&block(info, vec![])).expect("a batch"));
        bytes.extend(stream.end().expect("an end"));
        let reader = StreamReader::try_new(Cursor::new(bytes), None).expect("a stream");
        let shapes = reader.map(|batch| batch.map(|b| (b.num_rows(), b.num_columns())));
        shapes.collect::<Result<_, _>>().expect("batches")
    }

    #[test]
    fn a_stream_has_all_columns_or_those_that_are_asked_for() {
        let info = info(vec![channel("a.x", Type::U64), channel("a.y", Type::S64)]);
        assert_eq!(batches(&info, None), [(2, 6), (0, 6)]);
        let wanted = ["a.y".to_owned()];
        assert_eq!(batches(&info, Some(&wanted)), [(2, 5), (0, 5)]);
        let error = ArrowStream::new(&info, Some(&["a.z".to_owned()])).err();
        let text = error.expect("an error").to_string();
        assert!(text.contains("a.z") && text.contains("a.x, a.y"), "{text}");
    }
}
