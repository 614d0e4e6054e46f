// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of a server (`strobe serve`) on another machine, as if they were here: a [`Server`](server::Server) is a
//! [`Machine`](strobe::machine::Machine), and the rows of its runs are a [`RowSource`](strobe::source::RowSource).
//!
//! It blocks: no runtime is needed. A server that is silent for longer than 30 s is given up; one whose run makes no rows
//! says so every 10 s. A connection that ends before the rows do is an error which says before which row.
//!
//! ```no_run
//! use std::time::Duration;
//! use strobe::source::RowSource;
//! use strobe_remote::rows::{Begin, Part};
//! use strobe_remote::server::{Access, Server};
//!
//! let server = Server::at("http://127.0.0.1:8000", &Access::default())?;
//! let mut rows = server.run(1)?.rows(Part::from(Begin::Oldest));
//! while let Some(block) = rows.next(Duration::from_secs(1))? {
//!     println!("row {}: {} rows, {} lost", block.first(), block.len(), block.lost());
//! }
//! println!("{:?}", rows.totals());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod access;
mod link;
mod live;
mod machine;
pub mod recorded;
pub mod rows;
pub mod run;
pub mod server;
pub mod view;
