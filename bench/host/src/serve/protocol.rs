// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which a client gets rows. It reads all of them as fast as it can, and counts; nothing else.

use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use arrow_ipc::root_as_message;
use serde::Serialize;
use tungstenite::Message;

use super::daemon::{PATIENCE, ROW_BYTES};

/// Bytes that a client reads at once.
const ROOM: usize = 256 << 10;

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Protocol {
    #[serde(rename = "raw TCP")]
    Raw,
    #[serde(rename = "PandA port")]
    Panda,
    #[serde(rename = "HTTP, Arrow")]
    Arrow,
    #[serde(rename = "WebSocket, Arrow")]
    WebSocket,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Raw => "raw TCP",
            Protocol::Panda => "PandA port",
            Protocol::Arrow => "HTTP, Arrow",
            Protocol::WebSocket => "WebSocket, Arrow",
        })
    }
}

impl Protocol {
    /// How much of the speed of raw TCP it is to have.
    pub fn target(self) -> Option<f64> {
        match self {
            Protocol::Panda => Some(0.9),
            Protocol::Arrow => Some(0.7),
            Protocol::Raw | Protocol::WebSocket => None,
        }
    }
}

/// Where rows are to be had.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub raw: SocketAddr,
    pub panda: SocketAddr,
    pub http: SocketAddr,
    pub run: u64,
}

/// Reads the first rows of the run, so many.
pub fn read(way: Protocol, from: Source, rows: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
    match way {
        Protocol::Raw => raw(from.raw, rows * ROW_BYTES)?,
        Protocol::Panda => panda(from.panda, rows * ROW_BYTES)?,
        Protocol::Arrow => arrow(from, rows)?,
        Protocol::WebSocket => return web_socket(from, rows),
    }
    Ok(())
}

fn connect(to: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::with_capacity(ROOM, stream))
}

/// Reads so many bytes.
fn skip(from: &mut impl BufRead, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let here = from.fill_buf()?.len() as u64;
        if here == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = here.min(left);
        from.consume(read as usize);
        left -= read;
    }
    Ok(())
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}

/// Reads so many bytes by raw TCP.
pub fn raw(to: SocketAddr, bytes: u64) -> io::Result<()> {
    skip(&mut connect(to)?, bytes)
}

/// As the stock clients ask for them, but from the first row on.
fn panda(to: SocketAddr, bytes: u64) -> io::Result<()> {
    let mut from = connect(to)?;
    from.get_mut().write_all(b"XML FRAMED RAW FROM=0\n")?;
    while line(&mut from)? != "</header>" {}
    line(&mut from)?;
    let mut left = bytes;
    while left > 0 {
        let mut head = [0; 8];
        from.read_exact(&mut head)?;
        let [b'B', b'I', b'N', b' ', length @ ..] = head else {
            return Err(io::Error::other(format!("{head:?} where rows should be")));
        };
        let rows = u64::from(u32::from_le_bytes(length)).saturating_sub(8);
        skip(&mut from, rows)?;
        left = left
            .checked_sub(rows)
            .ok_or_else(|| io::Error::other("more rows than there are"))?;
    }
    Ok(())
}

/// The answer of one request, in its chunks.
fn arrow(source: Source, rows: u64) -> io::Result<()> {
    let mut from = connect(source.http)?;
    let (run, host) = (source.run, source.http);
    let request = format!("GET /api/runs/{run}/rows?to={rows} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    from.get_mut().write_all(request.as_bytes())?;
    let status = line(&mut from)?;
    if !status.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(status));
    }
    while !line(&mut from)?.is_empty() {}
    let mut sum = 0;
    loop {
        let length = u64::from_str_radix(&line(&mut from)?, 16).map_err(io::Error::other)?;
        skip(&mut from, length)?;
        line(&mut from)?;
        sum += length;
        // Cut off, it would not come to that.
        if length == 0 {
            break;
        }
    }
    match sum >= rows * ROW_BYTES {
        true => Ok(()),
        false => Err(io::Error::other(format!("{sum} bytes are not {rows} rows"))),
    }
}

/// Messages with a batch each.
fn web_socket(source: Source, rows: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
    let stream = TcpStream::connect(source.http)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let url = format!("ws://{}/api/runs/{}/live", source.http, source.run);
    let (mut socket, _) = tungstenite::client(url, stream)?;
    socket.send(Message::text(r#"{"from": 0, "policy": "every"}"#))?;
    let mut left = rows;
    while left > 0 {
        if let Message::Binary(bytes) = socket.read()? {
            left = left
                .checked_sub(batch_rows(&bytes)?)
                .ok_or("more rows than there are")?;
        }
    }
    Ok(())
}

/// Rows of a message of an Arrow stream: none, if it is the schema.
fn batch_rows(message: &[u8]) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let (_, head) = message.split_at_checked(8).ok_or("half a message")?;
    let message = root_as_message(head).map_err(|error| error.to_string())?;
    let batch = message.header_as_record_batch();
    Ok(batch.map_or(0, |batch| batch.length() as u64))
}
