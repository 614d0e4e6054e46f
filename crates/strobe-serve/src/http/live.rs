// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as it goes on, by WebSocket: its state, and its rows in the way that the client wants them.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::json;
use strobe::block::Block;
use strobe_files::sink::arrow::ArrowStream;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::Http;
use super::bins::Bins;
use super::connection::Connection;
use super::failure::Failure;
use super::hello::{Hello, Policy};
use super::query::Format;
use super::rows::{Wanted, shared};
use super::runs::run;
use super::view::RunView;
use crate::cursor::{Cursor, From};
use crate::served_run::ServedRun;
use crate::shared::{Making, PIECE, Pool, Turn};

/// Bytes of a client's message, at most.
const MESSAGE_MAX: usize = 64 << 10;
/// How often the state is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// After so many looks it is said, even if it is the same.
const LOOKS: u32 = 9;
/// So many pieces a client that may lose rows can be behind.
const BEHIND: usize = 4;

/// Codes of a connection's end.
mod code {
    /// The run has ended, and all was said.
    pub const NORMAL: u16 = 1000;
    /// The daemon ends.
    pub const AWAY: u16 = 1001;
    /// Rows were lost, and the client wants every one.
    pub const LOST: u16 = 4000;
    /// The client has asked for something that there is not.
    pub const WRONG: u16 = 4001;
}

/// `GET /api/runs/ID/live`
pub async fn live(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
    Extension(connection): Extension<Arc<Connection>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let served = run(&http, &id)?;
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let status = rejection.into_response().status();
            let words = strobe::error::Words::new(format!("run {id}"), "this is not a WebSocket");
            let words = words.mend("GET /api/runs/ID/rows gives rows without a WebSocket");
            return Err(Failure::new(status, words));
        }
    };
    let upgrade = upgrade
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(MESSAGE_MAX)
        .write_buffer_size(0)
        .max_write_buffer_size(64 << 20);
    Ok(upgrade.on_upgrade(async move |socket| {
        // The place is taken until the end.
        let place = &connection.place;
        let (to, from) = socket.split();
        let mut live = Live {
            to,
            served,
            http: Arc::clone(&http),
            said: None,
            looks: 0,
            patience: place.patience(),
        };
        let end = tokio::select! {
            end = live.speak(from) => end,
            () = http.daemon.stop.cancelled() => Err(End::new(code::AWAY, "the daemon ends")),
        };
        if let Err(end) = end {
            live.close(end).await;
        }
    }))
}

/// Why a connection ends.
struct End {
    code: u16,
    /// `None`: there is nobody to tell it to.
    reason: Option<String>,
}

impl End {
    fn new(code: u16, reason: impl Into<String>) -> End {
        let reason = Some(reason.into());
        End { code, reason }
    }

    fn gone() -> End {
        let reason = None;
        End { code: 0, reason }
    }
}

/// One connection.
struct Live {
    to: SplitSink<WebSocket, Message>,
    served: Arc<ServedRun>,
    http: Arc<Http>,
    /// State and end, as they were said last.
    said: Option<(&'static str, bool)>,
    looks: u32,
    /// How long the client may take.
    patience: Duration,
}

/// What happens next.
enum Step<R> {
    Look,
    Send,
    Rows(R),
}

/// Rows that come next.
enum Next {
    /// What another client was given, and the row after it.
    Made(u64, Bytes),
    /// These are to be encoded, which others may wait for; none: there are no more.
    Block(Option<Block>, Option<Making<Bytes>>),
}

impl Live {
    /// Does what the client wants; never returns but with the reason of the end.
    async fn speak(&mut self, mut from: SplitStream<WebSocket>) -> Result<(), End> {
        let hello = hello(&mut from, self.patience).await?;
        let answer = async {
            match hello.policy {
                Policy::Latest => self.latest(&hello).await,
                Policy::Every | Policy::Skip => self.rows(&hello).await,
            }
        };
        tokio::select! {
            end = answer => end,
            end = silent(from) => Err(end),
        }
    }

