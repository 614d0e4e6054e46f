// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled boards: the layout of include/uapi/strobe_board.h, byte by byte.
//!
//! tests/board.rs lets a C program read the result back through that header.

use super::{
    Block, Board, Channel, Event, Hardware, InterruptKind, Kind, Output, Write, WriteValue,
};

const MAGIC: u64 = u64::from_le_bytes(*b"STRBOARD");
const VERSION: u32 = 1;
const ANY_ID: u16 = 0xffff;
const NAME_SIZE: usize = 32;
const UNIT_SIZE: usize = 16;
const TEXT_SIZE: usize = 80;

const SIGNED: u32 = 1 << 0;
const BIG_ENDIAN: u32 = 1 << 1;
const FLOAT: u32 = 1 << 2;
const REREAD: u32 = 1 << 3;
const EVENT_PENDING: u32 = 1 << 0;
const WRITE_PENDING: u32 = 1 << 0;

/// What the checksum does not cover: the fields up to and with itself.
const CRC_FROM: usize = 20;

pub(super) fn compile(board: &Board) -> Vec<u8> {
    let mut writes = Writes {
        board,
        blob: Blob::default(),
        count: 0,
    };
    let setup = writes.list(&board.setup);
    let events: Vec<Vec<u8>> = board
        .events
        .iter()
        .map(|event| compile_event(board, event, &mut writes))
        .collect();

    let (vendor, device, subsystem) = match board.hardware {
        Hardware::Pci {
            vendor,
            device,
            subsystem,
        } => (vendor, device, subsystem),
        // No card has these ids. A board of other hardware than these is not compiled.
        _ => (0, 0, None),
    };
    let (subvendor, subdevice) = subsystem.unwrap_or((ANY_ID, ANY_ID));
    let mut body = Blob::default();
    body.u32(match board.interrupt.map(|interrupt| interrupt.kind) {
        None => 0,
        Some(InterruptKind::Intx) => 1,
        Some(InterruptKind::Msi) => 2,
        Some(InterruptKind::Msix) => 3,
        Some(InterruptKind::Line) => 4,
        Some(InterruptKind::Message) => 5,
    });
    for id in [vendor, device, subvendor, subdevice] {
        body.u16(id);
    }
    for count in [
        board.bars.len(),
        board.channels.len(),
        board.outputs.len(),
        board.events.len(),
    ] {
        body.u16(short(count));
    }
    body.u16(writes.count);
    body.u16(board.interrupt.map_or(0, |interrupt| interrupt.vectors));
    body.span(setup);
    body.u32(match &board.hardware {
        Hardware::Platform { name } | Hardware::Rpmsg { service: name, .. } => {
            crc32fast::hash(name.as_bytes())
        }
        _ => 0,
    });
    body.u32(0);
    body.text(&board.name, NAME_SIZE);
    body.text(&board.description, TEXT_SIZE);

    for bar in &board.bars {
        body.u32(bar.number.into());
        body.u32(0);
        body.u64(bar.size);
    }
    for channel in &board.channels {
        compile_channel(board, channel, &mut body);
    }
    for output in &board.outputs {
        compile_output(board, output, &mut body);
    }
    body.0.extend(events.concat());
    body.0.extend(writes.blob.0);

    let mut blob = Blob::default();
    blob.u64(MAGIC);
    blob.u32(VERSION);
    blob.u32(u32::try_from(CRC_FROM + body.0.len()).unwrap_or(u32::MAX));
    blob.u32(crc32fast::hash(&body.0));
    blob.0.extend(body.0);
    blob.0
}

fn compile_channel(board: &Board, channel: &Channel, blob: &mut Blob) {
    let flags = match channel.kind {
        Kind::Unsigned => 0,
        Kind::Signed => SIGNED,
        Kind::Float => FLOAT,
    };
    let register = board.registers.get(channel.register);
    let reread = register.is_some_and(|register| register.reread);
    let flags = flags | if reread { REREAD } else { 0 };
    blob.text(&channel.name, NAME_SIZE);
    blob.text(&channel.unit, UNIT_SIZE);
    blob.text(&channel.description, TEXT_SIZE);
    blob.u64(channel.scale.to_bits());
    blob.u64(channel.offset.to_bits());
    blob.register(
        board,
        channel.register,
        Some((channel.shift, channel.bits)),
        flags,
    );
}

fn compile_output(board: &Board, output: &Output, blob: &mut Blob) {
    blob.text(&output.name, NAME_SIZE);
    blob.text(&output.unit, UNIT_SIZE);
    blob.text(&output.description, TEXT_SIZE);
    blob.u64(output.scale.to_bits());
    blob.u64(output.offset.to_bits());
    blob.register(board, output.register, None, 0);
}

fn compile_event(board: &Board, event: &Event, writes: &mut Writes<'_>) -> Vec<u8> {
    let mut blob = Blob::default();
    blob.text(&event.name, NAME_SIZE);
    blob.text(&event.description, TEXT_SIZE);
    blob.u32(if event.pending.is_some() {
        EVENT_PENDING
    } else {
        0
    });
    blob.u16(event.vector);
    blob.u16(event.missed.map_or(0, |channel| short(channel + 1)));
    match event.pending {
        Some(pending) => blob.register(board, pending.register, None, 0),
        None => blob.0.extend([0; 16]),
    }
    blob.u64(event.pending.map_or(0, |pending| pending.mask));
    for list in [&event.silence, &event.enable, &event.disable] {
        let span = writes.list(list);
        blob.span(span);
    }
    blob.u32(0);
    blob.0
}

/// All lists of writes, one after the other.
struct Writes<'b> {
    board: &'b Board,
    blob: Blob,
    count: u16,
}

impl Writes<'_> {
    /// Appends a list; answers its first entry and how many it has.
    fn list(&mut self, list: &[Write]) -> (u16, u16) {
        let first = if list.is_empty() { 0 } else { self.count };
        for write in list {
            let (flags, value) = match write.value {
                WriteValue::Fixed(value) => (0, value),
                WriteValue::Pending => (WRITE_PENDING, 0),
            };
            self.blob.register(self.board, write.register, None, 0);
            self.blob.u32(flags);
            self.blob.u32(0);
            self.blob.u64(value);
        }
        self.count += short(list.len());
        (first, short(list.len()))
    }
}

/// Bytes in the making.
#[derive(Default)]
struct Blob(Vec<u8>);

impl Blob {
    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn span(&mut self, (first, count): (u16, u16)) {
        self.u16(first);
        self.u16(count);
    }

    /// A text that is shorter than its place, and NULs; `parse` has seen to the length.
    fn text(&mut self, text: &str, size: usize) {
        let end = self.0.len() + size;
        self.0.extend(text.bytes().take(size - 1));
        self.0.resize(end, 0);
    }

    /// A register, whole or a field (lowest bit, bits) of it.
    fn register(&mut self, board: &Board, index: usize, field: Option<(u8, u8)>, flags: u32) {
        let Some(register) = board.registers.get(index) else {
            return;
        };
        let bar = board
            .bars
            .iter()
            .position(|bar| Block::Bar(bar.number) == register.block)
            .unwrap_or(0);
        let (shift, bits) = field.unwrap_or((0, register.bits()));
        self.0
            .extend([u8::try_from(bar).unwrap_or(0), register.width, shift, bits]);
        self.u32(flags | if register.big_endian { BIG_ENDIAN } else { 0 });
        self.u32(0);
        self.u32(register.offset);
    }
}

/// A count that `parse` has bounded.
fn short(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
