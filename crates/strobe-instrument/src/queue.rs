// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an instrument is wanted to do: questions and commands of rows, and questions that it is asked by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::count::Counts;
use crate::fault::Fault;
use crate::latest::Latest;

/// A question or command of a run: it is given to the instrument's thread, and its end is waited for. To do that allocates
/// nothing.
#[derive(Debug)]
pub struct Errand {
    pub(crate) job: Job,
    state: Mutex<State>,
    done: Condvar,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// To ask this question.
    Ask(usize),
    /// To give this output a value.
    Tell(usize),
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// What is written.
    word: u64,
    result: Result<(), Fault>,
    /// Of each channel of the question, what was read.
    words: Vec<Option<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody wants it.
    Idle,
    /// The thread has it.
    Given,
    /// The thread has it, and nobody waits any more.
    LeftAlone,
    /// It is done.
    Done,
}

/// What the thread of an instrument is to do, and whether it can.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    /// Something was added.
    more: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    is_connected: bool,
    is_over: bool,
    errands: VecDeque<Arc<Errand>>,
    /// Errands that were made: as many have room.
    made: usize,
    watches: Vec<Watch>,
}

/// A question that is asked by itself.
#[derive(Debug)]
struct Watch {
    question: usize,
    every: Duration,
    due: Instant,
    latest: Arc<Latest>,
}

/// The next thing to do.
pub(crate) enum Next {
    Errand(Arc<Errand>),
    Watch(usize, Arc<Latest>),
    Over,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Errand {
    fn new(job: Job, channels: usize) -> Errand {
        let state = State {
            stage: Stage::Idle,
            word: 0,
            result: Err(Fault::Absent),
            words: vec![None; channels],
        };
        Errand {
            job,
            state: Mutex::new(state),
            done: Condvar::new(),
        }
    }

    /// The value to write.
    pub(crate) fn word(&self) -> u64 {
        lock(&self.state).word
    }

    /// It is done. Counts how it ended, unless nobody waited for it.
    pub(crate) fn finish(&self, counts: &Counts, result: Result<&[Option<u64>], Fault>) {
        let mut state = lock(&self.state);
        // Who waited has a late row already.
        let is_late = state.stage == Stage::LeftAlone;
        let ended = match result {
            _ if is_late => Err(Fault::Late),
            // If one of its channels was wrong, so was the answer.
            Ok(words) if words.iter().any(Option::is_none) => Err(Fault::Wrong),
            result => result.map(drop),
        };
        counts.add(ended);
        state.result = result.map(drop);
        if let Ok(words) = result {
            state.words.copy_from_slice(words);
        }
        state.stage = match is_late {
            true => Stage::Idle,
            false => Stage::Done,
        };
        drop(state);
        self.done.notify_all();
    }

    /// Waits until it is done, at most so long. Its words can be had until it is given again.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn wait(&self, patience: Duration) -> Result<(), Fault> {
        let until = Instant::now() + patience;
        let mut state = lock(&self.state);
        while state.stage == Stage::Given {
            let within = until.saturating_duration_since(Instant::now());
            if within.is_zero() {
                state.stage = Stage::LeftAlone;
                state.result = Err(Fault::Late);
                break;
            }
            let waited = self.done.wait_timeout(state, within);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match state.stage {
            Stage::Done => state.result,
            _ => Err(Fault::Late),
        }
    }

    /// The word of a channel, the answer being here.
    ///
    /// # Errors
    /// There is none.
    pub fn channel(&self, channel: usize) -> Result<u64, Fault> {
        let state = lock(&self.state);
        match (state.stage, state.result) {
            (Stage::Done, Ok(())) => {
                let word = state.words.get(channel).copied().flatten();
                word.ok_or(Fault::Wrong)
            }
            (_, Err(fault)) => Err(fault),
            _ => Err(Fault::Late),
        }
    }
}

impl Queue {
    /// A new errand.
    pub(crate) fn errand(&self, job: Job, channels: usize) -> Arc<Errand> {
        let mut inner = lock(&self.inner);
        inner.made += 1;
        let room = inner.made.saturating_sub(inner.errands.len());
        inner.errands.reserve(room);
        Arc::new(Errand::new(job, channels))
    }

