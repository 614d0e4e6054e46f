// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequencers: tables of times, triggers and outputs.
//!
//! A table that is nothing but a timer becomes one: the run that waits for it has a timer of its own then, which is as
//! punctual as any. If channels are read between triggers, any other table becomes a row program of the run. Otherwise it is
//! done step by step here, and each rise of the output that the run waits for is a trigger: none is left out, but they come
//! when this thread comes round to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::acquisition::{Acquisition, Refused};
use super::arm::Arm;
use super::enable::Enable;
use super::number;
use super::panel::Panel;
use super::reason::Reason;
use super::sampling::{Sampling, Trigger, least, position};
use super::sequence::{BITS, CLOCK, Table, waited_bits};
use super::table::{self, INPUTS, OUTPUTS, POSITIONS, Step, Wait};
use super::triggers::Triggers;
use super::values::Values;
use crate::served_run::ServedRun;

/// The event of a run whose triggers are given here.
const SOFT: &str = "soft";
/// How long rows may take after their triggers, before the sequence is said to be over.
const REST: Duration = Duration::from_secs(2);

/// One of them.
pub struct Sequencer {
    panel: Arc<Panel>,
    arm: Arc<Arm>,
    enable: Enable,
    number: usize,
}

/// What it is to do.
struct Sequence {
    steps: Vec<Step>,
    /// Of the whole table; 0: until stopped.
    repeats: u64,
    prescale_ns: u64,
}

/// What it triggers.
struct Target {
    of: Arc<Acquisition>,
    output: usize,
    run: Arc<ServedRun>,
    /// The run makes its rows itself, and needs no triggers: it has a timer, or a program.
    is_own: bool,
    /// Bits that its program is told.
    bits: Vec<usize>,
}

impl Sequencer {
    /// The one of this number, from 0.
    pub fn new(panel: Arc<Panel>, arm: Arc<Arm>, number: usize) -> Self {
        let outputs = OUTPUTS.map(|out| format!("OUT{out}"));
        Sequencer {
            enable: Enable::new(Arc::clone(&panel), "SEQ", number, &outputs),
            panel,
            arm,
            number,
        }
    }

    /// Does what it is told, for ever.
    pub async fn serve(self) {
        loop {
            let enabled = self.enable.until_risen().await;
            self.sequence(enabled).await;
            self.enable.finish(enabled).await;
        }
    }

    async fn until_input(&self, input: &str, wanted: bool) {
        let name = format!("{}.{input}", self.enable.name);
        self.panel
            .until(|values| values.input(&name) == wanted)
            .await;
    }

    /// From ENABLE, which was seen at this change, to its fall, or to the end of the table.
    async fn sequence(&self, enabled: u64) {
        let Some(sequence) = self.read() else {
            return;
        };
        // Not given up when ENABLE falls: a run that is being made would be nobody's.
        let target = self.target(&sequence, enabled).await;
        // Whoever sees ACTIVE finds the run.
        self.enable.activate();
        let Ok(target) = target else {
            return;
        };
        tokio::select! {
            // The end of the run comes first: it has its own reason.
            biased;
            () = self.play(&sequence, target.as_ref()) => {}
            () = self.enable.until_fallen_after(enabled) => {
                // It would go on.
                if let Some(own) = target.filter(|target| target.is_own) {
                    own.of.end(Reason::Ok);
                }
            }
        }
    }

    /// The run that this sequence triggers, if an acquisition waits for one.
    async fn target(&self, sequence: &Sequence, enabled: u64) -> Result<Option<Target>, Refused> {
        let Some((of, output)) = self.waiting() else {
            return Ok(None);
        };
        // What another sequence has begun goes on; that made no rows itself, or it had ended with its sequence.
        if let Some(run) = of.served() {
            return Ok(Some(Target {
                of,
                output,
                run,
                is_own: false,
                bits: Vec::new(),
            }));
        }
        let sampling = self.sampling(sequence, output, &of);
        let sampling = sampling.map_err(|why| of.refuse(format!("{}: {why}", self.enable.name)))?;
        let has_fallen = || self.enable.has_fallen_after(enabled);
        let Some(run) = self.arm.make(&of, &sampling, has_fallen).await? else {
            return Ok(None);
        };
        Ok(Some(Target {
            of,
            output,
            run,
            is_own: sampling.event != SOFT || !sampling.program.is_empty(),
            bits: waited_bits(&sequence.steps).collect(),
        }))
    }

