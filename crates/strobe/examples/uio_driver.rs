// SPDX-License-Identifier: MIT OR Apache-2.0
//! A complete driver in userspace, of the device uio_dummy: finds it, maps its page, waits for its interrupts, reads
//! what the device says of each, and accounts for all of them.
//!
//! ```text
//! modprobe uio_dummy && cargo run --example uio_driver -- 10
//! ```

use std::error::Error;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use strobe::map::Register;
use strobe::uio::Uio;

/// The device's page: three words of 64 bits.
struct Page {
    sequence: Register,
    time: Register,
    events: Register,
}

impl Page {
    /// Time and number of the last event. The sequence is odd while the device writes them.
    fn read(&self) -> (u64, u64) {
        loop {
            let before = self.sequence.read();
            fence(Ordering::Acquire);
            let last = (self.time.read(), self.events.read());
            fence(Ordering::Acquire);
            if before % 2 == 0 && self.sequence.read() == before {
                return last;
            }
        }
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("uio_driver: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let lines: u64 = std::env::args().nth(1).as_deref().unwrap_or("10").parse()?;
    let mut device = Uio::find("uio_dummy")?.open()?;
    let memory = device.map(0)?;
    let word = |n: u64| memory.register(8 * n, 8).ok_or("its page is too small");
    let page = Page {
        sequence: word(0)?,
        time: word(1)?,
        events: word(2)?,
    };
    device.enable()?;
    let mut missed = 0;
    for _ in 0..lines {
        let interrupt = device.wait_timeout(Duration::from_secs(5))?;
        let interrupt = interrupt.ok_or("no interrupt in 5 s")?;
        missed += u64::from(interrupt.missed);
        let (time, events) = page.read();
        println!(
            "interrupt {}: {} missed; the device is at {events}, at {time} ns",
            interrupt.count, interrupt.missed
        );
    }
    println!("{lines} interrupts, {missed} missed");
    Ok(())
}
