// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM, DISARM, and what comes between: the run is made, started when its gate opens, and ended when that closes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use strobe::block::Block;
use strobe::channel::Type;
use strobe::error::Words;
use strobe::info::End;
use strobe::select::EnginePreference;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::acquisition::{Acquisition, Chosen, Refused};
use super::answer::Status;
use super::capture::{self, Origin};
use super::model::HEALTH;
use super::orphan;
use super::panel::Panel;
use super::reason::Reason;
use super::sampling::{self, Sampling, Trigger};
use super::values::Values;
use crate::cursor::From;
use crate::daemon::Daemon;
use crate::served_run::ServedRun;
use crate::spool::Progress;

/// A run that nobody has read yet is given to a reader that comes so soon after ARM, even if it is over.
const LATE: Duration = Duration::from_secs(1);
/// How old the values of channels may be that a client sees.
const FRESH: Duration = Duration::from_millis(50);

/// The acquisitions there were last.
#[derive(Default)]
pub struct History {
    /// The last ones, oldest first.
    pub list: VecDeque<Arc<Acquisition>>,
    /// How many there were.
    pub count: u64,
}

/// Makes acquisitions.
pub struct Arm {
    daemon: Arc<Daemon>,
    panel: Arc<Panel>,
    engine: EnginePreference,
    keep: usize,
    history: watch::Sender<History>,
    /// One is armed or disarmed after the other.
    turn: tokio::sync::Mutex<()>,
    looked: Mutex<Option<Instant>>,
}

impl Arm {
    /// Of this daemon; so many runs that are over are kept.
    pub fn new(
        daemon: Arc<Daemon>,
        panel: Arc<Panel>,
        engine: EnginePreference,
        keep: usize,
    ) -> Self {
        Arm {
            daemon,
            panel,
            engine,
            keep: keep.max(1),
            history: watch::channel(History::default()).0,
            turn: tokio::sync::Mutex::new(()),
            looked: Mutex::new(None),
        }
    }

    /// Says when there is a new one.
    pub fn watch(&self) -> watch::Receiver<History> {
        self.history.subscribe()
    }

    /// The last one.
    pub fn last(&self) -> Option<Arc<Acquisition>> {
        self.history.borrow().list.back().cloned()
    }

    /// What a reader that comes now begins with: the one that is under way, or one that it has just missed.
    pub fn first_for_a_reader(&self, may_be_over: bool) -> Option<Arc<Acquisition>> {
        let last = self.last()?;
        let is_fresh = last.armed.elapsed() < LATE && !last.had_reader();
        (may_be_over || !last.is_over() || is_fresh).then_some(last)
    }

    /// Makes a run of what is captured, by the event that is chosen.
    ///
    /// # Errors
    /// There is one already, or what is chosen cannot be done; why.
    pub async fn arm(self: &Arc<Self>) -> Result<(), String> {
        let _turn = self.turn.lock().await;
        if self.last().is_some_and(|last| !last.is_over()) {
            return Err("Capture in progress: disarm first".to_owned());
        }
        let chosen = self.panel.with(|values| self.chosen(values))?;
        let number = self.history.borrow().count + 1;
        let recent = self.daemon.config.spool.bounds().recent;
        let new = Arc::new(Acquisition::new(number, chosen, recent));
        if let Trigger::Event(sampling) = &new.chosen.trigger {
            let served = self.create(&new, sampling).await?;
            new.take(&served);
        }
        // Before the bit rises: a sequencer that waits for it finds the acquisition.
        self.add(&new);
        self.panel.with(|values| {
            values.set_bit("PCAP.ACTIVE", true);
            values.set_line("PCAP.HEALTH", HEALTH[0]);
            values.set_line("PCAP.TRIG_LOST", "0");
            for bit in super::model::BITS {
                values.set_bit(bit, false);
            }
        });
        tokio::spawn(Arc::clone(self).attend(new));
        Ok(())
    }

    /// Ends what is under way, and waits until it has ended.
    pub async fn disarm(&self) {
        let _turn = self.turn.lock().await;
        if let Some(last) = self.last() {
            last.end(Reason::Disarmed);
            last.wait_for_end().await;
            // Nobody has missed it who comes later.
            drop(last.read());
        }
    }

    /// The acquisition that waits for this trigger, or has its run from it.
    pub fn waiting(&self, is_its: impl FnOnce(&Trigger) -> bool) -> Option<Arc<Acquisition>> {
        let last = self.last()?;
        let is_ending = last.is_over() || last.asked.borrow().is_some();
        (is_its(&last.chosen.trigger) && !is_ending).then_some(last)
    }

