// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of a value that failed, in each format: it is never a number that could be one.

use std::fs::File;
use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use strobe::channel::Type;
use strobe::samples::channel;
use strobe::samples::{info as info_of, totals};
use strobe_ring::layout::ROW_LATE;

use super::*;
use crate::journal::{self, Journal};

/// Ten channels of all types, and two outputs, of an event that skips triggers.
fn info() -> RunInfo {
    let kinds = [Type::U64, Type::S64, Type::F64].into_iter().cycle();
    let channels = (0..10).zip(kinds);
    let mut info = info_of(
        channels
            .map(|(n, kind)| plain(&format!("adc.{n}"), kind))
            .collect(),
    );
    info.outputs = vec!["dac.a".to_owned(); 2];
    info.skips = true;
    info
}

/// Of a recording.
fn plain(name: &str, kind: Type) -> strobe::channel::Channel {
    let mut plain = channel(name, kind);
    (plain.cost_ns, plain.in_use) = (0, false);
    plain
}

/// A row as the ring has it: its values are 1, or 0 where they failed.
fn row(info: &RunInfo, number: u64, failed: &[usize]) -> Vec<u64> {
    let shape = info.shape();
    let channels = info.channels.len();
    let mut words = vec![0; shape.words() as usize];
    words[..4].copy_from_slice(&[number, 10 * number, 100 * number, ROW_LATE]);
    for (index, channel) in info.channels.iter().enumerate() {
        let one = match channel.kind {
            Type::F64 => 1_f64.to_bits(),
            _ => 1,
        };
        words[4 + index] = if failed.contains(&index) { 0 } else { one };
    }
    for step in failed {
        match step.checked_sub(32) {
            None => words[3] |= 1 << (32 + step),
            Some(beyond) => words[4 + channels + beyond / 64] |= 1 << (beyond % 64),
        }
    }
    if let Some(last) = words.last_mut().filter(|_| shape.skipped) {
        *last = 9 * number;
    }
    words
}

/// Nothing fails in row 0; three channels of ten do in row 1, an output in row 2.
const FAILED: [&[usize]; 4] = [&[], &[1, 2, 9], &[11], &[]];

fn rows(info: &RunInfo) -> Vec<Vec<u64>> {
    (0..)
        .zip(FAILED)
        .map(|(n, failed)| row(info, n, failed))
        .collect()
}

fn write(sink: &mut dyn Sink, info: &RunInfo, rows: &[Vec<u64>]) -> io::Result<()> {
    sink.begin(info)?;
    // The last row in a batch of its own, in which nothing fails.
    for batch in rows.chunks(rows.len() - 1) {
        sink.write(Rows::new(&batch.concat(), info.shape()))?;
        sink.flush()?;
    }
    let mut totals = totals(4);
    (totals.triggers, totals.skipped) = (31, 24);
    sink.finish(Some(&totals))
}

/// A file of this kind, with these rows.
fn file(dir: &Path, name: &str, info: &RunInfo, rows: &[Vec<u64>]) -> String {
    let path = dir.join(name).to_str().expect("a name").to_owned();
    let (_, mut sink) = create(&path, "soft", Existing::Overwrite).expect("a file");
    write(sink.as_mut(), info, rows).expect("rows");
    path
}

#[test]
fn rows_of_another_shape_are_refused_by_each_format() {
    let dir = tempfile::tempdir().expect("a folder");
    let info = info();
    let mut fewer = info.clone();
    fewer.channels.pop();
    let mut ungated = info.clone();
    ungated.skips = false;
    let mut names = vec!["a.csv", "a.arrows"];
    names.extend(cfg!(feature = "parquet").then_some("a.parquet"));
    names.extend(cfg!(feature = "hdf5").then_some("a.h5"));
    for (name, other) in names.into_iter().flat_map(|n| [(n, &fewer), (n, &ungated)]) {
        let path = dir.path().join(name).to_str().expect("a name").to_owned();
        let (_, mut sink) = create(&path, "soft", Existing::Overwrite).expect("a file");
        sink.begin(&info).expect("begin");
        let words = row(other, 0, &[]);
        let error = sink.write(Rows::new(&words, other.shape())).err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            text.contains("other columns than the run"),
            "{name}: {text}"
        );
    }
}

