// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients get of a run that is served.

use strobe_files::recipe::Recipe;
use strobe_serve::cursor::From;
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
