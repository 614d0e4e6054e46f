// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command is answered, and what of a run is asked for.

/// What to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done.
    Ok,
    /// A value.
    Line(String),
    /// Several values.
    Lines(Vec<String>),
    /// Not done; why.
    Error(String),
    /// To be asked of the run: make one.
    Arm,
    /// To be asked of the run: end it.
    Disarm,
}

impl Answer {
    /// As it goes to the client.
    pub fn text(&self) -> String {
        match self {
            Answer::Ok | Answer::Arm | Answer::Disarm => "OK\n".to_owned(),
            Answer::Line(line) => format!("OK ={line}\n"),
            Answer::Error(why) => format!("ERR {}\n", why.replace(['\n', '\r'], " ")),
            Answer::Lines(lines) => {
                let mut text = String::with_capacity(lines.iter().map(|l| l.len() + 2).sum());
                for line in lines {
                    text.push('!');
                    text.push_str(line);
                    text.push('\n');
                }
                text.push_str(".\n");
                text
            }
        }
    }
}

/// Where the run is, for those who ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Armed, or rows are made.
    pub is_active: bool,
    /// Readers of its rows.
    pub readers: usize,
    /// Rows made.
    pub rows: u64,
    /// How the last one ended.
    pub completion: &'static str,
}
