// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes of a connection to lines, none of them longer than is allowed.

/// Bytes of a line; more is no command, and none of the stock clients sends half as many.
const LONGEST: usize = 16 * 1024;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// A line that is too long, or no text; what to answer.
    Wrong(&'static str),
}

impl Line {
    /// Whether it is the first of another protocol. A web page can have the browser on this machine send a request here,
    /// with commands in its body: HTTP begins with the line of the request, TLS with bytes that are no text.
    pub fn is_foreign(&self) -> bool {
        match self {
            Line::Text(text) => {
                let last = text.rsplit_once(' ').map(|(_, last)| last);
                last.is_some_and(|last| last.starts_with("HTTP/"))
            }
            Line::Wrong(_) => true,
        }
    }
}

/// Collects bytes until a line is whole.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Of `bytes`, what was looked through and has no end of a line.
    seen: usize,
    /// The line is too long already; what comes is thrown away until it ends.
    is_too_long: bool,
}

impl Lines {
    /// More bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line.
    pub fn next_line(&mut self) -> Option<Line> {
        let rest = self.bytes.get(self.seen..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.seen = self.bytes.len();
            if self.seen > LONGEST {
                self.is_too_long = true;
                self.bytes.clear();
                self.seen = 0;
            }
            return None;
        };
        let end = self.seen + end;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        self.seen = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if std::mem::take(&mut self.is_too_long) || line.len() > LONGEST {
            return Some(Line::Wrong("the line is too long"));
        }
        Some(match String::from_utf8(line) {
            Ok(text) if !text.contains(|c: char| c.is_control() && c != '\t') => Line::Text(text),
            _ => Line::Wrong("the line is no text"),
        })
    }

    /// Bytes that wait for the end of their line.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<Line> {
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    #[test]
    fn lines_come_out_whole_however_they_are_cut() {
        let text = "*IDN?\r\nPCAP.ENABLE=ONE\n\nlast";
        for cut in 1..text.len() {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                lines.push(piece);
                got.extend(all(&mut lines));
            }
            let want = ["*IDN?", "PCAP.ENABLE=ONE", ""].map(|l| Line::Text(l.to_owned()));
            assert_eq!(got, want);
            assert_eq!(lines.waiting(), 4);
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_is_allowed() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            lines.push(&[b'x'; 1000]);
            assert_eq!(lines.next_line(), None);
            assert!(lines.waiting() <= LONGEST + 1000);
        }
        lines.push(b"\n*IDN?\n\xff\xfe\n");
        assert_eq!(
            all(&mut lines),
            [
                Line::Wrong("the line is too long"),
                Line::Text("*IDN?".to_owned()),
                Line::Wrong("the line is no text")
            ]
        );
    }
}
