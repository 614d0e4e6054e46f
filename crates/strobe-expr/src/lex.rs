// SPDX-License-Identifier: MIT OR Apache-2.0
//! From text to tokens.

use std::ops::Range;

use crate::fault::{Wrong, wrong};
use crate::rational::Rational;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(Rational),
    /// A name, or a unit: the parser knows.
    Word(String),
    /// A name that was written in backquotes.
    Name(String),
    /// A text in double quotes.
    Text(String),
    Sign(&'static str),
}

/// A token and its place.
pub type At = (Token, Range<usize>);

/// Tokens of a text, at most: what is in parts within parts is gone through by calls.
const TOKENS_MAX: usize = 1000;

/// Longer ones first.
const SIGNS: [&str; 25] = [
    "+=", "-=", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "!", "~", "&", "|",
    "^", "+", "-", "*", "/", "%", "(", ")",
];

pub fn tokens(text: &str) -> Result<Vec<At>, Wrong> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '0'..='9' | '.' => number(rest, at)?,
            c if starts_word(c) => {
                let length = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
                // A point at the end belongs to nothing.
                let word = rest[..length].trim_end_matches('.');
                (Token::Word(word.to_owned()), word.len())
            }
            '`' | '"' => {
                let end = rest[1..].find(first).ok_or_else(|| {
                    wrong(
                        &(at..text.len()),
                        format!("{first} has no end"),
                        format!("write another {first}"),
                    )
                })?;
                let inner = rest[1..=end].to_owned();
                let token = if first == '`' {
                    Token::Name(inner)
                } else {
                    Token::Text(inner)
                };
                (token, end + 2)
            }
            ',' => (Token::Sign(","), 1),
            other => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| {
                    let here = at..at + other.len_utf8();
                    wrong(
                        &here,
                        format!("`{other}` has no meaning here"),
                        "leave it out; a name with such letters stands in `backquotes`",
                    )
                })?;
                (Token::Sign(sign), sign.len())
            }
        };
        if tokens.len() == TOKENS_MAX {
            return Err(wrong(
                &(at..at + length),
                "the text is too long",
                "give a part of it a name, as a derived column",
            ));
        }
        tokens.push((token, at..at + length));
        at += length;
    }
    Ok(tokens)
}

fn starts_word(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '°' | 'µ')
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '#' | '°' | 'µ' | '²' | '³')
}

fn number(rest: &str, at: usize) -> Result<(Token, usize), Wrong> {
    let is_hex = rest.starts_with("0x") || rest.starts_with("0b");
    let mut length = 0;
    let mut before = ' ';
    for c in rest.chars() {
        let belongs = match c {
            '0'..='9' | '_' | '.' => true,
            'a'..='f' | 'A'..='F' | 'x' if is_hex => true,
            // An exponent, and not a unit that begins with e.
            'e' | 'E' => rest[length + 1..]
                .trim_start_matches(['+', '-'])
                .starts_with(|c: char| c.is_ascii_digit()),
            '+' | '-' => matches!(before, 'e' | 'E') && !is_hex,
            _ => false,
        };
        if !belongs {
            break;
        }
        before = c;
        length += 1;
    }
    let digits = rest[..length].replace('_', "");
    let number = match digits.as_bytes() {
        [b'0', b'x', ..] => i128::from_str_radix(&digits[2..], 16)
            .ok()
            .map(Rational::whole),
        [b'0', b'b', ..] => i128::from_str_radix(&digits[2..], 2)
            .ok()
            .map(Rational::whole),
        _ => Rational::parse(&digits),
    };
    let number = number.ok_or_else(|| {
        let here = at..at + length.max(1);
        wrong(
            &here,
            format!(
                "`{}` is not a number, or has too many digits",
                &rest[..length.max(1)]
            ),
            "write 12, 2.5, 1e-3, 0x1F or 0b101",
        )
    })?;
    Ok((Token::Number(number), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Token> {
        let tokens = tokens(text).expect("tokens");
        tokens.into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn a_text_is_numbers_words_and_signs() {
        let number = |text| Token::Number(Rational::parse(text).expect("a number"));
        let word = |text: &str| Token::Word(text.to_owned());
        assert_eq!(
            of("adc.a>2.5 V"),
            [word("adc.a"), Token::Sign(">"), number("2.5"), word("V")]
        );
        assert_eq!(
            of("0x1F 0b11 1_000 1e-3 2eV"),
            [
                number("31"),
                number("3"),
                number("1000"),
                number("0.001"),
                number("2"),
                word("eV")
            ]
        );
        assert_eq!(
            of("a<<1&&b"),
            [
                word("a"),
                Token::Sign("<<"),
                number("1"),
                Token::Sign("&&"),
                word("b")
            ]
        );
        assert_eq!(
            of("`gpio:0/3` \"%\""),
            [Token::Name("gpio:0/3".into()), Token::Text("%".into())]
        );
        assert_eq!(of("5 µm"), [number("5"), word("µm")]);
        assert_eq!(of("adc.a#2"), [word("adc.a#2")]);
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_place() {
        for (text, at) in [
            ("a ? b", 2),
            ("`abc", 0),
            ("1.2.3", 0),
            ("0xG", 0),
            ("x \u{1F600}", 2),
        ] {
            assert_eq!(tokens(text).expect_err(text).at.start, at, "{text}");
        }
    }
}
