// SPDX-License-Identifier: MIT OR Apache-2.0
//! strobe: on every event, read a set of channels from any devices into one
//! row, and lose nothing silently.
//!
//! A [`plan::Plan`] says what a run is to do, an engine ([`engine`]) does it,
//! a [`reader::RunReader`] reads its rows, and [`record`] brings them into
//! outputs ([`output`]) with an exact account ([`summary::Summary`]).
//!
//! ```no_run
//! use strobe::engine::kernel::Control;
//! use strobe::plan::{Plan, Step};
//! use strobe::record::{record, Options};
//! use strobe::stop::Stop;
//!
//! let mut plan = Plan::new("timer:1kHz".parse()?);
//! plan.steps.push(Step::Read("sim.counter".into()));
//! plan.limit = Some(1000);
//! let run = Control::open()?.create(&plan)?;
//! let options = Options { outputs: vec!["scan.arrows".into()], ..Options::default() };
//! let summary = record(&run, &options, &Stop::default(), &mut |_| {})?;
//! println!("{} rows, {} missed, {} lost", summary.rows, summary.missed, summary.lost);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod channel;
pub mod clock;
pub mod doctor;
pub mod engine;
pub mod event;
pub mod faults;
pub mod info;
pub mod jitter;
pub mod journal;
pub mod late;
pub mod machine;
pub mod note;
pub mod output;
pub mod plan;
pub mod preflight;
pub mod quantity;
pub mod reader;
pub mod record;
#[cfg(any(test, feature = "internals"))]
pub mod samples;
pub mod stats;
pub mod stop;
pub mod summary;
pub mod timing;
pub mod trace;
pub mod wake;

pub use strobe_board as board;
pub use strobe_hw::{bell, map, rpmsg, rt, uio};
pub use strobe_ring as ring;
