// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as record batches, for who takes them in memory.

use std::io;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use strobe::block::{Block, NoColumn};
use strobe::channel::column_names;
use strobe::info::RunInfo;

use super::io_error;
use crate::sink::table::Columns;

/// Makes record batches of the blocks of one run, all with one schema: that of a run that is not over.
pub struct Batches {
    columns: Columns,
    /// Places of the columns that are wanted; `None`: all.
    wanted: Option<Vec<usize>>,
    schema: SchemaRef,
}

impl Batches {
    /// Of the rows of this run; with `channels`, the row's own columns and only these.
    ///
    /// # Errors
    /// The run does not have a channel.
    pub fn new(info: &RunInfo, channels: Option<&[String]>) -> Result<Self, StreamError> {
        let columns = Columns::new(info);
        let wanted = channels.map(|names| places(info, &columns, names));
        let wanted = wanted.transpose()?;
        let schema = match &wanted {
            Some(places) => columns.schema().project(places).map(SchemaRef::new),
            None => Ok(SchemaRef::clone(columns.schema())),
        };
        Ok(Batches {
            columns,
            wanted,
            schema: schema.map_err(io_error)?,
        })
    }

    /// That of all batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// One batch of the rows of all these blocks.
    ///
    /// # Errors
    /// The rows are not those of the run.
    pub fn batch(&mut self, blocks: &[Block]) -> io::Result<RecordBatch> {
        self.columns.reserve(blocks.iter().map(Block::len).sum());
        for block in blocks {
            self.columns.add(block.rows())?;
        }
        let batch = self.columns.take().map_err(io_error)?;
        match &self.wanted {
            Some(places) => batch.project(places).map_err(io_error),
            None => Ok(batch),
        }
    }
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
