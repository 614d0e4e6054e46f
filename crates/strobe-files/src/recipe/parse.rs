// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a recipe's text to a [`Recipe`].

use std::ops::Range;

use strobe::engine::user::WaitMode;
use strobe::info::Clock;
use strobe::plan::Step;
use strobe::program::{Part, ProgramText, Rule};
use strobe::quantity::duration_ns;
use strobe::select::EnginePreference;
use strobe_board::Faults;
use strobe_board::table::{self, At, Table};

use super::{REFERENCE, Recipe, setting};
use crate::sink;

/// The words of the keys that have some, as they are read and written.
pub(super) const ENGINES: [(&str, EnginePreference); 3] = [
    ("auto", EnginePreference::Auto),
    ("kernel", EnginePreference::Kernel),
    ("user", EnginePreference::User),
];
pub(super) const WAITS: [(&str, WaitMode); 3] = [
    ("block", WaitMode::Block),
    ("hybrid", WaitMode::Hybrid),
    ("spin", WaitMode::Spin),
];
pub(super) const CLOCKS: [(&str, Clock); 2] =
    [("monotonic", Clock::Monotonic), ("tai", Clock::Tai)];

/// Keys that somebody might look for, and why there are none.
const NOT_HERE: [(&str, &str); 2] = [
    (
        "overwrite",
        "a recipe never replaces files; leave out `overwrite`, and write {n} in the name of a sink for the next free \
         number",
    ),
    (
        "priority",
        "the priority is part of the policy; write policy = \"fifo:60\"",
    ),
];

/// Where what a recipe says stands in its text, and where faults are noted.
pub(super) struct Spans<'p, 't> {
    table: &'p Table<'t>,
    pub(super) event: Range<usize>,
    /// Of each step: outputs, then channels, then outputs of rules.
    pub(super) steps: Vec<Range<usize>>,
    derive: Vec<Range<usize>>,
    keep: Vec<Range<usize>>,
    every: Range<usize>,
    variables: Vec<Range<usize>>,
    tunables: Vec<Range<usize>>,
    rules: Vec<RuleSpans>,
    pub(super) board: Range<usize>,
    pub(super) wait: Range<usize>,
    pub(super) cpu: Range<usize>,
    pub(super) policy: Range<usize>,
    pub(super) ring: Range<usize>,
    pub(super) sync: Range<usize>,
}

/// The same of a rule.
struct RuleSpans {
    when: Range<usize>,
    then: Vec<Range<usize>>,
}

impl Spans<'_, '_> {
    /// Where this part of the program stands.
    pub(super) fn program(&self, part: Part) -> &Range<usize> {
        let at = match part {
            Part::Derive(place) => self.derive.get(place),
            Part::Keep(place) => self.keep.get(place),
            Part::Every => None,
            Part::Let(place) => self.variables.get(place),
            Part::Tune(place) => self.tunables.get(place),
            Part::When(rule) => self.rules.get(rule).map(|rule| &rule.when),
            Part::Then(rule, place) => self.rules.get(rule).and_then(|rule| rule.then.get(place)),
        };
        at.unwrap_or(&self.every)
    }

    /// Notes what is wrong at this place.
    pub(super) fn fault(&self, at: &Range<usize>, message: impl Into<String>) {
        self.table.fault_at(at, message);
    }
}

/// Reads the text; `look` may find more faults in what was understood.
pub(super) fn recipe(
    file: &str,
    text: &str,
    look: impl FnOnce(&Recipe, &Spans<'_, '_>),
) -> Result<Recipe, Faults> {
    table::read(file, text, REFERENCE, |root| whole(root, look))
}

fn place<T>(found: Option<&At<T>>) -> Range<usize> {
    found.map_or(0..0, |(_, at)| at.clone())
}

fn value<T>(found: Option<At<T>>) -> Option<T> {
    found.map(|(value, _)| value)
}

