// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recipe as text.

use std::fmt::Write;

use strobe::plan::Step;

use super::Recipe;
use super::parse::{CLOCKS, ENGINES, WAITS};

/// All of it, also what was left to its default.
pub(super) fn text(recipe: &Recipe) -> String {
    let mut text = "# A recipe of strobe: what to record, how, and where to.\n".to_owned();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    line("event", Some(quoted(&recipe.event.to_string())));
    let settings: Vec<String> = recipe.set.iter().map(setting).collect();
    line("set", list(&settings));
    line("read", Some(list(&recipe.read).unwrap_or("[]".to_owned())));
    line("derive", list(&recipe.program.derive));
    line("keep", list(&recipe.program.keep));
    line("every", recipe.program.every.map(|every| every.to_string()));
    line("let", list(&recipe.program.variables));
    line("tune", list(&recipe.program.tunables));
    line("engine", word(&ENGINES, Some(recipe.engine)));
    line("wait", word(&WAITS, recipe.wait));
    line("board", recipe.board.as_deref().map(quoted));
    line("cpu", recipe.cpu.map(|cpu| cpu.to_string()));
    line(
        "policy",
        recipe.policy.map(|policy| quoted(&policy.to_string())),
    );
    line("wake-within", Some(quoted(&recipe.wake_within.to_string())));
    line("clock", word(&CLOCKS, Some(recipe.clock)));
    line("ring", recipe.ring.map(|rows| rows.to_string()));
    line("shared", Some(recipe.shared.to_string()));
    line("rows", recipe.rows.map(|rows| rows.to_string()));
    line("for", recipe.duration_ns.map(|ns| quoted(&duration(ns))));
    line("last", recipe.last.map(|rows| rows.to_string()));
    line("sinks", list(&recipe.sinks));
    line("sync", Some(recipe.sync.to_string()));
    // Tables stand behind all keys of the recipe itself.
    for (place, rule) in recipe.program.rules.iter().enumerate() {
        text.push_str("\n[[rule]]\n");
        let mut line = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value}");
            }
        };
        line("when", Some(quoted(&rule.when)));
        let of_rule = |step: &&Step| matches!(step, Step::Act { rule, .. } if *rule == place);
        let settings: Vec<String> = (recipe.acts.iter().filter(of_rule)).map(setting).collect();
        line("set", list(&settings));
        line("then", list(&rule.then));
    }
    text
}

fn setting(step: &Step) -> String {
    match step {
        Step::Write { output, value } | Step::Act { output, value, .. } => {
            format!("{output}={value}")
        }
        Step::Read(channel) => channel.clone(),
    }
}

/// A duration as it is read again, to the nanosecond.
fn duration(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.iter().find(|(unit, _)| ns % unit == 0);
    match whole {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A list, a line for each if there are several; nothing of an empty one.
fn list(items: &[String]) -> Option<String> {
    match items {
        [] => None,
        [item] => Some(format!("[{}]", quoted(item))),
        items => {
            let lines = items.iter().map(|item| format!("    {},\n", quoted(item)));
            Some(format!("[\n{}]", lines.collect::<String>()))
        }
    }
}

fn word<T: PartialEq>(words: &[(&str, T)], value: Option<T>) -> Option<String> {
    let value = value?;
    let found = words.iter().find(|(_, known)| *known == value);
    found.map(|(word, _)| quoted(word))
}
