// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries bytes to an instrument and back: TCP, a serial line, a USB device.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serialport::{ClearBuffer, DataBits, FlowControl, SerialPort, StopBits, TTYPort};
use strobe_board::instrument::{Flow, Parity, Serial};
use strobe_hw::usbtmc;

use crate::fault::{Fault, Left, Trouble};

/// Carries bytes.
pub(crate) trait Stream: Send {
    /// Some bytes that came, within this time; none: the other side has hung up.
    fn read(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize>;

    /// Sends some bytes, within this time.
    fn write(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize>;

    /// Whether one read is one message.
    fn is_of_messages(&self) -> bool {
        false
    }

    /// Whether a late answer can be waited for. Else one reaches the instrument again, and nothing of before can come.
    fn can_settle(&self) -> bool {
        false
    }
}

impl dyn Stream {
    /// Sends all of it.
    pub(crate) fn send(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        while !bytes.is_empty() {
            let within = until.saturating_duration_since(Instant::now());
            match self.write(bytes, within) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) => {
                    // A part of it has been sent, perhaps: nobody knows what the instrument makes of it.
                    let trouble = Trouble::of(&error);
                    return Err(Trouble {
                        left: Left::Nothing,
                        ..trouble
                    });
                }
            }
        }
        Ok(())
    }

    /// Appends what comes to `bytes`, at most so many.
    pub(crate) fn receive(
        &mut self,
        bytes: &mut Vec<u8>,
        most: usize,
        until: Instant,
    ) -> Result<usize, Trouble> {
        let within = until.saturating_duration_since(Instant::now());
        let before = bytes.len();
        bytes.resize(before + most.min(CHUNK), 0);
        // Who sends without an end is not listened to without one.
        let read = match within {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            within => self.read(bytes.get_mut(before..).unwrap_or_default(), within),
        };
        bytes.truncate(before + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(0) => Err(Trouble::hung_up()),
            Ok(read) => Ok(read),
            Err(error) => {
                let trouble = Trouble::of(&error);
                match (trouble.fault, before) {
                    (Fault::Late, 1..) => Err(Trouble::new(
                        Fault::Cut,
                        Left::Line,
                        "its answer has no end",
                    )),
                    _ => Err(trouble),
                }
            }
        }
    }

    /// What is there unasked: it cannot be told from the answer to the next question.
    pub(crate) fn check_quiet(&mut self) -> Result<(), Trouble> {
        match self.read(&mut [0; 256], Duration::ZERO) {
            Ok(0) => Err(Trouble::hung_up()),
            Ok(_) => Err(extra()),
            Err(error) => match Trouble::of(&error) {
                Trouble {
                    fault: Fault::Late, ..
                } => Ok(()),
                trouble => Err(trouble),
            },
        }
    }

    /// Throws away what comes, until nothing has come for this long.
    pub(crate) fn settle(&mut self, quiet: Duration) -> Result<(), Trouble> {
        let until = Instant::now() + 10 * quiet;
        while Instant::now() < until {
            match self.read(&mut [0; CHUNK], quiet) {
                Ok(0) => return Err(Trouble::hung_up()),
                Ok(_) => {}
                Err(error) => match Trouble::of(&error) {
                    Trouble {
                        fault: Fault::Late, ..
                    } => return Ok(()),
                    trouble => return Err(trouble),
                },
            }
        }
        Err(Trouble::new(
            Fault::Extra,
            Left::Nothing,
            "it does not stop sending",
        ))
    }
}

/// Bytes of one read, at most.
pub(crate) const CHUNK: usize = 4096;

pub(crate) fn extra() -> Trouble {
    Trouble::new(Fault::Extra, Left::Line, "it sends data unasked")
}

/// What a signal has interrupted is done again.
fn again<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A connection.
struct Tcp(TcpStream);

/// Connects.
pub(crate) fn tcp(address: &str, within: Duration) -> Result<Box<dyn Stream>, String> {
    let failed = |error: io::Error| {
        let remedy = match error.kind() {
            io::ErrorKind::ConnectionRefused => "; is its server on, and the port right?",
            io::ErrorKind::TimedOut => "; is it on, and the address right?",
            _ => "",
        };
        format!("{address}: {error}{remedy}")
    };
    let mut last = None;
    for place in address.to_socket_addrs().map_err(failed)? {
        let connected = TcpStream::connect_timeout(&place, within).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => return Ok(Box::new(Tcp(stream))),
            Err(error) => last = Some(failed(error)),
        }
    }
    Err(last.unwrap_or_else(|| format!("{address}: no such host; check the spelling")))
}

