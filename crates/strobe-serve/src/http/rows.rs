// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a run as one answer: an Arrow IPC stream, or lines of text.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use futures_util::{Stream, stream};
use strobe::block::Block;
use strobe::error::Words;
use strobe::info::RunInfo;
use strobe_files::journal::StoredBatch;
use strobe_files::sink::arrow::{ArrowStream, StreamError};
use strobe_files::sink::csv::CsvLines;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Http;
use super::failure::Failure;
use super::query::{Format, OnLoss, RowsQuery, names, query};
use super::runs::run;
use crate::cursor::{Cursor, From};
use crate::served_run::ServedRun;
use crate::shared::{Making, PIECE, Pool, Turn};

/// The same of text: it is longer than its rows, and takes longer to make than a client to wake.
const TEXT_PIECE: usize = 128 << 10;
/// After so long without a row the client is shown that the connection is alive.
const SILENCE: Duration = Duration::from_secs(10);

/// `GET /api/runs/ID/rows`
pub async fn rows(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<(HeaderMap, Body), Failure> {
    let asked: RowsQuery = query(&uri)?;
    let served = run(&http, &id)?;
    let wanted = asked.columns.as_deref().map(names).transpose()?;
    // The names of a run are known before it has started.
    let known = Encoder::new(asked.format, &served.info(), wanted.as_deref());
    known.map_err(|error| {
        Failure::refused(
            Words::new(format!("run {id}"), error.to_string())
                .mend("leave out `columns` to get all"),
        )
    })?;
    let feed = Feed::new(&served, &asked, wanted, &http);
    if asked.on_loss == OnLoss::Fail && feed.first > feed.next {
        let words = Words::new(
            format!("run {id}"),
            format!(
                "rows {} to {} are no longer stored",
                feed.next,
                feed.first - 1
            ),
        );
        return Err(Failure::lost(
            words.mend("begin with a later row, or leave out on_loss=fail"),
            feed.next,
            feed.first,
        ));
    }
    let mut headers = HeaderMap::new();
    let mime = match asked.format {
        Format::Arrow => "application/vnd.apache.arrow.stream",
        Format::Csv => "text/csv; charset=utf-8",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(mime));
    let lost = feed.first - feed.next;
    headers.insert(HeaderName::from_static("strobe-first"), feed.first.into());
    headers.insert(HeaderName::from_static("strobe-lost"), lost.into());
    Ok((headers, Body::from_stream(feed.pieces())))
}

/// What a client reads, and how: all that the bytes of some rows depend on.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub run: u32,
    pub format: Format,
    /// The channels; `None`: all.
    pub columns: Option<Vec<String>>,
    /// By WebSocket, whose messages are no longer than a piece.
    pub is_live: bool,
}

/// What turns rows into bytes.
enum Encoder {
    Arrow(Box<ArrowStream>),
    Csv(CsvLines),
}

impl Encoder {
    fn new(format: Format, info: &RunInfo, wanted: Option<&[String]>) -> Result<Self, StreamError> {
        Ok(match format {
            Format::Arrow => Encoder::Arrow(Box::new(ArrowStream::new(info, wanted)?)),
            Format::Csv => Encoder::Csv(CsvLines::new(info, wanted)?),
        })
    }

    /// What comes before all rows.
    fn begin(&mut self) -> Vec<u8> {
        match self {
            Encoder::Arrow(stream) => stream.schema(),
            Encoder::Csv(lines) => lines.take(),
        }
    }

    fn rows(&mut self, blocks: &[Block]) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Arrow(stream) => stream.batch_of(blocks),
            Encoder::Csv(lines) => {
                for block in blocks {
                    lines.add(block.rows())?;
                }
                Ok(lines.take())
            }
        }
    }

    /// What comes after all rows.
    fn end(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Arrow(stream) => stream.end(),
            Encoder::Csv(_) => Ok(Vec::new()),
        }
    }
}

/// Rows that are sent at once.
enum Rows {
    /// As somebody else was given them, or as they lie on the disk.
    Made(Bytes),
    /// These are to be encoded.
    Blocks(Vec<Block>),
}

