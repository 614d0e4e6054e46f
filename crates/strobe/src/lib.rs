// SPDX-License-Identifier: MIT OR Apache-2.0
//! strobe: on every event, read a set of channels from any devices into one
//! row, and lose nothing silently.
//!
//! A [`plan::Plan`] says what a run is to do, an engine ([`engine`]) does it,
//! and a [`reader::RunReader`] reads its rows. The crate `strobe-files` brings
//! them into files.
//!
//! What is hidden here (`doc(hidden)`, feature `internals`) is for the other crates of the project, and may change.
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
//! while let Some(block) = reader.next(Duration::from_secs(1))? {
//!     let counter = block.column("sim.counter")?;
//!     println!("{:?}, {} rows lost", counter.to_vec(), block.lost());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod accounting;
pub mod block;
pub mod catalogue;
pub mod channel;
pub mod clock;
#[doc(hidden)]
pub mod computed_rows;
pub mod engine;
pub mod error;
pub mod event;
#[doc(hidden)]
pub mod faults;
mod fields;
#[doc(hidden)]
pub mod figures;
#[doc(hidden)]
pub mod follow;
#[cfg(any(test, feature = "internals"))]
pub mod fuzz;
pub mod info;
#[cfg(feature = "internals")]
pub mod internals;
#[doc(hidden)]
pub mod machine;
pub mod note;
pub mod once;
pub mod plan;
#[doc(hidden)]
pub mod program;
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
#[doc(hidden)]
pub mod timing;

#[doc(hidden)]
pub use strobe_board as board;
pub use strobe_hw::rt;
#[doc(hidden)]
pub use strobe_hw::{map, rpmsg, uio, wakeup};
pub use strobe_ring as ring;
