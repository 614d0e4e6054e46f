// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations of the kernel that fail on demand.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// More allocations than any call makes: a call that needs them all goes on for ever.
pub const MANY: usize = 2000;

/// The kernel's knob: the allocation of that number, counted from the next call of this thread on, fails.
pub struct Allocations(File);

impl Allocations {
    /// Of this thread. All kinds of allocations count, those that may wait as well as those that may not.
    pub fn of_this_thread() -> Allocations {
        for (capability, settings) in [
            ("failslab", ["ignore-gfp-wait", "cache-filter"].as_slice()),
            (
                "fail_page_alloc",
                &["ignore-gfp-wait", "ignore-gfp-highmem", "min-order"],
            ),
        ] {
            for setting in settings.iter().chain(&["verbose"]) {
                let file = format!("/sys/kernel/debug/{capability}/{setting}");
                fs::write(&file, "0").unwrap_or_else(|why| panic!("{file}: {why}"));
            }
        }
        let file = File::options()
            .read(true)
            .write(true)
            .open("/proc/thread-self/fail-nth");
        Allocations(file.expect("a kernel with fault injection"))
    }

    /// `work` with its allocation number `nth`, from 1, failing, and whether it has made as many.
    pub fn fail<T>(&self, nth: usize, work: impl FnOnce() -> T) -> (T, bool) {
        let text = nth.to_string();
        self.0.write_at(text.as_bytes(), 0).expect("armed");
        let answer = work();
        let mut left = [0; 16];
        let length = self.0.read_at(&mut left, 0).expect("asked");
        self.0.write_at(b"0", 0).expect("disarmed");
        (answer, left[..length].starts_with(b"0"))
    }
}
