// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the rows of one run from the bus into sinks, on any machine.
//!
//! The bus remembers how far this subscriber has come with this run, by its name. A message is acknowledged once its rows
//! are in the files, so that one that is killed goes on where it was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{AckKind, Message};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, TryStreamExt as _};
use strobe::error::Words;
use strobe::stop::Stop;
use strobe_files::record::{Observer, Progress};
use strobe_files::recorder::{Recorder, Recording};
use strobe_files::sink::Existing;
use strobe_files::summary::Summary;
use tokio::time::sleep;

use super::incoming::Incoming;
use super::message::{self, Head};
use super::order::Order;
use super::publish::with_sources;
use super::resume::{Resume, resume};
use super::{AGAIN, PREFIX, connect, shown, word};

/// A subscriber that has not come for so long is forgotten, and there is one for each run.
const FORGET: Duration = Duration::from_secs(30 * 24 * 3600);
/// What was not acknowledged by then is given again.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);
/// Messages that are taken at once.
const AT_ONCE: usize = 64;

/// What to take, and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the bus is.
    pub url: String,
    /// The stream that keeps the rows.
    pub stream: String,
    /// The run: the name of its recipe, or its whole subject. `None`: the only one.
    pub run: Option<String>,
    /// Under which name the bus remembers how far this has come.
    pub name: String,
    /// Where rows go.
    pub sinks: Vec<String>,
    /// What becomes of files that are there already.
    pub existing: Existing,
}

/// What has become of it.
pub enum Outcome {
    /// Rows were taken.
    Recorded(Box<Summary>),
    /// Under this name all of the run was taken before.
    TakenBefore,
    /// It was told to stop before there were any rows.
    Interrupted,
}

/// Takes the rows of a run to its end, or until it is told to stop.
///
/// # Errors
/// There is no such run, or nothing can be written.
pub async fn subscribe(options: Options, stop: &Stop) -> Result<Outcome, Words> {
    let context = connect(&options.url).await?;
    let mut said = String::new();
    let (subject, stream) = loop {
        if stop.is_over() {
            return Ok(Outcome::Interrupted);
        }
        let found = match context.get_stream(&options.stream).await {
            Ok(stream) => match choose(&stream, &options).await {
                Ok(Some(subject)) => break (subject, stream),
                Ok(None) => "it has no such run yet".to_owned(),
                Err(Choice::Words(words)) => return Err(words),
                Err(Choice::Away(why)) => why,
            },
            Err(error) => with_sources(&error),
        };
        if found != said {
            eprintln!(
                "strobe subscribe: {}, stream {}: {found}; waiting for it",
                shown(&options.url),
                options.stream
            );
            said = found;
        }
        sleep(AGAIN).await;
    };
    eprintln!("strobe subscribe: {subject}");
    let mut taking = Taking {
        options,
        subject,
        stream,
        recording: None,
        order: None,
        begin: 0,
        written: Arc::default(),
        given: VecDeque::new(),
        is_over: false,
    };
    taking.run(stop).await
}

enum Choice {
    Words(Words),
    Away(String),
}

/// The subject of the run that is meant.
async fn choose(stream: &Stream, options: &Options) -> Result<Option<String>, Choice> {
    let filter = match &options.run {
        Some(run) if run.starts_with(&format!("{PREFIX}.")) => run.clone(),
        Some(run) => format!("{PREFIX}.*.{}.*", word(run)),
        None => format!("{PREFIX}.>"),
    };
    let away = |error: &dyn std::error::Error| Choice::Away(with_sources(error));
    let found = stream.info_with_subjects(&filter).await;
    let found = found.map_err(|error| away(&error))?;
    let found: Vec<(String, usize)> = found.try_collect().await.map_err(|error| away(&error))?;
    let mut subjects: Vec<String> = found.into_iter().map(|(subject, _)| subject).collect();
    subjects.sort_unstable();
    match subjects.as_slice() {
        [] => Ok(None),
        [subject] => Ok(Some(subject.clone())),
        several => Err(Choice::Words(
            Words::new(
                format!("stream {}", options.stream),
                "it has several such runs",
            )
            .mend(format!("say which: --run {}", several.join(", or --run "))),
        )),
    }
}

