// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what a client is given, from files.

use super::*;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::spool::Bounds;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use strobe::channel::Type;
use strobe::ring::{RowShape, Rows};
use strobe::samples::{channel, info};
use strobe_files::sink::{Sink, arrow::ArrowFile};

const FILE: &str = "00000000000000000000.arrows";

/// The spool of a run that is over, with a file of so many rows.
fn spool(folder: &Path, rows: u64) -> Arc<Spool> {
    spool_of(folder, rows, |_| false)
}

/// The same, in some rows of which the channel has failed.
pub(crate) fn spool_of(folder: &Path, rows: u64, has_failed: impl Fn(u64) -> bool) -> Arc<Spool> {
    let file = std::fs::File::create(folder.join(FILE));
    let mut sink = ArrowFile::new(file.expect("a file"));
    sink.begin(&info(vec![channel("sim.counter", Type::U64)]))
        .expect("begin");
    for row in 0..rows {
        let status = u64::from(has_failed(row)) << 32;
        let words = [row, row, 100 * row, status, 7 * row];
        let rows = Rows::new(&words, RowShape::of_channels(1));
        sink.write(rows).expect("write");
    }
    sink.finish(None).expect("finish");
    let spool = Spool::past(Bounds::default(), folder).expect("files");
    Arc::new(spool.expect("a run"))
}

/// Held by a test of the reads that the whole program may make at once: the other's would be counted with its own.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn clients_of_a_disk_that_does_not_answer_leave_threads_for_what_controls_runs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let spool = spool(folder.path(), 10);
    // Who opens it waits.
    let file = folder.path().join(FILE);
    std::fs::remove_file(&file).expect("removed");
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let runtime = crate::start::runtime().expect("a runtime");
    let done = runtime.block_on(async {
        for _ in 0..10 * READS {
            let mut cursor = Cursor::new(Arc::clone(&spool), From::Row(0));
            tokio::spawn(async move { cursor.next(10).await });
        }
        while READING.available_permits() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let control = tokio::task::spawn_blocking(|| "stopped");
        tokio::time::timeout(Duration::from_secs(60), control).await
    });
    // Whatever came of it, the disk answers again.
    let answers = std::fs::File::options().read(true).write(true).open(&file);
    std::fs::remove_file(&file).expect("removed");
    runtime.shutdown_background();
    drop(answers);
    assert_eq!(done.expect("a free thread").expect("an answer"), "stopped");
}

#[test]
fn what_follows_rows_of_a_file_is_read_while_the_client_has_these_and_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let mut cursor = Cursor::new(spool(folder.path(), 10_000), From::Row(0));
    let runtime = crate::start::runtime().expect("a runtime");
    let blocks = runtime.block_on(async {
        cursor.ahead(false);
        assert!(cursor.pending.is_none(), "nothing was given yet");
        let mut blocks = vec![cursor.next(10).await.expect("rows")];
        cursor.ahead(false);
        assert!(cursor.pending.is_none(), "there are rows of this batch yet");
        blocks.push(cursor.next(usize::MAX).await.expect("rows"));
        cursor.ahead(false);
        let read = |cursor: &Cursor| cursor.pending.as_ref().map(|p| p.read.id());
        let begun = read(&cursor).expect("a read");
        cursor.ahead(false);
        assert_eq!(read(&cursor), Some(begun));
        while !cursor
            .pending
            .as_ref()
            .is_some_and(|p| p.read.is_finished())
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What is read is given without the file.
        std::fs::remove_file(folder.path().join(FILE)).expect("removed");
        blocks.push(cursor.next(usize::MAX).await.expect("rows"));
        cursor.ahead(false);
        assert!(cursor.pending.is_none(), "nothing follows");
        blocks
    });
    let all = blocks
        .iter()
        .map(|block| (block.first(), block.len(), block.lost()));
    let batch = blocks[0].len() + blocks[1].len();
    assert_eq!(
        all.collect::<Vec<_>>(),
        [
            (0, 10, 0),
            (10, batch - 10, 0),
            (batch as u64, 10_000 - batch, 0)
        ]
    );
}

#[test]
fn who_asks_anew_goes_on_with_the_file_that_is_being_read() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let mut cursor = Cursor::new(spool(folder.path(), 10), From::Row(9));
    let one_thread = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .build();
    let block = one_thread.expect("a runtime").block_on(async {
        // The thread that is to read has something else to do first.
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || is_done.recv());
        let mut reads = Vec::new();
        while reads.len() < 3 {
            let asked = tokio::time::timeout(Duration::from_millis(1), cursor.next(10)).await;
            assert!(asked.is_err(), "nobody can have read it");
            reads.push(cursor.pending.as_ref().expect("a read").read.id());
        }
        assert_eq!(reads, [reads[0]; 3], "it begins anew each time");
        drop(done);
        cursor.next(10).await.expect("rows")
    });
    assert_eq!((block.first(), block.len(), block.lost()), (9, 1, 0));
}

/// The rows that are given from this one on, at most 3000 at once: the first, how many, and whether they were columns.
fn given(spool: Arc<Spool>, from: u64) -> Vec<(u64, usize, bool)> {
    let mut cursor = Cursor::new(spool, From::Row(from));
    let runtime = crate::start::runtime().expect("a runtime");
    let all = runtime.block_on(async {
        let mut all = Vec::new();
        loop {
            let next = cursor.next_row();
            if let Some((columns, rows)) = cursor.columns(3000).await {
                let numbers = &columns.at(0)[rows.clone()];
                assert!(numbers.iter().copied().eq(next..next + rows.len() as u64));
                all.push((next, rows.len(), true));
            } else {
                let Some(block) = cursor.next(3000).await else {
                    break all;
                };
                assert_eq!(block.first(), next);
                all.push((next, block.len(), false));
            }
            cursor.ahead(true);
        }
    });
    assert_eq!(
        (cursor.rows(), cursor.lost()),
        (cursor.next_row() - from, 0)
    );
    all
}

#[test]
fn a_batch_in_which_nothing_failed_is_given_as_columns_to_who_takes_them() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    // The last batch is too small to be worth it.
    let spool = spool_of(folder.path(), 3 * 8192 + 10, |row| row == 10_000);
    let batch = |first: u64, columns: bool| {
        [
            (first, 3000, columns),
            (first + 3000, 3000, columns),
            (first + 6000, 2192, columns),
        ]
    };
    let (first, failed, third) = (batch(0, true), batch(8192, false), batch(16_384, true));
    let last = [(24_576, 10, false)];
    let all = given(Arc::clone(&spool), 0);
    assert_eq!(all, [&first[..], &failed, &third, &last].concat());
    // Who begins within a batch gets the rest of it as rows.
    let rest = [(12_384, 3000, false), (15_384, 1000, false)];
    assert_eq!(given(spool, 12_384), [&rest[..], &third, &last].concat());
}