    /// Makes the run of an acquisition that has waited for it. `None`: nobody wants it any more.
    ///
    /// # Errors
    /// It cannot be made.
    pub async fn make(
        &self,
        of: &Acquisition,
        sampling: &Sampling,
        is_given_up: impl FnOnce() -> bool,
    ) -> Result<Option<Arc<ServedRun>>, Refused> {
        let run = self.create(of, sampling).await;
        let run = run.map_err(|why| of.refuse(why))?;
        // Meanwhile ENABLE may have fallen, or somebody has disarmed.
        if !is_given_up() && of.take(&run) {
            return Ok(Some(run));
        }
        self.give_up(&run);
        Ok(None)
    }

    /// The run of an acquisition, which is not started.
    async fn create(
        &self,
        of: &Acquisition,
        sampling: &Sampling,
    ) -> Result<Arc<ServedRun>, String> {
        let recipe = sampling.recipe(&of.chosen.captures, self.engine)?;
        let daemon = Arc::clone(&self.daemon);
        let name = orphan::name(of.number);
        let most = daemon.config.limits.runs;
        let made = spawn_blocking(move || daemon.runs.create_within(most, &name, &recipe)).await;
        match made {
            Ok(Ok(Some(made))) => Ok(made),
            Ok(Ok(None)) => Err(format!(
                "There are {most} runs already: stop one, or raise runs in [limits]"
            )),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("The daemon ends".to_owned()),
        }
    }

    /// What is chosen now.
    fn chosen(&self, values: &Values) -> Result<Chosen, String> {
        let model = &self.panel.model;
        let captures = capture::chosen(model, values);
        if captures.is_empty() {
            return Err("Nothing is captured: set the CAPTURE of a field to Value".to_owned());
        }
        let sample = sampling::sample(model, values)?;
        let of_samples = captures.iter().find(|capture| capture.is_of_samples());
        if let (Some(capture), None) = (of_samples, &sample) {
            return Err(format!(
                "{}.CAPTURE is {}: set PCAP.SAMPLE to the event at which it is read between two triggers",
                capture.name,
                capture.how.word()
            ));
        }
        Ok(Chosen {
            captures,
            sample,
            trigger: sampling::trigger(model, values)?,
            limit: sampling::limit(values),
        })
    }

    fn add(&self, new: &Arc<Acquisition>) {
        let mut old = Vec::new();
        self.history.send_modify(|history| {
            history.count = new.number;
            history.list.push_back(Arc::clone(new));
            while history.list.len() > self.keep {
                old.extend(history.list.pop_front());
            }
        });
        for served in old.iter().filter_map(|old| old.served()) {
            self.give_up(&served);
        }
    }

    /// Removes a run and its rows. Those may be many files: nobody waits for that.
    fn give_up(&self, run: &ServedRun) {
        let (daemon, id) = (Arc::clone(&self.daemon), run.id());
        spawn_blocking(move || daemon.runs.remove(id));
    }

    /// From ARM to the end.
    async fn attend(self: Arc<Self>, of: Arc<Acquisition>) {
        let mut asked = of.asked.subscribe();
        let is_asked = |asked: &Option<Reason>| asked.is_some();
        tokio::select! {
            biased;
            _ = asked.wait_for(is_asked) => {}
            () = self.daemon.stop.cancelled() => {}
            _ = of.run() => {}
        }
        let reason = match of.settle() {
            None => {
                of.end(Reason::Disarmed);
                of.reason(None)
            }
            Some(served) => {
                self.conduct(&of, &served).await;
                self.look();
                of.reason(Some(&served.progress()))
            }
        };
        self.panel.with(|values| {
            match of.served() {
                Some(served) => show(values, &of.chosen.trigger, &served.progress()),
                None if reason == Reason::Failed => {
                    values.set_line("PCAP.HEALTH", HEALTH[4]);
                }
                None => {}
            }
            // At once: who sees that it is not active any more may arm the next one.
            values.set_bit("PCAP.ACTIVE", false);
            of.finish(reason);
        });
    }

    /// Starts, pauses and stops the run as its gates say, until all its rows are there.
    async fn conduct(&self, of: &Acquisition, served: &Arc<ServedRun>) {
        let mut changes = self.panel.watch();
        let mut asked = of.asked.subscribe();
        let mut progress = served.spool().watch();
        // The change of the panel at which it was started.
        let mut started = None;
        let mut is_paused = false;
        loop {
            changes.borrow_and_update();
            let (is_enabled, rise, is_open, now) = self.panel.with(|values| {
                let (enable, gate) = ("PCAP.ENABLE", "PCAP.GATE");
                let now = values.changes();
                (
                    values.input(enable),
                    values.rise(enable),
                    values.input(gate),
                    now,
                )
            });
            // What rose again has fallen, however short that was.
            if started.is_some_and(|started| !is_enabled || rise > started) {
                of.end(Reason::Ok);
            }
            if asked.borrow_and_update().is_some() || self.daemon.stop.is_cancelled() {
                of.end(Reason::Disarmed);
                call(served, ServedRun::stop).await;
                let _ = progress.wait_for(Progress::is_over).await;
                return;
            }
            if started.is_none() && is_enabled && is_open {
                started = Some(now);
                if !call(served, ServedRun::start).await {
                    of.end(Reason::Failed);
                    continue;
                }
                of.counts.send_replace(true);
            } else if started.is_some() && is_open == is_paused {
                let action = if is_open {
                    ServedRun::resume
                } else {
                    ServedRun::pause
                };
                call(served, action).await;
                is_paused = !is_open;
                of.counts.send_replace(is_open);
            }
            tokio::select! {
                _ = changes.changed() => {}
                _ = asked.changed() => {}
                () = self.daemon.stop.cancelled() => {}
                _ = progress.wait_for(Progress::is_over) => return,
            }
        }
    }

