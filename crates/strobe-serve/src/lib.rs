// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon: it owns runs, or looks at runs of others on this machine, keeps their rows in a spool on disk, and gives
//! them to clients, each of which is told exactly what it has lost.
//!
//! A [`drain`] thread moves the rows of a run ([`served_run::ServedRun`]) into its [`spool`]. A client reads with a
//! [`cursor::Cursor`], from any row on. Everything that speaks to clients is a thin layer over cursors: none of them can
//! hold up the run, its spool or another client.
//!
//! Futures that a program awaits as a whole are boxed: so their code is compiled here, and not in each program again.
#![forbid(unsafe_code)]

pub mod access;
pub mod config;
pub mod cursor;
pub mod daemon;
pub mod drain;
pub mod file_watch;
pub mod http;
pub mod nats;
pub mod panda;
pub mod runs;
pub mod served_run;
mod shared;
pub mod spool;
pub mod start;
pub mod store;
pub mod systemd;
pub mod tls;