    /// Least and greatest values, now and then.
    async fn latest(&mut self, hello: &Hello) -> Result<(), End> {
        let wanted = hello.columns.as_deref();
        let wrong = |why: String| End::new(code::WRONG, why);
        Bins::new(&self.served.info(), wanted, hello.points).map_err(wrong)?;
        let mut looks = every(LOOK);
        let mut sends = every(Duration::from_secs_f64(1.0 / hello.rate));
        let mut cursor = self.served.cursor(hello.from);
        self.look(&mut looks, cursor.info().boxed()).await?;
        let info = self.served.info();
        let mut bins = Bins::new(&info, wanted, hello.points).map_err(wrong)?;
        let at_most = piece(&self.served);
        loop {
            let step = tokio::select! {
                biased;
                _ = looks.tick() => Step::Look,
                _ = sends.tick(), if !bins.is_empty() => Step::Send,
                block = cursor.next(at_most) => Step::Rows(block),
            };
            match step {
                Step::Look => self.state().await?,
                Step::Send => self.send(Message::Binary(bins.take().into())).await?,
                Step::Rows(Some(block)) => {
                    bins.add(&block);
                    // There may be many of them already, and others wait.
                    tokio::task::yield_now().await;
                }
                Step::Rows(None) => {
                    if !bins.is_empty() {
                        self.send(Message::Binary(bins.take().into())).await?;
                    }
                    return self.finish().await;
                }
            }
        }
    }

    /// Row after row.
    async fn rows(&mut self, hello: &Hello) -> Result<(), End> {
        let wanted = hello.columns.as_deref();
        let wrong = |error: String| End::new(code::WRONG, error);
        let encoder = |info: &_| ArrowStream::new(info, wanted).map_err(|e| wrong(e.to_string()));
        encoder(&self.served.info())?;
        let mut looks = every(LOOK);
        let mut cursor = self.served.cursor(hello.from);
        let mut next = cursor.next_row();
        self.look(&mut looks, cursor.info().boxed()).await?;
        let mut stream = encoder(&self.served.info())?;
        self.send(Message::Binary(stream.schema().into())).await?;
        let sent = self.http.sent.reader(Wanted {
            run: self.served.id(),
            format: Format::Arrow,
            columns: hello.columns.clone(),
            is_live: true,
        });
        let at_most = piece(&self.served);
        let mut patience = Patience::new((at_most * BEHIND) as u64);
        loop {
            let newest = cursor.progress().next;
            let behind = newest.saturating_sub(cursor.next_row());
            if hello.policy == Policy::Skip && patience.is_over(behind) {
                cursor.skip_to_newest();
            }
            let step = tokio::select! {
                biased;
                _ = looks.tick() => Step::Look,
                next = rows_of(&sent, &mut cursor, at_most) => Step::Rows(next),
            };
            let (block, mut making) = match step {
                Step::Look | Step::Send => {
                    self.state().await?;
                    continue;
                }
                Step::Rows(Next::Made(end, bytes)) => {
                    next = end;
                    self.send(Message::Binary(bytes)).await?;
                    continue;
                }
                Step::Rows(Next::Block(Some(block), making)) => (block, making),
                Step::Rows(Next::Block(None, making)) => {
                    drop(making);
                    return self.finish().await;
                }
            };
            if block.first() > next {
                making = None;
                let lost = json!({"lost": [next, block.first()]});
                self.send(Message::Text(lost.to_string().into())).await?;
                if hello.policy == Policy::Every {
                    let reason = format!("rows {next} to {} are lost", block.first() - 1);
                    return Err(End::new(code::LOST, reason));
                }
            }
            let mut blocks = vec![block];
            let mut room = at_most - blocks.iter().map(Block::len).sum::<usize>().min(at_most);
            // What is there already goes with them, unless rows are missing between.
            while let Some(more) = (room > 0).then(|| cursor.ready(room)).flatten() {
                if more.lost() > 0 {
                    let end = blocks.last().map_or(next, end_of);
                    cursor = self.served.cursor(From::Row(end));
                    break;
                }
                room -= more.len().min(room);
                blocks.push(more);
            }
            next = blocks.last().map_or(next, end_of);
            if blocks.iter().all(Block::is_empty) {
                continue;
            }
            let batch = shared(&sent, &blocks, || stream.batch_of(&blocks));
            let batch = batch.map_err(|error| wrong(error.to_string()))?;
            drop(making);
            self.send(Message::Binary(batch)).await?;
        }
    }

