// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library, as a program uses it. All are one program, which is linked once.

mod examples;
mod locked_memory;
mod readers;
mod real_time_loop;
mod run_rows;
mod waits;
