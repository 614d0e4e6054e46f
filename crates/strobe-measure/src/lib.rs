// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring with strobe: whether a machine is good for regular rows ([`doctor`]), how regular they are ([`jitter`]),
//! why some are late ([`late`]), and what a plan's rows take ([`preflight`]).
#![forbid(unsafe_code)]

pub mod cpu;
pub mod doctor;
pub mod jitter;
pub mod late;
pub mod latency;
pub mod machine;
pub mod preflight;
pub mod rpmsg;
pub mod trace;
pub mod turns;
pub mod wake;