fn whole(mut root: Table<'_>, look: impl FnOnce(&Recipe, &Spans<'_, '_>)) -> Option<Recipe> {
    let event = root.parsed("event", str::parse);
    root.missing(
        "event",
        "event = \"...\", what makes a row, such as timer:1kHz",
    );
    let mut steps = Vec::new();
    let mut set = Vec::new();
    for (text, at) in root.texts("set") {
        match setting(text) {
            Ok(step) => {
                set.push(step);
                steps.push(at);
            }
            Err(why) => root.fault_at(&at, format!("`set` has \"{text}\"; {why}")),
        }
    }
    let mut read = Vec::new();
    for (channel, at) in root.texts("read") {
        read.push(channel.to_owned());
        steps.push(at);
    }
    root.missing("read", "read = [\"...\"], the channels of a row");
    let (derive, derive_at) = texts(&mut root, "derive");
    let (keep, keep_at) = texts(&mut root, "keep");
    let every = root.integer("every", 1..=1 << 31);
    let (variables, variables_at) = texts(&mut root, "let");
    let (tunables, tunables_at) = texts(&mut root, "tune");
    let (mut rules, mut rules_at, mut acts) = (Vec::new(), Vec::new(), Vec::new());
    for (place, table) in root.list("rule").into_iter().enumerate() {
        let (rule, at) = rule(table, |output, value, at| {
            acts.push(Step::Act {
                output,
                value,
                rule: place,
            });
            steps.push(at);
        });
        rules.push(rule);
        rules_at.push(at);
    }
    let wait = root.choice_at("wait", &WAITS);
    let board = root.string("board");
    let cpu = root.integer("cpu", 0..=u64::from(u16::MAX));
    let policy = root.parsed("policy", str::parse);
    let ring = root.integer("ring", 1..=u64::MAX);
    let rows = root.integer("rows", 1..=u64::MAX);
    let duration = root.parsed("for", duration_ns);
    if let (Some(_), Some((_, at))) = (&rows, &duration) {
        root.fault_at(at, "`rows` and `for` are both there; leave one of them out");
    }
    let sinks = sinks(&mut root);
    let mut recipe = event.as_ref().map(|(event, _)| Recipe {
        read,
        set,
        program: ProgramText {
            derive,
            keep,
            every: every.as_ref().map(|(every, _)| *every),
            variables,
            tunables,
            rules,
        },
        acts,
        wait: wait.as_ref().map(|(wait, _)| *wait),
        board: board.as_ref().map(|(board, _)| (*board).to_owned()),
        cpu: cpu.as_ref().and_then(|(cpu, _)| usize::try_from(*cpu).ok()),
        policy: policy.as_ref().map(|(policy, _)| *policy),
        ring: ring.as_ref().map(|(ring, _)| *ring),
        rows: value(rows),
        duration_ns: value(duration),
        sinks,
        ..Recipe::new(strobe::event::EventSpec::clone(event))
    });
    let engine = root.choice("engine", &ENGINES);
    let wake_within = root.parsed("wake-within", str::parse);
    let clock = root.choice("clock", &CLOCKS);
    let shared = root.boolean("shared");
    let last = root.integer("last", 1..=u64::MAX);
    let sync = root.boolean_at("sync");
    if let Some(recipe) = &mut recipe {
        recipe.engine = engine.unwrap_or(recipe.engine);
        recipe.wake_within = value(wake_within).unwrap_or(recipe.wake_within);
        recipe.clock = clock.unwrap_or(recipe.clock);
        recipe.shared = shared.unwrap_or(recipe.shared);
        recipe.last = value(last);
        recipe.sync = sync.as_ref().is_some_and(|(sync, _)| *sync);
    }
    for (key, why) in NOT_HERE {
        root.forbid(key, why);
    }
    if let Some(recipe) = &recipe {
        let places = Spans {
            table: &root,
            event: place(event.as_ref()),
            steps,
            derive: derive_at,
            keep: keep_at,
            every: place(every.as_ref()),
            variables: variables_at,
            tunables: tunables_at,
            rules: rules_at,
            board: place(board.as_ref()),
            wait: place(wait.as_ref()),
            cpu: place(cpu.as_ref()),
            policy: place(policy.as_ref()),
            ring: place(ring.as_ref()),
            sync: place(sync.as_ref()),
        };
        look(recipe, &places);
    }
    root.finish();
    recipe
}

/// A rule, and where it stands; `act` is told of each output that it writes.
fn rule(mut table: Table<'_>, mut act: impl FnMut(String, u64, Range<usize>)) -> (Rule, RuleSpans) {
    let when = table.string("when");
    table.missing(
        "when",
        "when = \"...\", a condition such as enc.pos >= next",
    );
    for (text, at) in table.texts("set") {
        match setting(text) {
            Ok(Step::Write { output, value }) => act(output, value, at),
            Ok(_) => {}
            Err(why) => table.fault_at(&at, format!("`set` has \"{text}\"; {why}")),
        }
    }
    let (then, then_at) = texts(&mut table, "then");
    let at = place(when.as_ref());
    let when = when.map_or("", |(when, _)| when).to_owned();
    table.finish();
    (
        Rule { when, then },
        RuleSpans {
            when: at,
            then: then_at,
        },
    )
}

/// Texts, and where each of them stands.
fn texts(root: &mut Table<'_>, key: &'static str) -> (Vec<String>, Vec<Range<usize>>) {
    let texts = root.texts(key).into_iter();
    texts.map(|(text, at)| (text.to_owned(), at)).unzip()
}

fn sinks(root: &mut Table<'_>) -> Vec<String> {
    let mut sinks = Vec::new();
    for (name, at) in root.texts("sinks") {
        if let Err(error) = sink::check(name) {
            root.fault_at(&at, error.to_string());
        }
        sinks.push(name.to_owned());
    }
    sinks
}
