// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a program: where, why, and what to do about it.

use std::fmt;
use std::ops::Range;

/// The part of a program's text that a fault is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The derived column of this place.
    Derive(usize),
    /// The condition of this place.
    Keep(usize),
    /// How many rows are left out.
    Every,
    /// The variable of this place.
    Let(usize),
    /// The tunable of this place.
    Tune(usize),
    /// The condition of the rule of this place.
    When(usize),
    /// Of the rule of this place the assignment of this place.
    Then(usize, usize),
}

/// What is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The part that it is in.
    pub part: Part,
    /// The text of that part.
    pub text: String,
    /// Line in that text, from 1.
    pub line: usize,
    /// Column in that line, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// The same, when only the place in the text is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub at: Range<usize>,
    pub reason: String,
    pub remedy: String,
}

/// What is wrong at this place, and what to do about it.
pub(crate) fn wrong(
    at: &Range<usize>,
    reason: impl Into<String>,
    remedy: impl Into<String>,
) -> Wrong {
    Wrong {
        at: at.clone(),
        reason: reason.into(),
        remedy: remedy.into(),
    }
}

impl Wrong {
    pub(crate) fn in_part(self, part: Part, text: &str) -> Fault {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Fault {
            part,
            text: text.to_owned(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
            reason: self.reason,
            remedy: self.remedy,
        }
    }
}

impl Fault {
    /// What it is about: the part, its text, and the place in it.
    pub fn object(&self) -> String {
        let part = match self.part {
            Part::Derive(_) => "derive",
            Part::Keep(_) => "keep",
            Part::Let(_) => "let",
            Part::Tune(_) => "tune",
            Part::When(_) => "when",
            Part::Then(..) => "then",
            Part::Every => return format!("every {}", self.text),
        };
        let line = match self.text.contains('\n') {
            true => format!("line {}, ", self.line),
            false => String::new(),
        };
        format!("{part} '{}', {line}column {}", self.text, self.column)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.object(), self.reason, self.remedy)
    }
}

impl std::error::Error for Fault {}
