// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that a client of the data port begins with.

/// How rows go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line of text for each row.
    Ascii,
    /// Rows in binary, in frames with their length.
    Framed,
    /// Rows in binary, and nothing else.
    Unframed,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How rows go out.
    pub format: Format,
    /// The header is XML.
    pub xml: bool,
    /// There is a header.
    pub header: bool,
    /// There is an `OK` in the beginning, and an `END`.
    pub status: bool,
    /// The connection ends after one run.
    pub one_shot: bool,
    /// The first row, of the last run if none is under way.
    pub from: Option<u64>,
    /// Rows that are gone are said in the stream, which goes on.
    pub gaps: bool,
    /// When it was armed and started is said in the header.
    pub times: bool,
    /// Only these fields.
    pub columns: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            format: Format::Ascii,
            xml: false,
            header: true,
            status: true,
            one_shot: false,
            from: None,
            gaps: false,
            times: false,
            columns: None,
        }
    }
}

impl Options {
    /// Reads the line.
    ///
    /// # Errors
    /// A word that is no option.
    pub fn read(line: &str) -> Result<Self, String> {
        let mut options = Options::default();
        for word in line.split_whitespace() {
            match word {
                "ASCII" => options.format = Format::Ascii,
                "FRAMED" => options.format = Format::Framed,
                "UNFRAMED" => options.format = Format::Unframed,
                // Values go out as they are, see `rows`.
                "RAW" | "SCALED" => {}
                "XML" => options.xml = true,
                "NO_HEADER" => options.header = false,
                "NO_STATUS" => options.status = false,
                "ONE_SHOT" => options.one_shot = true,
                "BARE" => {
                    (options.header, options.status) = (false, false);
                    (options.format, options.one_shot) = (Format::Unframed, true);
                }
                "GAPS" => options.gaps = true,
                "TIMES" => options.times = true,
                "NOTIMES" => options.times = false,
                _ => options.valued(word)?,
            }
        }
        if options.gaps && options.format == Format::Unframed {
            return Err("GAPS needs FRAMED or ASCII: bare rows have no room for it".to_owned());
        }
        Ok(options)
    }

    fn valued(&mut self, word: &str) -> Result<(), String> {
        if let Some(row) = word.strip_prefix("FROM=") {
            let row = row.parse().map_err(|_| "FROM= needs the number of a row")?;
            self.from = Some(row);
        } else if let Some(columns) = word.strip_prefix("COLS=") {
            let columns = columns.split(',').filter(|name| !name.is_empty());
            let columns: Vec<String> = columns.map(str::to_owned).collect();
            if columns.is_empty() {
                return Err("COLS= needs names of fields".to_owned());
            }
            self.columns = Some(columns);
        } else {
            return Err("Invalid option".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_stock_client_sends_and_our_own_words_are_understood() {
        let options = Options::read("XML FRAMED RAW").expect("options");
        assert_eq!((options.format, options.xml), (Format::Framed, true));
        assert!(!options.gaps && !options.times && options.from.is_none());
        let options = Options::read("XML FRAMED FROM=7 GAPS TIMES COLS=A.B,C.D").expect("options");
        assert_eq!(
            (options.from, options.gaps, options.times),
            (Some(7), true, true)
        );
        assert_eq!(
            options.columns,
            Some(vec!["A.B".to_owned(), "C.D".to_owned()])
        );
        assert_eq!(Options::read(""), Ok(Options::default()));
        for wrong in [
            "FROM=",
            "FROM=-1",
            "COLS=",
            "HELLO",
            "BASE64",
            "GAPS UNFRAMED",
            "BARE GAPS",
        ] {
            assert!(Options::read(wrong).is_err(), "{wrong}");
        }
    }
}