/// A recording, and where its messages are handed in.
type Filling = (Recording, SyncSender<(Head, Vec<u8>)>);

struct Taking {
    options: Options,
    subject: String,
    stream: Stream,
    recording: Option<Filling>,
    order: Option<Order<Message>>,
    /// The first row that is wanted.
    begin: u64,
    /// Rows before this one are in the files.
    written: Arc<AtomicU64>,
    /// Messages that were given to the sinks, and were not acknowledged yet.
    given: VecDeque<(Head, Message)>,
    is_over: bool,
}

/// Hears of what is in the files.
struct Written(Arc<AtomicU64>);

impl Observer for Written {
    fn progress(&mut self, _: Progress) {}

    fn written(&mut self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

impl Taking {
    async fn run(&mut self, stop: &Stop) -> Result<Outcome, Words> {
        while !self.is_over && !stop.is_over() {
            if self
                .recording
                .as_ref()
                .is_some_and(|(recording, _)| recording.is_over())
            {
                break;
            }
            match self.some(stop).await {
                Ok(()) => {}
                // It is away: what was not acknowledged is given again.
                Err(Choice::Away(_)) => sleep(AGAIN).await,
                Err(Choice::Words(words)) => return Err(words),
            }
        }
        let Some((recording, messages)) = self.recording.take() else {
            return Ok(match self.is_over {
                true => Outcome::TakenBefore,
                false => Outcome::Interrupted,
            });
        };
        drop(messages);
        let summary = tokio::task::spawn_blocking(move || recording.join()).await;
        let failed = |why: String| Words::new("the recording", why);
        let summary = summary.map_err(|error| failed(error.to_string()))?;
        let summary = summary.map_err(|error| failed(error.to_string()))?;
        let is_whole = summary.sinks.iter().all(|sink| sink.error.is_none());
        // If the bus is away just now, what was not acknowledged comes once more to who starts this again.
        let _ = self.acknowledge(is_whole).await;
        Ok(Outcome::Recorded(Box::new(summary)))
    }

    /// Takes what there is.
    async fn some(&mut self, stop: &Stop) -> Result<(), Choice> {
        let away = |error: &dyn std::error::Error| Choice::Away(with_sources(error));
        let consumer = self.consumer().await?;
        if self.order.is_none() {
            let floor = consumer.cached_info().ack_floor;
            match resume(&self.stream, &self.subject, floor).await {
                Ok(Resume::Row(row)) => {
                    self.begin = row;
                    self.written.store(row, Ordering::Relaxed);
                    self.order = Some(Order::new(row));
                }
                Ok(Resume::Over) => {
                    self.is_over = true;
                    return Ok(());
                }
                Err(why) => return Err(Choice::Away(why)),
            }
        }
        while !self.is_over && !stop.is_over() {
            let batch = consumer.fetch().max_messages(AT_ONCE);
            let batch = batch.expires(Duration::from_millis(500)).messages().await;
            let mut batch = batch.map_err(|error| away(&error))?;
            let mut messages = Vec::new();
            while let Some(message) = batch.next().await {
                messages.push(message.map_err(|error| Choice::Away(error.to_string()))?);
            }
            let is_quiet = messages.is_empty();
            for message in messages {
                self.take(message).await;
            }
            self.give()?;
            self.acknowledge(false).await?;
            if is_quiet && self.stream.get_info().await.is_err() {
                return Err(Choice::Away("the bus is away".to_owned()));
            }
            if self
                .recording
                .as_ref()
                .is_some_and(|(recording, _)| recording.is_over())
            {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn consumer(&self) -> Result<Consumer<Config>, Choice> {
        // Each run has its own, so that the same name does for the next run.
        let run = self.subject.trim_start_matches(PREFIX).replace('.', "-");
        let name = word(&self.options.name) + &run;
        let config = Config {
            durable_name: Some(name.clone()),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACKNOWLEDGE,
            filter_subject: self.subject.clone(),
            inactive_threshold: FORGET,
            ..Config::default()
        };
        let consumer = self.stream.get_or_create_consumer(&name, config).await;
        let consumer = consumer.map_err(|error| Choice::Away(with_sources(&error)))?;
        let of = &consumer.cached_info().config.filter_subject;
        match *of == self.subject {
            true => Ok(consumer),
            false => Err(Choice::Words(
                Words::new(
                    format!("subscriber {}", self.options.name),
                    format!("the bus knows it as one of {of}"),
                )
                .mend("give this one another name: --name"),
            )),
        }
    }

    async fn take(&mut self, message: Message) {
        let head = message.headers.as_ref().and_then(Head::read);
        let (Some(head), Some(order)) = (head, &mut self.order) else {
            // Of somebody else. It is given again, if the bus does not hear this.
            let _ = message.ack().await;
            return;
        };
        let Some((head, message)) = order.take(head, message) else {
            return;
        };
        if self.is_written(&head) {
            // The bus has not heard it, or it came too late.
            self.given.retain(|(known, _)| *known != head);
            self.given.push_front((head, message));
        } else {
            // Its rows are in memory only. It need not come again soon, but must not be forgotten.
            let _ = message.ack_with(AckKind::Progress).await;
        }
    }

    /// Whether the rows of this message are in the files.
    fn is_written(&self, head: &Head) -> bool {
        !head.end && head.next <= self.written.load(Ordering::Relaxed)
    }

    /// Gives to the sinks what comes next.
    fn give(&mut self) -> Result<(), Choice> {
        while let Some((head, message)) = self.order.as_mut().and_then(Order::next) {
            let bytes = message.payload.to_vec();
            if self.recording.is_none() && !bytes.is_empty() {
                self.recording = Some(self.begin(head, bytes.clone()).map_err(Choice::Words)?);
            }
            if let Some((_, messages)) = &self.recording {
                // Fails when the recording is over: that is seen elsewhere.
                let _ = tokio::task::block_in_place(|| messages.send((head, bytes)));
            }
            self.is_over |= head.end;
            self.given.push_back((head, message));
        }
        Ok(())
    }

    fn begin(&self, head: Head, bytes: Vec<u8>) -> Result<Filling, Words> {
        let journal = message::read(&self.subject, bytes, head.first)?;
        let (sender, messages) = sync_channel(AT_ONCE);
        let rows = Incoming::new(
            self.subject.clone(),
            journal.info().clone(),
            self.begin,
            messages,
        );
        let mut recorder = Recorder::of_rows(Box::new(rows))
            .existing(self.options.existing)
            .observer(Box::new(Written(Arc::clone(&self.written))));
        for sink in &self.options.sinks {
            recorder = recorder.file(sink.clone());
        }
        let recording = recorder.spawn();
        let recording = recording.map_err(|error| Words::new("a thread", error.to_string()))?;
        Ok((recording, sender))
    }

    /// Tells the bus what is in the files; that the account is, if they are whole.
    async fn acknowledge(&mut self, are_whole: bool) -> Result<(), Choice> {
        loop {
            let given = self.given.iter();
            let written = given.take_while(|(head, _)| match head.end {
                true => are_whole,
                false => self.is_written(head),
            });
            let told = written
                .take(AT_ONCE)
                .map(|(_, message)| message.double_ack());
            let told = join_all(told).await;
            if told.is_empty() {
                return Ok(());
            }
            // In their order: the bus remembers up to where it has heard all.
            let heard = told.iter().take_while(|told| told.is_ok()).count();
            self.given.drain(..heard);
            if heard < told.len() {
                return Err(Choice::Away("it does not hear what was taken".to_owned()));
            }
        }
    }
}
