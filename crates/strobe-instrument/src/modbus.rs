// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modbus over TCP and over serial lines. rmodbus makes and reads its frames.

use std::time::{Duration, Instant};

use rmodbus::client::ModbusRequest;
use rmodbus::{ErrorKind, ModbusProto, guess_response_frame_len};
use strobe_board::instrument::{Area, Command, Reply};

use crate::fault::{Fault, Left, Trouble};
use crate::line::Line;
use crate::stream::{Stream, extra};
use crate::text::no_room;

/// A conversation in Modbus.
pub(crate) struct Modbus {
    stream: Box<dyn Stream>,
    protocol: ModbusProto,
    unit: u8,
    /// The number of the last frame over TCP.
    transaction: u16,
    /// What has to be between two frames, and when the last one ended.
    pause: Duration,
    last: Option<Instant>,
    /// Requests without an answer, one after the other.
    late: u32,
    came: Vec<u8>,
}

/// So many answers may be late, one after the other, before the connection is made anew.
const LATE_MAX: u32 = 3;
/// Most bytes of a frame.
const FRAME_MAX: usize = 260;

impl Modbus {
    pub(crate) fn new(
        stream: Box<dyn Stream>,
        protocol: ModbusProto,
        unit: u8,
        pause: Duration,
    ) -> Modbus {
        Modbus {
            stream,
            protocol,
            unit,
            transaction: 0,
            pause,
            last: None,
            late: 0,
            came: Vec::new(),
        }
    }

    fn is_numbered(&self) -> bool {
        self.protocol == ModbusProto::TcpUdp
    }

    /// Sends a request that `make` fills, and receives the frame that answers it.
    fn exchange(
        &mut self,
        make: impl FnOnce(&mut ModbusRequest, &mut Vec<u8>) -> Result<(), ErrorKind>,
        until: Instant,
    ) -> Result<(ModbusRequest, Vec<u8>), Trouble> {
        if !self.is_numbered() {
            self.came.clear();
            self.stream.check_quiet()?;
        }
        if let Some(last) = self.last {
            std::thread::sleep(self.pause.saturating_sub(last.elapsed()));
        }
        self.transaction = self.transaction.wrapping_add(1);
        let mut request = ModbusRequest::new(self.unit, self.protocol);
        request.tr_id = self.transaction;
        let mut bytes = Vec::new();
        make(&mut request, &mut bytes).map_err(|_| no_room())?;
        self.stream.send(&bytes, until)?;
        let answer = self.receive(until);
        self.last = Some(Instant::now());
        let answer = answer.map_err(|trouble| self.patient(trouble))?;
        self.late = 0;
        // What is no answer to this function is not the refusal that it may look like.
        let function = answer.get(if self.is_numbered() { 7 } else { 1 });
        if function.is_none_or(|function| function & 0x7f != request.func as u8) {
            return Err(trouble(&ErrorKind::FrameBroken));
        }
        request.parse_ok(&answer).map_err(|error| trouble(&error))?;
        Ok((request, answer))
    }

    /// Frames that have numbers may be late without harm; but if several are, the connection is not what it seems.
    fn patient(&mut self, trouble: Trouble) -> Trouble {
        self.late += 1;
        match trouble.fault {
            Fault::Late if self.is_numbered() && self.late < LATE_MAX => Trouble {
                left: Left::All,
                ..trouble
            },
            _ => trouble,
        }
    }

    /// The frame of the last request. Over TCP frames have numbers: one of before was late, and is thrown away.
    fn receive(&mut self, until: Instant) -> Result<Vec<u8>, Trouble> {
        loop {
            let size = match guess_response_frame_len(&self.came, self.protocol) {
                Ok(size) => Some(usize::from(size)),
                Err(ErrorKind::OOB) => None,
                Err(error) => return Err(trouble(&error)),
            };
            if let Some(size) = size.filter(|size| *size <= self.came.len()) {
                let rest = self.came.split_off(size);
                let frame = std::mem::replace(&mut self.came, rest);
                match self.is_numbered() {
                    true if frame.get(..2) != Some(&self.transaction.to_be_bytes()) => continue,
                    false if !self.came.is_empty() => return Err(extra()),
                    _ => return Ok(frame),
                }
            }
            let room = FRAME_MAX.saturating_sub(self.came.len());
            self.stream.receive(&mut self.came, room.max(1), until)?;
        }
    }
}

/// What a frame that is no answer means.
fn trouble(error: &ErrorKind) -> Trouble {
    match error.is_modbus_error() || *error == ErrorKind::UnknownError {
        true => Trouble::new(Fault::Refused, Left::All, format!("it refuses: {error}")),
        false => Trouble::new(
            Fault::Wrong,
            Left::Line,
            format!("its answer is not a Modbus frame: {error}"),
        ),
    }
}

impl Line for Modbus {
    fn ask(
        &mut self,
        command: &Command,
        reply: Reply,
        answer: &mut Vec<u8>,
        until: Instant,
    ) -> Result<(), Trouble> {
        let (Command::Modbus { area, address, .. }, Reply::Bytes(bytes)) = (command, reply) else {
            return Err(no_room());
        };
        let (area, address) = (*area, *address);
        let count = match area.is_of_bits() {
            true => bytes,
            false => bytes / 2,
        };
        let count = u16::try_from(count).map_err(|_| no_room())?;
        let make = |request: &mut ModbusRequest, bytes: &mut Vec<u8>| match area {
            Area::Coil => request.generate_get_coils(address, count, bytes),
            Area::Discrete => request.generate_get_discretes(address, count, bytes),
            Area::Holding => request.generate_get_holdings(address, count, bytes),
            Area::Input => request.generate_get_inputs(address, count, bytes),
        };
        let (request, frame) = self.exchange(make, until)?;
        let data = request
            .parse_slice(&frame)
            .map_err(|error| trouble(&error))?;
        match area.is_of_bits() {
            // One byte for each bit.
            true => answer.extend(
                (0..bytes).map_while(|bit| data.get(bit / 8).map(|byte| byte >> (bit % 8) & 1)),
            ),
            false => answer.extend_from_slice(data),
        }
        if answer.len() != bytes {
            return Err(Trouble::new(
                Fault::Wrong,
                Left::All,
                "it answers with another number of registers",
            ));
        }
        Ok(())
    }

    fn tell(&mut self, command: &Command, value: f64, until: Instant) -> Result<(), Trouble> {
        let Command::Modbus { area, address, .. } = command else {
            return Err(no_room());
        };
        let (area, address) = (*area, *address);
        let data = command.bytes_for(value).ok_or_else(no_room)?;
        let registers: Vec<u16> = data
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect();
        let make = |request: &mut ModbusRequest, bytes: &mut Vec<u8>| match (area, &registers[..]) {
            (Area::Coil | Area::Discrete, _) => {
                request.generate_set_coil(address, data.first().is_some_and(|bit| *bit != 0), bytes)
            }
            (_, [one]) => request.generate_set_holding(address, *one, bytes),
            (_, several) => request.generate_set_holdings_bulk(address, several, bytes),
        };
        self.exchange(make, until).map(drop)
    }

    fn settle(&mut self, quiet: Duration) -> Option<Result<(), Trouble>> {
        self.came.clear();
        self.stream.can_settle().then(|| self.stream.settle(quiet))
    }
}
