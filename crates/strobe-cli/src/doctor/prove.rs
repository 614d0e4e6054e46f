// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe doctor --prove` says to people.

use strobe::quantity::show_ns;
use strobe_measure::doctor::prove::{Proof, Range, Verdict};

use crate::term;

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Helps => "helps",
        Verdict::NoDifferenceSeen => "no difference seen",
        Verdict::Hurts => "hurts",
    }
}

/// What was seen, for people.
pub fn text(proofs: &[Proof], rounds: u32, time_ns: u64) -> String {
    let head = ["advice", "late", "without", "", "with", "", ""].map(str::to_owned);
    let mut rows = vec![head];
    for proof in proofs {
        let range = |range: Option<Range>| {
            range.map_or("-".to_owned(), |range| {
                format!(
                    "{} .. {}",
                    show_ns(range.least as f64),
                    show_ns(range.most as f64)
                )
            })
        };
        for (name, figure) in [("p50", &proof.p50), ("p99", &proof.p99)] {
            let is_first = name == "p50";
            let once = |words: &str| {
                if is_first {
                    words.to_owned()
                } else {
                    String::new()
                }
            };
            let verdict = match (&proof.refused, figure.verdict) {
                (Some(why), _) => once(&format!("no verdict: {why}")),
                (None, verdict) => verdict.map_or("not known", words).to_owned(),
            };
            rows.push([
                once(proof.advice),
                name.to_owned(),
                once(&proof.without),
                range(figure.without_ns),
                once(&proof.with),
                range(figure.with_ns),
                verdict,
            ]);
        }
    }
    format!(
        "\nproved by {rounds} rounds of {} each, in turn, of timer:1kHz; ranges are over the rounds\n{}",
        show_ns(time_ns as f64),
        term::table("", &rows)
    )
}
