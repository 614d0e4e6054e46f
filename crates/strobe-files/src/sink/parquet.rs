// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parquet: compact, for analysis. Columns, fields and metadata are those of
//! the `.arrows` file of the same run.
//!
//! A Parquet file is readable only once its footer is written, at the very
//! end: if the recorder is killed, all of it is lost. Record to `.arrows` too.

use std::fs::File;
use std::io;

use arrow_schema::DataType;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use strobe::info::{RunInfo, Totals};
use strobe_ring::Rows;

use super::table::{Columns, schema};
use super::{Sink, SinkProgress};

/// Rows are encoded in steps of so many.
const BATCH_ROWS: usize = 8 * 1024;
/// Rows of a row group; they stay in memory, encoded, until it is full.
const GROUP_ROWS: usize = 512 * 1024;

/// A Parquet file.
pub struct ParquetFile {
    /// Until `begin`.
    file: Option<File>,
    writing: Option<Writing>,
    written: SinkProgress,
}

/// What there is between `begin` and `finish`.
struct Writing {
    info: RunInfo,
    writer: ArrowWriter<File>,
    columns: Columns,
    rows: u64,
}

impl ParquetFile {
    /// Into this file, from its start.
    pub fn new(file: File) -> Self {
        ParquetFile {
            file: Some(file),
            writing: None,
            written: SinkProgress::default(),
        }
    }
}

impl Sink for ParquetFile {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let columns = Columns::new(info);
        let options = ArrowWriterOptions::new()
            .with_properties(properties(&columns))
            // The schema holds the account, which is not known yet.
            .with_skip_arrow_metadata(true);
        let schema = columns.schema().clone();
        let writer = ArrowWriter::try_new_with_options(file, schema, options).map_err(io_error)?;
        self.writing = Some(Writing {
            info: info.clone(),
            writer,
            columns,
            rows: 0,
        });
        Ok(())
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        match &mut self.writing {
            Some(writing) => writing.add(rows),
            None => Ok(()),
        }
    }

    /// Does nothing: what is in a file without a footer cannot be read.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        let Some(mut writing) = self.writing.take() else {
            return Ok(());
        };
        writing.encode()?;
        let schema = schema(&writing.info, totals);
        let mut pairs: Vec<_> = schema.metadata().clone().into_iter().collect();
        pairs.sort();
        pairs.push((
            ARROW_SCHEMA_META_KEY.to_owned(),
            encode_arrow_schema(&schema),
        ));
        for (key, value) in pairs {
            let pair = KeyValue::new(key, value);
            writing.writer.append_key_value_metadata(pair);
        }
        // Before the writer is taken apart, which hides the system's error.
        writing.writer.finish().map_err(io_error)?;
        let file = writing.writer.inner();
        self.written = SinkProgress {
            rows: writing.rows,
            bytes: file.metadata()?.len(),
        };
        Ok(())
    }

    /// Nothing, until all is.
    fn written(&self) -> SinkProgress {
        self.written
    }

    fn safe(&self) -> Option<u64> {
        None
    }
}

impl Writing {
    fn add(&mut self, rows: Rows<'_>) -> io::Result<()> {
        self.columns.add(rows)?;
        self.rows += rows.len() as u64;
        if self.columns.rows() >= BATCH_ROWS {
            self.encode()?;
        }
        Ok(())
    }

    fn encode(&mut self) -> io::Result<()> {
        let batch = self.columns.take().map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io_error)
    }
}

/// Numbers that count are small as differences; snappy does the rest.
fn properties(columns: &Columns) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    for field in columns.schema().fields() {
        if matches!(field.data_type(), DataType::UInt64 | DataType::Int64) {
            // One part, whatever dots are in it.
            let path = ColumnPath::new(vec![field.name().clone()]);
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use strobe::channel::Type;
    use strobe::samples::channel;
    use strobe::samples::{info, noted, totals};
    use strobe_ring::RowShape;

    #[test]
    fn rows_metadata_and_account_come_back() {
        let channels = vec![
            channel("sim.counter", Type::U64),
            channel("adc.u", Type::S64),
            channel("adc.f", Type::F64),
        ];
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut sink = ParquetFile::new(file.as_file_mut().try_clone().expect("a file"));
        let first = [0, 0, 100, 0, u64::MAX, -5_i64 as u64, 0.5_f64.to_bits()];
        let second = [4, 9, 1000, 1, 4, -7_i64 as u64, f64::NAN.to_bits()];
        let mut run = info(channels);
        run.doctor.push(noted());
        sink.begin(&run).expect("begin");
        sink.write(Rows::new(&first, RowShape::of_channels(3)))
            .expect("write");
        sink.flush().expect("flush");
        sink.write(Rows::new(&second, RowShape::of_channels(3)))
            .expect("write");
        assert_eq!(sink.written(), SinkProgress::default());
        sink.finish(Some(&totals(7))).expect("finish");
        let bytes = file.as_file().metadata().expect("its size").len();
        assert_eq!(sink.written(), SinkProgress { rows: 2, bytes });

        let input = ParquetRecordBatchReaderBuilder::try_new(file.reopen().expect("a file"));
        let input = input.expect("a Parquet file");
        assert_eq!(**input.schema(), schema(&run, Some(&totals(7))));
        let doctor = &input.schema().metadata()["strobe.doctor"];
        assert!(
            doctor.starts_with(r#"[{"check":"fifo","state":"advice","#),
            "{doctor}"
        );
        let batches: Vec<_> = input
            .build()
            .expect("a reader")
            .map(|b| b.expect("a batch"))
            .collect();
        let [batch] = batches.as_slice() else {
            panic!("one batch")
        };
        let u64s = |c: usize| batch.column(c).as_primitive::<UInt64Type>().values();
        assert_eq!(u64s(0), &[0, 4]);
        assert_eq!(u64s(4), &[u64::MAX, 4]);
        let s64s = batch.column(5).as_primitive::<Int64Type>().values();
        assert_eq!(s64s, &[-5, -7]);
        let f64s = batch.column(6).as_primitive::<Float64Type>().values();
        assert!(f64s[0] == 0.5 && f64s[1].is_nan());
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let mut sink = ParquetFile::new(full);
        let error = sink
            .begin(&info(vec![]))
            .and_then(|()| sink.finish(Some(&totals(0))))
            .map_err(|e| e.kind());
        assert_eq!(error, Err(io::ErrorKind::StorageFull));
        assert_eq!(sink.written(), SinkProgress::default());
    }
}