/// One answer under way.
struct Feed {
    served: Arc<ServedRun>,
    cursor: Cursor,
    format: Format,
    /// The channels; `None`: all.
    columns: Option<Vec<String>>,
    /// What others are given who want the same.
    sent: Arc<Pool<Bytes>>,
    /// Others wait for what this makes.
    making: Option<Making<Bytes>>,
    on_loss: OnLoss,
    follow: bool,
    stop: CancellationToken,
    /// What was asked for.
    next: u64,
    /// The row after the last one that was asked for.
    to: u64,
    /// The first one that there is.
    first: u64,
    encoder: Option<Encoder>,
    is_over: bool,
}

impl Feed {
    fn new(
        served: &Arc<ServedRun>,
        asked: &RowsQuery,
        wanted: Option<Vec<String>>,
        http: &Http,
    ) -> Self {
        let progress = served.progress();
        let next = match asked.from {
            From::Row(row) => row,
            From::Oldest => progress.oldest,
            From::Now => progress.next,
        };
        let there = if asked.follow {
            u64::MAX
        } else {
            progress.next
        };
        let to = asked.to.unwrap_or(u64::MAX).min(there);
        Feed {
            cursor: served.cursor(From::Row(next)),
            served: Arc::clone(served),
            format: asked.format,
            columns: wanted.clone(),
            sent: http.sent.reader(Wanted {
                run: served.id(),
                format: asked.format,
                columns: wanted,
                is_live: false,
            }),
            making: None,
            on_loss: asked.on_loss,
            follow: asked.follow,
            stop: http.daemon.stop.clone(),
            next,
            to,
            first: progress.oldest.max(next).min(to.max(next)),
            encoder: None,
            is_over: false,
        }
    }

    fn pieces(self) -> impl Stream<Item = io::Result<Bytes>> {
        stream::try_unfold(self, |mut feed| async move {
            if feed.is_over {
                return Ok(None);
            }
            let stop = feed.stop.clone();
            let piece = tokio::select! {
                piece = feed.piece() => piece?,
                () = stop.cancelled() => return Err(io::Error::other("the daemon ends")),
            };
            Ok(Some((piece, feed)))
        })
    }

    /// The next bytes.
    async fn piece(&mut self) -> io::Result<Bytes> {
        let Some(mut encoder) = self.encoder.take() else {
            let info = match self.follow {
                true => self.cursor.info().await,
                // What is not there yet is not waited for.
                false => self.served.info(),
            };
            let encoder = Encoder::new(self.format, &info, self.columns.as_deref());
            let mut encoder = encoder.map_err(io::Error::other)?;
            let bytes = encoder.begin();
            self.encoder = Some(encoder);
            return Ok(bytes.into());
        };
        let bytes = match timeout(SILENCE, self.rows()).await {
            Ok(rows) => {
                let bytes = match rows? {
                    Rows::Made(bytes) => bytes,
                    Rows::Blocks(blocks) if blocks.is_empty() => Bytes::new(),
                    Rows::Blocks(blocks) => shared(&self.sent, &blocks, || encoder.rows(&blocks))?,
                };
                match self.is_over {
                    true => [bytes, encoder.end()?.into()].concat().into(),
                    false => bytes,
                }
            }
            Err(_) => encoder.rows(&[])?.into(),
        };
        self.making = None;
        self.encoder = Some(encoder);
        Ok(bytes)
    }

    /// Whether files have just what the client wants.
    fn is_as_stored(&self) -> bool {
        self.format == Format::Arrow && self.columns.is_none()
    }

    /// Rows, as soon as there are any.
    async fn rows(&mut self) -> io::Result<Rows> {
        // What the client was told is lost is not given, though somebody may have it still.
        let is_there = self.next >= self.first && self.next < self.to;
        if is_there {
            match self.sent.turn(self.next, self.to).await {
                Turn::Made(end, bytes) if self.cursor.pass(end) => {
                    self.next = end;
                    return Ok(Rows::Made(bytes));
                }
                Turn::Made(..) => {}
                Turn::Make(mine) => self.making = mine,
            }
        }
        if is_there && self.is_as_stored() {
            if let Some(StoredBatch { rows, bytes, .. }) = self.cursor.batch(self.to).await {
                self.next = rows.end;
                let bytes = Bytes::from(bytes);
                self.sent.keep(rows, bytes.len(), bytes.clone());
                return Ok(Rows::Made(bytes));
            }
        }
        self.blocks().await.map(Rows::Blocks)
    }

