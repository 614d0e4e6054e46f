// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{Cursor, Read};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;
use strobe::channel::Type;
use strobe::info::End;
use strobe::samples::channel;
use strobe::samples::{info, totals};
use strobe_ring::RowShape;

use super::*;

fn run() -> RunInfo {
    let mut scaled = channel("adc.u", Type::S64);
    scaled.scale = 0.25;
    info(vec![
        channel("sim.counter", Type::U64),
        scaled,
        channel("adc.f", Type::F64),
        channel("sim.counter", Type::U64),
    ])
}

const FIRST: [u64; 16] = [
    0,
    0,
    100,
    0,
    u64::MAX,
    -5_i64 as u64,
    0x3FF0_0000_0000_0000,
    1, //
    1,
    1,
    200,
    0,
    2,
    6,
    0,
    3,
];
const SECOND: [u64; 8] = [4, 9, 1000, 1, 4, -7_i64 as u64, 0xC000_0000_0000_0000, 5];

/// The file after two flushes, and at its end.
fn write() -> (Vec<u8>, Vec<u8>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.arrows");
    let mut arrow = ArrowFile::new(File::create(&path).expect("a file"));
    arrow.begin(&run()).expect("begin");
    arrow
        .write(Rows::new(&FIRST, RowShape::of_channels(4)))
        .expect("write");
    arrow.flush().expect("flush");
    arrow.flush().expect("a flush without rows");
    arrow
        .write(Rows::new(&SECOND, RowShape::of_channels(4)))
        .expect("write");
    arrow.flush().expect("flush");
    let killed = std::fs::read(&path).expect("bytes");
    arrow.finish(Some(&totals(7))).expect("finish");
    let whole = std::fs::read(&path).expect("bytes");
    let bytes = whole.len() as u64;
    assert_eq!(arrow.written(), SinkProgress { rows: 3, bytes });
    (killed, whole)
}

fn open(bytes: &[u8]) -> StreamReader<Cursor<&[u8]>> {
    StreamReader::try_new(Cursor::new(bytes), None).expect("a stream")
}

/// Rows of all batches that can be read, and whether the end was torn.
fn rows_of(bytes: &[u8]) -> (usize, bool) {
    let mut rows = 0;
    for batch in open(bytes) {
        match batch {
            Ok(batch) => rows += batch.num_rows(),
            Err(_) => return (rows, true),
        }
    }
    (rows, false)
}

#[test]
fn rows_come_back_as_columns_of_their_types() {
    let (_, bytes) = write();
    let batches: Vec<RecordBatch> = open(&bytes).map(|b| b.expect("a batch")).collect();
    assert_eq!(batches.len(), 2);
    let names: Vec<&str> = batches[0]
        .schema_ref()
        .fields()
        .iter()
        .map(|f| f.name().as_str())
        .collect();
    assert_eq!(
        names,
        [
            "row",
            "trigger",
            "time",
            "status",
            "sim.counter",
            "adc.u",
            "adc.f",
            "sim.counter#2"
        ]
    );
    let u64s = |b: usize, c: usize| {
        batches[b]
            .column(c)
            .as_primitive::<UInt64Type>()
            .values()
            .to_vec()
    };
    assert_eq!(u64s(0, 0), [0, 1]);
    assert_eq!(u64s(1, 1), [9]);
    assert_eq!(u64s(0, 4), [u64::MAX, 2]);
    assert_eq!(u64s(1, 7), [5]);
    assert_eq!(
        batches[0]
            .column(5)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec(),
        [-5, 6]
    );
    assert_eq!(
        batches[1]
            .column(6)
            .as_primitive::<Float64Type>()
            .values()
            .to_vec(),
        [-2.0]
    );
}

#[test]
fn fields_say_how_their_words_are_to_be_understood() {
    let (_, bytes) = write();
    let schema = open(&bytes).schema();
    let field = schema.field_with_name("adc.u").expect("the field");
    let metadata = |key: &str| field.metadata().get(key).map(String::as_str);
    assert_eq!(metadata("scale"), Some("0.25"));
    assert_eq!(metadata("offset"), Some("0"));
    assert_eq!(metadata("unit"), Some("V"));
    assert_eq!(metadata("type"), Some("s64"));
    assert_eq!(metadata("class"), Some("hard"));
    assert_eq!(metadata("description"), Some("adc.u of a test"));
}

#[test]
fn a_finished_file_holds_the_account_and_a_killed_one_says_that_it_does_not() {
    let (killed, whole) = write();
    let schema = open(&whole).schema();
    let metadata = |key: &str| schema.metadata().get(key).map(String::as_str);
    assert_eq!(metadata("strobe.event"), Some("timer:10kHz"));
    assert_eq!(metadata("strobe.start_realtime_ns"), Some("2000"));
    assert_eq!(metadata("strobe.first_due_ns"), Some("1500"));
    assert_eq!(metadata("strobe.complete"), Some("1"));
    assert_eq!(metadata("strobe.end"), Some("complete"));
    assert_eq!(metadata("strobe.rows"), Some("00000000000000000007"));
    assert_eq!(metadata("strobe.missed"), Some("00000000000000000003"));
    assert_eq!(
        metadata("strobe.missed.throttled"),
        Some("00000000000000000002")
    );
    assert_eq!(metadata("strobe.lost"), Some("00000000000000000004"));

    let schema = open(&killed).schema();
    let metadata = |key: &str| schema.metadata().get(key).map(String::as_str);
    assert_eq!(metadata("strobe.complete"), Some("0"));
    assert_eq!(metadata("strobe.missed"), Some("                    "));
    assert_eq!(rows_of(&killed), (3, false));
}

#[test]
fn the_account_always_fits_its_place() {
    let mut totals = totals(0);
    (totals.rows, totals.triggers) = (u64::MAX, u64::MAX);
    totals.missed_by = [u64::MAX; 8];
    (totals.lost, totals.errors, totals.end_time_ns) = (u64::MAX, u64::MAX, u64::MAX);
    let length = |totals: Option<&Totals>| {
        encode_schema(&schema(&run(), totals))
            .expect("a schema")
            .len()
    };
    let at_start = length(None);
    for end in [
        End::Complete,
        End::Stopped,
        End::Failed("for a very long reason".into()),
    ] {
        totals.end = end;
        assert_eq!(length(Some(&totals)), at_start);
    }
}

#[test]
fn a_torn_end_costs_only_the_last_batch() {
    let (killed, _) = write();
    for torn in 1..64 {
        let (rows, _) = rows_of(&killed[..killed.len() - torn]);
        assert_eq!(rows, 2, "{torn} bytes torn off");
    }
}

#[test]
fn the_same_rows_make_the_same_bytes() {
    assert_eq!(write(), write());
}

#[test]
fn a_pipe_gets_the_stream_without_the_account() {
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let mut arrow = ArrowFile::new(File::from(std::os::fd::OwnedFd::from(writer)));
    arrow.begin(&run()).expect("begin");
    arrow
        .write(Rows::new(&FIRST, RowShape::of_channels(4)))
        .expect("write");
    arrow.finish(Some(&totals(2))).expect("finish");
    drop(arrow);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("bytes");
    assert_eq!(rows_of(&bytes), (2, false));
    assert_eq!(open(&bytes).schema().metadata()["strobe.complete"], "0");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let error = ArrowFile::new(full).begin(&run()).map_err(|e| e.kind());
    assert_eq!(error, Err(io::ErrorKind::StorageFull));
}
