// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of a recording, if standard error is a terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strobe::record::Progress;

const OF_MANY: &str = "{elapsed} {bar:24} {percent}% {human_pos} rows, {per_sec}, {msg}";
const WITHOUT_END: &str = "{elapsed} {spinner} {human_pos} rows, {per_sec}, {msg}";

/// A line on the terminal that changes; nothing elsewhere.
pub struct Line(Option<ProgressBar>);

impl Line {
    /// For a run of so many rows, if that is known.
    pub fn new(limit: Option<u64>) -> Self {
        if !io::stderr().is_terminal() {
            return Line(None);
        }
        let template = match limit {
            Some(_) => OF_MANY,
            None => WITHOUT_END,
        };
        let Ok(style) = ProgressStyle::with_template(template) else {
            return Line(None);
        };
        let bar = ProgressBar::with_draw_target(limit, ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("=> "));
        Line(Some(bar))
    }

    /// Shows where the recording is.
    pub fn show(&self, now: Progress) {
        let Some(bar) = &self.0 else { return };
        let fill = now.waiting as f64 / now.capacity.max(1) as f64;
        bar.set_message(format!(
            "missed {}, lost {}, ring {:.0} %",
            now.missed,
            now.lost,
            100.0 * fill
        ));
        bar.set_position(now.rows);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_line_are_understood() {
        assert!(ProgressStyle::with_template(OF_MANY).is_ok());
        assert!(ProgressStyle::with_template(WITHOUT_END).is_ok());
    }
}
