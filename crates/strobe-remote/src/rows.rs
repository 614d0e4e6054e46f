// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a server's run, as they come.
//!
//! A thread reads the connection, which may take its time; who asks for rows waits no longer than he says, or waits for a
//! descriptor. When the rows are not fetched, the thread stops reading, and the server keeps them.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use strobe::block::Block;
use strobe::error::{Error, Words};
use strobe::info::{RunInfo, Totals};
use strobe::ring::State;
use strobe::source::RowSource;
use strobe_files::journal::{self, Journal};

use crate::link::cut;
use crate::run::RemoteRun;

/// Blocks that may wait for being fetched.
const AHEAD: usize = 16;
/// How often it is looked for what the server does not tell by itself.
const LOOK: Duration = Duration::from_millis(200);
/// The account is there when the last row is, or soon after.
const ACCOUNT: Duration = Duration::from_secs(30);

/// Bytes of a schema, at most.
const SCHEMA: u32 = 16 << 20;

/// The row to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// This one. If the server does not have it any more, it is lost.
    Row(u64),
    /// The oldest one that the server has.
    Oldest,
    /// The next one that is made.
    Now,
}

/// Which rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From this one on.
    pub from: Begin,
    /// Up to this one, which is not among them; `None`: to the last one.
    pub to: Option<u64>,
    /// Whether to wait for rows that were not made yet.
    pub follow: bool,
}

impl RemoteRun {
    /// Some of its rows, or all. If the run was not started yet, they come when it is.
    pub fn rows(&self, part: Part) -> RemoteRows {
        RemoteRows::new(self.clone(), part)
    }
}

impl From<Begin> for Part {
    /// To the end of the run.
    fn from(from: Begin) -> Part {
        Part {
            from,
            to: None,
            follow: true,
        }
    }
}

/// What the thread has to say.
enum Message {
    /// The run has begun: what is known of it now.
    Begun(Box<RunInfo>),
    Rows(Block),
    /// These were all; the account, if the run has ended.
    Over(Option<Totals>),
    Failed(Error),
}

/// Rows of a server's run.
pub struct RemoteRows {
    name: String,
    info: Arc<RunInfo>,
    from_thread: Receiver<Message>,
    ready: Option<Arc<OwnedFd>>,
    is_dropped: Arc<AtomicBool>,
    /// The row after the last one that was given.
    next: u64,
    totals: Option<Totals>,
    is_over: bool,
    is_torn: bool,
}

impl RemoteRows {
    pub(crate) fn new(run: RemoteRun, part: Part) -> Self {
        let (to_us, from_thread) = sync_channel(AHEAD);
        let is_dropped = Arc::new(AtomicBool::new(false));
        // Who has no descriptor left cannot read a connection either, and is told so there.
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let ready = ready.ok().map(Arc::new);
        let rows = RemoteRows {
            name: run.name(),
            info: Arc::new(run.info().clone()),
            from_thread,
            ready: ready.clone(),
            is_dropped: Arc::clone(&is_dropped),
            next: match part.from {
                Begin::Row(row) => row,
                Begin::Oldest | Begin::Now => 0,
            },
            totals: None,
            is_over: false,
            is_torn: false,
        };
        let name = Builder::new().name("rows".to_owned());
        let refused = to_us.clone();
        let object = rows.name.clone();
        let reader = Reader {
            run,
            part,
            to_us,
            ready,
            is_dropped,
        };
        if let Err(error) = name.spawn(move || reader.run()) {
            let words = Words::new(
                object,
                format!("the thread that reads its rows cannot be started: {error}"),
            );
            // There is room for one.
            let _ = refused.send(Message::Failed(Error::Server(words)));
            announce(rows.ready.as_ref());
        }
        rows
    }

    /// The descriptor that is ready while there is something to fetch, and now and then when there is not.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(|ready| ready.as_fd())
    }

    /// What the thread says, as soon as it does.
    fn hear(&self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        if let Ok(message) = self.from_thread.try_recv() {
            return Ok(message);
        }
        // What comes from now on makes it ready again, and what came just before is looked for once more.
        if let Some(ready) = &self.ready {
            let _ = rustix::io::read(ready, &mut [0; 8]);
        }
        self.from_thread.recv_timeout(wait)
    }

    /// No rows yet.
    fn nothing(&self) -> Block {
        let info = Arc::clone(&self.info);
        Block::new(info, Arc::default(), 0..0, (self.next, 0), &mut None)
    }
}

impl RowSource for RemoteRows {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Block>, Error> {
        if self.is_over {
            return Ok(None);
        }
        match self.hear(wait) {
            Ok(Message::Begun(info)) => {
                self.info = Arc::new(*info);
                Ok(Some(self.nothing()))
            }
            Ok(Message::Rows(block)) => {
                self.next = block.first() + block.len() as u64;
                Ok(Some(block))
            }
            Ok(Message::Over(totals)) => {
                (self.is_over, self.totals) = (true, totals);
                Ok(None)
            }
            Ok(Message::Failed(error)) => {
                (self.is_over, self.is_torn) = (true, true);
                Err(error)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Some(self.nothing())),
            Err(RecvTimeoutError::Disconnected) => {
                (self.is_over, self.is_torn) = (true, true);
                let words = Words::new(&self.name, "the thread that reads its rows did not finish");
                Err(Error::Server(words))
            }
        }
    }

    fn totals(&self) -> Option<Totals> {
        self.totals.clone()
    }

    fn is_torn(&self) -> bool {
        self.is_torn
    }
}

