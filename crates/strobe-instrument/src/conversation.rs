// SPDX-License-Identifier: MIT OR Apache-2.0
//! A conversation with one instrument: a thread that alone speaks to it, and reaches it again when it has gone.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use strobe_board::instrument::{Command, Instrument, Mode, Pattern, Reply};

use crate::count::Counts;
use crate::fault::{Fault, Left, Trouble};
use crate::latest::Latest;
use crate::line::Line;
use crate::queue::{Errand, Job, Next, Queue};
use crate::reach::reach;
use crate::text::no_room;

/// Most errors that are taken from an instrument's queue at once.
const ERRORS_MAX: usize = 64;
/// What the thread may take beyond the timeouts of what it does.
const SLACK: Duration = Duration::from_secs(1);

/// A conversation with one instrument. It ends when this is dropped.
pub struct Conversation {
    instrument: Arc<Instrument>,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    epoch: Instant,
    /// Hung up when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conversation({})", self.instrument.transport)
    }
}

impl Conversation {
    /// Reaches the instrument, sees that it is the right one, and tells it what `[open]` says.
    ///
    /// # Errors
    /// It cannot be reached, or is another one; why, and what may help.
    pub fn open(instrument: Instrument) -> Result<Conversation, String> {
        let instrument = Arc::new(instrument);
        let line = begin(&instrument)?;
        let (end, ended) = channel();
        let conversation = Conversation {
            instrument: Arc::clone(&instrument),
            queue: Arc::default(),
            counts: Arc::default(),
            epoch: Instant::now(),
            ended: Mutex::new(ended),
        };
        conversation.queue.connected();
        let speaker = Speaker {
            instrument,
            queue: Arc::clone(&conversation.queue),
            counts: Arc::clone(&conversation.counts),
            line,
            answer: Vec::new(),
            words: Vec::new(),
            _end: end,
        };
        let thread = Builder::new().name("strobe-speak".to_owned());
        let thread = thread.spawn(|| speaker.run());
        thread.map_err(|error| format!("its thread cannot be started: {error}"))?;
        Ok(conversation)
    }

    /// What was counted of it.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// A question, to be asked by the rows of a run.
    pub fn question(&self, question: usize) -> Arc<Errand> {
        let known = self.instrument.questions.get(question);
        let channels = known.map_or(0, |question| question.channels.len());
        self.queue.errand(Job::Ask(question), channels)
    }

    /// An output, to be written by the rows of a run.
    pub fn output(&self, output: usize) -> Arc<Errand> {
        self.queue.errand(Job::Tell(output), 0)
    }

    /// Gives an errand to the instrument's thread, with a word if it writes one.
    pub fn give(&self, errand: &Arc<Errand>, word: u64) {
        self.queue.give(errand, word, &self.counts);
    }

    /// How long to wait for an errand: as long as the thread may take for all that it has to do before.
    pub fn patience(&self) -> Duration {
        let questions = self.instrument.questions.iter().map(|q| q.timeout);
        let outputs = self.instrument.outputs.iter().map(|o| o.timeout);
        questions.chain(outputs).sum::<Duration>() + SLACK
    }

    /// The latest answer to a question, which is asked by itself from now on.
    pub fn latest(&self, question: usize) -> Arc<Latest> {
        let known = self.instrument.questions.get(question);
        let channels = known.map_or(0, |question| question.channels.len());
        let every = match known.map(|question| question.mode) {
            Some(Mode::Latest(every)) => every,
            _ => Duration::from_secs(1),
        };
        let make = || Latest::new(self.epoch, channels);
        self.queue.watch(question, every, make)
    }
}

impl Drop for Conversation {
    /// The thread lets go of the instrument, unless what it waits for does not end: then it does so later.
    fn drop(&mut self) {
        self.queue.end();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent.
        let _ = ended.recv_timeout(self.patience());
    }
}

