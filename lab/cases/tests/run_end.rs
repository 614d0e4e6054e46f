// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left to do when the producer has ended a run waits for locks. It does so in a queue of strobe's own, and not in
//! the one that all of the kernel has for work that is done at once.

use std::fs;
use std::path::{Path, PathBuf};

use strobe_cases::raw::{DONE, START, TRIGGER, control, list, order, soft};

/// A trace of all that is queued as work of the kernel.
struct Trace(PathBuf);

impl Trace {
    fn start() -> Trace {
        let dir = Path::new("/sys/kernel/tracing/instances/run_end").to_path_buf();
        fs::create_dir(&dir).expect("a trace buffer of our own");
        let event = dir.join("events/workqueue/workqueue_queue_work/enable");
        fs::write(event, "1").expect("the tracepoint");
        Trace(dir)
    }

    /// Queues in which strobe has put the rest of a run.
    fn queues(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("trace")).expect("the trace");
        let lines = text
            .lines()
            .filter(|line| line.contains("function=run_done "));
        let queue = |line: &str| {
            let (_, rest) = line.split_once("workqueue=")?;
            Some(rest.split(' ').next()?.to_owned())
        };
        lines.filter_map(queue).collect()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_run_that_its_producer_has_ended_is_released_in_a_queue_of_strobes_own() {
    const RUNS: usize = 10;
    let trace = Trace::start();
    let control = control();
    for _ in 0..RUNS {
        let (owner, run) = soft(&control, 4, 3);
        order(&owner, START, 0).expect("started");
        order(&owner, TRIGGER, 3).expect("triggered");
        let (entries, _) = list(&control, run).expect("the run");
        assert_eq!(entries[0].state(), DONE);
    }
    let queues = trace.queues();
    assert_eq!(queues, vec!["strobe"; queues.len()]);
    assert_eq!(queues.len(), RUNS, "once each");
}