    /// Brings what a client sees of the run up to date.
    pub fn look(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        *looked = Some(Instant::now());
        drop(looked);
        let Some((last, served)) = self.last().and_then(|last| {
            let served = last.served()?;
            Some((last, served))
        }) else {
            return;
        };
        let progress = served.progress();
        let newest = progress.next.checked_sub(1).and_then(|row| {
            // The newest row is in memory. With the one before it, it is known what was missed between them.
            let mut rows = served.cursor(From::Row(row.saturating_sub(1)));
            let before = rows.ready(1);
            rows.skip_to(row);
            rows.ready(1).or(before)
        });
        self.panel.with(|values| {
            show(values, &last.chosen.trigger, &progress);
            let Some(row) = newest.as_ref().and_then(|block| block.rows().last()) else {
                return;
            };
            values.set_bit("PCAP.FAILED", !row.faults.is_empty());
            let missed = newest.as_ref().map_or(0, Block::missed);
            values.set_bit("PCAP.MISSED", missed > 0);
            let channels = capture::channels(&last.chosen.captures);
            for capture in &last.chosen.captures {
                let Origin::Channel(source) = &capture.from else {
                    continue;
                };
                let place = channels.iter().position(|name| *name == source.channel);
                let word = place.and_then(|place| row.values.get(place).copied());
                if let (Some(word), Some(false)) = (word, place.map(|p| row.faults.failed(p))) {
                    if let Some(position) = position(source.kind, word) {
                        values.set_line(&capture.name, position);
                    }
                }
            }
        });
    }

    /// Where the run is.
    pub fn status(&self) -> Status {
        let Some(last) = self.last() else {
            return Status {
                completion: Reason::Ok.word(),
                ..Status::default()
            };
        };
        let progress = last.served().map(|served| served.progress());
        Status {
            is_active: !last.is_over(),
            readers: last.readers(),
            rows: progress.as_ref().map_or(0, |progress| progress.next),
            completion: last.reason(progress.as_ref()).word(),
        }
    }
}

/// Calls of the run may take as long as the engine needs. Answers whether it was done: what does not work after the start
/// is the end of the run, whose account says how.
async fn call(served: &Arc<ServedRun>, what: fn(&ServedRun) -> Result<(), Words>) -> bool {
    let served = Arc::clone(served);
    matches!(spawn_blocking(move || what(&served)).await, Ok(Ok(())))
}

/// A position is a whole number for the stock clients; they scale it.
fn position(kind: Type, word: u64) -> Option<String> {
    match kind {
        Type::U64 => Some(word.to_string()),
        Type::S64 => Some((word as i64).to_string()),
        Type::F64 => Some(f64::from_bits(word))
            .filter(|value| value.is_finite())
            .map(|value| format!("{value:.0}")),
    }
}

/// Triggers without a row, as many as the field can say.
fn missed(progress: &Progress) -> u64 {
    let run = progress.run.as_ref();
    let missed = run.map_or(0, |run| run.missed_by.iter().sum());
    missed.min(u64::from(u32::MAX))
}

/// What is to be seen of its account.
fn show(values: &mut Values, trigger: &Trigger, progress: &Progress) {
    values.set_line("PCAP.HEALTH", health(progress));
    values.set_line("PCAP.TRIG_LOST", missed(progress).to_string());
    values.set_bit("PCAP.LOST", progress.lost > 0);
    if let Trigger::Compare(number) = trigger {
        let produced = format!("PCOMP{}.PRODUCED", number + 1);
        values.set_line(&produced, progress.next.to_string());
    }
}

fn health(progress: &Progress) -> &'static str {
    let errors = progress.run.as_ref().map_or(0, |run| run.errors);
    let has_failed = progress.failed.is_some()
        || (progress.totals.as_ref()).is_some_and(|t| matches!(t.end, End::Failed(_)));
    match () {
        () if has_failed => HEALTH[4],
        () if progress.lost > 0 => HEALTH[2],
        () if missed(progress) > 0 => HEALTH[1],
        () if errors > 0 => HEALTH[3],
        () => HEALTH[0],
    }
}
