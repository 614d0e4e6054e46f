// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection of the data port: for each run a header, its rows, and an end with the reason.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use strobe::block::Block;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::acquisition::Acquisition;
use super::arm::Arm;
use super::capture::{self, Capture};
use super::frame_rows::FrameRows;
use super::header::About;
use super::line::{Line, Lines};
use super::options::Options;
use super::reason::Reason;
use super::rows::{Encoder, Made};
use super::wire::{Frame, Wire};
use crate::cursor::{Cursor, From};
use crate::shared::{PIECE, Turn};
use crate::spool::Progress;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this time without rows something is sent that does no harm: who has gone is noticed.
const IDLE: Duration = Duration::from_secs(10);
/// How long the rest of the rows may take when the daemon ends.
const REST: Duration = Duration::from_secs(3);

/// Serves a client until it goes or the daemon ends.
///
/// # Errors
/// It has gone.
pub async fn serve(
    mut stream: TcpStream,
    arm: Arc<Arm>,
    stop: CancellationToken,
) -> io::Result<()> {
    let (reader, writer) = stream.split();
    let mut client = Client {
        reader,
        wire: Wire(writer),
        arm,
        stop: stop.clone(),
    };
    let close = tokio::select! {
        close = client.serve() => close?,
        // The end of a run that stops with the daemon is still sent; a client that reads nothing is not waited for.
        () = async { stop.cancelled().await; sleep(REST).await } => Close::Abnormal,
    };
    if close == Close::Abnormal {
        // The stock clients spin for ever when a connection ends that they want to read on. A reset they understand;
        // what was written before must arrive before it does.
        let _ = timeout(Duration::from_secs(1), gone(&mut client.reader)).await;
        stream.set_zero_linger()?;
    }
    Ok(())
}

/// How a connection ends.
#[derive(PartialEq, Eq)]
enum Close {
    /// As the client knows.
    Normal,
    /// It does not know.
    Abnormal,
}

/// What comes after a run.
#[derive(PartialEq, Eq)]
enum After {
    /// The next one.
    Next,
    /// Nothing: the client has no other way to know that rows are missing.
    Cut,
}

struct Client<'s> {
    reader: ReadHalf<'s>,
    wire: Wire<WriteHalf<'s>>,
    arm: Arc<Arm>,
    stop: CancellationToken,
}

