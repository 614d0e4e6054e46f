// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes out on the data port, in the form that the client wants.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::ascii;
use super::capture::Capture;
use super::header::{About, header};
use super::options::{Format, Options};
use super::reason::Reason;
use crate::spool::Progress;

/// Bytes before the rows of a frame: `BIN `, and its length with these.
const HEAD: usize = 8;

/// A connection to a client.
pub struct Wire<W>(pub W);

/// A frame that is made. Its memory is used again for the next one, as it is: to clear it first would take as long as to copy
/// the rows.
pub struct Frame {
    bytes: Vec<u8>,
    end: usize,
}

impl Frame {
    /// An empty one, with room for so many bytes of rows; the memory is taken as it is needed: slow runs need little.
    pub fn new(bytes: usize) -> Frame {
        Frame {
            bytes: vec![0; HEAD + bytes],
            end: HEAD,
        }
    }

    /// Begins anew.
    pub fn begin(&mut self) {
        self.end = HEAD;
    }

    /// Room for so many bytes more. All of them are to be written.
    pub fn more(&mut self, bytes: usize) -> &mut [u8] {
        let begin = self.end;
        self.end += bytes;
        if self.end > self.bytes.len() {
            self.bytes.resize(self.end, 0);
        }
        self.bytes.get_mut(begin..self.end).unwrap_or_default()
    }

    /// All rows of it are there.
    pub fn whole(&mut self) -> &[u8] {
        let length = u32::try_from(self.end).unwrap_or(u32::MAX).to_le_bytes();
        let head = [*b"BIN ", length].concat();
        if let Some(place) = self.bytes.get_mut(..HEAD) {
            place.copy_from_slice(&head);
        }
        self.bytes.get(..self.end).unwrap_or_default()
    }
}

impl<W: AsyncWrite + Unpin> Wire<W> {
    /// A text.
    pub async fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await
    }

    /// A line that means nothing to a stock client. It may stand where no rows are.
    pub async fn comment(&mut self, options: &Options, text: &str) -> io::Result<()> {
        match options.status && options.header {
            true => self.text(text).await,
            false => Ok(()),
        }
    }

    /// Something that means nothing, where rows are.
    pub async fn idle(&mut self, options: &Options) -> io::Result<()> {
        match options.format {
            Format::Framed => self.0.write_all(b"BIN \x08\0\0\0").await,
            Format::Ascii | Format::Unframed => Ok(()),
        }
    }

    /// The header of a run.
    pub async fn header(
        &mut self,
        captures: &[Capture],
        options: &Options,
        about: &About,
    ) -> io::Result<()> {
        match options.header {
            true => self.text(&header(captures, options, about)).await,
            false => Ok(()),
        }
    }

    /// A whole frame.
    pub async fn rows(
        &mut self,
        options: &Options,
        captures: &[Capture],
        frame: &[u8],
    ) -> io::Result<()> {
        match options.format {
            Format::Framed => self.0.write_all(frame).await,
            Format::Unframed => {
                self.0
                    .write_all(frame.get(HEAD..).unwrap_or_default())
                    .await
            }
            Format::Ascii => {
                let rows = frame.get(HEAD..).unwrap_or_default();
                self.text(&ascii::text(captures, rows)).await
            }
        }
    }

    /// These rows are gone.
    pub async fn gap(&mut self, options: &Options, rows: Range<u64>) -> io::Result<()> {
        match options.format {
            Format::Framed => {
                let mut bytes = b"GAP \x18\0\0\0".to_vec();
                bytes.extend_from_slice(&rows.start.to_le_bytes());
                bytes.extend_from_slice(&rows.end.to_le_bytes());
                self.0.write_all(&bytes).await
            }
            Format::Ascii => {
                self.text(&format!("GAP {} {}\n", rows.start, rows.end))
                    .await
            }
            // Nobody can ask for that.
            Format::Unframed => Ok(()),
        }
    }

    /// The end of a run, and its account in a line that a stock client does not read.
    pub async fn end(
        &mut self,
        options: &Options,
        sent: u64,
        reason: Reason,
        progress: Option<&Progress>,
    ) -> io::Result<()> {
        if !options.status {
            return Ok(());
        }
        self.text(&format!("END {sent} {}\n", reason.word()))
            .await?;
        match progress.and_then(|progress| progress.totals.as_ref()) {
            Some(t) => {
                let text = format!(
                    "# account: triggers {} rows {} missed {} skipped {} errors {}\n",
                    t.triggers,
                    t.rows,
                    t.missed(),
                    t.skipped,
                    t.errors
                );
                self.comment(options, &text).await
            }
            None => Ok(()),
        }
    }
}
