// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages of a stream, and which of them can be believed.

use std::io::{self, Read};

use arrow_ipc::{
    Buffer, Field, Message, MessageHeader, Precision, RecordBatch, Schema, Type, root_as_message,
};

/// A stream that passes on only what can be read. What reads it panics about types that it does not know, and takes memory
/// for whatever a message claims to have, which would end the process.
pub(super) struct Messages<R> {
    stream: R,
    /// The head of the message, and how much of it was given.
    head: Vec<u8>,
    given: usize,
    /// Bytes of the message that follow its head, and were not given.
    body: u64,
    /// Bytes that there are yet, if that is known: no message is longer.
    left: u64,
    /// Bits of a value of each column.
    columns: Vec<u64>,
}

/// Bytes of a head, at most: some hundred for each of the most channels that a run can have.
const HEAD: u64 = 16 << 20;
/// Bytes of a body, at most: twice the longest batch of the most channels.
const BODY: u64 = 1 << 30;

impl<R: Read> Messages<R> {
    /// Of so many bytes; `None`: nobody knows.
    pub(super) fn new(stream: R, bytes: Option<u64>) -> Self {
        Messages {
            stream,
            left: bytes.unwrap_or(u64::MAX),
            head: Vec::new(),
            given: 0,
            body: 0,
            columns: Vec::new(),
        }
    }

    /// The head of the next message; half of one, if the stream ends there.
    fn next(&mut self) -> io::Result<()> {
        self.head.clear();
        self.given = 0;
        self.take(8)?;
        let Ok(start) = <[u8; 8]>::try_from(self.head.as_slice()) else {
            // The stream ends here. What has no mark would be taken for a length, of up to 2 GiB.
            return match self.head.iter().take(4).all(|byte| *byte == 0xFF) {
                true => Ok(()),
                false => Err(refused("no message begins like this")),
            };
        };
        if start == END {
            return Ok(());
        }
        let length = length(start).filter(|length| *length <= HEAD);
        let length = length.ok_or_else(|| refused("no message begins like this"))?;
        self.take(length)?;
        let (_, head) = self.head.split_at(start.len());
        if head.len() as u64 == length {
            self.body = body(head, &mut self.columns, self.left).map_err(refused)?;
        }
        Ok(())
    }

    /// So many bytes more, or all that there are.
    fn take(&mut self, count: u64) -> io::Result<()> {
        let mut part = self.stream.by_ref().take(count);
        let read = part.read_to_end(&mut self.head)?;
        self.left -= read as u64;
        Ok(())
    }
}

impl<R: Read> Read for Messages<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.head.len() && self.body == 0 {
            self.next()?;
        }
        let (_, mut head) = self.head.split_at(self.given);
        if !head.is_empty() {
            let count = head.read(buffer)?;
            self.given += count;
            return Ok(count);
        }
        let room = usize::try_from(self.body).map_or(buffer.len(), |body| body.min(buffer.len()));
        let (buffer, _) = buffer.split_at_mut(room);
        let count = self.stream.read(buffer)?;
        self.body -= count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Bytes that follow the head of a message, of those that are left. The first one has the columns of all others.
fn body(head: &[u8], columns: &mut Vec<u64>, left: u64) -> Result<u64, &'static str> {
    let message = root_as_message(head).map_err(|_| "a message is damaged")?;
    let bytes = match message.header_type() {
        MessageHeader::Schema => {
            let schema = message.header_as_schema();
            let fields = schema.as_ref().and_then(Schema::fields);
            let bits: Option<Vec<u64>> = fields.and_then(|all| all.iter().map(bits_of).collect());
            *columns = bits.ok_or("it has columns that no recording has")?;
            0
        }
        MessageHeader::RecordBatch => {
            let batch = Batch::of_message(&message).filter(|batch| batch.has(columns));
            batch.ok_or("rows are damaged")?.bytes
        }
        _ => return Err("a message has neither columns nor rows"),
    };
    match u64::try_from(message.bodyLength()) {
        Ok(_) if bytes > left => Err("a message is shorter than it says"),
        Ok(said) if said == bytes && bytes <= BODY => Ok(bytes),
        _ => Err("a message is longer than any of a recording"),
    }
}

