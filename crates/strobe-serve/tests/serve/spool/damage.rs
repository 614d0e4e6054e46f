// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that is damaged, and not only at its end: nothing is removed, and nothing that it says is believed.

use super::*;

/// Five batches of 100 rows each in one file, and where they begin.
fn write(folder: &Path, end: Option<Totals>) -> (std::path::PathBuf, Vec<usize>) {
    let spool = Spool::on_disk(run(), small(), folder).expect("a spool");
    for first in (0..500).step_by(100) {
        append(&spool, first..first + 100, 0);
        wait_until(&spool, "a batch is on the disk", |p| {
            p.written == first + 100
        });
    }
    if let Some(totals) = end {
        spool.finish(totals);
    }
    assert!(spool.close(PATIENCE));
    let file = only_file(folder);
    let bytes = std::fs::read(&file).expect("a file");
    let messages = bytes.chunks_exact(8).enumerate();
    let messages = messages.filter(|(_, start)| start[..4] == [0xFF; 4] && start[4..] != [0; 4]);
    let batches: Vec<usize> = messages.skip(1).map(|(at, _)| 8 * at).collect();
    assert_eq!(batches.len(), 5);
    (file, batches)
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> u64 {
    let mut bytes = std::fs::read(file).expect("a file");
    change(&mut bytes);
    std::fs::write(file, &bytes).expect("a damaged file");
    bytes.len() as u64
}

fn past(folder: &Path) -> Arc<Spool> {
    let past = Spool::past(small(), folder).expect("files");
    Arc::new(past.expect("a run"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_in_the_middle_that_is_damaged_takes_none_of_the_others_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, batches) = write(folder.path(), None);
    let bytes = change(&file, |bytes| bytes[batches[2]..batches[2] + 64].fill(0));
    assert_eq!(
        read(&past(folder.path()), 0, 64).await,
        ((0..200).collect(), 0)
    );
    let length = || std::fs::metadata(&file).expect("it is there").len();
    assert_eq!(length(), bytes, "nothing was cut off");
    // The run goes on: its ring has all that cannot be read.
    let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
    assert_eq!(spool.progress().next, 200);
    append(&spool, 200..1000, 0);
    spool.finish(account(1000));
    assert!(spool.close(PATIENCE));
    assert_eq!(read(&spool, 0, 64).await, ((0..1000).collect(), 0));
    assert_eq!(
        read(&past(folder.path()), 0, 64).await,
        ((0..1000).collect(), 0)
    );
    assert_eq!(length(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_length_that_no_memory_has_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, batches) = write(folder.path(), None);
    change(&file, |bytes| {
        let begin = batches[3];
        let head = u32::from_le_bytes(bytes[begin + 4..begin + 8].try_into().expect("4 bytes"));
        let body = (batches[4] - begin - 8 - head as usize) as u64;
        let head = begin + 8..begin + 8 + head as usize;
        let place = head
            .step_by(4)
            .find(|at| bytes[*at..at + 8] == body.to_le_bytes());
        let place = place.expect("the length of the body");
        bytes[place..place + 8].copy_from_slice(&(1_u64 << 62).to_le_bytes());
    });
    assert_eq!(
        read(&past(folder.path()), 0, 64).await,
        ((0..300).collect(), 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_nothing_can_be_read_is_set_aside() {
    for is_head in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, batches) = write(folder.path(), None);
        let bytes = change(&file, |bytes| match is_head {
            // As if all of it were what says what the columns are.
            true => bytes[4..8].copy_from_slice(&i32::MAX.to_le_bytes()),
            false => bytes[batches[0]..batches[0] + 64].fill(0),
        });
        let spool = Spool::on_disk(run(), small(), folder.path()).expect("a spool");
        let aside = std::fs::metadata(file.with_extension("damaged"));
        assert_eq!(aside.expect("it is there").len(), bytes);
        append(&spool, 0..20, 0);
        spool.finish(account(20));
        assert!(spool.close(PATIENCE));
        assert_eq!(spool.progress().error, None);
        assert_eq!(read(&spool, 0, 64).await, ((0..20).collect(), 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_run_that_came_to_its_end_nothing_is_read_before_somebody_wants_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, batches) = write(folder.path(), Some(account(500)));
    change(&file, |bytes| bytes[batches[1]..batches[1] + 64].fill(0));
    let past = past(folder.path());
    assert_eq!((past.progress().next, past.progress().failed), (500, None));
    assert_eq!(read(&past, 0, 64).await.0, (0..100).collect::<Vec<_>>());
}
