// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings the rows of runs to the bus. The spool is the buffer: while the bus is away, or refuses since it is full, rows
//! stay there, and go on at the row after the last one that the bus has kept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{DiscardPolicy, LastRawMessageErrorKind, Stream};
use futures_util::future::BoxFuture;
use strobe::error::Words;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use super::message::{self, Head};
use super::{AGAIN, PREFIX, connect, shown, stream, word};
use crate::config::publish::Nats;
use crate::cursor::From;
use crate::daemon::Daemon;
use crate::served_run::ServedRun;

/// Rows that come slowly are put together for so long.
const TOGETHER: Duration = Duration::from_millis(100);
/// Bytes of rows in a message, about; the bus takes 1 MiB.
const BYTES: usize = 128 << 10;

/// Publishes the runs that the configuration names, until the daemon ends.
///
/// # Errors
/// The configuration names no server.
pub fn serve(daemon: Arc<Daemon>, config: Nats) -> BoxFuture<'static, Result<(), Words>> {
    Box::pin(publish(daemon, config))
}

async fn publish(daemon: Arc<Daemon>, config: Nats) -> Result<(), Words> {
    let context = connect(&config.url).await?;
    let machine = config.machine.clone();
    let machine = machine.unwrap_or_else(crate::http::machine_name);
    let mut changes = daemon.runs.changes();
    let (mut known, tasks) = (BTreeSet::new(), TaskTracker::new());
    loop {
        for served in daemon.runs.list() {
            let is_wanted =
                config.runs.is_empty() || config.runs.iter().any(|name| name == served.name());
            if is_wanted && known.insert(served.id()) {
                let publisher = Publisher {
                    context: context.clone(),
                    config: config.clone(),
                    machine: machine.clone(),
                };
                let stop = daemon.stop.clone();
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = publisher.run(&served) => {}
                    }
                });
            }
        }
        tokio::select! {
            () = daemon.stop.cancelled() => break,
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

struct Publisher {
    context: Context,
    config: Nats,
    machine: String,
}

/// What the bus has kept of a run.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// Number of its last message, in the stream.
    sequence: u64,
    /// The row after its last one.
    next: u64,
    /// Whether its end was kept, too.
    is_over: bool,
}

const NOTHING: Kept = Kept {
    sequence: 0,
    next: 0,
    is_over: false,
};

impl Publisher {
    /// Publishes a run to its end, however often the bus goes away.
    async fn run(&self, served: &ServedRun) {
        let mut cursor = served.cursor(From::Oldest);
        let info = cursor.info().await;
        if info.start.realtime == 0 {
            // It has ended before it was started: there is nothing to be said of it.
            return;
        }
        let run = format!("{}-{}", info.start.realtime, served.id());
        let subject = [PREFIX, &word(&self.machine), &word(served.name()), &run].join(".");
        drop(cursor);
        let (mut said, mut kept) = (String::new(), None);
        loop {
            let error = match self.publish(served, &subject, &run, &mut kept).await {
                Ok(()) => return,
                Err(error) => error,
            };
            // It may go on for long: once is enough.
            if error != said {
                eprintln!(
                    "strobe serve: {}: {error}; rows wait in the spool",
                    shown(&self.config.url)
                );
                said = error;
            }
            sleep(AGAIN).await;
        }
    }

    /// Publishes from where the bus is, to the end or to the first failure.
    async fn publish(
        &self,
        served: &ServedRun,
        subject: &str,
        run: &str,
        known: &mut Option<Kept>,
    ) -> Result<(), String> {
        let stream = self.stream().await?;
        let mut kept = find(&stream, subject, *known).await?;
        if kept.is_over {
            return Ok(());
        }
        let begun = served.progress().begun;
        kept.next = kept.next.max(begun);
        let mut cursor = served.cursor(From::Row(kept.next));
        let width = served.info().shape().words() as usize * size_of::<u64>();
        let at_once = (BYTES / width).max(1);
        let mut sent = Instant::now();
        while let Some(block) = cursor.next(at_once).await {
            let head = Head::of(&block, begun);
            let bytes = message::rows(&block).map_err(|error| error.to_string())?;
            self.send(subject, run, head, bytes, &mut kept).await?;
            *known = Some(kept);
            if cursor.progress().next.saturating_sub(kept.next) < at_once as u64 / 2 {
                sleep_until(sent + TOGETHER).await;
            }
            sent = Instant::now();
        }
        let progress = served.progress();
        let head = Head {
            first: kept.next,
            next: kept.next,
            end: true,
            begun,
            ..Head::default()
        };
        let bytes = message::account(&served.info(), progress.totals.as_ref());
        let bytes = bytes.map_err(|error| error.to_string())?;
        self.send(subject, run, head, bytes, &mut kept).await
    }

    /// One message, which is kept right after the last one or not at all.
    async fn send(
        &self,
        subject: &str,
        run: &str,
        head: Head,
        bytes: Vec<u8>,
        kept: &mut Kept,
    ) -> Result<(), String> {
        let headers = head.headers(run, kept.sequence);
        let sent = self
            .context
            .publish_with_headers(subject.to_owned(), headers, bytes.into());
        let answer = sent.await.map_err(|error| error.to_string())?.await;
        let answer = answer.map_err(|error| match error.kind() {
            // It was kept, but the answer was lost: what is kept is looked up.
            PublishErrorKind::WrongLastSequence => {
                "the bus has messages that this daemon does not know of".to_owned()
            }
            _ => with_sources(&error),
        })?;
        if answer.duplicate {
            return Err("the bus has messages that this daemon does not know of".to_owned());
        }
        (kept.sequence, kept.next) = (answer.sequence, head.next);
        Ok(())
    }

    async fn stream(&self) -> Result<Stream, String> {
        let wanted = stream(&self.config.stream, self.config.bytes);
        let stream = self.context.get_or_create_stream(wanted).await;
        let stream = stream.map_err(|error| with_sources(&error))?;
        match stream.cached_info().config.discard {
            DiscardPolicy::New => Ok(stream),
            DiscardPolicy::Old => Err(format!(
                "stream {}: it drops old messages when it is full; create it with discard=new",
                self.config.stream
            )),
        }
    }
}

/// What the stream has of this subject. If that was removed since this program has had its answer, it was kept
/// nevertheless: it is not sent again.
async fn find(stream: &Stream, subject: &str, known: Option<Kept>) -> Result<Kept, String> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => {
            let head = Head::read(&message.headers);
            let head = head.ok_or_else(|| format!("{subject}: a message of another publisher"))?;
            Ok(Kept {
                sequence: message.sequence,
                next: head.next,
                is_over: head.end,
            })
        }
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            let last = stream.cached_info().state.last_sequence;
            let known = known.filter(|known| known.sequence <= last);
            Ok(known.map_or(NOTHING, |known| Kept {
                sequence: 0,
                ..known
            }))
        }
        Err(error) => Err(with_sources(&error)),
    }
}

/// An error and what it comes from, in words.
pub(super) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = error.source();
    }
    words
}
