// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as the bytes of an Arrow IPC stream, for a connection instead of a file.

use std::io;

use arrow_ipc::writer::StreamWriter;
use strobe::block::{Block, NoColumn};
use strobe::channel::column_names;
use strobe::info::{RunInfo, Totals};

use super::io_error;
use crate::sink::table::{Columns, schema};

/// Makes the bytes of one stream: first [`schema`](ArrowStream::schema), then batches, then [`end`](ArrowStream::end).
pub struct ArrowStream {
    columns: Columns,
    /// Places of the columns that are wanted; `None`: all.
    wanted: Option<Vec<usize>>,
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
        let columns = Columns::new(info);
        let wanted = channels.map(|names| places(info, &columns, names));
        let wanted = wanted.transpose()?;
        let schema = match &wanted {
            Some(places) => columns.schema().project(places),
            None => Ok(columns.schema().as_ref().clone()),
        };
        let schema = schema.map_err(io_error)?;
        let stream = StreamWriter::try_new(Vec::new(), &schema).map_err(io_error)?;
        Ok(ArrowStream {
            columns,
            wanted,
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
        self.columns.reserve(blocks.iter().map(Block::len).sum());
        for block in blocks {
            self.columns.add(block.rows())?;
        }
        let batch = self.columns.take().map_err(io_error)?;
        let batch = match &self.wanted {
            Some(places) => batch.project(places).map_err(io_error)?,
            None => batch,
        };
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

/// Why there is no such stream.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A column that the run does not have.
    #[error(transparent)]
    NoColumn(#[from] NoColumn),
    /// The columns cannot be encoded.
    #[error("rows as Arrow: {0}")]
    Encode(#[from] io::Error),
}

/// Where the row's own columns are, and those of these channels.
fn places(info: &RunInfo, columns: &Columns, names: &[String]) -> Result<Vec<usize>, NoColumn> {
    let own = columns.header();
    let all = column_names(&info.channels);
    let mut places: Vec<usize> = (0..own).collect();
    for name in names {
        match all.iter().position(|column| column == name) {
            Some(place) => places.push(own + place),
            None => {
                return Err(NoColumn {
                    name: name.clone(),
                    names: all,
                });
            }
        }
    }
    Ok(places)
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