#[test]
fn in_csv_it_is_an_empty_field() {
    let dir = tempfile::tempdir().expect("a folder");
    let info = info();
    let path = file(dir.path(), "a.csv", &info, &rows(&info));
    let text = std::fs::read_to_string(path).expect("text");
    let names = "row,trigger,time,status,skipped,adc.0,adc.1,adc.2,adc.3,adc.4,adc.5,adc.6,adc.7,adc.8,adc.9";
    assert_eq!(
        text,
        format!("{names},output dac.a,output dac.a#2\n")
            + "0,0,0,2,0,1,1,1,1,1,1,1,1,1,1,1,1\n"
            + "1,10,100,2,9,1,,,1,1,1,1,1,1,,1,1\n"
            + "2,20,200,2,18,1,1,1,1,1,1,1,1,1,1,1,\n"
            + "3,30,300,2,27,1,1,1,1,1,1,1,1,1,1,1,1\n"
    );
}

/// What every reader of Arrow relies on.
fn check(batches: &[RecordBatch]) {
    let schema = batches.first().expect("a batch").schema();
    let u64s = |name: &str| -> Vec<u64> {
        let columns = batches.iter().map(|b| b.column_by_name(name).expect(name));
        columns
            .flat_map(|column| column.as_primitive::<UInt64Type>().values().to_vec())
            .collect()
    };
    assert_eq!(u64s("row"), [0, 1, 2, 3]);
    assert_eq!(u64s("status"), [ROW_LATE; 4], "flags, and nothing else");
    assert_eq!(u64s("skipped"), [0, 9, 18, 27]);
    // The rows of each column that are null.
    let nulls = |index: usize| -> Vec<usize> {
        let columns = batches.iter().map(|batch| batch.column(index));
        let nulls = columns.flat_map(|c| (0..c.len()).map(|row| c.is_null(row)));
        let nulls = nulls.enumerate().filter(|(_, is_null)| *is_null);
        nulls.map(|(row, _)| row).collect()
    };
    let columns = schema.fields().iter().enumerate();
    let failed: Vec<_> = columns
        .map(|(index, field)| (field.name().as_str(), nulls(index)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let one = |name| (name, vec![1]);
    assert_eq!(
        failed,
        [
            one("adc.1"),
            one("adc.2"),
            one("adc.9"),
            ("output dac.a#2", vec![2])
        ]
    );
    for batch in batches {
        let written = batch.column_by_name("output dac.a").expect("the output");
        assert_eq!(written.as_boolean().true_count(), batch.num_rows());
    }
}

#[test]
fn in_arrow_it_is_null() {
    let dir = tempfile::tempdir().expect("a folder");
    let info = info();
    let path = file(dir.path(), "a.arrows", &info, &rows(&info));
    let file = File::open(path).expect("a file");
    let stream = arrow_ipc::reader::StreamReader::try_new(file, None).expect("a stream");
    let batches: Vec<_> = stream.map(|b| b.expect("a batch")).collect();
    assert_eq!(batches.len(), 2);
    let last = batches[1].columns().iter();
    // No bitmap where nothing failed.
    assert!(last.clone().all(|column| column.nulls().is_none()));
    check(&batches);
    let schema = batches[0].schema();
    let output = schema
        .field_with_name("output dac.a#2")
        .expect("the output");
    assert_eq!(output.metadata()["output"], "dac.a");
    assert_eq!(schema.metadata()["strobe.skipped"], "00000000000000000024");
    assert_eq!(schema.metadata()["strobe.missed"], "00000000000000000003");
}

#[cfg(feature = "parquet")]
#[test]
fn in_parquet_it_is_null() {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let dir = tempfile::tempdir().expect("a folder");
    let info = info();
    let path = file(dir.path(), "a.parquet", &info, &rows(&info));
    let input = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("a file"));
    let batches = input
        .and_then(|input| input.build())
        .expect("a Parquet file");
    let batches: Vec<_> = batches.map(|b| b.expect("a batch")).collect();
    check(&batches);
}

#[cfg(feature = "hdf5")]
#[test]
fn in_hdf5_it_is_nan_or_a_number_of_its_own_and_marked() {
    let dir = tempfile::tempdir().expect("a folder");
    let info = info();
    let path = file(dir.path(), "a.h5", &info, &rows(&info));
    let file = ::hdf5::File::open(path).expect("a file");
    let data = |name: &str| file.dataset(&format!("entry/data/{name}")).expect(name);
    let marks: Vec<u8> = data("failed").read_raw().expect("marks");
    let expected = FAILED
        .iter()
        .flat_map(|failed| (0..12).map(|step| u8::from(failed.contains(&step))));
    assert_eq!(marks, expected.collect::<Vec<_>>());
    assert_eq!(data("failed").shape(), [4, 12]);
    let signed: Vec<i64> = data("adc.1").read_raw().expect("values");
    assert_eq!(signed, [1, i64::MIN, 1, 1]);
    let real: Vec<f64> = data("adc.2").read_raw().expect("values");
    assert!(real[1].is_nan());
    assert_eq!((real[0], real[2], real[3]), (1.0, 1.0, 1.0));
    let unsigned: Vec<u64> = data("adc.9").read_raw().expect("values");
    assert_eq!(unsigned, [1, u64::MAX, 1, 1]);
    let status: Vec<u64> = data("status").read_raw().expect("values");
    assert_eq!(status, [ROW_LATE; 4]);
    let skipped: Vec<u64> = data("skipped").read_raw().expect("values");
    assert_eq!(skipped, [0, 9, 18, 27]);
    // What was skipped is no gap.
    assert_eq!(file.dataset("entry/gaps/row").expect("gaps").size(), 0);
    let account = |name: &str| {
        let dataset = file.dataset(&format!("entry/run/{name}")).expect(name);
        dataset.read_scalar::<u64>().expect("a number")
    };
    assert_eq!((account("skipped"), account("missed")), (24, 3));
}

#[test]
fn a_journal_gives_back_what_was_in_the_ring() {
    let dir = tempfile::tempdir().expect("a folder");
    let read_again = |name: &str, info: &RunInfo, rows: &[Vec<u64>]| {
        let path = file(dir.path(), name, info, rows);
        let mut journal = Journal::open(path.as_ref()).expect("a recording");
        assert_eq!(journal.info(), info);
        assert_eq!(
            journal.totals().map(|t| (t.skipped, t.missed())),
            Some((24, 3))
        );
        let mut words = Vec::new();
        while let Some(rows) = journal.read().expect("rows") {
            words.extend_from_slice(rows.words());
        }
        assert_eq!(words, rows.concat());
    };
    read_again("ten.arrows", &info(), &rows(&info()));
    // So many that the status has no room for all that may fail.
    let mut many = info();
    many.channels = (0..100)
        .map(|n| plain(&format!("adc.{n}"), Type::S64))
        .collect();
    let rows = [[31, 32, 99], [0, 95, 96], [1, 100, 101]];
    let rows = (0..).zip(rows).map(|(n, failed)| row(&many, n, &failed));
    read_again("many.arrows", &many, &rows.collect::<Vec<_>>());
}

#[test]
fn a_recording_that_has_0_where_a_channel_failed_is_refused() {
    use arrow_schema::{DataType, Field, Schema};
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("old.arrows");
    let fields = ["row", "trigger", "time", "status", "sim.counter"];
    let fields = fields.map(|name| Field::new(name, DataType::UInt64, false));
    let about = [("strobe.engine", "kernel"), ("strobe.version", "0.1.0")];
    let about = about.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let schema = Schema::new_with_metadata(fields.to_vec(), about.into());
    let old = File::create(&path).expect("a file");
    let mut old = arrow_ipc::writer::StreamWriter::try_new(old, &schema).expect("a stream");
    old.finish().expect("its end");
    let error = Journal::open(&path).err().expect("a refusal");
    assert!(matches!(error, journal::Error::Format { .. }));
    let text = error.to_string();
    assert!(
        text.contains("a recording in format 1, made by strobe 0.1.0; this strobe reads format 2"),
        "{text}"
    );
    assert!(
        text.contains("convert it with the strobe that made it"),
        "{text}"
    );
    assert!(text.contains("a channel that failed is 0"), "{text}");
}
