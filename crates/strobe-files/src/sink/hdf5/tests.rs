// SPDX-License-Identifier: MIT OR Apache-2.0

use strobe::samples::channel;
use strobe::samples::{info, noted, totals};
use strobe_ring::RowShape;

use super::*;

/// Rows of the channels u64, s64, f64: the second one after a gap of one
/// trigger missed, the third after another two rows lost and one missed.
const ROWS: [u64; 21] = [
    0,
    0,
    100,
    0,
    u64::MAX,
    -5_i64 as u64,
    0x3FF0_0000_0000_0000,
    1, //
    2,
    300,
    0,
    2,
    6,
    0,
    4, //
    6,
    700,
    1,
    4,
    -7_i64 as u64,
    0xC000_0000_0000_0000,
];

fn run() -> RunInfo {
    let mut scaled = channel("adc.u", Type::S64);
    scaled.scale = 0.25;
    let mut info = info(vec![
        channel("sim.counter", Type::U64),
        scaled,
        channel("adc.f", Type::F64),
    ]);
    info.doctor.push(noted());
    info
}

/// A file after a flush, in a folder that is removed with the answer.
fn write() -> (tempfile::TempDir, Hdf5File) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut sink = Hdf5File::create(&dir.path().join("a.h5")).expect("a file");
    sink = sink.eager();
    sink.begin(&run()).expect("begin");
    sink.write(Rows::new(&ROWS[..7], RowShape::of_channels(3)))
        .expect("write");
    sink.flush().expect("flush");
    sink.flush().expect("a flush without rows");
    sink.write(Rows::new(&ROWS[7..], RowShape::of_channels(3)))
        .expect("write");
    sink.flush().expect("flush");
    (dir, sink)
}

fn column<T: ::hdf5::H5Type>(file: &File, name: &str) -> Vec<T> {
    let dataset = file.dataset(&format!("entry/{name}")).expect(name);
    dataset.read_raw().expect(name)
}

fn number(file: &File, name: &str) -> u64 {
    let dataset = file.dataset(&format!("entry/run/{name}")).expect(name);
    dataset.read_scalar().expect(name)
}

#[test]
fn rows_gaps_and_account_come_back() {
    let (dir, mut sink) = write();
    sink.finish(Some(&totals(7))).expect("finish");
    let path = dir.path().join("a.h5");
    let bytes = std::fs::metadata(&path).expect("its size").len();
    assert_eq!(sink.written(), SinkProgress { rows: 3, bytes });

    let file = File::open(&path).expect("a file");
    assert_eq!(column::<u64>(&file, "data/row"), [0, 1, 4]);
    assert_eq!(column::<u64>(&file, "data/trigger"), [0, 2, 6]);
    assert_eq!(column::<u64>(&file, "data/time"), [100, 300, 700]);
    assert_eq!(column::<u64>(&file, "data/status"), [0, 0, 1]);
    assert_eq!(column::<u64>(&file, "data/sim.counter"), [u64::MAX, 2, 4]);
    assert_eq!(column::<i64>(&file, "data/adc.u"), [-5, 6, -7]);
    assert_eq!(column::<f64>(&file, "data/adc.f"), [1.0, 0.0, -2.0]);
    assert_eq!(column::<u64>(&file, "gaps/row"), [1, 4]);
    assert_eq!(column::<u64>(&file, "gaps/trigger"), [2, 6]);
    assert_eq!(column::<u64>(&file, "gaps/missed"), [1, 1]);
    assert_eq!(column::<u64>(&file, "gaps/lost"), [0, 2]);
    let figures = ["rows", "triggers", "missed", "lost", "complete"];
    assert_eq!(figures.map(|name| number(&file, name)), [7, 10, 3, 4, 1]);
    assert_eq!(number(&file, "missed_by/overrun"), 1);
    assert_eq!(number(&file, "missed_by/throttled"), 2);
    let end = file.dataset("entry/run/end").expect("end");
    assert_eq!(end.read_scalar::<Word>().expect("end").as_str(), "complete");
    let doctor = file.group("entry/run").expect("run").attr("doctor");
    let doctor = doctor
        .expect("doctor")
        .read_scalar::<::hdf5::types::VarLenUnicode>();
    let doctor = doctor.expect("text");
    assert!(
        doctor.starts_with(r#"[{"check":"fifo","state":"advice","#),
        "{doctor}"
    );
}

#[test]
fn the_account_up_to_the_last_flush_is_in_a_file_that_is_being_written() {
    let (_dir, sink) = write();
    let file = sink.file.as_ref().expect("a file");
    let figures = ["rows", "triggers", "missed", "lost", "complete"];
    assert_eq!(figures.map(|name| number(file, name)), [5, 7, 2, 2, 0]);
    assert_eq!(sink.written().rows, 3);
}

#[test]
fn rows_wait_for_the_time_of_a_flush_but_not_for_ever() {
    let (_dir, mut sink) = write();
    sink.flush_every = Duration::from_secs(3600);
    sink.write(Rows::new(&ROWS[..7], RowShape::of_channels(3)))
        .expect("write");
    sink.flush().expect("flush");
    assert_eq!(sink.written().rows, 3);
    for _ in 1..ROWS_KEPT {
        sink.write(Rows::new(&ROWS[..7], RowShape::of_channels(3)))
            .expect("write");
    }
    assert_eq!(sink.written().rows, 3 + ROWS_KEPT as u64);
}

#[test]
fn an_empty_file_is_replaced_and_nothing_else_is_left_in_its_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    // The longest name that there can be.
    let name = format!("{:a>255}", ".h5");
    let path = dir.path().join(&name);
    drop(std::fs::File::create(&path).expect("a file"));
    let mut sink = Hdf5File::replace(&path).expect("a file");
    sink.begin(&run()).expect("begin");
    sink.write(Rows::new(&ROWS, RowShape::of_channels(3)))
        .expect("write");
    sink.finish(Some(&totals(7))).expect("finish");
    let file = File::open(&path).expect("an HDF5 file");
    assert_eq!(column::<u64>(&file, "data/row"), [0, 1, 4]);
    let there = std::fs::read_dir(dir.path()).expect("a folder");
    let there: Vec<_> = there
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    assert_eq!(there, [name.as_str()]);
}

#[test]
fn a_file_that_cannot_be_made_says_why_in_the_words_of_the_system() {
    for make in [Hdf5File::create, Hdf5File::replace] {
        let error = make(Path::new("/nonexistent/a.h5")).err();
        assert_eq!(error.map(|e| e.kind()), Some(io::ErrorKind::NotFound));
    }
}
