// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run whose program is also run by the evaluator: each trigger is compared, bit for bit.

use std::os::fd::OwnedFd;

use strobe_expr::Machine;

use crate::raw::{Created, DATA_OFFSET, Map, START, TRIGGER, adopt, map, order, reader};

/// Such a run of the event "soft". It has less triggers than its ring has rows.
pub struct Compared {
    owner: OwnedFd,
    map: Map,
    /// Of the first row's values.
    start: usize,
    stride: usize,
    machine: Machine,
    about: String,
    /// What the place of the next row has in the derived columns.
    derived: Vec<u64>,
    rows: u64,
    triggers: u64,
}

impl Compared {
    /// Starts the run that was created. `about` says of which program a difference is.
    pub fn start(created: &Created, machine: Machine, about: String) -> Compared {
        let owner = adopt(created.fd);
        let ring = reader(&owner, 0, 0, 0).expect("a reader");
        let map = map(&ring, created.ring_bytes as usize).expect("a mapping");
        order(&owner, START, 0).expect("to start");
        Compared {
            start: map.get::<u64>(DATA_OFFSET) as usize + 32,
            stride: created.row_stride as usize,
            derived: vec![0; machine.program().derived().len()],
            owner,
            map,
            machine,
            about,
            rows: 0,
            triggers: 0,
        }
    }

    /// A trigger: its row, and whether that was kept. The row of one that was not is in its place all the same, where the next
    /// row will be.
    pub fn trigger(&mut self) -> (Vec<u64>, bool) {
        self.triggers += 1;
        let place = self.start + self.rows as usize * self.stride;
        let now = order(&self.owner, TRIGGER, 1).expect("a trigger");
        let inputs = self.machine.program().inputs();
        let row: Vec<u64> = (0..inputs + self.derived.len())
            .map(|n| self.map.get(place + 8 * n))
            .collect();
        let mut values = [&row[..inputs], &self.derived].concat();
        let is_kept = self.machine.run(&mut values).is_kept();
        assert_eq!(
            (now.head - self.rows == 1, &row),
            (is_kept, &values),
            "trigger {} of {}",
            self.triggers,
            self.about
        );
        self.rows = now.head;
        assert_eq!(
            (now.triggers, now.skipped),
            (self.triggers, self.triggers - self.rows),
            "{}",
            self.about
        );
        self.derived.copy_from_slice(&row[inputs..]);
        if is_kept {
            self.derived.fill(0);
        }
        (row, is_kept)
    }

    /// Triggers that were left out until now.
    pub fn left_out(&self) -> u64 {
        self.triggers - self.rows
    }
}
