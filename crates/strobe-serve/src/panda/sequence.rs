// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as a row program: the sequence goes on from sample to sample, in the run itself.
//!
//! The program is in one state at a time: it waits for the trigger of a line, or it is in a time of a line. In each sample it
//! takes at most one step to the next state, and the sample is a row if the output rises there. Times are added to the time
//! at which the step before was due, so a sequence of times does not drift, however late samples come.

use strobe::program::{ProgramText, Rule};

use super::table::{POSITIONS, Phase, Step, Wait};

/// The channel that times are compared with.
pub const CLOCK: &str = "clock.elapsed";
/// What the bits that lines can wait for are called in the program. The daemon sets them while it runs.
pub const BITS: [&str; 3] = ["bita", "bitb", "bitc"];

/// Ways that a program has at most: its rules.
const WAYS: usize = 31;

/// A table, and what there is to know for its program.
pub struct Table<'t> {
    /// Its lines.
    pub steps: &'t [Step],
    /// How often it is gone through; 0: until stopped.
    pub repeats: u64,
    /// Unit of its times, ns.
    pub unit_ns: u64,
    /// The output whose rises are rows.
    pub output: usize,
    /// The positions that lines can wait for, as expressions; `None`: it is connected to nothing.
    pub positions: [Option<String>; 3],
    /// What the bits are now.
    pub bits: [bool; 3],
}

/// The bits that a line waits for.
pub fn waited_bits(steps: &[Step]) -> impl Iterator<Item = usize> + '_ {
    (0..BITS.len()).filter(|place| {
        let is_its = |step: &Step| matches!(step.wait, Wait::Bit(bit, _) if bit == *place);
        steps.iter().any(is_its)
    })
}

/// Where a program is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Before the first sample.
    Start,
    /// Waiting for the trigger of this line.
    Wait(usize),
    /// In the first time of this line, which ends with a rise.
    First(usize),
    /// In the last time of this line.
    Last(usize),
    /// Done.
    End,
}

/// A step to another state.
struct Way {
    from: State,
    when: String,
    to: State,
    then: Vec<String>,
    is_row: bool,
}

