// SPDX-License-Identifier: MIT OR Apache-2.0
//! ENABLE of a block that works from its rise to its fall.

use std::sync::Arc;

use super::panel::Panel;
use super::values::Values;

/// ENABLE, ACTIVE and the outputs of a block.
pub struct Enable {
    panel: Arc<Panel>,
    /// The name of the block: `SEQ1`.
    pub name: String,
    /// `SEQ1.ENABLE`
    enable: String,
    /// Bits that are 0 unless it works: ACTIVE and its outputs.
    bits: Vec<String>,
}

impl Enable {
    /// Of the block of this kind and number, from 0, with these outputs.
    pub fn new(panel: Arc<Panel>, kind: &str, number: usize, outputs: &[String]) -> Self {
        let name = format!("{kind}{}", number + 1);
        let bits = outputs.iter().map(String::as_str).chain(["ACTIVE"]);
        Enable {
            panel,
            enable: format!("{name}.ENABLE"),
            bits: bits.map(|bit| format!("{name}.{bit}")).collect(),
            name,
        }
    }

    /// The work that began is seen to go on.
    pub fn activate(&self) {
        let active = format!("{}.ACTIVE", self.name);
        self.panel.with(|values| values.set_bit(&active, true));
    }

    /// Waits for its rise; answers the change of the panel at which it was seen.
    pub async fn until_risen(&self) -> u64 {
        let mut change = 0;
        self.panel
            .until(|values| {
                change = values.changes();
                values.input(&self.enable)
            })
            .await;
        change
    }

    /// The work that began at this change is done: the bits are 0, and the next rise counts.
    pub async fn finish(&self, change: u64) {
        self.panel.with(|values| {
            for bit in &self.bits {
                values.set_bit(bit, false);
            }
        });
        self.until_fallen_after(change).await;
    }

    /// Waits until it has fallen after this change.
    pub async fn until_fallen_after(&self, change: u64) {
        self.panel.until(|values| self.fell(change, values)).await;
    }

    /// Whether it has fallen after this change.
    pub fn has_fallen_after(&self, change: u64) -> bool {
        self.panel.with(|values| self.fell(change, values))
    }

    /// If it has risen again meanwhile, it has fallen, however short that was.
    fn fell(&self, change: u64, values: &Values) -> bool {
        !values.input(&self.enable) || values.rise(&self.enable) > change
    }
}