impl Client<'_> {
    async fn serve(&mut self) -> io::Result<Close> {
        let stop = self.stop.clone();
        let options = tokio::select! {
            // First: what has come as a whole is answered.
            biased;
            options = timeout(PATIENCE, self.options()) => options,
            () = stop.cancelled() => return Ok(Close::Normal),
        };
        let options = match options {
            Ok(Ok(Some(options))) => options,
            Ok(Ok(None)) => return Ok(Close::Normal),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                self.wire.text("ERR No options came\n").await?;
                return Ok(Close::Normal);
            }
        };
        let mut options = match options {
            Ok(options) => options,
            Err(why) => {
                self.wire.text(&format!("ERR {why}\n")).await?;
                return Ok(Close::Normal);
            }
        };
        // Before anything else: who is told OK may arm at once, and what is armed after this look is another one than the
        // last, so that it is waited for.
        let mut last = self.arm.last().map_or(0, |last| last.number);
        let mut next = self.arm.first_for_a_reader(options.from.is_some());
        if options.status {
            self.wire.text("OK\n").await?;
        }
        loop {
            let of = match next.take() {
                Some(of) => of,
                None => match self.wait_for_one_after(last, &options).await? {
                    Some(of) => of,
                    None => return Ok(Close::Abnormal),
                },
            };
            if of.number > last + 1 {
                let text = format!("# runs {} to {} are gone\n", last + 1, of.number - 1);
                self.wire.comment(&options, &text).await?;
            }
            last = of.number;
            let reading = of.read();
            let after = self.run(&of, &options).await?;
            drop(reading);
            if after == After::Cut {
                return Ok(Close::Abnormal);
            }
            if options.one_shot {
                return Ok(Close::Normal);
            }
            // Of the runs that follow, everything.
            options.from = None;
        }
    }

    /// What the client wants, or why not; `None` if it has gone.
    async fn options(&mut self) -> io::Result<Option<Result<Options, String>>> {
        let mut lines = Lines::default();
        let mut bytes = [0; 512];
        loop {
            let read = self.reader.read(&mut bytes).await?;
            if read == 0 {
                return Ok(None);
            }
            lines.push(bytes.get(..read).unwrap_or_default());
            match lines.next_line() {
                Some(Line::Text(line)) => return Ok(Some(Options::read(&line))),
                Some(Line::Wrong(why)) => return Ok(Some(Err(why.to_owned()))),
                None => {}
            }
        }
    }

    async fn wait_for_one_after(
        &mut self,
        last: u64,
        options: &Options,
    ) -> io::Result<Option<Arc<Acquisition>>> {
        let mut history = self.arm.watch();
        loop {
            let found = {
                let history = history.borrow_and_update();
                history.list.iter().find(|of| of.number > last).cloned()
            };
            if found.is_some() {
                return Ok(found);
            }
            tokio::select! {
                _ = history.changed() => {}
                () = self.stop.cancelled() => return Ok(None),
                result = gone(&mut self.reader) => return Err(result),
                () = sleep(IDLE) => self.wire.comment(options, "# nothing is armed\n").await?,
            }
        }
    }

    /// One run, from its header to its end.
    async fn run(&mut self, of: &Arc<Acquisition>, options: &Options) -> io::Result<After> {
        let captures = self.columns(of, options).await?;
        if captures.is_empty() {
            let text = "# none of the columns is captured\n";
            self.wire.comment(options, text).await?;
            self.until_over(of).await?;
            return Ok(After::Next);
        }
        let served = loop {
            tokio::select! {
                served = of.run() => break served,
                result = gone(&mut self.reader) => return Err(result),
                () = sleep(IDLE) => self.wire.comment(options, "# armed\n").await?,
            }
        };
        let Some(served) = served else {
            if let Some(why) = of.why() {
                self.wire.comment(options, &format!("# {why}\n")).await?;
            }
            self.wire
                .header(&captures, options, &About::default())
                .await?;
            return self.end(of, options, 0, None).await;
        };
        let mut cursor = served.cursor(From::Row(options.from.unwrap_or(0)));
        let info = loop {
            tokio::select! {
                info = cursor.info() => break info,
                result = gone(&mut self.reader) => return Err(result),
                () = sleep(IDLE) => self.wire.comment(options, "# armed\n").await?,
            }
        };
        let first = cursor.next_row().max(cursor.progress().oldest);
        let about = About {
            run: served.id(),
            first,
            missed: first - options.from.unwrap_or(0).min(first),
            armed: strobe_files::date::iso8601(since_epoch(of.armed_date)),
            started: strobe_files::date::iso8601(info.start.realtime),
        };
        self.wire.header(&captures, options, &about).await?;
        let mut encoder = Encoder::new(&captures, &info);
        if let Some(before) = first.checked_sub(1) {
            let mut before = served.cursor(From::Row(before));
            let block = tokio::select! {
                block = before.next(1) => block,
                result = gone(&mut self.reader) => return Err(result),
            };
            match block {
                Some(block) if block.lost() == 0 => encoder.remember(&block),
                _ => encoder.lose(),
            }
        }
        if first > cursor.next_row() {
            cursor = served.cursor(From::Row(first));
        }
        self.rows(of, options, &captures, encoder, cursor).await
    }

    /// Waits until another one can be armed.
    async fn until_over(&mut self, of: &Acquisition) -> io::Result<()> {
        tokio::select! {
            biased;
            () = of.wait_for_end() => Ok(()),
            result = gone(&mut self.reader) => Err(result),
        }
    }

    /// The end of a run whose rows are all sent. Who arms as soon as it comes is not refused.
    async fn end(
        &mut self,
        of: &Acquisition,
        options: &Options,
        sent: u64,
        progress: Option<&Progress>,
    ) -> io::Result<After> {
        self.until_over(of).await?;
        let reason = of.reason(progress);
        self.wire.end(options, sent, reason, progress).await?;
        Ok(After::Next)
    }

    /// The columns that this client wants.
    async fn columns(&mut self, of: &Acquisition, options: &Options) -> io::Result<Vec<Capture>> {
        let Some(wanted) = &options.columns else {
            return Ok(of.chosen.captures.clone());
        };
        let mut captures = Vec::new();
        for name in wanted {
            let before = captures.len();
            let named = of
                .chosen
                .captures
                .iter()
                .filter(|capture| capture.name == *name);
            captures.extend(named.cloned());
            if captures.len() == before {
                // The name came from this client.
                self.wire
                    .comment(options, &format!("# {name} is not captured\n"))
                    .await?;
            }
        }
        captures.dedup();
        Ok(captures)
    }

    async fn rows(
        &mut self,
        of: &Acquisition,
        options: &Options,
        captures: &[Capture],
        mut encoder: Encoder,
        mut cursor: Cursor,
    ) -> io::Result<After> {
        let at_most = (PIECE / capture::row_bytes(captures).max(1)).max(1);
        let mut frame = Frame::new(PIECE);
        let mut sent = 0;
        let mut held: Option<Block> = None;
        let others = of.sent.reader(captures.to_vec());
        loop {
            let next = cursor.next_row();
            let mut making = None;
            if held.is_none() && encoder.knows_before(next) {
                match others.turn(next, u64::MAX).await {
                    Turn::Made(end, made) if cursor.pass(end) => {
                        encoder = made.after;
                        sent += end - next;
                        self.wire.rows(options, captures, &made.bytes).await?;
                        continue;
                    }
                    Turn::Made(..) => {}
                    Turn::Make(mine) => making = mine,
                }
            }
            let found = match held.take() {
                Some(block) => Some(FrameRows::Blocks(vec![block])),
                None => tokio::select! {
                    biased;
                    found = FrameRows::next(&mut cursor, &encoder, at_most) => found,
                    result = gone(&mut self.reader) => return Err(result),
                    () = sleep(IDLE) => {
                        drop(making);
                        self.wire.idle(options).await?;
                        continue;
                    }
                },
            };
            let Some(mut rows) = found else {
                drop(making);
                return self.end(of, options, sent, Some(&cursor.progress())).await;
            };
            let mut first = next;
            if let Some(block) = rows.after_loss() {
                making = None;
                let progress = cursor.progress();
                if !options.gaps {
                    let reason = blame(block, &progress);
                    self.wire
                        .end(options, sent, reason, Some(&progress))
                        .await?;
                    return Ok(match options.status {
                        true => After::Next,
                        false => After::Cut,
                    });
                }
                first = block.first();
                self.wire.gap(options, first - block.lost()..first).await?;
                encoder.lose();
            }
            held = rows.gather(&mut cursor, at_most);
            let count = rows.len() as u64;
            if count == 0 {
                continue;
            }
            sent += count;
            if !others.has_others() {
                // Otherwise the next rows are soon there for who is first to make them, which may be another one.
                cursor.ahead(encoder.takes_columns());
            }
            let is_shared = encoder.knows_before(first) && others.has_others();
            rows.encode(&mut encoder, &mut frame);
            let frame = frame.whole();
            if is_shared {
                let made = Made {
                    // A copy, which has no more room than it needs: it may be kept for long.
                    bytes: Arc::from(frame),
                    after: encoder.clone(),
                };
                others.keep(first..first + count, frame.len(), made);
            }
            drop(making);
            self.wire.rows(options, captures, frame).await?;
        }
    }
}

/// Why rows are gone: given up for this client, or never there.
fn blame(block: &Block, progress: &Progress) -> Reason {
    match progress.lost > 0 && block.first() > progress.oldest {
        true => Reason::DriverDataOverrun,
        false => Reason::DataOverrun,
    }
}

/// Waits until the client goes. What it sends means nothing.
async fn gone(reader: &mut ReadHalf<'_>) -> io::Error {
    let mut bytes = [0; 512];
    loop {
        match reader.read(&mut bytes).await {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

fn since_epoch(date: SystemTime) -> u64 {
    let since = date.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