    async fn play(&self, sequence: &Sequence, target: Option<&Target>) {
        match target {
            Some(target) if target.is_own => tokio::select! {
                () = target.of.wait_for_end() => {}
                () = self.tell(target) => {}
            },
            target => self.steps(sequence, target).await,
        }
    }

    /// Tells the program of the run what the bits are, for ever.
    async fn tell(&self, target: &Target) {
        let mut changes = self.panel.watch();
        let mut told = [None; 3];
        loop {
            changes.borrow_and_update();
            let now = self.panel.with(|values| self.bits(values));
            for bit in target.bits.iter().copied() {
                let (Some(told), Some(now), Some(name)) =
                    (told.get_mut(bit), now.get(bit).copied(), BITS.get(bit))
                else {
                    continue;
                };
                if told.replace(now) != Some(now) {
                    let run = Arc::clone(&target.run);
                    let value = if now { "1" } else { "0" };
                    // Fails when the run has ended.
                    let _ = spawn_blocking(move || run.tune(name, value)).await;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn bits(&self, values: &Values) -> [bool; 3] {
        INPUTS.map(|input| values.input(&format!("{}.{input}", self.enable.name)))
    }

    /// A run that makes its rows itself shows no outputs: none of them may be its gate.
    fn check_gates(&self) -> Result<(), String> {
        let outputs = format!("{}.OUT", self.enable.name);
        for input in ["PCAP.GATE", "PCAP.ENABLE"] {
            if (self.panel).with(|values| values.line(input).starts_with(&outputs)) {
                return Err(format!(
                    "{input} is an output of it, and these do not change where the run makes its rows itself: connect it to \
                     something else"
                ));
            }
        }
        Ok(())
    }

    /// How the rows of a sequence are made.
    fn sampling(
        &self,
        sequence: &Sequence,
        output: usize,
        of: &Acquisition,
    ) -> Result<Sampling, String> {
        let sample = of.chosen.sample.as_deref();
        let as_timer = table::as_timer(&sequence.steps, output);
        if as_timer.is_some() || sample.is_some() {
            self.check_gates()?;
        }
        if let Some((units, rises)) = as_timer {
            let period = units.saturating_mul(sequence.prescale_ns);
            let limit = least(rises.saturating_mul(sequence.repeats), of.chosen.limit);
            let sampling = Sampling::new(format!("timer:{period}ns"), sample, limit);
            if sampling.is_ok() {
                return sampling;
            }
        }
        let Some(sample) = sample else {
            let is_position = |step: &Step| matches!(step.wait, Wait::Position(..));
            return match sequence.steps.iter().position(is_position) {
                None => Sampling::new(SOFT.to_owned(), None, of.chosen.limit),
                Some(line) => Err(format!(
                    "line {} waits for a position: set PCAP.SAMPLE to the event at which it is read",
                    line + 1
                )),
            };
        };
        let model = &self.panel.model;
        let waits_for = |place: usize| {
            let is_it =
                |step: &Step| matches!(step.wait, Wait::Position(which, ..) if which == place);
            sequence.steps.iter().any(is_it)
        };
        let (sources, bits) = self.panel.with(|values| {
            let source = |place: usize| {
                let name = POSITIONS.get(place).filter(|_| waits_for(place))?;
                model.source(values.line(&format!("{}.{name}", self.enable.name)))
            };
            ([0, 1, 2].map(source), self.bits(values))
        });
        let table = Table {
            steps: &sequence.steps,
            repeats: sequence.repeats,
            unit_ns: sequence.prescale_ns,
            output,
            positions: sources.map(|source| source.map(position)),
            bits,
        };
        let (program, rows) = table.program()?;
        let mut sampling = Sampling::new(sample.to_owned(), None, least(rows, of.chosen.limit))?;
        sampling.program = program;
        sampling.inputs = sources
            .iter()
            .flatten()
            .map(|source| source.channel.clone())
            .collect();
        sampling.inputs.push(CLOCK.to_owned());
        Ok(sampling)
    }

    fn read(&self) -> Option<Sequence> {
        let name = |field: &str| format!("{}.{field}", self.enable.name);
        self.panel.with(|values| {
            let steps = table::steps(values.words(&name("TABLE"))).ok()?;
            let unit = number::unit(values.line(&name("PRESCALE.UNITS")))?;
            let prescale = number::read(values.line(&name("PRESCALE")))? * unit * 1e9;
            Some(Sequence {
                steps,
                repeats: values.line(&name("REPEATS")).parse().ok()?,
                prescale_ns: (prescale.round() as u64).max(1),
            })
        })
    }

    /// The acquisition that waits for this sequencer, and for which output.
    fn waiting(&self) -> Option<(Arc<Acquisition>, usize)> {
        let mut wanted = None;
        let is_its = |trigger: &Trigger| match *trigger {
            Trigger::Sequencer(number, output) if number == self.number => {
                wanted = Some(output);
                true
            }
            _ => false,
        };
        let of = self.arm.waiting(is_its)?;
        Some((of, wanted?))
    }

    /// Step by step; each rise of the output is a trigger.
    async fn steps(&self, sequence: &Sequence, target: Option<&Target>) {
        let triggers = target.and_then(|target| {
            let triggers = Triggers::new(Arc::clone(&target.of), Arc::clone(&target.run));
            // Without a thread there are no rows.
            triggers
                .inspect_err(|_| target.of.end(Reason::Failed))
                .ok()
                .map(|triggers| (target, triggers))
        });
        let mut run = 0;
        let mut before = 0;
        let mut at = Instant::now();
        while (sequence.repeats == 0 || run < sequence.repeats) && !sequence.steps.is_empty() {
            run += 1;
            for step in &sequence.steps {
                for _ in 0..step.repeats {
                    match step.wait {
                        Wait::Immediate => {}
                        Wait::Bit(bit, wanted) => {
                            let input = INPUTS.get(bit).copied().unwrap_or_default();
                            self.until_input(input, wanted).await;
                            at = at.max(Instant::now());
                        }
                        // Nothing reads it: the sequence is over.
                        Wait::Position(..) => return,
                    }
                    for phase in step.phases {
                        let rises = phase.outputs & !before;
                        self.show(before, phase.outputs);
                        before = phase.outputs;
                        if let Some((target, triggers)) = &triggers {
                            if rises & (1 << target.output) != 0 {
                                if self.until_gates(&target.of).await {
                                    at = at.max(Instant::now());
                                }
                                triggers.give().await;
                            }
                        }
                        let ns = u64::from(phase.time).saturating_mul(sequence.prescale_ns);
                        at += Duration::from_nanos(ns);
                        // A table without times must leave others their turn, too.
                        sleep_until(at).await;
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        if let Some(Target { of, run, .. }) = target {
            // The rows of the last triggers are part of it.
            let given = of.given.load(Ordering::Relaxed);
            let all = |progress: &crate::spool::Progress| {
                progress.is_over() || progress.run.is_some_and(|run| run.triggers >= given)
            };
            let _ = tokio::time::timeout(REST, run.spool().watch().wait_for(all)).await;
        }
    }

    /// Waits until the run does what its gates say: it is started by another task, and a rise before that would make no
    /// row. Answers whether that took time.
    async fn until_gates(&self, of: &Acquisition) -> bool {
        let (mut counts, mut changes) = (of.counts.subscribe(), self.panel.watch());
        let mut has_waited = false;
        loop {
            changes.borrow_and_update();
            let is_open = (self.panel)
                .with(|values| values.input("PCAP.ENABLE") && values.input("PCAP.GATE"));
            if is_open == *counts.borrow_and_update() {
                return has_waited;
            }
            has_waited = true;
            tokio::select! {
                _ = changes.changed() => {}
                _ = counts.changed() => {}
                () = of.wait_for_end() => return has_waited,
            }
        }
    }

    fn show(&self, before: u8, now: u8) {
        if before == now {
            return;
        }
        self.panel.with(|values| {
            for (place, out) in OUTPUTS.iter().enumerate() {
                values.set_bit(
                    &format!("{}.OUT{out}", self.enable.name),
                    now & (1 << place) != 0,
                );
            }
        });
    }
}
