// SPDX-License-Identifier: MIT OR Apache-2.0
//! What steps cost, on a machine whose time is made of instructions.

use strobe::plan::{Plan, Step};

use crate::account::record;
use crate::{Engine, Kernel};

const TIMES: u64 = 32;

/// Instructions of a step in runs of the kernel engine on that event: between two looks at the clock, less those of a look.
pub fn of_step(event: &str, step: &Step) -> u64 {
    let clock = || Step::Read("clock.time".into());
    let measured = (0..TIMES).map(|_| step.clone());
    let run = Kernel::open().run(&Plan {
        limit: Some(100),
        steps: [clock(), clock()]
            .into_iter()
            .chain(measured)
            .chain([clock()])
            .collect(),
        ..Plan::new(event.parse().expect("an event"))
    });
    let (account, end) = record(&run);
    assert_eq!((end.head, end.errors), (100, 0), "{step:?}: {end:?}");
    let costs = account.rows.iter().map(|row| {
        let [first, second, .., last] = row.values[..] else {
            panic!("{row:?}");
        };
        ((last - second) - (second - first)) / TIMES
    });
    costs.min().expect("rows")
}
