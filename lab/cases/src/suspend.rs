// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suspend to RAM of the guest: all cards are reset meanwhile, and all processors but the first taken away.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The chipset's bridge, and where it has the ports of power management.
const BRIDGE: &str = "/sys/bus/pci/devices/0000:00:1f.0/config";
const PORTS: u64 = 0x40;

/// Suspends the machine until the lab wakes it (`lab/run --wake`); answers how long it was away.
pub fn to_ram() -> Duration {
    let bridge = File::options().read(true).write(true).open(BRIDGE);
    let bridge = bridge.expect(BRIDGE);
    let mut ports = [0; 8];
    bridge.read_exact_at(&mut ports, PORTS).expect(BRIDGE);
    let before = away();
    fs::write("/sys/power/state", "mem").expect("to suspend");
    // The firmware does not say again where they are, and without them the guest cannot suspend or switch itself off.
    bridge.write_all_at(&ports, PORTS).expect(BRIDGE);
    let slept = away() - before;
    assert!(slept > Duration::from_millis(10), "not asleep: {slept:?}");
    slept
}

/// How long the machine has been suspended since it was booted.
fn away() -> Duration {
    let ns = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    // What passes in between makes it too long, and not negative; so the least of some looks is the best.
    let look = || {
        let awake = ns(ClockId::Monotonic);
        ns(ClockId::Boottime) - awake
    };
    (0..10).map(|_| look()).min().unwrap_or_default()
}
