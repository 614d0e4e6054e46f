// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client of the WebSocket wants.

use serde::Deserialize;

use super::bins::POINTS_MAX;
use super::query::{place, twice};
use crate::cursor::From;

/// Messages a second that can be asked for.
const RATES: std::ops::RangeInclusive<f64> = 0.1..=60.0;

/// What is done when a client is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It gets every row, or the connection ends.
    Every,
    /// Rows are left out, and it is told which.
    Skip,
    /// It gets the least and the greatest values, at its rate.
    Latest,
}

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hello {
    /// The first row.
    #[serde(deserialize_with = "place")]
    pub from: From,
    /// Channels; all, unless it is said.
    pub columns: Option<Vec<String>>,
    /// What is done when it is slow.
    pub policy: Policy,
    /// Messages a second, of the policy `latest`.
    pub rate: f64,
    /// Points of such a message, at most.
    pub points: usize,
}

impl Default for Hello {
    fn default() -> Self {
        Hello {
            from: From::Now,
            columns: None,
            policy: Policy::Every,
            rate: 20.0,
            points: 1000,
        }
    }
}

impl Hello {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Hello, String> {
        let hello: Hello = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !RATES.contains(&hello.rate) {
            let (least, most) = (RATES.start(), RATES.end());
            return Err(format!(
                "rate {}; ask for {least} to {most} a second",
                hello.rate
            ));
        }
        if !(1..=POINTS_MAX).contains(&hello.points) {
            return Err(format!(
                "{} points; ask for 1 to {POINTS_MAX}",
                hello.points
            ));
        }
        if let Some(name) = hello.columns.as_deref().and_then(twice) {
            return Err(format!("column {name} is named twice; name each once"));
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked_is_understood_and_all_else_refused() {
        assert_eq!(Hello::parse("{}"), Ok(Hello::default()));
        let text =
            r#"{"from": 17, "columns": ["a.x"], "policy": "latest", "rate": 0.5, "points": 7}"#;
        let hello = Hello::parse(text).expect("a message");
        assert_eq!((hello.from, hello.points), (From::Row(17), 7));
        let now = Hello::parse(r#"{"from": "now", "policy": "skip"}"#).expect("a message");
        assert_eq!((now.from, now.policy), (From::Now, Policy::Skip));
        for wrong in [
            "",
            "[]x",
            "7",
            r#"{"from": -1}"#,
            r#"{"from": "yesterday"}"#,
            r#"{"policy": "some"}"#,
            r#"{"rate": 0}"#,
            r#"{"rate": 1e9}"#,
            r#"{"points": 0}"#,
            r#"{"points": 10001}"#,
            r#"{"columns": "a.x"}"#,
            r#"{"columns": ["a.x", "b", "a.x"]}"#,
            r#"{"form": 1}"#,
        ] {
            assert!(Hello::parse(wrong).is_err(), "{wrong}");
        }
    }
}
