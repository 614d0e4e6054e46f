// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an answer looks like, and where its number is: `{} V`, `"CH1",{},{*}`.
//!
//! `{}` is a number, `{x}` one in hexadecimal, `{*}` anything up to what follows it, `{{` and `}}` are braces; all else has
//! to be there as it is. Blanks around an answer, and before a number, do not count. An answer is read once, from left to
//! right, without steps back: the time is that of its length.

use crate::kind::Kind;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These bytes.
    Literal(Vec<u8>),
    /// Anything up to what follows.
    Any,
    /// A number.
    Number,
    /// A number in hexadecimal.
    Hex,
}

/// What an answer was that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The word of its number.
    Number(u64),
    /// It fits a pattern without a number.
    Matches,
}

/// From here on a number of SCPI says that there is none: 9.9E37 is infinite, 9.91E37 is not a number.
const INFINITE: f64 = 9.9e37;
const NOT_A_NUMBER: f64 = 9.91e37;
/// From here on, a float does not know each whole number.
const WHOLE: f64 = 9_007_199_254_740_992.0;

impl Pattern {
    /// The pattern of a text, whose number is whole if that is said.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub fn new(text: &str, whole: bool) -> Result<Pattern, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text.trim_ascii();
        while let Some(first) = rest.chars().next() {
            let (part, length) = match first {
                '{' if rest.starts_with("{{") => {
                    literal.push('{');
                    (None, 2)
                }
                '}' if rest.starts_with("}}") => {
                    literal.push('}');
                    (None, 2)
                }
                '{' => {
                    let end = rest.find('}').ok_or_else(|| {
                        "`{` has no `}`; write {} for the number, or {{ for a brace".to_owned()
                    })?;
                    (Some(place(&rest[..=end])?), end + 1)
                }
                '}' => return Err("`}` has no `{`; write }} for a brace".to_owned()),
                other => {
                    literal.push(other);
                    (None, other.len_utf8())
                }
            };
            if let Some(part) = part {
                push(&mut parts, &mut literal);
                if matches!(parts.last(), Some(Part::Any)) {
                    return Err(format!(
                        "nothing separates `{{*}}` from the `{}` behind it; write the text between them",
                        &rest[..length]
                    ));
                }
                parts.push(part);
            }
            rest = &rest[length..];
        }
        push(&mut parts, &mut literal);
        if parts.is_empty() {
            return Err("it is empty; write what the answer looks like".to_owned());
        }
        let mut numbers = parts
            .iter()
            .filter(|part| matches!(part, Part::Number | Part::Hex));
        let kind = match (numbers.next(), numbers.next()) {
            (_, Some(_)) => {
                return Err("it has two numbers; write {*} for the one to skip".to_owned());
            }
            (Some(Part::Hex), None) => Kind::Unsigned,
            _ if whole => Kind::Signed,
            _ => Kind::Float,
        };
        Ok(Pattern { parts, kind })
    }

    /// Whether it has a number.
    pub fn has_number(&self) -> bool {
        let number = |part: &Part| matches!(part, Part::Number | Part::Hex);
        self.parts.iter().any(number)
    }

    /// How the word of its number is to be understood.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number at the start of a text, whatever follows, as in a list of errors.
    pub fn leading(text: &[u8]) -> Option<f64> {
        let (word, _) = number(text.trim_ascii_start(), Kind::Float)?;
        Some(f64::from_bits(word))
    }

    /// What an answer is; `None` if it does not fit.
    pub fn read(&self, answer: &[u8]) -> Option<Answered> {
        let mut rest = answer.trim_ascii();
        let mut word = None;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(bytes) => rest = rest.strip_prefix(bytes.as_slice())?,
                Part::Any => match parts.next() {
                    None => rest = &[],
                    Some(Part::Literal(bytes)) => {
                        let at = match parts.peek() {
                            // What is at the end of the pattern is at that of the answer.
                            None => rest.strip_suffix(bytes.as_slice())?.len(),
                            Some(_) => find(rest, bytes)?,
                        };
                        rest = rest.get(at + bytes.len()..)?;
                    }
                    Some(_) => return None,
                },
                Part::Number => {
                    let (read, after) = number(rest.trim_ascii_start(), self.kind)?;
                    (word, rest) = (Some(read), after);
                }
                Part::Hex => {
                    let (read, after) = hex(rest.trim_ascii_start())?;
                    (word, rest) = (Some(read), after);
                }
            }
        }
        rest.is_empty()
            .then(|| word.map_or(Answered::Matches, Answered::Number))
    }
}

