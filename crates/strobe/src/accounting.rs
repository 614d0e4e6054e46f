// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of occurrences that the source of an event has dropped by itself.

use serde::{Deserialize, Serialize};

/// How the source of an event accounts for what it drops before an engine hears of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accounting {
    /// Each that is dropped is counted as missed, or the source cannot drop any.
    #[serde(rename = "exact")]
    Exact,
    /// Gaps between the source's time stamps are counted as missed, by its period.
    #[serde(rename = "by time")]
    ByTime,
    /// Nothing is known of them; as of interrupts, which merge without a trace.
    #[default]
    #[serde(rename = "none")]
    None,
}

impl Accounting {
    /// Its name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Accounting::Exact => "exact",
            Accounting::ByTime => "by time",
            Accounting::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_name_is_that_of_files() {
        for accounting in [Accounting::Exact, Accounting::ByTime, Accounting::None] {
            let said = serde_json::to_value(accounting).expect("a text");
            assert_eq!(said, accounting.name());
        }
    }
}
