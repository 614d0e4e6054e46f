// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes one run from the bus. Messages come in any order and more than once; each row is given on once, in its order, and
//! acknowledged when it is in the files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use strobe::error::Words;
use strobe::stop::Stop;
use tokio::time::sleep;

use super::bus_recording::BusRecording;
use super::message::{self, Head};
use super::message_rows::MessageRows;
use super::order::Order;
use super::publish::with_sources;
use super::resume::{Resume, resume};
use super::{AGAIN, PREFIX, word};

/// A subscriber that has not come for so long is forgotten, and there is one for each run.
const FORGET: Duration = Duration::from_secs(30 * 24 * 3600);
/// What was not acknowledged by then is given again.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);
/// Messages that are taken at once.
const AT_ONCE: usize = 64;
/// How often it is looked whether the files have room for more.
const LOOK: Duration = Duration::from_millis(5);

/// Why it does not go on.
pub enum Choice {
    /// It never will.
    Words(Words),
    /// The bus is away.
    Away(String),
}

/// One run.
pub struct RunReceiver {
    name: String,
    subject: String,
    stream: Stream,
    recording: Arc<BusRecording>,
    is_first: bool,
    /// Where messages are handed in.
    rows: Option<SyncSender<(Head, Vec<u8>)>>,
    order: Option<Order<Message>>,
    /// The first row that is wanted.
    begin: u64,
    /// Of a second run: rows before this one are not needed any more.
    done: Arc<AtomicU64>,
    /// Messages that were given to the sinks, and were not acknowledged yet.
    given: VecDeque<(Head, Message)>,
    is_over: bool,
}

impl RunReceiver {
    /// Of this run, under this name, into these files. A second run is told by the first one, here, what is `done`.
    pub fn new(
        name: &str,
        (subject, stream): (String, Stream),
        recording: &Arc<BusRecording>,
        is_first: bool,
        done: &Arc<AtomicU64>,
    ) -> Self {
        RunReceiver {
            name: name.to_owned(),
            subject,
            stream,
            recording: Arc::clone(recording),
            is_first,
            rows: None,
            order: None,
            begin: 0,
            done: Arc::clone(done),
            given: VecDeque::new(),
            is_over: false,
        }
    }

    /// Whether all of the run was taken, now or before.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes it to its end, or until no more is wanted.
    ///
    /// # Errors
    /// It cannot be taken.
    pub async fn run(&mut self, stop: &Stop) -> Result<(), Words> {
        let mut done = Ok(());
        while !self.is_done(stop) && done.is_ok() {
            match self.some(stop).await {
                Ok(()) => {}
                // It is away: what was not acknowledged is given again.
                Err(Choice::Away(_)) => sleep(AGAIN).await,
                Err(Choice::Words(words)) => done = Err(words),
            }
        }
        // Of a run that has nothing to give there will be no file.
        if done.is_err() || (self.rows.take().is_none() && self.is_first) {
            self.recording.end();
        }
        // What was given is still being written.
        while !self.recording.is_over() && !stop.is_over() && done.is_ok() {
            sleep(LOOK).await;
            let _ = self.acknowledge(false).await;
        }
        done
    }

    fn is_done(&self, stop: &Stop) -> bool {
        self.is_over || stop.is_over() || self.recording.is_over()
    }

    /// Takes what there is.
    async fn some(&mut self, stop: &Stop) -> Result<(), Choice> {
        let away = |error: &dyn std::error::Error| Choice::Away(with_sources(error));
        let consumer = self.consumer().await?;
        if self.order.is_none() {
            let floor = consumer.cached_info().ack_floor;
            match resume(&self.stream, &self.subject, floor).await {
                Ok(Resume::Row(row)) => self.begin_at(row),
                Ok(Resume::Over) => return self.taken_before().await,
                Err(why) => return Err(Choice::Away(why)),
            }
        }
        while !self.is_done(stop) {
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
            self.give(stop).await?;
            self.acknowledge(false).await?;
            if is_quiet && self.stream.get_info().await.is_err() {
                return Err(Choice::Away("the bus is not reachable".to_owned()));
            }
        }
        Ok(())
    }

    fn begin_at(&mut self, row: u64) {
        (self.begin, self.order) = (row, Some(Order::new(row)));
        match self.is_first {
            true => self.recording.begin_at(row),
            false => self.done.store(row, Ordering::Relaxed),
        }
    }

    /// The bus has heard that all of it was taken. The first run needs no file then; a second one has no more rows.
    async fn taken_before(&mut self) -> Result<(), Choice> {
        if !self.is_first {
            let last = self.stream.get_last_raw_message_by_subject(&self.subject);
            let last = last
                .await
                .map_err(|error| Choice::Away(with_sources(&error)))?;
            if let Some(head) = Head::read(&last.headers) {
                self.begin_at(head.first);
                self.hand(head, last.payload.to_vec(), &Stop::default())
                    .await?;
            }
        }
        self.is_over = true;
        Ok(())
    }

    async fn consumer(&self) -> Result<Consumer<Config>, Choice> {
        // Each run has its own, so that the same name does for the next run.
        let run = self.subject.trim_start_matches(PREFIX).replace('.', "-");
        let name = word(&self.name) + &run;
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
                    format!("subscriber {}", self.name),
                    format!("the bus has this name for {of}"),
                )
                .mend("use another name: --name"),
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

    /// Whether the rows of this message are in the files, or are not needed for them.
    fn is_written(&self, head: &Head) -> bool {
        let written = match self.is_first {
            true => self.recording.written(),
            false => self.done.load(Ordering::Relaxed),
        };
        !head.end && head.next <= written
    }

    /// Gives to the files what comes next.
    async fn give(&mut self, stop: &Stop) -> Result<(), Choice> {
        while let Some((head, message)) = self.order.as_mut().and_then(Order::next) {
            self.hand(head, message.payload.to_vec(), stop).await?;
            self.is_over |= head.end;
            self.given.push_back((head, message));
        }
        Ok(())
    }

    /// Hands in a message, once there is room for it.
    async fn hand(&mut self, head: Head, bytes: Vec<u8>, stop: &Stop) -> Result<(), Choice> {
        if self.rows.is_none() && !bytes.is_empty() {
            let begun = self.begin(bytes.clone());
            self.rows = Some(begun.map_err(Choice::Words)?);
        }
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        let mut message = (head, bytes);
        while let Err(TrySendError::Full(again)) = rows.try_send(message) {
            if stop.is_over() || self.recording.is_over() {
                break;
            }
            message = again;
            sleep(LOOK).await;
        }
        Ok(())
    }

    fn begin(&self, bytes: Vec<u8>) -> Result<SyncSender<(Head, Vec<u8>)>, Words> {
        let info = message::read(&self.subject, bytes)?.info;
        let (sender, messages) = sync_channel(AT_ONCE);
        let rows = MessageRows::new(self.subject.clone(), info, self.begin, messages);
        self.recording.offer(self.is_first, rows)?;
        Ok(sender)
    }

    /// Tells the bus what is in the files; that the account is, if they are whole.
    ///
    /// # Errors
    /// It is away.
    pub async fn acknowledge(&mut self, are_whole: bool) -> Result<(), Choice> {
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
            let last = self.given.drain(..heard).next_back();
            if let (true, Some((head, _))) = (self.is_first, last) {
                if let Some(row) = self.recording.acknowledged(head.next) {
                    self.done.store(row, Ordering::Relaxed);
                }
            }
            if heard < told.len() {
                return Err(Choice::Away(
                    "it did not confirm the rows that were recorded".to_owned(),
                ));
            }
        }
    }
}
