// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ways of `strobe latency` have in common in words.

use strobe::follow::Account;
use strobe::info::End;
use strobe::quantity::show_ns;
use strobe_measure::latency::steps::Report;

use crate::report;
use crate::term;

/// The account of a run, in two lines or more.
pub fn account(account: &Account, what: &str) -> String {
    let end = match &account.end {
        End::Failed(why) => format!("failed: {why}"),
        end => end.word().to_owned(),
    };
    let mut text = format!(
        "{what}: {} rows, missed {}, lost {}, {end}\n",
        account.rows, account.missed, account.lost
    );
    for step in &account.refused {
        text += &format!("without {}: {}\n", step.what, step.got);
    }
    text
}

/// A line for each step; before them one for each row, if they are listed.
pub fn steps(steps: &Report, head: &str) -> String {
    let mut text = String::new();
    for (row, each) in steps.list.iter().flatten() {
        let each = each
            .iter()
            .map(|ns| ns.map_or("-".to_owned(), |ns| show_ns(ns as f64)));
        text += &format!("row {row}: {}\n", each.collect::<Vec<_>>().join(", "));
    }
    let mut table = vec![report::head(head)];
    for step in &steps.steps {
        let what = format!("{} -> {}", step.from, step.to);
        table.push(report::line(&what, step.ns.as_ref()));
    }
    text + &term::table("", &table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe_measure::latency::steps::Steps;

    #[test]
    fn a_row_that_is_listed_has_the_steps_that_are_known() {
        let mut all = Steps::new(&["raised", "stamp", "visible"], true);
        all.add(0, &[Some(100), Some(130), Some(200)]);
        all.add(1, &[None, Some(1130), Some(1190)]);
        let text = steps(&all.report(), "us");
        assert!(
            text.starts_with("row 0: 30 ns, 70 ns\nrow 1: -, 60 ns\n"),
            "{text}"
        );
    }
}
