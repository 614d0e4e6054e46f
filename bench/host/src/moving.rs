// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it costs to move a row to another process: by the ring, by a pipe, by a socket; and to copy it at all.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde::Serialize;
use strobe::internals::ring_memory;
use strobe::ring::layout::{CLOCK_MONOTONIC, Engine, NO_LIMIT};
use strobe::ring::{End, Geometry, Header, RowShape, StartTimes, Writer};
use strobe::rt::{self, Policy};

use crate::consumer::Consumer;
use crate::lines;
use crate::words::{CHANNELS, NARROW_CHANNELS, RING_ROWS, ROW_WORDS, value, values};

/// A way to move rows, and what a row took.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub way: &'static str,
    /// Nanoseconds a row, of each round.
    pub ns: Vec<f64>,
}

/// All rounds so far.
#[derive(Default)]
pub struct Measurement(Vec<Figure>);

/// By the ring: rows of six values, 80 bytes. The target was found with rows of that size.
pub const RING: &str = "ring, 8192 rows of 80 bytes";
/// And of ten, as all other figures are of: 112 bytes.
pub const WIDE: &str = "ring, 8192 rows of 112 bytes";
/// In one process after the other, through the kernel.
pub const PIPE: &str = "pipe, 50 rows a write";
pub const SOCKET: &str = "unix socket, 50 rows a write";
/// Not at all: a copy of a ring's rows within one process.
pub const COPY: &str = "memcpy of as much memory";

impl Measurement {
    /// Moves this many rows by each way; a pipe gets fewer, or it would take all the time.
    pub fn round(&mut self, rows: u64, from: usize, to: usize) -> Result<(), Box<dyn Error>> {
        // In a thread of its own, for what is set up stays so.
        let measured = std::thread::scope(|scope| {
            let work = scope.spawn(|| -> Result<_, String> {
                rt::lock_memory();
                rt::set_up_thread(Some(from), Policy::Fifo(50));
                let text = |error: Box<dyn Error>| error.to_string();
                let (line, turns) = lines::both(to);
                Ok([
                    (RING, by_ring::<NARROW_CHANNELS>(rows, to).map_err(text)?),
                    (WIDE, by_ring::<CHANNELS>(rows, to).map_err(text)?),
                    (PIPE, through(pipe, rows / 8, 50, to).map_err(text)?),
                    (SOCKET, through(socket, rows / 8, 50, to).map_err(text)?),
                    (
                        "pipe, 1 row a write",
                        through(pipe, rows / 64, 1, to).map_err(text)?,
                    ),
                    (COPY, by_copy(rows)),
                    (lines::TURNS, turns),
                    (lines::LINE, line),
                ])
            });
            work.join()
                .map_err(|_| "the producer has panicked".to_owned())?
        })?;
        for (way, ns) in measured {
            match self.0.iter_mut().find(|figure| figure.way == way) {
                Some(figure) => figure.ns.push(ns),
                None => self.0.push(Figure { way, ns: vec![ns] }),
            }
        }
        Ok(())
    }

    pub fn figures(self) -> Vec<Figure> {
        self.0
    }
}

/// The producer keeps behind the consumer, so that no row is lost: what is measured is the move.
fn by_ring<const VALUES: usize>(rows: u64, to: usize) -> Result<f64, Box<dyn Error>> {
    let geometry = Geometry::new(RowShape::of_channels(VALUES as u32), RING_ROWS, NO_LIMIT)?;
    let (memory, _, file) = ring_memory(geometry.bytes(), true)?;
    let header = Header {
        geometry,
        clock: CLOCK_MONOTONIC,
        period_ns: 0,
        run: 1,
        engine: Engine::User,
        absent: false,
    };
    let mut ring = Writer::create(memory, &header).map_err(|error| error.to_string())?;
    let consumer = Consumer::of_ring(&file, to, 1)?;
    ring.start(StartTimes::default())?;
    let begun = Instant::now();
    let mut free = RING_ROWS - 1;
    for row in 0..rows {
        while row >= free {
            free = consumer.progress.read() + RING_ROWS - 1;
        }
        let mut new = ring.begin(row).ok_or("the ring is full")?;
        for channel in 0..VALUES {
            new.value(value(row, channel));
        }
        new.commit(0);
    }
    while consumer.progress.read() < rows {
        std::hint::spin_loop();
    }
    let took = begun.elapsed();
    ring.finish(End::Done, 0);
    let received = consumer.end()?;
    if (received.rows, received.lost) != (rows, 0) {
        return Err(format!("of {rows} rows {received:?}").into());
    }
    Ok(took.as_nanos() as f64 / rows as f64)
}

/// The end to write and the end to read of something that bytes go through.
type Ends = (File, OwnedFd);

fn pipe() -> Result<Ends, Box<dyn Error>> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((File::from(write), read))
}

fn socket() -> Result<Ends, Box<dyn Error>> {
    let (write, read) = UnixStream::pair()?;
    Ok((File::from(OwnedFd::from(write)), OwnedFd::from(read)))
}

/// Rows as bytes, so many in each write.
fn through(
    ends: fn() -> Result<Ends, Box<dyn Error>>,
    rows: u64,
    at_once: u64,
    to: usize,
) -> Result<f64, Box<dyn Error>> {
    let rows = rows - rows % at_once;
    let (mut stream, other) = ends()?;
    let consumer = Consumer::of_stream(other, to)?;
    let mut bytes = vec![0; 8 * ROW_WORDS * at_once as usize];
    let begun = Instant::now();
    for first in (0..rows).step_by(at_once as usize) {
        for (row, bytes) in (first..).zip(bytes.chunks_exact_mut(8 * ROW_WORDS)) {
            let header = [row, row, row, 0].into_iter();
            for (word, to) in header.chain(values(row)).zip(bytes.chunks_exact_mut(8)) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
        }
        stream.write_all(&bytes)?;
    }
    drop(stream);
    let received = consumer.end()?;
    let took = begun.elapsed();
    if received.rows != rows {
        return Err(format!("of {rows} rows {received:?}").into());
    }
    Ok(took.as_nanos() as f64 / rows as f64)
}

fn by_copy(rows: u64) -> f64 {
    let words = RING_ROWS as usize * ROW_WORDS;
    let from: Vec<u64> = (0..words as u64).collect();
    let mut to = vec![0_u64; words];
    let begun = Instant::now();
    for _ in 0..rows / RING_ROWS {
        std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
    }
    begun.elapsed().as_nanos() as f64 / (rows - rows % RING_ROWS) as f64
}