    /// Says the state, until this is done.
    async fn look<T>(
        &mut self,
        looks: &mut Interval,
        mut until: impl Future<Output = T> + Unpin,
    ) -> Result<T, End> {
        loop {
            tokio::select! {
                biased;
                _ = looks.tick() => self.state().await?,
                done = &mut until => return Ok(done),
            }
        }
    }

    /// Says the state, if it is another one, or was not said for a while.
    async fn state(&mut self) -> Result<(), End> {
        let state = (self.served.state().name(), self.served.progress().is_over());
        if self.said == Some(state) && self.looks < LOOKS {
            self.looks += 1;
            return Ok(());
        }
        (self.said, self.looks) = (Some(state), 0);
        let view = json!({"run": RunView::of(&self.served)});
        self.send(Message::Text(view.to_string().into())).await
    }

    async fn finish(&mut self) -> Result<(), End> {
        self.looks = LOOKS;
        self.state().await?;
        Err(End::new(code::NORMAL, "the run has ended"))
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        self.to.send(message).await.map_err(|_| End::gone())
    }

    async fn close(&mut self, end: End) {
        let Some(mut reason) = end.reason else {
            return;
        };
        if end.code == code::WRONG {
            let error = json!({"error": {"object": "message", "reason": reason, "remedy": "docs/reference/serve.md \
            describes the requests"}});
            let _ = self.to.send(Message::Text(error.to_string().into())).await;
        }
        // A frame that closes has room for so many bytes.
        while reason.len() > 120 {
            reason.pop();
        }
        let frame = CloseFrame {
            code: end.code,
            reason: reason.into(),
        };
        let _ = timeout(self.patience, async {
            let _ = self.to.send(Message::Close(Some(frame))).await;
            let _ = self.to.close().await;
        })
        .await;
    }
}

/// The next rows: as another client was given them, or from the cursor.
async fn rows_of(sent: &Arc<Pool<Bytes>>, cursor: &mut Cursor, at_most: usize) -> Next {
    let making = match sent.turn(cursor.next_row(), u64::MAX).await {
        Turn::Made(end, bytes) if cursor.pass(end) => return Next::Made(end, bytes),
        Turn::Made(..) => None,
        Turn::Make(making) => making,
    };
    Next::Block(cursor.next(at_most).await, making)
}

/// How far a client may fall behind. What was there when it came does not count: it gets that as quickly as it can.
struct Patience {
    slack: u64,
    allowed: u64,
}

impl Patience {
    /// By so many rows.
    fn new(slack: u64) -> Patience {
        let allowed = u64::MAX;
        Patience { slack, allowed }
    }

    /// Whether a client that is so far behind now has fallen back too far.
    fn is_over(&mut self, behind: u64) -> bool {
        self.allowed = self.allowed.min(behind.saturating_add(self.slack));
        behind > self.allowed
    }
}

/// What the client wants: its first message.
async fn hello(from: &mut SplitStream<WebSocket>, patience: Duration) -> Result<Hello, End> {
    let first = async {
        loop {
            match from.next().await {
                Some(Ok(Message::Text(text))) => return Hello::parse(&text),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_))) => {
                    return Err("the first message is not text".to_owned());
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(String::new()),
            }
        }
    };
    match timeout(patience, first).await {
        Ok(Ok(hello)) => Ok(hello),
        Ok(Err(why)) if why.is_empty() => Err(End::gone()),
        Ok(Err(why)) => Err(End::new(code::WRONG, why)),
        Err(_) => {
            let why = format!("no message came within {patience:?}");
            Err(End::new(code::WRONG, why))
        }
    }
}

/// Listens until the client has gone. What it says after its first message means nothing.
async fn silent(mut from: SplitStream<WebSocket>) -> End {
    while let Some(Ok(message)) = from.next().await {
        if let Message::Close(_) = message {
            break;
        }
    }
    End::gone()
}

/// Rows of a piece.
fn piece(served: &ServedRun) -> usize {
    (PIECE / served.info().shape().bytes().max(1) as usize).max(1)
}

fn end_of(block: &Block) -> u64 {
    block.first() + block.len() as u64
}

fn every(time: Duration) -> Interval {
    let mut interval = interval(time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_begins_far_behind_is_too_slow_only_when_it_falls_back_further() {
        let mut patience = Patience::new(100);
        for behind in [5000, 5099, 3000, 3100, 0, 100] {
            assert!(!patience.is_over(behind), "{behind}");
        }
        assert!(patience.is_over(101));
    }
}
