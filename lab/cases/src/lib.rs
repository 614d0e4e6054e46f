// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest tests share: an engine under test, the exact account of what
//! a reader got, and hands for the machine around them.
#![deny(unsafe_code)]

pub mod account;
pub mod beside;
pub mod cgroup;
pub mod chip;
pub mod compared;
pub mod container;
pub mod cost;
pub mod crowd;
pub mod dice;
pub mod engine;
pub mod failslab;
pub mod grouped;
pub mod hpet;
pub mod iio;
pub mod instrument;
pub mod machine;
pub mod monitor;
pub mod pci;
pub mod raw;
pub mod ringfd;
pub mod rounds;
pub mod rpmsg;
pub mod slow;
pub mod suspend;
pub mod thermometer;
pub mod tuned;
pub mod uio;
pub mod usbtmc;
pub mod wave;

pub use account::{Account, Kept, Pace};
pub use engine::{Engine, Kernel, User, errno, plan};
