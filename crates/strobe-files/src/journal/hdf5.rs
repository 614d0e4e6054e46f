// SPDX-License-Identifier: MIT OR Apache-2.0
//! `.h5` files, read again. One whose writer was killed is read up to what was flushed.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ::hdf5::file::OpenMode;
use ::hdf5::types::{FixedAscii, TypeDescriptor, VarLenUnicode};
use ::hdf5::{Dataset, File, Group, Location};
use serde_json::Value;
use strobe::block::Block;
use strobe::channel::Type;
use strobe::engine;
use strobe::info::{End, RunInfo, Totals};
use strobe::source::RowSource;
use strobe_ring::Missed;
use strobe_ring::RowShape;
use strobe_ring::layout::{MISSED_CAUSES, ROW_HEADER_WORDS};

use super::Error;
use super::blocks::Blocks;
use super::rows::fail;
use crate::fields::{self, Fields};
use crate::sink::SKIPPED;

/// The first bytes of such a file.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Rows that are read at once.
const ROWS: usize = 16 * 1024;

/// Whether the file begins as one of HDF5.
pub(super) fn is_one(path: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == SIGNATURE
}

/// A file that is read from its start.
pub(super) struct Hdf5Recording {
    path: String,
    info: RunInfo,
    totals: Option<Totals>,
    columns: Vec<Column>,
    failed: Option<Dataset>,
    /// Rows there are, and those that were read.
    rows: usize,
    read: usize,
    blocks: Blocks,
    // After what is in it.
    _file: File,
}

/// A word of each row.
struct Column {
    dataset: Dataset,
    kind: Type,
    /// Which word of a row.
    place: usize,
}

impl Hdf5Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let foreign = |why: ::hdf5::Error| Error::Foreign {
            path: name.clone(),
            why: why.to_string(),
        };
        // One that was not closed can be opened as one that is being written.
        let file = File::open(path).or_else(|_| File::open_as(path, OpenMode::ReadSWMR));
        let file = file.map_err(foreign)?;
        Self::of(file, &name).map_err(|why| Error::Foreign { path: name, why })
    }

    fn of(file: File, path: &str) -> Result<Self, String> {
        let group = |name| file.group(name).map_err(|_| format!("it has no {name}"));
        let (run, data) = (group("entry/run")?, group("entry/data")?);
        let mut channels = texts(&data, "signal");
        channels.extend(texts(&data, "auxiliary_signals"));
        let channels: Vec<_> = (channels.iter())
            .map(|name| dataset(&data, name))
            .collect::<Result<_, _>>()?;
        let skips = data.link_exists(SKIPPED);
        let described = channels.iter().map(|dataset| {
            let mut fields = attributes(dataset)?;
            if let Some(unit) = fields.remove("units") {
                fields.insert("unit".to_owned(), unit);
            }
            Ok(fields)
        });
        let described = described.collect::<Result<_, ::hdf5::Error>>();
        let described = described.map_err(|error| error.to_string())?;
        let about = attributes(&run).map_err(|error| error.to_string())?;
        let info = fields::run(about, described, texts(&run, "outputs"), skips)?;

        let shape = info.shape();
        let header = ["row", "trigger", "time", "status"].into_iter().enumerate();
        let skipped = skips.then_some((shape.words() as usize - 1, SKIPPED));
        let header = header.chain(skipped).map(|(place, name)| {
            let (dataset, kind) = (dataset(&data, name)?, Type::U64);
            Ok(Column {
                dataset,
                kind,
                place,
            })
        });
        let mut columns = header.collect::<Result<Vec<_>, String>>()?;
        let values = channels.into_iter().zip(&info.channels);
        columns.extend(
            values
                .zip(ROW_HEADER_WORDS..)
                .map(|((dataset, channel), place)| {
                    let kind = channel.kind;
                    Column {
                        dataset,
                        kind,
                        place,
                    }
                }),
        );
        // It is the last one to grow.
        let rows = columns.first().map_or(0, |row| row.dataset.size());
        Ok(Hdf5Recording {
            path: path.to_owned(),
            totals: totals(&run).map_err(|error| error.to_string())?,
            blocks: Blocks::new(&info, 0),
            info,
            columns,
            failed: dataset(&data, "failed").ok(),
            rows,
            read: 0,
            _file: file,
        })
    }

    /// The next rows, as the ring had them.
    fn words(&mut self) -> Result<Vec<u64>, ::hdf5::Error> {
        let shape = self.info.shape();
        let width = shape.words() as usize;
        let part = self.read..self.rows.min(self.read + ROWS);
        let mut words = vec![0; part.len() * width];
        for column in &self.columns {
            let places = words.iter_mut().skip(column.place).step_by(width);
            let dataset = &column.dataset;
            match column.kind {
                Type::U64 => places
                    .zip(dataset.read_slice_1d::<u64, _>(part.clone())?)
                    .for_each(|(to, value)| *to = value),
                Type::S64 => places
                    .zip(dataset.read_slice_1d::<i64, _>(part.clone())?)
                    .for_each(|(to, value)| *to = value as u64),
                Type::F64 => places
                    .zip(dataset.read_slice_1d::<f64, _>(part.clone())?)
                    .for_each(|(to, value)| *to = value.to_bits()),
            }
        }
        if let Some(failed) = &self.failed {
            let marks = failed.read_slice_2d::<u8, _>((part.clone(), ..))?;
            for (row, marks) in words.chunks_exact_mut(width).zip(marks.rows()) {
                mark(row, shape, marks.iter().map(|mark| *mark != 0));
            }
        }
        self.read = part.end;
        Ok(words)
    }
}