/// Bits of a value of this column; `None` if no recording has such a one.
fn bits_of(field: Field<'_>) -> Option<u64> {
    let bits = match field.type_type() {
        Type::Bool => 1,
        Type::Int if field.type_as_int()?.bitWidth() == 64 => 64,
        Type::FloatingPoint if field.type_as_floating_point()?.precision() == Precision::DOUBLE => {
            64
        }
        _ => return None,
    };
    (field.name().is_some() && field.dictionary().is_none()).then_some(bits)
}

/// How a stream ends.
pub(super) const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// Bytes of the head of a message that begins like this.
pub(super) fn length(start: [u8; 8]) -> Option<u64> {
    let [mark @ .., a, b, c, d] = start;
    let length = u32::from_le_bytes([a, b, c, d]);
    (mark == [0xFF; 4] && length > 0).then_some(u64::from(length))
}

/// What the head of a batch says of what follows it.
pub(super) struct Batch {
    /// How long all columns are.
    pub(super) bytes: u64,
    pub(super) rows: u64,
    /// Where the words of the first column are in them, if those are all there.
    pub(super) first: Option<u64>,
    /// For each column as many bits as a value of it can have; none, if a column is not as it is in a recording.
    bits: Vec<u64>,
}

impl Batch {
    /// `None`: it is none, or has lengths that are not to be believed, which would end the process.
    pub(super) fn of_head(head: &[u8]) -> Option<Batch> {
        Batch::of_message(&root_as_message(head).ok()?)
    }

    fn of_message(message: &Message<'_>) -> Option<Batch> {
        let batch = message.header_as_record_batch()?;
        let (bytes, rows) = (
            u64::try_from(message.bodyLength()).ok()?,
            u64::try_from(batch.length()).ok()?,
        );
        let is_inside = |offset: i64, length: i64| {
            let end = offset.checked_add(length);
            offset >= 0 && length >= 0 && end.is_some_and(|end| end as u64 <= bytes)
        };
        let buffers = batch.buffers();
        let mut all = buffers.into_iter().flatten();
        if !all.all(|buffer| is_inside(buffer.offset(), buffer.length())) {
            return None;
        }
        let bits = Batch::columns(&batch, rows).unwrap_or_default();
        let words = batch.buffers().and_then(|buffers| buffers.iter().nth(1));
        Some(Batch {
            bytes,
            rows,
            first: (bits.first().is_some_and(|bits| *bits >= 64)).then_some(words?.offset() as u64),
            bits,
        })
    }

    /// As many bits as a value of each column can have; `None` if they are not all there as they are in a recording.
    fn columns(batch: &RecordBatch<'_>, rows: u64) -> Option<Vec<u64>> {
        let (nodes, buffers) = (batch.nodes()?, batch.buffers()?);
        if batch.compression().is_some() || buffers.len() != 2 * nodes.len() {
            return None;
        }
        let bits = |buffer: &Buffer| {
            let bits = (buffer.length() as u64).saturating_mul(8);
            bits.checked_div(rows).unwrap_or(u64::MAX)
        };
        let mut columns = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            // Which are values, unless all are; and the values: words, or a bit each.
            let (valid, values) = (buffers.get(2 * index), buffers.get(2 * index + 1));
            let nulls = u64::try_from(node.null_count()).ok()?;
            let is_right =
                node.length() as u64 == rows && nulls <= rows && (nulls == 0 || bits(valid) >= 1);
            columns.push(is_right.then_some(bits(values))?);
        }
        Some(columns)
    }

    /// Whether it has these columns, each with so many bits for a value.
    fn has(&self, columns: &[u64]) -> bool {
        let mut both = self.bits.iter().zip(columns);
        self.bits.len() == columns.len() && both.all(|(bits, wanted)| bits >= wanted)
    }
}
