// SPDX-License-Identifier: MIT OR Apache-2.0
//! How rows are made: at which event channels are read, and which of these samples become rows.
//!
//! Without `PCAP.SAMPLE` each trigger is a row. With it channels are read at that event, and a row program keeps the samples
//! that are triggers: a timer's are each Nth of them, those of a position compare are where the position passes.

use strobe::channel::Type;
use strobe::event::{Event, EventSpec};
use strobe::program::ProgramText;
use strobe::select::EnginePreference;
use strobe_files::recipe::Recipe;

use super::capture::{self, Capture};
use super::field::Source;
use super::model::{COMPARES, Model, SEQUENCERS};
use super::number;
use super::table::OUTPUTS;
use super::values::Values;

/// No position that a client can set is so far. What is farther is as good as this, and sums of it fit into a word.
const FAR: u64 = 1 << 60;

/// How the rows of an acquisition are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// The event at which channels are read.
    pub event: String,
    /// Rows at most; 0: as many as come.
    pub limit: u64,
    /// Channels that are read beside those that are captured.
    pub inputs: Vec<String>,
    /// What keeps the samples that become rows.
    pub program: ProgramText,
}

/// What makes the rows of an acquisition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// An event.
    Event(Sampling),
    /// An output of a sequencer: which, and which output.
    Sequencer(usize, usize),
    /// A position compare: which.
    Compare(usize),
}

impl Sampling {
    /// A row at each trigger of this event, and at its samples what is read between triggers.
    ///
    /// # Errors
    /// The event is none of the samples'; what can be done.
    pub fn new(event: String, sample: Option<&str>, limit: u64) -> Result<Self, String> {
        let mut sampling = Sampling {
            event,
            limit,
            inputs: Vec::new(),
            program: ProgramText::default(),
        };
        if let Some(sample) = sample {
            sampling.program.every = Some(samples_each(&sampling.event, sample)?);
            sampling.event = sample.to_owned();
        }
        Ok(sampling)
    }

    /// The run that makes them.
    ///
    /// # Errors
    /// The event is none.
    pub fn recipe(&self, captures: &[Capture], engine: EnginePreference) -> Result<Recipe, String> {
        let event: EventSpec = self.event.parse().map_err(|error| format!("{error}"))?;
        let mut recipe = Recipe::new(event);
        recipe.read = capture::channels(captures);
        for input in &self.inputs {
            if !recipe.read.contains(input) {
                recipe.read.push(input.clone());
            }
        }
        recipe.program = self.program.clone();
        recipe.program.derive = capture::derived(captures);
        recipe.engine = engine;
        recipe.rows = (self.limit > 0).then_some(self.limit);
        Ok(recipe)
    }
}

/// A position as an expression: a whole number, as clients compare it.
pub fn position(source: &Source) -> String {
    let word = format!("raw(`{}`)", source.channel);
    match source.kind {
        Type::U64 => format!("min({word}, {FAR})"),
        Type::S64 => format!("clamp({word}, -{FAR}, {FAR})"),
        // It is refused with the reason.
        Type::F64 => word,
    }
}

/// How many samples there are for each trigger, if both are timers of one kind.
fn samples_each(trigger: &str, sample: &str) -> Result<u64, String> {
    let periods = match (event(trigger), event(sample)) {
        (Some(Event::Timer { period_ns: all }), Some(Event::Timer { period_ns: one }))
        | (Some(Event::Hpet { period_ns: all }), Some(Event::Hpet { period_ns: one })) => {
            Some((all, one))
        }
        _ => None,
    };
    let each = periods.filter(|(all, one)| *one > 0 && all % one == 0);
    each.map(|(all, one)| all / one).ok_or_else(|| {
        format!(
            "PCAP.SAMPLE ({sample}) does not divide the time between two triggers ({trigger}): let both be timers, the \
             period of the triggers a multiple of the other; or let PCAP.TRIG be PCOMP1.OUT"
        )
    })
}

fn event(text: &str) -> Option<Event> {
    let spec = text.parse::<EventSpec>().ok()?;
    Some(spec.event().clone())
}

