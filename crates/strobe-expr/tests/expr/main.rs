// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of rows: what the language says, and that evaluator and compiled program agree. All are one program, which is linked
//! once.

mod common;
mod exact;
mod generated;
mod generator;
mod language;
mod rules;
mod tunables;
