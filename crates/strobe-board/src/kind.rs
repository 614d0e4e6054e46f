// SPDX-License-Identifier: MIT OR Apache-2.0
//! How words are to be understood.

use std::fmt;

/// How the bits of a channel are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A natural number.
    Unsigned,
    /// Two's complement.
    Signed,
    /// IEEE 754 binary64.
    Float,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Unsigned => "unsigned",
            Kind::Signed => "signed",
            Kind::Float => "f64",
        })
    }
}
