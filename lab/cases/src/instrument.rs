// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instrument that this process serves over TCP, with answers that are late, wrong, cut and doubled.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use strobe_board::Board;

use crate::machine::slowness;

/// Its counters of what the instrument does wrong.
pub const FAULTS: [&str; 4] = ["late", "wrong", "cut", "extra"];

/// Answers one connection. Questions are counted over all of them.
fn answer(mut stream: TcpStream, asked: &AtomicU64) -> Option<()> {
    for line in BufReader::new(stream.try_clone().ok()?).lines() {
        if line.ok()? == "Y?" {
            stream.write_all(b"7\n").ok()?;
            continue;
        }
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let right = format!("{number}\n");
        let said = match number % 20 {
            5 => "what?\n".to_owned(),
            10 => right.repeat(2),
            15 => {
                stream.write_all(&right.as_bytes()[..1]).ok()?;
                return None;
            }
            19 => {
                thread::sleep(Duration::from_millis(80 * slowness()));
                right
            }
            _ => right,
        };
        stream.write_all(said.as_bytes()).ok()?;
    }
    None
}

/// The board of a new instrument of this name. Channel `x` is the number of its question, but of 20 answers one is wrong,
/// one comes twice, one is cut, and one comes after 80 ms, which is 30 ms too late; `y` is the latest answer, always 7.
pub fn instrument(name: &str) -> Board {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = asked.clone();
            thread::spawn(move || answer(stream, &asked));
        }
    });
    let text = format!(
        "[board]\nname = \"{name}\"\n\
         [transport]\nkind = \"tcp\"\naddress = \"127.0.0.1:{port}\"\ntimeout = {}\nretry = 0.01\n\
         [channel.x]\nquery = \"X?\"\ntype = \"integer\"\n\
         [channel.y]\nquery = \"Y?\"\ntype = \"integer\"\nmode = \"latest\"\nevery = 0.005\n",
        0.05 * slowness() as f64
    );
    Board::from_toml("instrument.toml", &text).unwrap_or_else(|faults| panic!("{faults}"))
}
