// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of rows, as a program uses them. All are one program, which is linked once.

mod errors;
mod examples;
mod programs;
mod recorder;
mod recordings;
mod replay;
