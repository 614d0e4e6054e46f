// SPDX-License-Identifier: MIT OR Apache-2.0
//! libstrobe: the library for C and C++. `include/libstrobe.h` is made of what is said here (tests/header.rs), and its
//! first lines are the rules for all of it.
//!
//! It is as thin as can be. What C gives is checked where it comes in (`call`), and what Rust says goes out as it is.

// The header's rules are what C promises, the same for all calls.
#![allow(clippy::missing_safety_doc)]
// Names are those of C.
#![allow(non_camel_case_types)]

mod block;
mod call;
mod catalogue;
mod record;
mod rows;
mod run;
mod uio;