/// Says in the words of a row what failed in it. The value of a channel that failed is 0, as in a ring.
fn mark(row: &mut [u64], shape: RowShape, failed: impl Iterator<Item = bool>) {
    let channels = shape.channels as usize;
    for (step, _) in failed.enumerate().filter(|(_, failed)| *failed) {
        fail(row, channels, step);
        if step < channels {
            if let Some(value) = row.get_mut(ROW_HEADER_WORDS + step) {
                *value = 0;
            }
        }
    }
}

impl RowSource for Hdf5Recording {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, _: Duration) -> Result<Option<Block>, engine::Error> {
        loop {
            if let Some(block) = self.blocks.take() {
                return Ok(Some(block));
            }
            if self.read >= self.rows {
                return Ok(None);
            }
            let words = self.words().map_err(|error| Error::Foreign {
                path: self.path.clone(),
                why: error.to_string(),
            })?;
            self.blocks.fill(words);
        }
    }

    fn totals(&self) -> Option<Totals> {
        self.totals.clone()
    }
}

fn dataset(group: &Group, name: &str) -> Result<Dataset, String> {
    let dataset = group.dataset(name);
    dataset.map_err(|_| format!("it has no {}/{name}", group.name()))
}

/// Attributes that are texts: one, or a list of them; none if there is no such attribute.
fn texts(of: &Location, name: &str) -> Vec<String> {
    let read = of.attr(name).and_then(|a| a.read_raw::<VarLenUnicode>());
    let texts = read.unwrap_or_default();
    texts.iter().map(|text| text.as_str().to_owned()).collect()
}

/// Attributes of one value.
fn attributes(of: &Location) -> Result<Fields, ::hdf5::Error> {
    let mut fields = Fields::new();
    for name in of.attr_names()? {
        let attribute = of.attr(&name)?;
        if !attribute.is_scalar() {
            continue;
        }
        let value = match attribute.dtype()?.to_descriptor()? {
            TypeDescriptor::VarLenUnicode => {
                let text: VarLenUnicode = attribute.read_scalar()?;
                Value::from(text.as_str())
            }
            TypeDescriptor::Unsigned(_) => Value::from(attribute.read_scalar::<u64>()?),
            TypeDescriptor::Float(_) => Value::from(attribute.read_scalar::<f64>()?),
            _ => continue,
        };
        fields.insert(name, value);
    }
    Ok(fields)
}

fn totals(run: &Group) -> Result<Option<Totals>, ::hdf5::Error> {
    let number = |name: &str| run.dataset(name)?.read_scalar::<u64>();
    if number("complete")? == 0 {
        return Ok(None);
    }
    let mut missed_by = [0; MISSED_CAUSES];
    for (cause, count) in Missed::NAMES.iter().zip(&mut missed_by) {
        *count = number(&format!("missed_by/{cause}")).unwrap_or(0);
    }
    let end = run.dataset("end")?.read_scalar::<FixedAscii<8>>()?;
    Ok(Some(Totals {
        rows: number("rows")?,
        triggers: number("triggers")?,
        skipped: number("skipped")?,
        missed_by,
        lost: number("lost")?,
        errors: number("errors")?,
        end_time_ns: number("end_time_ns")?,
        end: End::of_word(end.as_str()),
    }))
}
