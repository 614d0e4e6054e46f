// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of all formats are read again in the same way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use strobe::block::Block;
use strobe::info::Totals;
use strobe::ring::{RowShape, Rows};
use strobe::samples::{every_type, totals};
use strobe::source::RowSource;
use strobe_files::convert::convert;
use strobe_files::open;
use strobe_files::sink::{Existing, create};

/// Rows 0, 1 and, after three that were lost, 5: row, trigger, time, status, values, skipped. In row 1 the second channel
/// and the output have failed.
const ROWS: [[u64; 8]; 3] = [
    [
        0,
        0,
        100,
        0,
        u64::MAX,
        -5_i64 as u64,
        0x3FF0_0000_0000_0000,
        0,
    ],
    [1, 12, 300, 0b1010 << 32, 2, 0, 0x4000_0000_0000_0000, 10],
    [5, 17, 700, 1, 4, -7_i64 as u64, 0xC000_0000_0000_0000, 10],
];

fn account() -> Totals {
    Totals {
        skipped: 10,
        triggers: 6 + 3 + 10,
        ..totals(6)
    }
}

/// The rows in a new file, and the account if there is one.
fn write(folder: &Path, name: &str, account: Option<&Totals>) -> PathBuf {
    let path = folder.join(name);
    let name = path.to_str().expect("a name");
    let (_, mut sink) = create(name, "soft", Existing::Refuse).expect("a file");
    let shape = RowShape {
        channels: 3,
        outputs: 1,
        skipped: true,
    };
    sink.begin(&every_type()).expect("to begin");
    sink.write(Rows::new(&ROWS.concat(), shape)).expect("rows");
    match account {
        Some(account) => sink.finish(Some(account)).expect("to finish"),
        None => {
            sink.flush().expect("to flush");
            // HDF5 does that five times a second only.
            std::thread::sleep(Duration::from_millis(250));
            sink.flush().expect("to flush");
        }
    }
    path
}

fn blocks(source: &mut dyn RowSource) -> Vec<Block> {
    let next = || source.next(Duration::ZERO).expect("a recording");
    std::iter::from_fn(next).collect()
}

fn formats() -> Vec<&'static str> {
    let mut formats = vec!["a.arrows"];
    if cfg!(feature = "hdf5") {
        formats.push("a.h5");
    }
    formats
}

#[test]
fn run_rows_losses_and_account_come_back_from_each_format() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in formats() {
        let path = write(folder.path(), name, Some(&account()));
        let mut source = open(&path).expect("a recording");
        assert_eq!(source.info(), &every_type(), "{name}");
        let blocks = blocks(source.as_mut());
        let words: Vec<u64> = blocks.iter().flat_map(|b| b.words().to_vec()).collect();
        assert_eq!(words, ROWS.concat(), "{name}");
        let of = |block: &Block| (block.first(), block.len(), block.lost(), block.missed());
        let gaps: Vec<_> = blocks.iter().map(of).collect();
        assert_eq!(gaps, [(0, 2, 0, 1), (5, 1, 3, 1)], "{name}");
        let scaled = blocks[0].column("adc.u").expect("a column");
        assert_eq!(scaled.to_vec()[0], -2.25, "{name}");
        assert!(scaled.to_vec()[1].is_nan(), "{name}");
        assert_eq!(source.totals(), Some(account()), "{name}");
    }
}

#[test]
fn a_recording_that_was_cut_off_has_its_rows_and_no_account() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in formats() {
        let path = write(folder.path(), name, None);
        let mut source = open(&path).expect("a recording");
        let rows: usize = blocks(source.as_mut()).iter().map(Block::len).sum();
        assert_eq!((rows, source.totals()), (3, None), "{name}");
    }
}

#[test]
fn what_is_converted_is_what_would_have_been_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = std::fs::read(write(folder.path(), "direct.csv", Some(&account())));
    let recorded = recorded.expect("text");
    for name in formats() {
        let path = write(folder.path(), name, Some(&account()));
        let copy = folder.path().join(format!("{name}.csv"));
        let name = copy.to_str().expect("a name");
        let converted = convert(&path, name, Existing::Refuse).expect("a copy");
        assert_eq!((converted.rows, converted.is_whole), (3, true));
        let text = std::fs::read(&copy).expect("text");
        assert_eq!(text, recorded, "{name}");
    }
}

#[test]
fn a_file_that_is_no_recording_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.h5");
    for text in [&b"row,trigger\n0,0\n"[..], b"\x89HDF\r\n\x1a\n", b""] {
        std::fs::write(&path, text).expect("text");
        let error = open(&path).err().expect("a refusal").to_string();
        let name = path.display().to_string();
        assert!(error.starts_with(&name), "{error}");
        assert!(error.contains("not a recording of strobe"), "{error}");
    }
}
