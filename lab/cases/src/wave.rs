// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands for the lab's GPIO chip, lab_gpio: its square wave, and what it says of it.

use std::fs;
use std::path::Path;

use crate::account::{until, until_counted};

const DEVICE: &str = "/sys/devices/platform/lab_gpio";
const DRIVER: &str = "/sys/bus/platform/drivers/lab_gpio";
const PARAMETERS: &str = "/sys/module/lab_gpio/parameters";

/// The chip: still, plugged in, and with an empty account when this is made; plugged in again when it is
/// dropped.
pub struct Wave(());

impl Wave {
    /// Its edges will have this distance.
    pub fn new(period_ns: u64) -> Wave {
        plug();
        let wave = Wave(());
        wave.make(0);
        wave.parameter("period_ns", period_ns);
        wave.parameter("delay_ns", 0);
        wave.write("reset", 1);
        wave
    }

    fn parameter(&self, name: &str, value: u64) {
        let path = Path::new(PARAMETERS).join(name);
        fs::write(&path, value.to_string()).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    }

    fn write(&self, name: &str, value: u64) {
        let path = Path::new(DEVICE).join(name);
        fs::write(&path, value.to_string()).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    }

    /// Makes so many edges from now on, and no more.
    pub fn make(&self, edges: u64) {
        self.write("left", edges);
    }

    /// Makes so many edges, and comes back when they are made and the kernel has taken down each that was raised.
    pub fn made(&self, edges: u64) {
        self.make(edges);
        until_counted("edges", edges, || edges - self.figure("left"));
        until("its handler", || self.figure("serving") == 0);
    }

    /// What the chip says: `edges`, `raised`, `dropped`, `serving`, `answered`, ...
    pub fn figure(&self, name: &str) -> u64 {
        let path = Path::new(DEVICE).join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        text.trim()
            .parse()
            .unwrap_or_else(|_| panic!("{path:?}: {text}"))
    }

    /// Unplugs the chip.
    pub fn unplug(&self) {
        fs::write(Path::new(DRIVER).join("unbind"), "lab_gpio").expect("to unplug the chip");
    }
}

impl Drop for Wave {
    fn drop(&mut self) {
        plug();
    }
}

fn plug() {
    if !Path::new(DRIVER).join("lab_gpio").exists() {
        fs::write(Path::new(DRIVER).join("bind"), "lab_gpio").expect("to plug the chip in");
    }
}
