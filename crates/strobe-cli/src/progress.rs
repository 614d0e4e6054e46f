// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of a recording, if standard error is a terminal.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use strobe::quantity::show_ns;
use strobe_files::record::Progress;
use strobe_measure::jitter::PeriodCounts;
use strobe_measure::jitter::round::Shown;

// What matters most comes first: the end is cut off where the terminal ends.
const OF_MANY: &str = "{elapsed} {percent}%, {left} left {human_pos} rows {rate} {wide_msg}";
const FOR_A_TIME: &str = "{elapsed} {left} left {human_pos} rows {rate} {wide_msg}";
const WITHOUT_END: &str = "{elapsed} {spinner} {human_pos} rows {rate} {wide_msg}";

/// A line on the terminal that changes; nothing elsewhere.
pub struct Line(Option<ProgressBar>);

impl Line {
    /// For a run of so many rows, or so long, if that is known.
    pub fn new(limit: Option<u64>, duration: Option<Duration>) -> Self {
        if !io::stderr().is_terminal() {
            return Line(None);
        }
        let template = match (limit, duration) {
            (Some(_), _) => OF_MANY,
            (None, Some(_)) => FOR_A_TIME,
            (None, None) => WITHOUT_END,
        };
        let Ok(style) = ProgressStyle::with_template(template) else {
            return Line(None);
        };
        let rate = |state: &ProgressState, to: &mut dyn fmt::Write| {
            // Nothing to be done about a line that cannot be written.
            let _ = write!(to, "{:.0}/s", state.per_sec());
        };
        let left = move |state: &ProgressState, to: &mut dyn fmt::Write| {
            let left = match duration {
                Some(duration) => duration.saturating_sub(state.elapsed()),
                None => state.eta(),
            };
            let _ = write!(to, "{}", HumanDuration(left));
        };
        let style = style.with_key("rate", rate).with_key("left", left);
        let bar = ProgressBar::with_draw_target(limit, ProgressDrawTarget::stderr());
        bar.set_style(style);
        Line(Some(bar))
    }

    /// Shows where the recording is.
    pub fn show(&self, now: Progress) {
        self.show_with(now, String::new());
    }

    /// The same, and other words before it.
    fn show_with(&self, now: Progress, words: String) {
        let Some(bar) = &self.0 else { return };
        bar.set_message(words + &message(now));
        bar.set_position(now.rows);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// The lines of several measurements, one after the other.
pub struct Rounds {
    limit: Option<u64>,
    line: Mutex<Option<Line>>,
}

impl Rounds {
    /// Each of so many rows, if that is known.
    pub fn new(limit: Option<u64>) -> Self {
        let line = Mutex::new(None);
        Rounds { limit, line }
    }

    /// Shows where one is, or takes its line away.
    pub fn show(&self, now: Option<Shown>) {
        // Who has panicked shows nothing more.
        let Ok(mut line) = self.line.lock() else {
            return;
        };
        match now {
            Some(now) => {
                let line = line.get_or_insert_with(|| Line::new(self.limit, None));
                line.show_with(now.progress, now.counted.map_or(String::new(), counted));
            }
            None => {
                if let Some(line) = line.take() {
                    line.clear();
                }
            }
        }
    }
}

/// The counts of a measurement that is under way.
fn counted(counts: PeriodCounts) -> String {
    let PeriodCounts {
        in_range,
        over,
        under,
    } = counts;
    format!("in range {in_range} over {over} under {under} ")
}

fn message(now: Progress) -> String {
    let fill = 100.0 * now.waiting as f64 / now.capacity.max(1) as f64;
    let late = now.late.map_or(String::new(), |(p50, max)| {
        let (p50, max) = (show_ns(p50 as f64), show_ns(max as f64));
        format!(" late p50 {p50} max {max}")
    });
    let skipped = match now.skipped {
        0 => String::new(),
        skipped => format!(" skipped {skipped}"),
    };
    format!(
        "missed {}{skipped} lost {} ring {fill:.0}%{late}",
        now.missed, now.lost
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_figures_of_the_view() {
        let now = Progress {
            rows: 10,
            missed: 2,
            skipped: 0,
            lost: 3,
            waiting: 256,
            capacity: 1024,
            late: Some((26_180, 2_697_000)),
        };
        let text = "missed 2 lost 3 ring 25% late p50 26.18 us max 2.697 ms";
        assert_eq!(message(now), text);
        let never_due = Progress { late: None, ..now };
        assert_eq!(message(never_due), "missed 2 lost 3 ring 25%");
        let gated = Progress {
            skipped: 9,
            ..never_due
        };
        assert_eq!(message(gated), "missed 2 skipped 9 lost 3 ring 25%");
    }

    #[test]
    fn the_counts_of_a_measurement_come_first() {
        let counts = PeriodCounts {
            in_range: 98,
            over: 2,
            under: 0,
        };
        assert_eq!(counted(counts), "in range 98 over 2 under 0 ");
    }

    #[test]
    fn all_forms_of_the_line_are_understood() {
        assert!(ProgressStyle::with_template(OF_MANY).is_ok());
        assert!(ProgressStyle::with_template(FOR_A_TIME).is_ok());
        assert!(ProgressStyle::with_template(WITHOUT_END).is_ok());
    }
}
