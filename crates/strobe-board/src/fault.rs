// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a board file or a recipe: where, with what, and what to do about it.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Line of the file, from 1; 0 if it is about the whole file.
    pub line: usize,
    /// What is at fault: `channel edu.status`, `[match]`; empty if it has no name.
    pub object: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// All that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    file: String,
    list: Vec<Fault>,
}

impl Faults {
    /// A fault of the file as a whole.
    pub fn whole(file: &str, message: String) -> Self {
        Faults {
            file: file.into(),
            list: vec![Fault {
                line: 0,
                object: String::new(),
                message,
            }],
        }
    }

    /// The faults, by line.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:", self.file)?;
            if fault.line > 0 {
                write!(f, "{}:", fault.line)?;
            }
            if !fault.object.is_empty() {
                write!(f, " {}:", fault.object)?;
            }
            write!(f, " {}", fault.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Collects faults while a text is read, so that one look at a file shows all of them.
pub struct Log<'t> {
    text: &'t str,
    list: RefCell<Vec<Fault>>,
}

impl<'t> Log<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Log {
            text,
            list: RefCell::default(),
        }
    }

    /// Notes what is wrong with `object`, which is at `at` in the text.
    pub fn add(&self, at: &Range<usize>, object: &str, message: impl Into<String>) {
        self.list.borrow_mut().push(Fault {
            line: self.line(at),
            object: object.into(),
            message: message.into(),
        });
    }

    /// The line of a place in the text, from 1.
    pub(super) fn line(&self, at: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..at.start);
        let before = before.unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The result if nothing was noted, else what was.
    pub(super) fn finish<T>(
        self,
        file: &str,
        reference: &str,
        result: Option<T>,
    ) -> Result<T, Faults> {
        let mut list = self.list.into_inner();
        list.sort();
        match (result, list.is_empty()) {
            (Some(result), true) => Ok(result),
            (None, true) => Err(Faults::whole(
                file,
                format!("cannot be understood; compare it with {reference}"),
            )),
            _ => Err(Faults {
                file: file.into(),
                list,
            }),
        }
    }
}

/// `; did you mean "x"?` if one of the candidates is nearly `word`, else `; known: a, b, c`.
pub fn hint<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let nearest = candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= 1 + word.len().min(candidate.len()) / 4);
    match nearest {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None if candidates.is_empty() => "there is none in this file".into(),
        None => format!("known: {}", candidates.join(", ")),
    }
}