impl Tcp {
    fn wait(&self, flags: PollFlags, within: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(within).unwrap_or_default();
        match poll(&mut [PollFd::new(&self.0, flags)], Some(&timeout))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

impl Stream for Tcp {
    fn read(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        again(|| self.wait(PollFlags::IN, within))?;
        again(|| self.0.read(bytes))
    }

    fn write(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        again(|| self.wait(PollFlags::OUT, within))?;
        again(|| self.0.write(bytes))
    }
}

/// A serial line.
struct Line(TTYPort);

/// Opens a serial line.
pub(crate) fn serial(serial: &Serial) -> Result<Box<dyn Stream>, String> {
    let port = serialport::new(&serial.device, serial.baud)
        .data_bits(match serial.data_bits {
            7 => DataBits::Seven,
            _ => DataBits::Eight,
        })
        .parity(match serial.parity {
            Parity::None => serialport::Parity::None,
            Parity::Even => serialport::Parity::Even,
            Parity::Odd => serialport::Parity::Odd,
        })
        .stop_bits(match serial.stop_bits {
            2 => StopBits::Two,
            _ => StopBits::One,
        })
        .flow_control(match serial.flow {
            Flow::None => FlowControl::None,
            Flow::Software => FlowControl::Software,
            Flow::Hardware => FlowControl::Hardware,
        });
    let port = port.open_native().and_then(|port| {
        // What came before nobody has asked for.
        port.clear(ClearBuffer::Input)?;
        Ok(port)
    });
    match port {
        Ok(port) => Ok(Box::new(Line(port))),
        Err(error) => {
            let error = io::Error::from(error);
            Err(format!("{}: {error}{}", serial.device, remedy(&error)))
        }
    }
}

/// What helps if a file of /dev cannot be opened.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; is it plugged in, and `device` right?",
        io::ErrorKind::PermissionDenied => "; become a member of its group, as `ls -l` shows it",
        io::ErrorKind::ResourceBusy => "; another program has it",
        _ => "",
    }
}

impl Stream for Line {
    fn read(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        self.0.set_timeout(within)?;
        again(|| self.0.read(bytes))
    }

    fn write(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        self.0.set_timeout(within)?;
        again(|| self.0.write(bytes))
    }

    fn can_settle(&self) -> bool {
        true
    }
}

/// A USB device of the test and measurement class.
struct UsbTmc(File);

/// Opens a USB device. What it was asked before is forgotten: its answer would be taken for that to the next question.
pub(crate) fn usbtmc(device: &str, within: Duration) -> Result<Box<dyn Stream>, String> {
    let failed = |error: io::Error| format!("{device}: {error}{}", remedy(&error));
    let file = File::options().read(true).write(true).open(device);
    let file = file.map_err(failed)?;
    // Its driver lets all speak at once, and who clears the buffers takes the others' answers away.
    let lock = flock(&file, FlockOperation::NonBlockingLockExclusive);
    lock.map_err(|errno| match errno {
        Errno::WOULDBLOCK => failed(Errno::BUSY.into()),
        errno => failed(errno.into()),
    })?;
    usbtmc::set_timeout(&file, within).map_err(|errno| match errno {
        Errno::NOTTY => format!("{device}: it is no USB instrument; its file is /dev/usbtmcN"),
        errno => failed(errno.into()),
    })?;
    usbtmc::clear(&file).map_err(|errno| match errno {
        Errno::PIPE => format!(
            "{device}: it cannot clear its buffers, so an old answer could be taken for a new one; use another connection of the instrument"
        ),
        errno => format!("{device}: it does not clear its buffers: {errno}; switch it off and on"),
    })?;
    Ok(Box::new(UsbTmc(file)))
}

impl Stream for UsbTmc {
    fn read(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        // A device that was not asked has nothing to say, and takes a read for a fault.
        if within.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        usbtmc::set_timeout(&self.0, within)?;
        again(|| self.0.read(bytes))
    }

    fn write(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        usbtmc::set_timeout(&self.0, within)?;
        again(|| self.0.write(bytes))
    }

    fn is_of_messages(&self) -> bool {
        true
    }
}
