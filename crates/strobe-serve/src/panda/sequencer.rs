// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequencers: tables of times and outputs, done in software.
//!
//! A table that is nothing but a timer becomes one: the run that waits for it has a timer of its own then, which is as
//! punctual as any. Any other table is done step by step here, and each rise of the output that the run waits for is a
//! trigger: none is left out, but they come when this thread comes round to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::acquisition::{Acquisition, Phase, Trigger};
use super::arm::Arm;
use super::number;
use super::panel::Panel;
use super::table::{self, OUTPUTS, Step, Wait};
use crate::served::Served;

/// How long rows may take after their triggers, before the sequence is said to be over.
const REST: Duration = Duration::from_secs(2);

/// One of them.
pub struct Sequencer {
    panel: Arc<Panel>,
    arm: Arc<Arm>,
    stop: CancellationToken,
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

impl Sequencer {
    /// The one of this number, from 0.
    pub fn new(panel: Arc<Panel>, arm: Arc<Arm>, stop: CancellationToken, number: usize) -> Self {
        Sequencer {
            panel,
            arm,
            stop,
            number,
            name: format!("SEQ{}", number + 1),
        }
    }

    /// Does what it is told until the daemon ends.
    pub async fn serve(self) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.until_input("ENABLE", true) => {}
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.until_input("ENABLE", false) => {}
                () = self.sequence() => {}
            }
            self.panel.with(|values| {
                values.set_bit(&format!("{}.ACTIVE", self.name), false);
                for out in OUTPUTS {
                    values.set_bit(&format!("{}.OUT{out}", self.name), false);
                }
            });
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.until_input("ENABLE", false) => {}
            }
        }
    }

    async fn until_input(&self, input: &str, wanted: bool) {
        let name = format!("{}.{input}", self.name);
        let mut changes = self.panel.watch();
        // Fails when the panel has gone, which this keeps.
        let is_so = |_: &u64| self.panel.with(|values| values.input(&name) == wanted);
        let _ = changes.wait_for(is_so).await;
    }

    async fn sequence(&self) {
        let Some(sequence) = self.read() else {
            return;
        };
        let waiting = self.waiting();
        let mut served = None;
        if let Some((of, output)) = &waiting {
            let event = self.event(&sequence, of, *output);
            // Whoever sees ACTIVE finds the run.
            match self.arm.create(of, &event.0, event.1).await {
                Ok(run) => {
                    of.phase.send_replace(Phase::Run(Arc::clone(&run)));
                    served = Some(run);
                }
                Err(_) => of.end(super::acquisition::Reason::Failed),
            }
        }
        self.panel
            .with(|values| values.set_bit(&format!("{}.ACTIVE", self.name), true));
        match (&waiting, &served) {
            (Some((of, output)), Some(_))
                if table::as_timer(&sequence.steps, *output).is_some() =>
            {
                of.wait_for_end().await;
            }
            _ => {
                self.steps(&sequence, waiting.map(|(_, output)| output), served)
                    .await
            }
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
        let last = self.arm.last().filter(|last| !last.is_over())?;
        match last.trigger {
            Trigger::Sequencer(number, output) if number == self.number => Some((last, output)),
            _ => None,
        }
    }

    /// The event of the run, and how many rows it has at most.
    fn event(&self, sequence: &Sequence, of: &Acquisition, output: usize) -> (String, u64) {
        match table::as_timer(&sequence.steps, output) {
            Some((units, rises)) => {
                let period = units.saturating_mul(sequence.prescale_ns);
                let all = rises.saturating_mul(sequence.repeats);
                let limit = match (all, of.limit) {
                    (0, limit) | (limit, 0) => limit,
                    (all, limit) => all.min(limit),
                };
                (format!("timer:{period}ns"), limit)
            }
            None => ("soft".to_owned(), of.limit),
        }
    }

    /// Step by step; each rise of `output` is a trigger.
    async fn steps(&self, sequence: &Sequence, output: Option<usize>, served: Option<Arc<Served>>) {
        let mut run = 0;
        let mut triggers = 0;
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
                        if let (Some(output), Some(served)) = (output, &served) {
                            if rises & (1 << output) != 0 && served.trigger(1).is_ok() {
                                triggers += 1;
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
        if let Some(served) = served {
            // The rows of the last triggers are part of it.
            let all = |progress: &crate::spool::Progress| {
                progress.is_over() || progress.run.is_some_and(|run| run.triggers >= triggers)
            };
            let _ = tokio::time::timeout(REST, served.spool().watch().wait_for(all)).await;
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