impl Drop for RemoteRows {
    fn drop(&mut self) {
        // The thread ends with the next thing that it hears.
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// There is something to fetch.
fn announce(ready: Option<&Arc<OwnedFd>>) {
    if let Some(ready) = ready {
        // What is full, after 2^64 of these, is ready too.
        let _ = rustix::io::write(ready, &1_u64.to_ne_bytes());
    }
}

/// The thread that reads the connection.
struct Reader {
    run: RemoteRun,
    part: Part,
    to_us: SyncSender<Message>,
    ready: Option<Arc<OwnedFd>>,
    is_dropped: Arc<AtomicBool>,
}

impl Reader {
    fn run(self) {
        let last = match self.read() {
            Ok(totals) => Message::Over(totals),
            Err(error) => Message::Failed(error),
        };
        self.say(last);
    }

    /// All rows; then the account.
    fn read(&self) -> Result<Option<Totals>, Error> {
        self.wait_for_start()?;
        let (mut journal, from) = self.open()?;
        self.say(Message::Begun(Box::new(journal.info().clone())));
        let (mut next, mut given) = (from, 0);
        loop {
            match journal.next(Duration::ZERO) {
                Ok(Some(block)) => {
                    next = block.first() + block.len() as u64;
                    given += block.len() as u64;
                    self.say(Message::Rows(block));
                }
                Ok(None) if journal.is_torn() => {
                    return Err(self.torn(next, "it ends in the middle of a row"));
                }
                Ok(None) => break,
                Err(error) => return Err(self.torn(next, &error.reason())),
            }
        }
        let view = match self.part.follow && self.part.to.is_none() {
            true => self.account(next)?,
            false => self.run.look()?,
        };
        let wanted = self.part.to.unwrap_or(view.rows).min(view.rows);
        Ok(view.totals(wanted.saturating_sub(from).saturating_sub(given)))
    }

    /// The server has no rows of a run that was not started, and nothing to say meanwhile.
    fn wait_for_start(&self) -> Result<(), Error> {
        if self.run.view().state() != State::Ready {
            return Ok(());
        }
        while self.run.look()?.state() == State::Ready && !self.is_dropped() {
            sleep(LOOK);
        }
        Ok(())
    }

    /// The stream of rows, and the row with which it was to begin.
    fn open(&self) -> Result<(Journal, u64), Error> {
        let Part { from, to, follow } = self.part;
        let from_text = match from {
            Begin::Row(row) => row.to_string(),
            Begin::Oldest => "oldest".to_owned(),
            Begin::Now => "now".to_owned(),
        };
        let to = to.map(|to| to.to_string());
        let mut query = vec![
            ("from", from_text.as_str()),
            ("follow", if follow { "true" } else { "false" }),
        ];
        query.extend(to.as_deref().map(|to| ("to", to)));
        let link = &self.run.server.link;
        let answer = link.open(&self.run.path("/rows"), &query)?;
        let first = answer.headers().get("strobe-first");
        let first = first.and_then(|first| first.to_str().ok()?.parse().ok());
        let from = match (from, first) {
            (Begin::Row(row), _) => row,
            (_, Some(first)) => first,
            (_, None) => return Err(link.foreign("it has no header strobe-first")),
        };
        let mut stream = Stream {
            body: answer.into_body().into_reader(),
            is_dropped: Arc::clone(&self.is_dropped),
        };
        let mut head = [0; 8];
        let read = stream.read_exact(&mut head);
        read.map_err(|error| self.torn(from, &error.to_string()))?;
        if !is_arrow(head) {
            let why = "its rows are not an Arrow stream";
            return Err(link.foreign(&format!("run {}: {why}", self.run.view().id)));
        }
        let stream = io::Cursor::new(head).chain(stream);
        match Journal::of(self.run.name(), Box::new(stream), from) {
            Ok(journal) => Ok((journal, from)),
            Err(journal::Error::File { source, .. }) => Err(self.torn(from, &source.to_string())),
            Err(error) => {
                let (id, why) = (self.run.view().id, error.words().reason);
                Err(link.foreign(&format!("rows of run {id}: {why}")))
            }
        }
    }

    /// The run, once the server knows how it has ended.
    fn account(&self, next: u64) -> Result<crate::view::RunView, Error> {
        let begun = Instant::now();
        loop {
            let view = self.run.look()?;
            if view.end.is_some() || self.is_dropped() {
                return Ok(view);
            }
            if begun.elapsed() > ACCOUNT {
                return Err(self.torn(next, "the run goes on, but no more rows came"));
            }
            sleep(LOOK);
        }
    }

    fn torn(&self, next: u64, why: &str) -> Error {
        let id = self.run.view().id;
        let reason = format!("the rows were cut off before row {next}: {why}");
        let words = Words::new(self.run.name(), reason);
        Error::Server(words.mend(format!(
            "if the server still runs, its spool may hold the rows: record its run {id}"
        )))
    }

    fn say(&self, message: Message) {
        // Nobody listens any more: it is seen at the next read.
        let _ = self.to_us.send(message);
        announce(self.ready.as_ref());
    }

    fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}

/// Whether a stream that begins like this is one of Arrow: a mark, and the length of the schema. Memory is taken for what
/// the length says, so it is looked at before.
fn is_arrow(head: [u8; 8]) -> bool {
    let [mark @ .., a, b, c, d] = head;
    mark == [0xff; 4] && u32::from_le_bytes([a, b, c, d]) <= SCHEMA
}

/// The body of the answer, as long as somebody wants it. Its end is only an end if the server says so.
struct Stream<R> {
    body: R,
    is_dropped: Arc<AtomicBool>,
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_dropped.load(Ordering::Relaxed) {
            return Err(io::Error::other("no reader is left"));
        }
        let read = self.body.read(buffer);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::other(cut(&error)),
        })
    }
}
