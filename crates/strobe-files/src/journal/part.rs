// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of an `.arrows` file, batch by batch.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::messages::{Batch, END, length};

/// The bytes of a file up to some place: what is behind it may be half of something.
pub(super) struct Part {
    pub(super) file: BufReader<File>,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Part {
    /// Goes there; what is in memory of the file is used again.
    pub(super) fn go(&mut self, at: u64) -> io::Result<()> {
        let by = at.wrapping_sub(self.at) as i64;
        self.file.seek_relative(by)?;
        self.at = at;
        Ok(())
    }

    /// What is next, and where that ends; it is not read yet.
    pub(super) fn look(&mut self) -> io::Result<Next> {
        let at = self.at;
        let next = self.head();
        self.go(at)?;
        match next {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Next::Nothing),
            next => next,
        }
    }

    fn head(&mut self) -> io::Result<Next> {
        let mut start = [0; 8];
        self.read_exact(&mut start)?;
        let left = self.end.saturating_sub(self.at);
        let Some(length) = length(start).filter(|length| *length <= left) else {
            return Ok(match start == END {
                true => Next::End,
                false => Next::Nothing,
            });
        };
        let mut head = vec![0; usize::try_from(length).unwrap_or(0)];
        self.read_exact(&mut head)?;
        let next = Batch::of_head(&head).filter(|next| next.bytes <= self.end - self.at);
        let at = self.at;
        Ok(next.map_or(Next::Nothing, |next| Next::Batch(next, at)))
    }

    /// See [`Segment::stored`](super::Segment::stored).
    pub(super) fn stored(&mut self, row: u64, to: u64, least: u64) -> io::Result<Option<Stored>> {
        let Some(Ends {
            first,
            last,
            batch,
            columns,
            end,
        }) = self.pass(row)?
        else {
            return Ok(None);
        };
        let begin = self.at;
        let is_all = last.wrapping_sub(first) == batch.rows - 1 && batch.bytes >= least;
        if first != row || !is_all || last >= to {
            return Ok(None);
        }
        let bytes = self.up_to(end)?;
        if bytes.len() as u64 != end - begin {
            self.go(begin)?;
            return Ok(None);
        }
        Ok(Some(Stored {
            rows: first..last + 1,
            head: (columns - begin) as usize,
            bytes,
        }))
    }

    /// All bytes before this place, without what is in between, which would clear the memory first.
    pub(super) fn up_to(&mut self, end: u64) -> io::Result<Vec<u8>> {
        let count = end.saturating_sub(self.at);
        let mut bytes = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.get_mut().take(count);
        { read }.read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }

    /// Goes past the batches that end before this row; the next one, if there is one that has rows.
    pub(super) fn pass(&mut self, row: u64) -> io::Result<Option<Ends>> {
        loop {
            let Next::Batch(batch, at) = self.look()? else {
                return Ok(None);
            };
            let (Some(words), Some(more)) = (batch.first, batch.rows.checked_sub(1)) else {
                return Ok(None);
            };
            let (first, last) = (self.word(at + words)?, self.word(at + words + 8 * more)?);
            let end = at + batch.bytes;
            if last >= row || first > last {
                return Ok(Some(Ends {
                    first,
                    last,
                    batch,
                    columns: at,
                    end,
                }));
            }
            self.go(end)?;
        }
    }

    /// The word at this place of the file.
    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.get_ref().read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// What comes next in a stream.
pub(super) enum Next {
    /// A batch that is there as a whole, and where its columns begin.
    Batch(Batch, u64),
    /// The end of the stream.
    End,
    /// Half of something, or nothing that is known.
    Nothing,
}

/// What comes next is a batch that has rows.
pub(super) struct Ends {
    /// The numbers of its first and its last row.
    first: u64,
    last: u64,
    batch: Batch,
    /// Where its columns begin.
    columns: u64,
    /// Where it ends.
    end: u64,
}

/// A batch as it lies in the file.
pub(super) struct Stored {
    pub(super) rows: Range<u64>,
    /// All of it, and how many of them are before its columns.
    pub(super) bytes: Vec<u8>,
    pub(super) head: usize,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let (buffer, _) = buffer.split_at_mut(room);
        let count = self.file.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}