/// Reaches an instrument, and begins.
fn begin(instrument: &Instrument) -> Result<Box<dyn Line>, String> {
    let mut line = reach(instrument)?;
    greet(line.as_mut(), instrument)?;
    open(line.as_mut(), instrument)?;
    Ok(line)
}

/// Sees that the instrument is the right one.
fn greet(line: &mut dyn Line, instrument: &Instrument) -> Result<(), String> {
    let Some(identity) = &instrument.identity else {
        return Ok(());
    };
    let mut answer = Vec::new();
    let until = Instant::now() + instrument.timeout;
    let place = &instrument.transport;
    let asked = line.ask(&identity.query, Reply::Text, &mut answer, until);
    asked.map_err(|trouble| format!("{place}: {}: {}", identity.query, trouble.why))?;
    match identity.expect.read(&answer) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{place}: {} answers \"{:.80}\", which does not match `expect` in [identity]; is it the right instrument?",
            identity.query,
            String::from_utf8_lossy(&answer).escape_debug().to_string()
        )),
    }
}

/// Tells the instrument how to begin.
fn open(line: &mut dyn Line, instrument: &Instrument) -> Result<(), String> {
    let place = &instrument.transport;
    if let Some(errors) = &instrument.errors {
        // Those of before are nobody's here.
        clear(line, errors, instrument.timeout)
            .map_err(|trouble| format!("{place}: {errors}: {}", trouble.why))?;
    }
    for command in &instrument.open {
        let until = Instant::now() + instrument.timeout;
        let told = line.tell(command, 0.0, until);
        let told = told.and_then(|()| accepted(line, instrument, until));
        told.map_err(|trouble| format!("{place}: {command}: {}", trouble.why))?;
    }
    Ok(())
}

/// Whether the instrument has accepted what it was told, if it says so.
fn accepted(line: &mut dyn Line, instrument: &Instrument, until: Instant) -> Result<(), Trouble> {
    let Some(errors) = &instrument.errors else {
        return Ok(());
    };
    match error(line, errors, until)? {
        None => Ok(()),
        Some(why) => {
            clear(line, errors, instrument.timeout)?;
            Err(Trouble::new(
                Fault::Refused,
                Left::All,
                format!("it refuses: {why}"),
            ))
        }
    }
}

/// The first error that an instrument has noted.
fn error(line: &mut dyn Line, errors: &Command, until: Instant) -> Result<Option<String>, Trouble> {
    let mut answer = Vec::new();
    line.ask(errors, Reply::Text, &mut answer, until)?;
    match Pattern::leading(&answer) {
        Some(0.0) => Ok(None),
        Some(_) => Ok(Some(
            String::from_utf8_lossy(&answer)
                .trim()
                .chars()
                .take(80)
                .collect(),
        )),
        None => Err(Trouble::new(
            Fault::Wrong,
            Left::All,
            "its error list has no number",
        )),
    }
}

/// Takes all errors that an instrument has noted.
fn clear(line: &mut dyn Line, errors: &Command, timeout: Duration) -> Result<(), Trouble> {
    let until = Instant::now() + timeout;
    for _ in 0..ERRORS_MAX {
        if error(line, errors, until)?.is_none() {
            return Ok(());
        }
    }
    Err(Trouble::new(
        Fault::Refused,
        Left::All,
        "its error list has no end",
    ))
}

/// What the thread has.
struct Speaker {
    instrument: Arc<Instrument>,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    line: Box<dyn Line>,
    answer: Vec<u8>,
    words: Vec<Option<u64>>,
    _end: Sender<()>,
}

