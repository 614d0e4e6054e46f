// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequencers: tables of times and outputs, done in software.
//!
//! A table that is nothing but a timer becomes one: the run that waits for it has a timer of its own then, which is as
//! punctual as any. Any other table is done step by step here, and each rise of the output that the run waits for is a
//! trigger: none is left out, but they come when this thread comes round to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::acquisition::{Acquisition, Trigger};
use super::arm::Arm;
use super::enable::Enable;
use super::making::{Making, least};
use super::number;
use super::panel::Panel;
use super::reason::Reason;
use super::table::{self, OUTPUTS, Step, Wait};
use super::triggers::Triggers;
use crate::served::Served;

/// How long rows may take after their triggers, before the sequence is said to be over.
const REST: Duration = Duration::from_secs(2);

/// One of them.
pub struct Sequencer {
    panel: Arc<Panel>,
    arm: Arc<Arm>,
    enable: Enable,
    number: usize,
    /// `SEQ1`
    name: String,
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
    run: Arc<Served>,
    /// The run has a timer of its own, and needs no triggers.
    is_timer: bool,
}

impl Sequencer {
    /// The one of this number, from 0.
    pub fn new(panel: Arc<Panel>, arm: Arc<Arm>, number: usize) -> Self {
        let name = format!("SEQ{}", number + 1);
        Sequencer {
            enable: Enable::new(
                Arc::clone(&panel),
                &name,
                &OUTPUTS.map(|out| format!("OUT{out}")),
            ),
            panel,
            arm,
            number,
            name,
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
        let name = format!("{}.{input}", self.name);
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
        self.panel
            .with(|values| values.set_bit(&format!("{}.ACTIVE", self.name), true));
        tokio::select! {
            // The end of the run comes first: it has its own reason.
            biased;
            () = self.play(&sequence, target.as_ref()) => {}
            () = self.enable.until_fallen_after(enabled) => {
                // Its own timer would go on.
                if let Some(timer) = target.filter(|target| target.is_timer) {
                    timer.of.end(Reason::Ok);
                }
            }
        }
    }

    /// The run that this sequence triggers, if an acquisition waits for one.
    async fn target(&self, sequence: &Sequence, enabled: u64) -> Option<Target> {
        let (of, output) = self.waiting()?;
        let as_timer = table::as_timer(&sequence.steps, output);
        // What another sequence has begun goes on; that was no timer, which ends with its sequence.
        if let Some(run) = of.served() {
            return Some(Target {
                of,
                output,
                run,
                is_timer: false,
            });
        }
        let making = match making(sequence, as_timer, &of) {
            Ok(making) => making,
            Err(why) => {
                of.fail(format!("{}: {why}", self.name));
                return None;
            }
        };
        let has_fallen = || self.enable.has_fallen_after(enabled);
        let run = self.arm.make(&of, &making, has_fallen).await?;
        Some(Target {
            of,
            output,
            run,
            is_timer: as_timer.is_some(),
        })
    }

    async fn play(&self, sequence: &Sequence, target: Option<&Target>) {
        match target {
            Some(target) if target.is_timer => target.of.wait_for_end().await,
            target => self.steps(sequence, target).await,
        }
    }

    fn read(&self) -> Option<Sequence> {
        let name = |field: &str| format!("{}.{field}", self.name);
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
                    if let Wait::Bit(bit, wanted) = step.wait {
                        let input = ["BITA", "BITB", "BITC"].get(bit).copied().unwrap_or("BITA");
                        self.until_input(input, wanted).await;
                        at = at.max(Instant::now());
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
                values.set_bit(&format!("{}.OUT{out}", self.name), now & (1 << place) != 0);
            }
        });
    }
}

/// How the rows of a sequence are made.
fn making(
    sequence: &Sequence,
    as_timer: Option<(u64, u64)>,
    of: &Acquisition,
) -> Result<Making, String> {
    let sample = of.sample.as_deref();
    match (as_timer, sample) {
        (Some((units, rises)), sample) => {
            let period = units.saturating_mul(sequence.prescale_ns);
            let limit = least(rises.saturating_mul(sequence.repeats), of.limit);
            Making::new(format!("timer:{period}ns"), sample, limit)
        }
        (None, None) => Making::new("soft".to_owned(), None, of.limit),
        (None, Some(_)) => Err(
            "This table is done step by step, so nothing is read between its triggers: set PCAP.SAMPLE to ZERO, or use a \
             table of one line that waits for nothing"
                .to_owned(),
        ),
    }
}
