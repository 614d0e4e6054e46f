// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other process: takes the rows, and looks at every word of them.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use strobe::internals::RingFile;
use strobe::map::{Region, Register};
use strobe::reader::ReaderOptions;
use strobe::ring::layout::ROW_HEADER_WORDS;
use strobe::rt::{self, Policy};

use crate::words::{Memory, ROW_WORDS, are_of, inherit, inherited};

/// What it says at its end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Received {
    /// Whole and right rows.
    pub rows: u64,
    /// Rows that were overwritten before it had read them.
    pub lost: u64,
    /// Rows with a wrong word: there must be none.
    pub wrong: u64,
}

/// Rows taken at once.
const BATCH: usize = 512;
/// Turns of waiting between two looks at the ring.
const PATIENCE: u32 = 500;
/// What it says when it is ready.
const READY: &str = "ready";

/// Reads a ring to its end; its rows have the values of row `step` times their number.
pub fn ring(ring: i32, progress: i32, cpu: usize, step: u64) -> Result<(), Box<dyn Error>> {
    // First of all: so the whole ring is in this process's page table as soon as it is mapped.
    rt::lock_memory();
    let reader = RingFile::from_fd(inherited(ring, false)?.into())?;
    let mut reader = reader.attach(ReaderOptions::default())?;
    let region = Region::map(&inherited(progress, true)?, 0, 4096, true)?;
    let progress = region.register(0, 8).ok_or("no progress")?;
    let mut buffer = vec![0; BATCH * reader.row_words()];
    rt::set_up_thread(Some(cpu), Policy::Fifo(50));
    println!("{READY}");
    let mut received = Received::default();
    while !reader.ended() {
        let batch = reader.read(&mut buffer);
        received.lost += batch.lost;
        let full = batch.rows.len() == BATCH;
        for row in batch.rows {
            match are_of(row.row.wrapping_mul(step), row.values) {
                true => received.rows += 1,
                false => received.wrong += 1,
            }
        }
        progress.write(reader.next_row());
        // Each look takes the line of the ring's head away from the producer, which wants it back: who looks
        // again at once slows it down, and gets its rows one by one.
        let patience = if full { 0 } else { PATIENCE };
        for _ in 0..patience {
            std::hint::spin_loop();
        }
    }
    println!("{}", serde_json::to_string(&received)?);
    Ok(())
}

/// Reads rows from the standard input to its end.
pub fn pipe(cpu: usize) -> Result<(), Box<dyn Error>> {
    let input = std::io::stdin().lock();
    let mut bytes = vec![0; 64 * 1024];
    rt::lock_memory();
    rt::set_up_thread(Some(cpu), Policy::Fifo(50));
    println!("{READY}");
    let mut received = Received::default();
    let (mut filled, row_bytes) = (0, 8 * ROW_WORDS);
    loop {
        let more = rustix::io::read(&input, &mut bytes[filled..])?;
        if more == 0 {
            break;
        }
        filled += more;
        let whole = filled - filled % row_bytes;
        for row in bytes[..whole].chunks_exact(row_bytes) {
            let mut words = [0_u64; ROW_WORDS];
            for (word, bytes) in words.iter_mut().zip(row.chunks_exact(8)) {
                *word = u64::from_ne_bytes(bytes.try_into()?);
            }
            match are_of(words[0], &words[ROW_HEADER_WORDS..]) {
                true => received.rows += 1,
                false => received.wrong += 1,
            }
        }
        bytes.copy_within(whole..filled, 0);
        filled -= whole;
    }
    println!("{}", serde_json::to_string(&received)?);
    Ok(())
}

/// A consumer that runs.
pub struct Consumer {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The next row it will read.
    pub progress: Register,
    _memory: Memory,
}

impl Consumer {
    /// Of this ring; see [`ring`].
    pub fn of_ring(ring: &RingFile, cpu: usize, step: u64) -> Result<Consumer, Box<dyn Error>> {
        let memory = Memory::new()?;
        let fds = [inherit(ring.fd())?, inherit(&memory.file)?];
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("ring");
        command.args(fds.map(|fd| fd.to_string()));
        command.args([cpu.to_string(), step.to_string()]);
        Self::start(command, memory)
    }

    /// Of what comes out of a pipe or a socket.
    pub fn of_stream(stream: OwnedFd, cpu: usize) -> Result<Consumer, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("pipe").arg(cpu.to_string());
        command.stdin(Stdio::from(stream));
        Self::start(command, Memory::new()?)
    }

    fn start(mut command: Command, memory: Memory) -> Result<Consumer, Box<dyn Error>> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut output = BufReader::new(output);
        let mut said = String::new();
        output.read_line(&mut said)?;
        if said.trim() != READY {
            return Err(format!("the consumer said `{said}`").into());
        }
        Ok(Consumer {
            child,
            output,
            progress: memory.word(0)?,
            _memory: memory,
        })
    }

    /// What it got, once all is sent.
    pub fn end(mut self) -> Result<Received, Box<dyn Error>> {
        let mut said = String::new();
        self.output.read_line(&mut said)?;
        self.child.wait()?;
        let received: Received = serde_json::from_str(&said)?;
        match received.wrong {
            0 => Ok(received),
            wrong => Err(format!("{wrong} rows came with wrong values").into()),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // Only if something went wrong; else it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
