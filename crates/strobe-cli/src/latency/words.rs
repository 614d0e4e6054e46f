// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ways of `strobe latency` have in common in words.

use strobe::follow::Account;
use strobe::info::End;

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
