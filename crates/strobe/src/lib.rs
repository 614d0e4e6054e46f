// SPDX-License-Identifier: MIT OR Apache-2.0
//! strobe: on every event, read a set of channels from any devices into one
//! row, and lose nothing silently.
//!
//! A [`plan::Plan`] says what a run is to do, an engine ([`engine`]) does it,
//! and a [`reader::RunReader`] reads its rows. The crate `strobe-files` brings
//! them into files.
//!
//! ```no_run
//! use std::time::Duration;
//! use strobe::engine::kernel::Control;
//! use strobe::plan::{Plan, Step};
//! use strobe::run::{OwnedRun, Run};
//!
//! let mut plan = Plan::new("timer:1kHz".parse()?);
//! plan.steps.push(Step::Read("sim.counter".into()));
//! plan.limit = Some(1000);
//! let run = Control::open()?.create(&plan)?;
//! let mut reader = run.reader()?;
//! run.start()?;
//! let mut buffer = vec![0; 100 * reader.ring().row_words()];
//! while !reader.ring().ended() {
//!     reader.wait(100, Duration::from_secs(1))?;
//!     let batch = reader.read(&mut buffer);
//!     for row in batch.rows() {
//!         println!("{}: {:?}", row.row, row.values);
//!     }
//! }
//! println!("{} rows lost", reader.ring().lost());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod block;
pub mod catalogue;
pub mod channel;
pub mod clock;
pub mod engine;
pub mod error;
pub mod event;
pub mod faults;
mod fields;
pub mod figures;
pub mod follow;
pub mod info;
#[cfg(feature = "internals")]
pub mod internals;
pub mod note;
pub mod once;
pub mod plan;
pub mod quantity;
pub mod reader;
pub mod run;
pub mod runs;
#[cfg(any(test, feature = "internals"))]
pub mod samples;
pub mod select;
pub mod source;
pub mod stats;
pub mod stop;
pub mod timing;

pub use strobe_board as board;
pub use strobe_hw::{bell, map, rpmsg, rt, uio};
pub use strobe_ring as ring;
