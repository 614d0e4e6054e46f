// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a folder: how many there can be, and what the next daemon finds.

use super::*;
use strobe_files::recipe::Recipe;
use strobe_serve::runs::Runs;
use strobe_serve::store::Store;
use strobe_serve::systemd::HandedOver;

const RECIPE: &str = "event = \"timer:1kHz\"\nread = [\"sim.counter\"]\nengine = \"user\"\n";

fn recipe() -> Recipe {
    Recipe::from_toml("test", RECIPE).expect("a recipe")
}

#[test]
fn runs_that_have_ended_take_no_place_and_who_comes_at_once_gets_no_more_than_there_are() {
    let runs = Runs::new(Bounds::default());
    let made = |name: &str| runs.create_within(3, name, &recipe()).expect("a run");
    let all: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| made("test").is_some()))
            .collect();
        let all = asked
            .into_iter()
            .map(|asked| asked.join().expect("an answer"));
        all.collect()
    });
    assert_eq!(all.iter().filter(|is_made| **is_made).count(), 3);
    assert!(made("more").is_none());
    let first = runs.list().remove(0);
    first.start().expect("a start");
    first.stop().expect("a stop");
    wait_until(first.spool(), "it has ended", Progress::is_over);
    assert!(made("more").is_some(), "its place is free");
    assert_eq!(runs.list().len(), 4, "its rows are there");
}

#[test]
fn a_run_that_has_failed_is_not_running_any_more() {
    let spool = Arc::new(Spool::new(run(), Bounds::default()));
    append(&spool, 0..10, 0);
    let served =
        strobe_serve::served_run::ServedRun::past(1, "x".into(), Arc::clone(&spool), false, None);
    assert_eq!(served.state(), State::Running);
    spool.fail("its owner was killed".to_owned());
    assert_eq!(served.state(), State::Failed);
    assert!(spool.progress().failed_at > 0);
}

fn open(folder: &Path) -> Runs {
    let store = Store::open(folder).expect("a store");
    let (runs, wrong) = Runs::open(Bounds::default(), store, HandedOver::default());
    assert_eq!(wrong, []);
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_over_are_served_by_the_next_daemon_until_they_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = open(folder.path());
    let recipe = recipe();
    let served = runs.create("test", &recipe).expect("a run");
    served.start().expect("a start");
    wait_until(served.spool(), "there are rows", |p| p.next > 300);
    // In an orderly way: it is stopped, and has an account.
    runs.leave(PATIENCE);
    let totals = served.progress().totals.expect("an account");
    assert_eq!(
        totals.triggers,
        totals.rows + totals.missed() + totals.skipped
    );
    assert_eq!(totals.end, End::Stopped);
    let id = served.id();
    drop((served, runs));

    let runs = open(folder.path());
    let served = runs.get(id).expect("the run");
    assert_eq!((served.name(), served.state()), ("test", State::Stopped));
    assert_eq!(served.progress().totals, Some(totals.clone()));
    let mut cursor = served.cursor(From::Row(0));
    let mut counted = Vec::new();
    while let Some(block) = cursor.next(usize::MAX).await {
        counted.extend(block.rows().map(|row| row.values[0]));
    }
    assert_eq!(cursor.rows() + cursor.lost(), totals.rows);
    assert!(counted.windows(2).all(|pair| pair[0] < pair[1]));
    let error = served.start().expect_err("it is over").to_string();
    assert!(error.contains("it has ended"), "{error}");
    assert_eq!(runs.remove(id).map(|run| run.id()), Some(id));
    let next = runs.create("test", &recipe).expect("a run");
    assert_eq!(next.id(), id + 1, "numbers are not used again");
    runs.remove(next.id());
    drop((served, cursor, next, runs));
    // Who writes the files takes them away, when it has noticed.
    let files = || std::fs::read_dir(folder.path().join("runs")).map_or(0, |runs| runs.count());
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while files() > 0 {
        assert!(std::time::Instant::now() < until, "they stay");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(open(folder.path()).list().len(), 0);
}
