// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients get of a run that is served.

use strobe::ring::State;
use strobe_files::recipe::Recipe;
use strobe_serve::config::{Config, Made};
use strobe_serve::cursor::From;
use strobe_serve::daemon::Daemon;
use strobe_serve::runs::Runs;
use strobe_serve::spool::Bounds;

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_every_row_or_is_told_what_it_lost() {
    let runs = Runs::new(Bounds::default());
    let recipe =
        "event = \"timer:1kHz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nrows = 500\n";
    let recipe = Recipe::from_toml("test", recipe).expect("a recipe");
    let served = runs.create("test", &recipe).expect("a run");
    let mut early = served.cursor(From::Row(0));
    served.start().expect("a start");
    let mut rows = 0;
    while let Some(block) = early.next(100).await {
        assert!(block.len() <= 100);
        rows += block.len() as u64;
    }
    assert_eq!((rows, early.rows() + early.lost()), (early.rows(), 500));
    let mut late = served.cursor(From::Row(0));
    while late.next(usize::MAX).await.is_some() {}
    assert_eq!(late.rows() + late.lost(), 500);
    let totals = served.progress().totals.expect("an account");
    assert_eq!(
        totals.triggers,
        totals.rows + totals.missed() + totals.skipped
    );
    assert_eq!(runs.remove(served.id()).map(|r| r.id()), Some(served.id()));
}

#[test]
fn a_run_that_was_made_and_could_not_be_started_yet_is_started_by_the_next_daemon() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = "event = \"timer:1kHz\"\nread = [\"sim.counter\"]\nengine = \"user\"\n";
    std::fs::write(folder.path().join("scan.toml"), recipe).expect("a recipe");
    let made = |start| Made {
        recipe: "scan.toml".into(),
        start,
    };
    for (start, expected) in [(false, State::Ready), (true, State::Running)] {
        let daemon = Daemon::new(Config {
            recipes: Some(folder.path().to_owned()),
            run: vec![made(start)],
            ..Config::default()
        });
        // As it was found.
        let recipe = Recipe::from_toml("scan", recipe).expect("a recipe");
        let found = daemon.runs.create("scan", &recipe).expect("a run");
        assert_eq!(found.state(), State::Ready);
        assert_eq!(daemon.begin(), []);
        assert_eq!(daemon.runs.list().len(), 1, "no other one is made");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while found.state() != expected {
            assert!(std::time::Instant::now() < until, "{:?}", found.state());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