/// What makes rows, as it is set now.
///
/// # Errors
/// It cannot make any; why.
pub fn trigger(model: &Model, values: &Values) -> Result<Trigger, String> {
    let label = values.line("PCAP.TRIG");
    let (block, field) = label.split_once('.').unwrap_or((label, ""));
    let of = |kind: &str, count: usize| {
        let number = block.strip_prefix(kind)?.parse::<usize>().ok()?;
        (1..=count).contains(&number).then(|| number - 1)
    };
    let output = OUTPUTS.iter().position(|out| field == format!("OUT{out}"));
    if let (Some(number), Some(output)) = (of("SEQ", SEQUENCERS), output) {
        return Ok(Trigger::Sequencer(number, output));
    }
    if let Some(number) = of("PCOMP", COMPARES) {
        return match values.line("PCAP.SAMPLE") {
            NONE => Err(format!(
                "PCAP.SAMPLE is {NONE}: set it to the event at which {block} reads its position"
            )),
            _ => Ok(Trigger::Compare(number)),
        };
    }
    let event = chosen(model, values, label)?;
    let limit = limit(values);
    let sample = sample(model, values)?;
    Sampling::new(event, sample.as_deref(), limit).map(Trigger::Event)
}

/// What stands for no event.
pub const NONE: &str = "ZERO";

/// The event of the samples, if there is one.
///
/// # Errors
/// It is a timer without a period.
pub fn sample(model: &Model, values: &Values) -> Result<Option<String>, String> {
    match values.line("PCAP.SAMPLE") {
        NONE => Ok(None),
        label => chosen(model, values, label).map(Some),
    }
}

/// Rows at most; 0: as many as come.
pub fn limit(values: &Values) -> u64 {
    values.line("PCAP.NUM_TRIG").parse().unwrap_or(0)
}

/// The lesser of two limits, of which 0 is none.
pub fn least(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, limit) | (limit, 0) => limit,
        (one, other) => one.min(other),
    }
}

/// The event of this label, as a run is told it.
fn chosen(model: &Model, values: &Values, label: &str) -> Result<String, String> {
    if let Some((_, event)) = model.events.iter().find(|(known, _)| known == label) {
        return Ok(event.clone());
    }
    let block = label.split_once('.').map_or(label, |(block, _)| block);
    let source = values.line(&format!("{block}.SOURCE"));
    if !matches!(source, "timer" | "hpet") {
        return Ok(source.to_owned());
    }
    let period = number::read(values.line(&format!("{block}.PERIOD"))).unwrap_or_default();
    let unit = number::unit(values.line(&format!("{block}.PERIOD.UNITS"))).unwrap_or(1.0);
    let ns = (period * unit * 1e9).round();
    match (1.0..3e18).contains(&ns) {
        true => Ok(format!("{source}:{}ns", ns as u64)),
        false => Err(format!("{block}.PERIOD is no period: set it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_timers_each_nth_sample_is_a_row() {
        let sampling = Sampling::new("timer:5ms".into(), Some("timer:5us"), 7).expect("a sampling");
        assert_eq!((sampling.event.as_str(), sampling.limit), ("timer:5us", 7));
        assert_eq!(sampling.program.every, Some(1000));
        let plain = Sampling::new("sim.pulse".into(), None, 0).expect("a sampling");
        assert_eq!(
            (plain.event.as_str(), plain.program.every),
            ("sim.pulse", None)
        );
    }

    #[test]
    fn samples_that_do_not_divide_the_time_between_triggers_are_refused() {
        for (trigger, sample) in [
            ("timer:5ms", "timer:3ms"),
            ("timer:1ms", "timer:2ms"),
            ("sim.pulse", "timer:1ms"),
            ("timer:1ms", "soft"),
            ("timer:1ms", "hpet:64Hz"),
        ] {
            let refused = Sampling::new(trigger.into(), Some(sample), 0);
            assert!(refused.is_err_and(|why| why.contains(trigger) && why.contains("PCAP.SAMPLE")));
        }
    }
}
