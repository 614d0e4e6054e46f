// SPDX-License-Identifier: MIT OR Apache-2.0
//! What failed in the rows of a run, and how often.

use strobe_ring::Row;

use crate::info::RunInfo;

/// In how many rows each channel and each output has failed.
#[derive(Debug, Clone)]
pub struct FaultCount(Vec<u64>);

impl FaultCount {
    /// For the rows of this run.
    pub fn new(info: &RunInfo) -> Self {
        FaultCount(vec![0; info.channels.len() + info.outputs.len()])
    }

    /// One more row.
    pub fn add(&mut self, row: &Row<'_>) {
        for fault in row.faults.iter() {
            if let Some(count) = self.0.get_mut(fault) {
                *count += 1;
            }
        }
    }

    /// Those that have failed, by name: see [`RunInfo::fault_names`].
    pub fn by_name(&self, info: &RunInfo) -> Vec<(String, u64)> {
        let counts = self.0.iter().copied();
        let named = info.fault_names().into_iter().zip(counts);
        named.filter(|(_, count)| *count > 0).collect()
    }
}