impl Table<'_> {
    /// Its program, and how many rows there are when it is done; 0: as many as come.
    ///
    /// # Errors
    /// It cannot be done; why, and what can.
    pub fn program(&self) -> Result<(ProgramText, u64), String> {
        let ways = self.ways()?;
        if ways.len() > WAYS {
            return Err(format!(
                "the table has {} ways from one state to the next, and a row program {WAYS} at most: use fewer lines, or \
                 lines with more repeats",
                ways.len()
            ));
        }
        let mut states = Vec::new();
        let mut number = |state: State| {
            let known = states.iter().position(|known| *known == state);
            known.unwrap_or_else(|| {
                states.push(state);
                states.len() - 1
            })
        };
        let mut program = ProgramText::default();
        number(State::Start);
        let mut rows = Vec::new();
        for way in &ways {
            let when = format!("state == {}{}", number(way.from), way.when);
            let to = format!("state = {}", number(way.to));
            if way.is_row {
                rows.push(format!("({when})"));
            }
            let then = [vec![to], way.then.clone()].concat();
            program.rules.push(Rule { when, then });
        }
        if rows.is_empty() {
            return Err("the output that makes rows never rises in the table".to_owned());
        }
        program.keep.push(rows.join(" || "));
        let variables = [
            ("state", "state = 0".to_owned()),
            ("left", self.left(0)),
            ("runs", format!("runs = {}", self.repeats)),
            ("due", format!("due = 0 ns like {CLOCK}")),
        ];
        let uses = |name: &str| {
            let mut parts = program
                .rules
                .iter()
                .flat_map(|rule| [&rule.when].into_iter().chain(&rule.then));
            parts.any(|part| part.split(' ').any(|word| word == name))
        };
        program.variables = variables
            .into_iter()
            .filter(|(name, _)| uses(name))
            .map(|(_, text)| text)
            .collect();
        for bit in waited_bits(self.steps) {
            if let (Some(name), Some(now)) = (BITS.get(bit), self.bits.get(bit)) {
                program
                    .tunables
                    .push(format!("{name} = {}", u8::from(*now)));
            }
        }
        Ok((program, self.rows()))
    }

    /// All steps that there are.
    fn ways(&self) -> Result<Vec<Way>, String> {
        let mut ways = Vec::new();
        let start = self.begin(0, 0, CLOCK)?;
        ways.push(start.way(State::Start, String::new(), Vec::new()));
        for (line, step) in self.steps.iter().enumerate() {
            let last = step.phases[1];
            if step.wait != Wait::Immediate {
                let when = format!(" && {}", self.condition(line, step.wait)?);
                let rises = self.rises_where_it_begins(line, step)?;
                match self.times(line, CLOCK) {
                    Some(begun) => {
                        let begun = Begun {
                            is_row: rises,
                            ..begun
                        };
                        ways.push(begun.way(State::Wait(line), when, Vec::new()));
                    }
                    None => self.end(line, State::Wait(line), &when, rises, CLOCK, &mut ways)?,
                }
            }
            if self.is_split(step) {
                ways.push(Way {
                    from: State::First(line),
                    when: format!(" && {CLOCK} >= due"),
                    to: State::Last(line),
                    then: vec![self.later("due", last.time)],
                    is_row: true,
                });
            }
            if self.length(step) > 0 || step.wait == Wait::Immediate {
                let when = format!(" && {CLOCK} >= due");
                self.end(line, State::Last(line), &when, false, "due", &mut ways)?;
            }
        }
        Ok(ways)
    }

    /// Whether the output rises when a line that waits begins, which it does after other lines, and after its own end.
    fn rises_where_it_begins(&self, line: usize, step: &Step) -> Result<bool, String> {
        let end = |line: usize| {
            self.steps
                .get(line)
                .map_or(0, |step| step.phases[1].outputs)
        };
        let mut before = vec![line.checked_sub(1).map_or(0, end)];
        if step.repeats > 1 {
            before.push(end(line));
        }
        if line == 0 && self.repeats != 1 {
            before.push(end(self.steps.len() - 1));
        }
        let rises = |before: &u8| self.rises(*before, step.phases[0].outputs);
        match before.iter().all(rises) {
            false if before.iter().any(rises) => Err(format!(
                "line {} begins with the output high or low, as it comes: let the lines before it end with the output low",
                line + 1
            )),
            is_so => Ok(is_so),
        }
    }

    /// What follows a repetition of this line that ends here: another one, the next line, the first one again, or nothing.
    fn end(
        &self,
        line: usize,
        from: State,
        when: &str,
        is_row: bool,
        base: &str,
        ways: &mut Vec<Way>,
    ) -> Result<(), String> {
        let Some(step) = self.steps.get(line) else {
            return Ok(());
        };
        let high = step.phases[1].outputs;
        let mut add = |begun: Begun, more: &str, then: Vec<String>| {
            let begun = Begun {
                is_row: begun.is_row || is_row,
                ..begun
            };
            ways.push(begun.way(from, format!("{when}{more}"), then));
        };
        let mut is_last = "";
        if step.repeats > 1 {
            add(
                self.begin(line, high, base)?,
                " && left > 1",
                vec!["left -= 1".to_owned()],
            );
            is_last = " && left <= 1";
        }
        let next = line + 1;
        if next < self.steps.len() {
            let then = vec![self.left(next)];
            add(self.begin(next, high, base)?, is_last, then);
            return Ok(());
        }
        if self.repeats != 1 {
            let mut then = vec![self.left(0)];
            let mut more = is_last.to_owned();
            if self.repeats > 1 {
                then.push("runs -= 1".to_owned());
                more.push_str(" && runs > 1");
            }
            add(self.begin(0, high, base)?, &more, then);
        }
        if self.repeats > 0 {
            let more = match self.repeats {
                1 => is_last.to_owned(),
                _ => format!("{is_last} && runs <= 1"),
            };
            let end = Begun {
                to: State::End,
                then: Vec::new(),
                is_row: false,
            };
            add(end, &more, Vec::new());
        }
        Ok(())
    }

    /// The beginning of a line, where the outputs were these.
    fn begin(&self, line: usize, before: u8, base: &str) -> Result<Begun, String> {
        let Some(step) = self.steps.get(line) else {
            return Err("the table has no lines".to_owned());
        };
        if step.wait != Wait::Immediate {
            return Ok(Begun {
                to: State::Wait(line),
                then: Vec::new(),
                is_row: false,
            });
        }
        // What takes no time takes one unit.
        let begun = self.times(line, base).unwrap_or_else(|| Begun {
            to: State::Last(line),
            then: vec![self.later(base, 1_u32)],
            is_row: false,
        });
        Ok(Begun {
            is_row: self.rises(before, step.phases[0].outputs),
            ..begun
        })
    }

    /// The times of a line begin at this time, without a rise; `None`: it has none.
    fn times(&self, line: usize, base: &str) -> Option<Begun> {
        let step = self.steps.get(line)?;
        let (to, units) = match self.is_split(step) {
            true => (State::First(line), step.phases[0].time.into()),
            false => (State::Last(line), self.length(step)),
        };
        (units > 0).then(|| Begun {
            to,
            then: vec![self.later(base, units)],
            is_row: false,
        })
    }

    /// Whether the output rises within the line, so that it has a first time.
    fn is_split(&self, step: &Step) -> bool {
        let [first, last] = step.phases;
        self.rises(first.outputs, last.outputs)
    }

    fn length(&self, step: &Step) -> u64 {
        step.phases
            .iter()
            .map(|phase: &Phase| u64::from(phase.time))
            .sum()
    }

    fn later(&self, base: &str, units: impl Into<u64>) -> String {
        let ns = units.into().saturating_mul(self.unit_ns);
        format!("due = {base} + {ns} ns")
    }

    fn left(&self, line: usize) -> String {
        let repeats = self.steps.get(line).map_or(1, |step| step.repeats);
        format!("left = {repeats}")
    }

    fn rises(&self, before: u8, after: u8) -> bool {
        let bit = 1 << self.output;
        before & bit == 0 && after & bit != 0
    }

    fn condition(&self, line: usize, wait: Wait) -> Result<String, String> {
        match wait {
            Wait::Immediate => Ok(String::new()),
            Wait::Bit(bit, wanted) => {
                let name = BITS.get(bit).copied().unwrap_or_default();
                Ok(format!("{name} == {}", u8::from(wanted)))
            }
            Wait::Position(which, is_upward, position) => {
                let name = POSITIONS.get(which).copied().unwrap_or_default();
                let source = self.positions.get(which).and_then(Option::as_ref);
                let source = source.ok_or_else(|| {
                    format!(
                        "line {} waits for {name}, which is ZERO: set it to a position",
                        line + 1
                    )
                })?;
                Ok(format!(
                    "{source} {} {position}",
                    if is_upward { ">=" } else { "<=" }
                ))
            }
        }
    }

    /// Rises in all, if it ends.
    fn rows(&self) -> u64 {
        let mut before = 0;
        let mut rises = |outputs: u8| {
            let rises = self.rises(before, outputs);
            before = outputs;
            u64::from(rises)
        };
        let mut once = || {
            let mut rows = 0;
            for step in self.steps {
                let mut of_line = || {
                    step.phases
                        .iter()
                        .map(|phase| rises(phase.outputs))
                        .sum::<u64>()
                };
                // From the second repetition on each has as many.
                let first = of_line();
                rows += first;
                if step.repeats > 1 {
                    rows += of_line() * u64::from(step.repeats - 1);
                }
            }
            rows
        };
        let first = once();
        match self.repeats {
            0 => 0,
            1 => first,
            repeats => first + once() * (repeats - 1),
        }
    }
}

/// What a step begins.
struct Begun {
    to: State,
    then: Vec<String>,
    is_row: bool,
}

impl Begun {
    fn way(self, from: State, when: String, then: Vec<String>) -> Way {
        Way {
            from,
            when,
            to: self.to,
            then: [self.then, then].concat(),
            is_row: self.is_row,
        }
    }
}
