// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program, as a person or a script uses it: each file is about one part of it. All are one program, which is linked once.

#[cfg(feature = "remote")]
mod access;
#[cfg(feature = "remote")]
mod at;
mod calls;
mod common;
#[cfg(feature = "remote")]
mod daemon;
mod doctor;
mod dry_run;
mod faults;
mod files;
mod jitter;
mod late;
mod latency;
mod messages;
mod once;
mod options;
mod programs;
mod recipes;
mod replay;
mod runs;
mod sinks;
mod terminal;
#[cfg(feature = "watch")]
mod watch;
