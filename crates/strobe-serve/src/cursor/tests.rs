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
    let file = std::fs::File::create(folder.join(FILE));
    let mut sink = ArrowFile::new(file.expect("a file"));
    sink.begin(&info(vec![channel("sim.counter", Type::U64)]))
        .expect("begin");
    for row in 0..rows {
        let words = [row, row, 100 * row, 0, 7];
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
        cursor.ahead();
        assert!(cursor.pending.is_none(), "nothing was given yet");
        let mut blocks = vec![cursor.next(10).await.expect("rows")];
        cursor.ahead();
        assert!(cursor.pending.is_none(), "there are rows of this batch yet");
        blocks.push(cursor.next(usize::MAX).await.expect("rows"));
        cursor.ahead();
        let read = |cursor: &Cursor| cursor.pending.as_ref().map(|p| p.read.id());
        let begun = read(&cursor).expect("a read");
        cursor.ahead();
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
        cursor.ahead();
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