impl Speaker {
    /// Until nobody wants it any more.
    fn run(mut self) {
        let mut was_watch = false;
        loop {
            let next = self.queue.next(was_watch);
            was_watch = matches!(next, Next::Watch(..));
            let done = match next {
                Next::Over => return,
                Next::Errand(errand) => {
                    let done = match errand.job {
                        Job::Ask(question) => self.ask(question),
                        Job::Tell(output) => {
                            self.words.clear();
                            self.tell(output, errand.word())
                        }
                    };
                    let result = done.as_ref().map(|()| self.words.as_slice());
                    errand.finish(&self.counts, result.map_err(|trouble| trouble.fault));
                    done
                }
                Next::Watch(question, latest) => {
                    let asked = Instant::now();
                    let done = self.ask(question);
                    let result = done.as_ref().map(|()| self.words.as_slice());
                    let result = result.map_err(|trouble| trouble.fault);
                    // Counted first: who sees an answer sees it counted.
                    self.counts.add(match result {
                        Ok(words) if words.iter().any(Option::is_none) => Err(Fault::Wrong),
                        result => result.map(drop),
                    });
                    latest.write(asked, result);
                    done
                }
            };
            let left = done
                .as_ref()
                .map_or_else(|trouble| trouble.left, |()| Left::All);
            if left != Left::All && self.restore(left).is_none() {
                return;
            }
        }
    }

    /// Asks, and cuts the channels from the answer.
    fn ask(&mut self, question: usize) -> Result<(), Trouble> {
        let instrument = Arc::clone(&self.instrument);
        let Some(asked) = instrument.questions.get(question) else {
            return Err(Trouble::new(
                Fault::Wrong,
                Left::All,
                "there is no such question",
            ));
        };
        self.answer.clear();
        self.words.clear();
        let until = Instant::now() + asked.timeout;
        self.line
            .ask(&asked.command, asked.reply, &mut self.answer, until)?;
        for channel in &asked.channels {
            let channel = instrument.channels.get(*channel);
            self.words
                .push(channel.and_then(|channel| channel.cut.word(&self.answer)));
        }
        let is_wrong = self.words.iter().any(Option::is_none);
        // A large answer is not kept.
        self.answer.shrink_to(4096);
        match &instrument.errors {
            // What it complains about is not blamed on who writes next.
            Some(errors) if is_wrong => clear(self.line.as_mut(), errors, instrument.timeout),
            _ => Ok(()),
        }
    }

    fn tell(&mut self, output: usize, word: u64) -> Result<(), Trouble> {
        let instrument = Arc::clone(&self.instrument);
        let Some(output) = instrument.outputs.get(output) else {
            return Err(Trouble::new(
                Fault::Wrong,
                Left::All,
                "there is no such output",
            ));
        };
        let until = Instant::now() + output.timeout;
        let value = output.value(word).ok_or_else(no_room)?;
        self.line.tell(&output.send, value, until)?;
        accepted(self.line.as_mut(), &instrument, until)
    }

    /// Reaches the instrument again, however long it takes; `None` if nobody wants it any more.
    fn restore(&mut self, left: Left) -> Option<()> {
        self.queue.lost(&self.counts);
        if left == Left::Line {
            // No answer of before may come after the next question.
            let settled = self.line.settle(self.instrument.timeout);
            let settled = settled.is_some_and(|settled| settled.is_ok());
            if settled && greet(self.line.as_mut(), &self.instrument).is_ok() {
                self.queue.connected();
                return Some(());
            }
        }
        self.line = Box::new(Gone);
        loop {
            if let Ok(line) = begin(&self.instrument) {
                self.line = line;
                self.counts.reconnected();
                self.queue.connected();
                return Some(());
            }
            if self.queue.rest(self.instrument.retry) {
                return None;
            }
        }
    }
}

/// Instead of a connection that was let go.
struct Gone;

impl Line for Gone {
    fn ask(&mut self, _: &Command, _: Reply, _: &mut Vec<u8>, _: Instant) -> Result<(), Trouble> {
        Err(Trouble::hung_up())
    }

    fn tell(&mut self, _: &Command, _: f64, _: Instant) -> Result<(), Trouble> {
        Err(Trouble::hung_up())
    }
}
