// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least that can give bytes to clients: a thread each, which writes all of them from memory.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Sends so many bytes to all who come, until it is killed.
pub fn serve(bytes: usize) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // Not all zero: those would be one page of memory.
    let bytes: Arc<Vec<u8>> = Arc::new((0..bytes).map(|place| place as u8 | 1).collect());
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let (mut stream, bytes) = (stream?, Arc::clone(&bytes));
        stream.set_nodelay(true)?;
        // A client that goes says why itself.
        std::thread::spawn(move || drop(stream.write_all(&bytes)));
    }
    Ok(())
}

/// It, as a process of its own.
pub struct Raw {
    child: Child,
    pub address: SocketAddr,
}

impl Raw {
    pub fn start(bytes: u64) -> Result<Raw, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["raw", &bytes.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().ok_or("no pipe")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Raw { child, address })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
