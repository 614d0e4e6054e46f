// SPDX-License-Identifier: MIT OR Apache-2.0
//! From lines to commands: `NAME?`, `NAME=VALUE`, and `NAME<` with the lines of a table up to a blank one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Words that a table may have; as many as the longest table of a sequencer.
pub const TABLE_WORDS: usize = 4096 * 4;

/// Bytes that a note of several lines may have.
const TEXT_BYTES: usize = 4096;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `NAME?`
    Get(String),
    /// `NAME=VALUE`
    Put(String, String),
    /// `NAME<`, and the words that followed.
    Table {
        /// Whose table.
        name: String,
        /// Behind what is there, instead of replacing it.
        append: bool,
        /// The words.
        words: Vec<u32>,
    },
    /// `*METADATA.NAME<`, and the lines that followed.
    Lines(String, Vec<String>),
    /// None of these; what to answer.
    Wrong(String),
}

/// A table that is not whole yet.
#[derive(Debug)]
struct Open {
    name: String,
    append: bool,
    base64: bool,
    is_text: bool,
    words: Vec<u32>,
    text: Vec<String>,
    /// What is wrong with it; it is read to its end nevertheless.
    wrong: Option<&'static str>,
}

/// Makes commands of lines.
#[derive(Debug, Default)]
pub struct Parser {
    table: Option<Open>,
}

impl Parser {
    /// What this line completes, if it does.
    pub fn line(&mut self, line: &str) -> Option<Command> {
        if let Some(mut table) = self.table.take() {
            if line.is_empty() {
                return Some(table.close());
            }
            table.add(line);
            self.table = Some(table);
            return None;
        }
        let Some((at, sign)) = line.char_indices().find(|(_, c)| "?=<".contains(*c)) else {
            return Some(Command::Wrong("Unknown command".to_owned()));
        };
        let (name, rest) = (&line[..at], &line[at + 1..]);
        match sign {
            '?' if rest.is_empty() => Some(Command::Get(name.to_owned())),
            '?' => Some(Command::Wrong("Unexpected text after command".to_owned())),
            '=' => Some(Command::Put(name.to_owned(), rest.to_owned())),
            _ => {
                self.table = Some(Open::new(name, rest));
                None
            }
        }
    }

    /// A line came that is none.
    pub fn wrong(&mut self, why: &'static str) -> Option<Command> {
        match &mut self.table {
            Some(table) => {
                table.wrong.get_or_insert(why);
                None
            }
            None => Some(Command::Wrong(why.to_owned())),
        }
    }
}

impl Open {
    fn new(name: &str, options: &str) -> Self {
        let (append, options) = match options.strip_prefix('<') {
            Some(rest) => (true, rest),
            None => (false, options),
        };
        // `|` says that this is the last part of a table; here each part is a table of its own.
        let options = options.strip_prefix('|').unwrap_or(options);
        Open {
            name: name.to_owned(),
            append,
            base64: options == "B",
            is_text: name.starts_with("*METADATA."),
            words: Vec::new(),
            text: Vec::new(),
            wrong: (!matches!(options, "" | "B")).then_some("Unexpected text after command"),
        }
    }

    fn add(&mut self, line: &str) {
        if self.wrong.is_some() {
            return;
        }
        if self.is_text {
            let bytes: usize = self.text.iter().map(|line| line.len() + 1).sum();
            match bytes + line.len() <= TEXT_BYTES {
                true => self.text.push(line.to_owned()),
                false => self.wrong = Some("The text is too long"),
            }
        } else if self.base64 {
            match STANDARD.decode(line) {
                Ok(bytes) if bytes.len() % 4 == 0 => {
                    let words = bytes.chunks_exact(4);
                    self.words.extend(words.map(|b| {
                        b.iter()
                            .rev()
                            .fold(0, |word, byte| word << 8 | u32::from(*byte))
                    }));
                }
                _ => self.wrong = Some("Invalid base64 value"),
            }
        } else {
            for word in line.split_whitespace() {
                match word
                    .parse::<u32>()
                    .ok()
                    .or(word.parse::<i32>().ok().map(|word| word as u32))
                {
                    Some(word) => self.words.push(word),
                    None => self.wrong = Some("Number missing or out of range"),
                }
            }
        }
        if self.words.len() > TABLE_WORDS {
            (self.words, self.wrong) = (Vec::new(), Some("Too many words in table"));
        }
    }

    fn close(self) -> Command {
        match self.wrong {
            Some(why) => Command::Wrong(why.to_owned()),
            None if self.is_text => Command::Lines(self.name, self.text),
            None => Command::Table {
                name: self.name,
                append: self.append,
                words: self.words,
            },
        }
    }
}

/// The words of a table in base64, in lines of 64 words or less.
pub fn encode(words: &[u32]) -> Vec<String> {
    let line = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        STANDARD.encode(bytes)
    };
    words.chunks(36).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Command> {
        let mut parser = Parser::default();
        text.split('\n')
            .filter_map(|line| parser.line(line))
            .collect()
    }

    #[test]
    fn the_first_sign_says_what_a_line_is() {
        let get = |name: &str| Command::Get(name.to_owned());
        let put = |name: &str, value: &str| Command::Put(name.to_owned(), value.to_owned());
        assert_eq!(
            commands("*IDN?\nPCAP.TRIG=A<B?\n*PCAP.ARM="),
            [get("*IDN"), put("PCAP.TRIG", "A<B?"), put("*PCAP.ARM", "")]
        );
        assert!(matches!(
            commands("rubbish").as_slice(),
            [Command::Wrong(_)]
        ));
        assert!(matches!(commands("A?B").as_slice(), [Command::Wrong(_)]));
    }

    #[test]
    fn a_table_comes_in_numbers_or_in_base64_and_ends_with_a_blank_line() {
        let table = |append: bool, words: &[u32]| Command::Table {
            name: "SEQ1.TABLE".to_owned(),
            append,
            words: words.to_vec(),
        };
        let words = [1, 2, u32::MAX, 4];
        assert_eq!(
            commands("SEQ1.TABLE<\n1 2\n-1\n4\n\nSEQ1.TABLE<<|\n7\n"),
            [table(false, &words), table(true, &[7])]
        );
        let text = format!("SEQ1.TABLE<B\n{}\n\n", encode(&words).join("\n"));
        assert_eq!(commands(&text).first(), Some(&table(false, &words)));
    }

    #[test]
    fn a_table_with_something_wrong_is_one_wrong_command_and_not_many() {
        for text in [
            "SEQ1.TABLE<\n1\nx\n2\n",
            "SEQ1.TABLE<X\n1\n",
            "SEQ1.TABLE<B\n!\n",
        ] {
            assert!(
                matches!(commands(text).as_slice(), [Command::Wrong(_)]),
                "{text}"
            );
        }
        let text = format!(
            "*METADATA.DESIGN<\n{}",
            ("x".repeat(100) + "\n").repeat(100)
        );
        assert!(matches!(commands(&text).as_slice(), [Command::Wrong(_)]));
        let many = "1 ".repeat(1000) + "\n";
        let text = format!("SEQ1.TABLE<\n{}", many.repeat(20));
        assert!(matches!(commands(&text).as_slice(), [Command::Wrong(_)]));
    }
}