fn push(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal).into_bytes()));
    }
}

fn place(text: &str) -> Result<Part, String> {
    match text {
        "{}" => Ok(Part::Number),
        "{x}" => Ok(Part::Hex),
        "{*}" => Ok(Part::Any),
        other => Err(format!(
            "`{other}` is unknown; write {{}} for the number, {{x}} for one in hexadecimal, {{*}} for anything"
        )),
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

/// How many of the first bytes are such.
fn span(text: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    text.iter().position(|byte| !is(byte)).unwrap_or(text.len())
}

/// The word of the number that a text begins with, and what follows.
fn number(text: &[u8], kind: Kind) -> Option<(u64, &[u8])> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = span(&text[sign..], u8::is_ascii_digit);
    let mut end = sign + whole;
    let mut digits = whole;
    if text.get(end) == Some(&b'.') {
        let part = span(&text[end + 1..], u8::is_ascii_digit);
        digits += part;
        end += 1 + part;
    }
    if digits == 0 {
        return named(text, sign, kind);
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let power = text.get(end + 1 + sign..)?;
        let digits = span(power, u8::is_ascii_digit);
        // Else it is a letter after the number, as of a unit.
        if digits > 0 {
            end += 1 + sign + digits;
        }
    }
    let (number, rest) = text.split_at(end);
    let number = std::str::from_utf8(number).ok()?;
    if kind == Kind::Signed {
        if let Ok(whole) = number.parse::<i64>() {
            return Some((whole as u64, rest));
        }
        let value: f64 = number.parse().ok()?;
        let whole = value.fract() == 0.0 && value.abs() < WHOLE;
        return whole.then_some((value as i64 as u64, rest));
    }
    let value: f64 = number.parse().ok()?;
    let value = match value.abs() {
        NOT_A_NUMBER => f64::NAN,
        large if large >= INFINITE => f64::INFINITY.copysign(value),
        _ => value,
    };
    Some((value.to_bits(), rest))
}

/// What SCPI allows instead of digits.
fn named(text: &[u8], sign: usize, kind: Kind) -> Option<(u64, &[u8])> {
    let letters = span(&text[sign..], u8::is_ascii_alphabetic);
    let (word, rest) = text.split_at(sign + letters);
    let name = &word[sign..];
    let value = if name.eq_ignore_ascii_case(b"NAN") {
        f64::NAN
    } else if name.eq_ignore_ascii_case(b"INF") || name.eq_ignore_ascii_case(b"INFINITY") {
        f64::INFINITY
    } else if name.eq_ignore_ascii_case(b"NINF") {
        f64::NEG_INFINITY
    } else {
        return None;
    };
    let value = match word.first() {
        Some(b'-') => -value,
        _ => value,
    };
    (kind == Kind::Float).then_some((value.to_bits(), rest))
}

fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = [&b"0x"[..], b"0X", b"#H", b"#h"]
        .iter()
        .find_map(|prefix| text.strip_prefix(*prefix))
        .unwrap_or(text);
    let (digits, rest) = text.split_at(span(text, u8::is_ascii_hexdigit));
    let digits = std::str::from_utf8(digits).ok()?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, answer: &str) -> Option<f64> {
        let pattern = Pattern::new(pattern, false).expect(pattern);
        match pattern.read(answer.as_bytes())? {
            Answered::Number(word) => Some(f64::from_bits(word)),
            Answered::Matches => None,
        }
    }

    #[test]
    fn the_number_of_an_answer_is_found() {
        for (pattern, answer, value) in [
            ("{}", "1.5", 1.5),
            ("{}", "  +1.25000E-03\r\n", 0.00125),
            ("{}", "-.5", -0.5),
            ("{}", "5.", 5.0),
            ("{} V", "3.3 V", 3.3),
            ("{}E", "3E", 3.0),
            ("{*},{},{*}", "a,b", f64::NAN),
            ("{*},{},{*}", "CH1,2.5,OK", 2.5),
            ("{},{*}", "1,2,3", 1.0),
            ("{*};{}", "x;y;3", f64::NAN),
            ("\"V\" {{{}}}", "\"V\" {7}", 7.0),
            ("T={} °C", "T= 21.5 °C", 21.5),
            ("{}{*}V", "1 VV", 1.0),
        ] {
            match read(pattern, answer) {
                Some(read) => assert_eq!(read, value, "`{pattern}` of `{answer}`"),
                None => assert!(value.is_nan(), "`{pattern}` of `{answer}`"),
            }
        }
    }

    #[test]
    fn what_scpi_says_instead_of_a_number_is_none() {
        assert_eq!(read("{}", "9.9E37"), Some(f64::INFINITY));
        assert_eq!(read("{}", "-9.900000E+37"), Some(f64::NEG_INFINITY));
        assert_eq!(read("{}", "NINF"), Some(f64::NEG_INFINITY));
        assert!(read("{}", "9.91E37").is_some_and(f64::is_nan));
        assert!(read("{}", "NAN").is_some_and(f64::is_nan));
    }

    #[test]
    fn what_does_not_fit_is_no_answer() {
        for (pattern, answer) in [
            ("{}", ""),
            ("{}", "V"),
            ("{}", "1 2"),
            ("{}", "1.5 V"),
            ("{} V", "1.5"),
            ("{}", "."),
            ("{}", "+"),
            ("{}", "--1"),
            ("{}", "INFORMATION"),
            ("{}", "1.5\0"),
            ("{x}", "#H"),
            ("{x}", "10000000000000000"),
        ] {
            assert_eq!(read(pattern, answer), None, "`{pattern}` of `{answer}`");
        }
    }

    #[test]
    fn whole_numbers_keep_all_their_digits() {
        let whole = Pattern::new("{}", true).expect("a pattern");
        for (answer, word) in [
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("-1", Some(u64::MAX)),
            ("+1.0E3", Some(1000)),
            ("9007199254740991.0", Some(9_007_199_254_740_991)),
            ("9007199254740993.0", None),
            ("-9007199254740993.0", None),
            ("1.5", None),
            ("1E300", None),
            ("NAN", None),
        ] {
            let read = whole.read(answer.as_bytes());
            assert_eq!(read, word.map(Answered::Number), "{answer}");
        }
        let hex = Pattern::new("{x}", false).expect("a pattern");
        for answer in ["0x1F", "#H1f", "1F"] {
            assert_eq!(hex.read(answer.as_bytes()), Some(Answered::Number(31)));
        }
    }

    #[test]
    fn a_pattern_without_a_number_says_whether_an_answer_fits() {
        let identity = Pattern::new("ACME,DMM{*}", false).expect("a pattern");
        assert!(!identity.has_number());
        assert_eq!(
            identity.read(b"ACME,DMM7510,0,1.0\n"),
            Some(Answered::Matches)
        );
        assert_eq!(identity.read(b"OTHER,DMM7510"), None);
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_remedy() {
        for (text, part) in [
            ("", "it is empty"),
            ("  ", "it is empty"),
            ("{", "has no `}`"),
            ("V}", "write }} for a brace"),
            ("{f}", "`{f}` is unknown"),
            ("{}{*}{}", "nothing separates `{*}`"),
            ("{},{}", "it has two numbers"),
        ] {
            let error = Pattern::new(text, false).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
