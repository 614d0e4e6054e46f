// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::sink::{Sink, arrow::ArrowFile};
use strobe::samples::channel;
use strobe::samples::{info, noted, totals};
use strobe_ring::RowShape;

const ROWS: [u64; 12] = [
    0,
    0,
    100,
    0,
    u64::MAX,
    -5_i64 as u64, //
    4,
    9,
    1000,
    1,
    4,
    -7_i64 as u64,
];

fn run() -> RunInfo {
    let mut scaled = channel("adc.u", Type::S64);
    scaled.scale = 0.25;
    scaled.cost_ns = 0;
    scaled.in_use = false;
    let mut counter = channel("sim.counter", Type::U64);
    counter.cost_ns = 0;
    counter.in_use = false;
    let mut info = info(vec![counter, scaled]);
    info.doctor.push(noted());
    info
}

/// A file of two batches, with an account or without.
fn write(totals: Option<&Totals>) -> tempfile::NamedTempFile {
    write_rows(&ROWS, totals)
}

fn write_rows(rows: &[u64], totals: Option<&Totals>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut sink = ArrowFile::new(file.reopen().expect("a file"));
    sink.begin(&run()).expect("begin");
    for row in rows.chunks(6) {
        sink.write(Rows::new(row, RowShape::of_channels(2)))
            .expect("write");
        sink.flush().expect("flush");
    }
    if totals.is_some() {
        sink.finish(totals).expect("finish");
    }
    file
}

fn words(journal: &mut Journal) -> Vec<u64> {
    let mut words = Vec::new();
    while let Some(rows) = journal.read().expect("rows") {
        words.extend_from_slice(rows.words());
    }
    words
}

#[test]
fn run_rows_and_account_come_back() {
    let account = totals(7);
    let file = write(Some(&account));
    let mut journal = Journal::open(file.path()).expect("a recording");
    assert_eq!(journal.info(), &run());
    assert_eq!(journal.totals(), Some(&account));
    assert_eq!(words(&mut journal), ROWS);
    assert!(!journal.is_torn());
}

#[test]
fn a_torn_file_is_read_up_to_its_last_whole_batch() {
    let file = write(None);
    let length = file.as_file().metadata().expect("its size").len();
    let read = || {
        let mut journal = Journal::open(file.path()).expect("a recording");
        assert_eq!(journal.totals(), None);
        (words(&mut journal), journal.is_torn())
    };
    assert_eq!(read(), (ROWS.to_vec(), false));
    file.as_file().set_len(length - 3).expect("a shorter file");
    assert_eq!(read(), (ROWS[..6].to_vec(), true));
}

#[test]
fn a_stream_is_read_like_a_file_from_the_row_that_is_asked_for() {
    let read = |rows: &[u64], from| {
        let bytes = std::fs::read(write_rows(rows, None).path()).expect("a recording");
        let stream = Box::new(io::Cursor::new(bytes));
        let mut journal = Journal::of("a stream".into(), stream, from).expect("a recording");
        let mut blocks = Vec::new();
        while let Some(block) = journal.next(Duration::ZERO).expect("rows") {
            blocks.push((block.first(), block.len(), block.lost(), block.missed()));
        }
        blocks
    };
    assert_eq!(read(&ROWS, 0), [(0, 1, 0, 0), (4, 1, 3, 5)]);
    assert_eq!(read(&ROWS[6..], 0), [(4, 1, 4, 5)]);
    assert_eq!(read(&ROWS[6..], 3), [(4, 1, 1, 0)], "not since the start");
}

#[test]
fn no_row_follows_the_one_of_the_greatest_number() {
    let greatest = [u64::MAX, u64::MAX, 100, 0, 1, 1];
    let rows = [&greatest[..], &ROWS[..6]].concat();
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut sink = ArrowFile::new(file.reopen().expect("a file"));
    sink.begin(&run()).expect("begin");
    // In one batch.
    sink.write(Rows::new(&rows, RowShape::of_channels(2)))
        .expect("write");
    sink.flush().expect("flush");
    let mut journal = Journal::open(file.path()).expect("a recording");
    let mut blocks = Vec::new();
    while let Some(block) = journal.next(Duration::ZERO).expect("rows") {
        blocks.push((block.first(), block.len(), block.lost()));
    }
    assert_eq!(blocks, [(u64::MAX, 1, u64::MAX), (0, 1, 0)]);
}

#[test]
fn other_files_are_refused_by_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "row,trigger\n0,0\n").expect("text");
    let name = file.path().display().to_string();
    let message = |path: &Path| Journal::open(path).err().map(|e| e.to_string());
    let text = message(file.path()).unwrap_or_default();
    assert!(
        text.starts_with(&format!("{name}: not a recording of strobe")),
        "{text}"
    );
    std::fs::write(file.path(), "").expect("nothing");
    assert!(message(file.path()).is_some());
    let text = message("/nonexistent/a.arrows".as_ref()).unwrap_or_default();
    assert!(
        text.starts_with("/nonexistent/a.arrows: No such file"),
        "{text}"
    );
}

#[test]
fn a_message_that_is_longer_than_what_is_there_gets_no_memory_for_it() {
    let whole = std::fs::read(write(None).path()).expect("a file");
    // Up to the middle of the last rows: their head is there, and says how long they are.
    let half = &whole[..whole.len() - 16];
    let passed = |bytes: Option<u64>| {
        let mut all = Vec::new();
        let read = Messages::new(half, bytes).read_to_end(&mut all);
        (all.len(), read.map_err(|error| error.kind()))
    };
    let (known, read) = passed(Some(half.len() as u64));
    assert_eq!(read, Err(io::ErrorKind::InvalidData));
    assert!(known < half.len(), "nobody is told of them");
    let (unknown, read) = passed(None);
    assert_eq!((unknown, read), (half.len(), Ok(half.len())));
    // The rest of a message is no length.
    let rest = [&whole[..], &[0xF0, 0xFF, 0xFF, 0x7F, 0]].concat();
    let read = Messages::new(&rest[..], None).read_to_end(&mut Vec::new());
    assert_eq!(
        read.map_err(|error| error.kind()),
        Err(io::ErrorKind::InvalidData)
    );
    // What is read so is the same, but for what takes memory.
    let mut journal = Journal::of_bytes("a".to_owned(), half.to_vec()).expect("a journal");
    let stream = Box::new(io::Cursor::new(half.to_vec()));
    let mut other = Journal::of("a".to_owned(), stream, 0).expect("a journal");
    assert_eq!(words(&mut journal), words(&mut other));
    assert!(journal.is_torn() && other.is_torn());
}

#[test]
fn recordings_of_rubbish_are_read_as_far_as_they_are_right_or_refused() {
    let whole = std::fs::read(write(Some(&totals(5))).path()).expect("a file");
    let torn = std::fs::read(write(None).path()).expect("a file");
    strobe::fuzz::bytes(&[&whole, &torn], |bytes| {
        let Ok(mut journal) = Journal::of_bytes("a".to_owned(), bytes.to_vec()) else {
            return false;
        };
        // As many rows as there are bytes for them, whatever the messages say.
        assert!(words(&mut journal).len() * 8 <= bytes.len());
        !journal.is_torn()
    });
}
