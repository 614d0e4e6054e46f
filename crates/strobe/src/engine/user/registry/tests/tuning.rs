// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run is tuned by those who have connected to its owner.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;

use super::*;
use crate::program::ProgramText;

/// Of a program with one variable, of 8 bits.
pub(super) fn tuning() -> Tuning {
    let text = ProgramText {
        tunables: vec!["limit = 5 like c".into()],
        ..ProgramText::default()
    };
    let c = strobe_expr::Column {
        bits: 8,
        ..strobe_expr::Column::unsigned("c")
    };
    Tuning::of(&strobe_expr::compile(&text, &[c]).expect("a program"))
}

/// What was left for the next row.
fn left(owner: &Owner) -> Vec<(usize, u64)> {
    let mut left = Vec::new();
    owner.tuning.take(|value| left.push(value));
    left
}

#[test]
fn a_run_is_tuned_by_another_process_and_what_is_refused_has_its_reason() {
    let (_dir, path) = folder();
    let owner = owner(&path);
    let run = attach(&path, 1);
    assert_eq!(run.info().tunables, ["limit"]);
    let tune = |tunable, word| {
        answered(|| match run.tune_word(tunable, word) {
            Err(crate::error::Error::Run { source, .. }) => Err(source),
            tuned => {
                tuned.expect("no other error");
                Ok(())
            }
        })
    };
    let errno = |tuned: io::Result<()>| tuned.err().and_then(|error| error.raw_os_error());
    tune(0, 7).expect("to tune");
    assert_eq!(left(&owner), [(0, 7)]);
    let refused = [
        (0, 256, Errno::RANGE),
        (1, 7, Errno::INVAL),
        (usize::MAX, 0, Errno::INVAL),
    ];
    for (tunable, word, why) in refused {
        assert_eq!(errno(tune(tunable, word)), Some(why.raw_os_error()));
    }
    assert_eq!(left(&owner), []);
    // Readers are counted and woken as before; answers do not get mixed up.
    let reader = run.reader().expect("a reader");
    for word in 0..200 {
        tune(0, word).expect("to tune");
    }
    drop(reader);
    assert_eq!(left(&owner), [(0, 199)]);
    owner.tuning.end();
    assert_eq!(errno(tune(0, 1)), Some(Errno::SHUTDOWN.raw_os_error()));
    drop(owner);
    assert!(run.tune_word(0, 1).is_err(), "nobody is there");
}

#[test]
fn what_comes_in_parts_or_at_once_is_understood() {
    let (_dir, path) = folder();
    let owner = owner(&path);
    let mut client = UnixStream::connect(path.join("1.sock")).expect("it");
    let mut byte = [0];
    while byte != *b"\n" {
        client.read_exact(&mut byte).expect("the line");
    }
    let tune = |tunable: u32, word: u64| {
        let mut bytes = vec![b't'];
        bytes.extend(tunable.to_ne_bytes());
        bytes.extend(word.to_ne_bytes());
        bytes
    };
    let answer = |client: &mut UnixStream| {
        let mut answer = [0; 5];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[0], b't');
        i32::from_ne_bytes([answer[1], answer[2], answer[3], answer[4]])
    };
    // Words that look like letters of this language, one byte after the other.
    for byte in tune(0, u64::from(b'r')) {
        client.write_all(&[byte]).expect("heard");
    }
    assert_eq!(answer(&mut client), 0);
    let many: Vec<u8> = (0..20).flat_map(|n| tune(n % 2, u64::from(n))).collect();
    client.write_all(&many).expect("heard");
    let answers: Vec<i32> = (0..20).map(|_| answer(&mut client)).collect();
    let wanted: Vec<i32> = (0..20).map(|n| if n % 2 == 0 { 0 } else { -22 }).collect();
    assert_eq!(answers, wanted);
    assert_eq!(left(&owner), [(0, 18)]);
    assert_eq!(found(&path).runs[0].readers, 0, "no reader has come");
}

#[test]
fn who_asks_and_does_not_listen_is_not_heard_any_more() {
    const MOST: usize = 8 << 20;
    let (_dir, path) = folder();
    let _owner = owner(&path);
    let mut client = UnixStream::connect(path.join("1.sock")).expect("it");
    client
        .set_write_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    let question = [b't'; 13].repeat(1000);
    let mut written = 0;
    while written < MOST && client.write_all(&question).is_ok() {
        written += question.len();
    }
    assert!(written < MOST, "{written} bytes were heard");
    assert_eq!(runs(&path), [1], "others are");
}