    /// Rows, as soon as there are any: as many as are there already, up to a piece. Before the last ones are given, it is
    /// known that they are the last.
    async fn blocks(&mut self) -> io::Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let width = self.served.info().shape().bytes().max(1) as usize;
        let piece = match self.format {
            Format::Arrow => PIECE,
            Format::Csv => TEXT_PIECE,
        };
        let mut room = (piece / width).max(1);
        while room > 0 && !self.is_over {
            let left = self.to.saturating_sub(self.next);
            let at_most = room.min(usize::try_from(left).unwrap_or(usize::MAX));
            let block = match (at_most, blocks.is_empty()) {
                (0, _) => None,
                (_, true) => self.cursor.next(at_most).await,
                (_, false) => match self.cursor.ready(at_most) {
                    Some(block) => Some(block),
                    None => break,
                },
            };
            let Some(block) = block else {
                self.is_over = true;
                break;
            };
            let end = block.first() + block.len() as u64;
            self.lose(&block)?;
            if end > self.to {
                // Rows were lost before it, so that it goes on after those that were asked for.
                self.next = block.first().min(self.to);
                self.cursor = self.served.cursor(From::Row(self.next));
                continue;
            }
            self.next = end;
            room -= block.len().min(room);
            if !block.is_empty() {
                blocks.push(block);
            }
        }
        Ok(blocks)
    }

    /// Complains about rows that are missing before this block, if that is wanted.
    fn lose(&self, block: &Block) -> io::Result<()> {
        let lost = self.next..block.first();
        match self.on_loss {
            OnLoss::Fail if !lost.is_empty() => Err(io::Error::other(format!(
                "rows {} to {} are lost",
                lost.start,
                lost.end - 1
            ))),
            _ => Ok(()),
        }
    }
}

/// What is made of these rows: by this, or already by somebody else who has waited for them, too.
///
/// # Errors
/// Those of who makes it.
pub fn shared<E>(
    sent: &Arc<Pool<Bytes>>,
    blocks: &[Block],
    make: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Bytes, E> {
    // Where one is missing between them, the numbers do not say which they are.
    let Some(rows) = consecutive(blocks) else {
        return make().map(Bytes::from);
    };
    if let Some(bytes) = sent.get(&rows) {
        return Ok(bytes);
    }
    let mut bytes = make()?;
    if bytes.len() < bytes.capacity() / 2 {
        // It may be kept for long.
        bytes.shrink_to_fit();
    }
    let bytes = Bytes::from(bytes);
    sent.keep(rows, bytes.len(), bytes.clone());
    Ok(bytes)
}

/// The numbers of these rows, if they follow each other.
fn consecutive(blocks: &[Block]) -> Option<Range<u64>> {
    let first = blocks.first()?.first();
    let mut end = first;
    for block in blocks {
        if block.first() != end {
            return None;
        }
        end += block.len() as u64;
    }
    Some(first..end)
}

#[cfg(test)]
mod tests {
    use strobe::block::Place;
    use strobe::channel::Type;
    use strobe::samples::{channel, info};

    use super::*;

    fn block(first: u64, rows: u64) -> Block {
        let info = Arc::new(info(vec![channel("a.x", Type::U64)]));
        let words = (first..first + rows).flat_map(|row| [row, row, 0, 0, row]);
        let words = Arc::new(words.collect::<Vec<_>>());
        let mut last = Some(Place::START);
        Block::new(info, words, 0..rows as usize, (first, 0), &mut last)
    }

    #[test]
    fn rows_between_which_one_is_missing_are_not_said_to_be_all_of_them() {
        assert_eq!(consecutive(&[block(3, 1), block(4, 2)]), Some(3..6));
        assert_eq!(consecutive(&[block(3, 1), block(5, 1)]), None);
        assert_eq!(consecutive(&[]), None);
    }
}
