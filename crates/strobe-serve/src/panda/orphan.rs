// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a daemon that was killed has left behind: an acquisition whose clients and gates are gone, while its run goes on.

use strobe::error::Words;

use crate::runs::Runs;

/// The name of an acquisition's run.
pub fn name(number: u64) -> String {
    format!("panda-{number}")
}

/// Ends runs of acquisitions that outlived their daemon: nobody could disarm them. Their rows stay. Answers which could
/// not be ended. For the start, before anything is armed.
pub fn end_orphans(runs: &Runs) -> Vec<Words> {
    let all = runs.list().into_iter();
    let left = all.filter(|run| {
        let number = run.name().strip_prefix("panda-");
        let is_ours = number.is_some_and(|number| number.parse::<u64>().is_ok());
        is_ours && run.is_own() && !run.progress().is_over()
    });
    left.filter_map(|run| run.stop().err()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use strobe_files::recipe::Recipe;

    use super::*;
    use crate::spool::Bounds;

    #[test]
    fn an_acquisition_that_has_outlived_its_daemon_ends_and_other_runs_go_on() {
        let runs = Runs::new(Bounds::default());
        let mut recipe = Recipe::new("timer:100Hz".parse().expect("an event"));
        recipe.read = vec!["sim.counter".to_owned()];
        recipe.engine = strobe::select::EnginePreference::User;
        let make = |name: &str| {
            let run = runs.create(name, &recipe).expect("a run");
            run.start().expect("a start");
            run
        };
        let armed = runs.create(&name(3), &recipe).expect("a run");
        let (begun, other) = (make(&name(4)), make("panda-scan"));
        let wrong = end_orphans(&runs);
        assert!(wrong.is_empty(), "{wrong:?}");
        let until = Instant::now() + Duration::from_secs(120);
        while !(armed.progress().is_over() && begun.progress().is_over()) {
            assert!(Instant::now() < until, "they go on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!other.progress().is_over());
        other.stop().expect("its end");
    }
}
