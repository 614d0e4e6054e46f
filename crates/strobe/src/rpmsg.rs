// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of co-processors.
#![forbid(unsafe_code)]

pub mod frame;
