// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of strobe: [`record`](record::record) brings the rows of a run into sinks ([`sink`]) with an exact account
//! ([`summary::Summary`]), [`journal`] reads a recording again, and a [`recipe`](recipe::Recipe) is the whole configuration of one as text.
//!
//! ```no_run
//! use strobe::engine::kernel::Control;
//! use strobe::plan::{Plan, Step};
//! use strobe::stop::Stop;
//! use strobe_files::record::{record, Options};
//!
//! let mut plan = Plan::new("timer:1kHz".parse()?);
//! plan.steps.push(Step::Read("sim.counter".into()));
//! plan.limit = Some(1000);
//! let run = Control::open()?.create(&plan)?;
//! let options = Options { sinks: vec!["scan.arrows".into()], ..Options::default() };
//! let summary = record(&run, &options, &Stop::default(), &mut |_| {})?;
//! println!("{} rows, {} missed, {} lost", summary.rows, summary.missed, summary.lost);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod convert;
#[doc(hidden)]
pub mod date;
mod fields;
pub mod journal;
pub mod recipe;
pub mod record;
pub mod recorder;
pub mod sink;
pub mod summary;

pub use journal::open;