    /// Gives an errand to the thread; if there is no connection, it has failed.
    pub(crate) fn give(&self, errand: &Arc<Errand>, word: u64, counts: &Counts) {
        let mut inner = lock(&self.inner);
        let mut state = lock(&errand.state);
        state.word = word;
        match state.stage {
            // The thread has not even noticed that nobody waits for it.
            Stage::Given | Stage::LeftAlone => {
                counts.add(Err(Fault::Late));
                state.result = Err(Fault::Late);
            }
            Stage::Idle | Stage::Done if !inner.is_connected => {
                counts.add(Err(Fault::Absent));
                state.result = Err(Fault::Absent);
                state.stage = Stage::Done;
            }
            Stage::Idle | Stage::Done => {
                state.stage = Stage::Given;
                drop(state);
                inner.errands.push_back(Arc::clone(errand));
                drop(inner);
                self.more.notify_one();
            }
        }
    }

    /// The latest answer to a question, which is asked this often from now on.
    pub(crate) fn watch(
        &self,
        question: usize,
        every: Duration,
        make: impl FnOnce() -> Latest,
    ) -> Arc<Latest> {
        let mut inner = lock(&self.inner);
        let known = inner.watches.iter().find(|w| w.question == question);
        if let Some(watch) = known {
            return Arc::clone(&watch.latest);
        }
        let latest = Arc::new(make());
        inner.watches.push(Watch {
            question,
            every,
            due: Instant::now(),
            latest: Arc::clone(&latest),
        });
        drop(inner);
        self.more.notify_one();
        latest
    }

    /// What to do next; waits until there is something. What is due by itself comes before rows, so that they cannot keep
    /// it away; there is one between two of them at most.
    pub(crate) fn next(&self, was_watch: bool) -> Next {
        let mut inner = lock(&self.inner);
        loop {
            if inner.is_over {
                return Next::Over;
            }
            let now = Instant::now();
            let has_errand = !inner.errands.is_empty();
            let due = inner.watches.iter_mut().min_by_key(|watch| watch.due);
            let mut wait = None;
            if let Some(watch) = due {
                if watch.due <= now && !(was_watch && has_errand) {
                    // From now, not from when it was due: what was not asked is not caught up with.
                    watch.due = now + watch.every;
                    return Next::Watch(watch.question, Arc::clone(&watch.latest));
                }
                wait = Some(watch.due.saturating_duration_since(now));
            }
            if let Some(errand) = inner.errands.pop_front() {
                return Next::Errand(errand);
            }
            inner = match wait {
                None => self
                    .more
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let waited = self.more.wait_timeout(inner, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// There is a connection. All that is asked by itself is asked at once.
    pub(crate) fn connected(&self) {
        let mut inner = lock(&self.inner);
        inner.is_connected = true;
        let now = Instant::now();
        inner.watches.iter_mut().for_each(|watch| watch.due = now);
    }

    /// There is no connection any more: nothing can be done, and the latest answers are none.
    pub(crate) fn lost(&self, counts: &Counts) {
        let mut inner = lock(&self.inner);
        inner.is_connected = false;
        while let Some(errand) = inner.errands.pop_front() {
            errand.finish(counts, Err(Fault::Absent));
        }
        let now = Instant::now();
        for watch in &inner.watches {
            watch.latest.write(now, Err(Fault::Absent));
        }
    }

    /// Waits this long, or until it is over; whether it is.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut inner = lock(&self.inner);
        while !inner.is_over {
            let within = until.saturating_duration_since(Instant::now());
            if within.is_zero() {
                break;
            }
            let waited = self.more.wait_timeout(inner, within);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.is_over
    }

    /// It is over.
    pub(crate) fn end(&self) {
        lock(&self.inner).is_over = true;
        self.more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_thread_has_not_come_to_is_late_and_is_counted_so() {
        let (queue, counts) = (Queue::default(), Counts::default());
        queue.connected();
        let errand = queue.errand(Job::Ask(0), 1);
        queue.give(&errand, 0, &counts);
        assert_eq!(errand.wait(Duration::ZERO), Err(Fault::Late));
        // The next row wants it, and the thread still has it.
        queue.give(&errand, 0, &counts);
        assert_eq!(errand.wait(Duration::ZERO), Err(Fault::Late));
        assert_eq!(errand.channel(0), Err(Fault::Late));
        let named = |name| counts.named(name);
        assert_eq!((named("late"), named("absent")), (Some(1), Some(0)));
        errand.finish(&counts, Ok(&[Some(5)]));
        assert_eq!((named("late"), named("questions")), (Some(2), Some(2)));
    }
}
