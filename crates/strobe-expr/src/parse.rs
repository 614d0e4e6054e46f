// SPDX-License-Identifier: MIT OR Apache-2.0
//! From tokens to a tree.

use std::ops::Range;

use crate::fault::{Wrong, wrong};
use crate::lex::{At, Token, tokens};
use crate::tree::{Binary, Call, Compare, Derive, Expr, Unary, Variable, What};
use crate::unit::Unit;

/// Words that are no names.
const KEYWORDS: [&str; 5] = ["since", "emit", "else", "in", "like"];
/// How a variable is written, and how one is changed.
const VARIABLE: &str = "write NAME = NUMBER, as in next = 1000, or NAME = NUMBER like CHANNEL";
const ASSIGNMENT: &str = "write NAME = EXPRESSION, NAME += EXPRESSION or NAME -= EXPRESSION";
/// Parts within parts, at most: the way through them is one of calls, and a thread may have a small stack.
const DEPTH: usize = 32;
/// Operators on the way from the first operand of an expression to the whole of it, at most.
const HEIGHT: usize = 256;

/// Signs of operators with two sides, from those that bind least.
const LEVELS: [&[(&str, Binary)]; 9] = [
    &[("||", Binary::Any)],
    &[("&&", Binary::All)],
    &[
        ("==", Binary::Compare(Compare::Equal)),
        ("!=", Binary::Compare(Compare::NotEqual)),
        ("<", Binary::Compare(Compare::Less)),
        ("<=", Binary::Compare(Compare::LessOrEqual)),
        (">", Binary::Compare(Compare::Greater)),
        (">=", Binary::Compare(Compare::GreaterOrEqual)),
    ],
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("<<", Binary::Left), (">>", Binary::Right)],
    &[("+", Binary::Plus), ("-", Binary::Minus)],
    &[("*", Binary::Times), ("%", Binary::Rest)],
];
const COMPARISONS: usize = 2;

/// `NAME = EXPRESSION`, and the unit that it is wanted in.
pub fn derive(text: &str) -> Result<Derive, Wrong> {
    let mut parser = Parser::new(text)?;
    let start = "write NAME = EXPRESSION, as in step = diff(enc.pos)";
    let (name, name_at) = parser.named("column", start)?;
    if !parser.take("=") {
        return Err(wrong(
            &parser.here(),
            "`=` is missing after the name of the derived column",
            start,
        ));
    }
    let expr = parser.level(0)?;
    let unit = match parser.peek() {
        Some((Token::Word(word), at)) if word == "in" => {
            let at = at.end..text.len();
            parser.at = parser.tokens.len();
            Some((text[at.clone()].trim().trim_matches('"').to_owned(), at))
        }
        _ => None,
    };
    parser.end()?;
    Ok(Derive {
        name,
        name_at,
        expr,
        unit,
    })
}

/// `NAME = EXPRESSION`, or `NAME = EXPRESSION like CHANNEL`.
pub fn variable(text: &str) -> Result<Variable, Wrong> {
    let mut parser = Parser::new(text)?;
    let (name, name_at) = parser.named("variable", VARIABLE)?;
    if !parser.take("=") {
        return Err(wrong(
            &parser.here(),
            "`=` is missing after the name of the variable",
            VARIABLE,
        ));
    }
    let value = parser.level(0)?;
    let like = match parser.take_word("like") {
        true => Some(parser.named("channel", VARIABLE)?),
        false => None,
    };
    parser.end()?;
    Ok(Variable {
        name,
        name_at,
        value,
        like,
    })
}

/// `NAME = EXPRESSION`, `NAME += EXPRESSION` or `NAME -= EXPRESSION`: the name, and its new value.
pub fn assignment(text: &str) -> Result<(String, Expr), Wrong> {
    let mut parser = Parser::new(text)?;
    let (name, at) = parser.named("variable", ASSIGNMENT)?;
    let change = [
        ("=", None),
        ("+=", Some(Binary::Plus)),
        ("-=", Some(Binary::Minus)),
    ]
    .into_iter()
    .find(|(sign, _)| parser.take(sign));
    let Some((_, change)) = change else {
        return Err(wrong(
            &parser.here(),
            "`=` is missing after the name of the variable",
            ASSIGNMENT,
        ));
    };
    let value = parser.level(0)?;
    parser.end()?;
    let Some(operator) = change else {
        return Ok((name, value));
    };
    let before = Expr::leaf(at, What::Name(name.clone()));
    let value = Expr::binary(operator, before, value);
    Ok((name, value))
}

/// An expression.
pub fn expression(text: &str) -> Result<Expr, Wrong> {
    let mut parser = Parser::new(text)?;
    let expr = parser.level(0)?;
    parser.end()?;
    Ok(expr)
}

struct Parser {
    tokens: Vec<At>,
    at: usize,
    length: usize,
    depth: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Parser, Wrong> {
        Ok(Parser {
            tokens: tokens(text)?,
            at: 0,
            length: text.len(),
            depth: 0,
        })
    }

    fn peek(&self) -> Option<&At> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<At> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn place(&self, token: Option<&At>) -> Range<usize> {
        token.map_or(self.length..self.length, |(_, at)| at.clone())
    }

    fn here(&self) -> Range<usize> {
        self.place(self.peek())
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some((Token::Sign(found), _)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some((Token::Word(found), _)) if found == word);
        self.at += usize::from(found);
        found
    }

    /// The name of something.
    fn named(&mut self, what: &str, remedy: &str) -> Result<(String, Range<usize>), Wrong> {
        match self.next() {
            Some((Token::Name(name), at)) => Ok((name, at)),
            Some((Token::Word(name), at)) if !KEYWORDS.contains(&name.as_str()) => Ok((name, at)),
            Some((Token::Word(word), at)) => Err(wrong(
                &at,
                format!("`{word}` is a word of the language, and not the name of a {what}"),
                "choose another name, or put it in backquotes",
            )),
            other => Err(wrong(
                &self.place(other.as_ref()),
                format!("the name of the {what} is missing"),
                remedy,
            )),
        }
    }

    fn end(&self) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some((Token::Sign("="), at)) => Err(wrong(at, "`=` compares nothing", "write ==")),
            Some((_, at)) => Err(wrong(
                at,
                "the expression has ended before this",
                "put an operator such as && between the two",
            )),
        }
    }

    /// What is joined by operators that bind at least so much: those of [`LEVELS`] from `least` on.
    fn level(&mut self, least: usize) -> Result<Expr, Wrong> {
        self.deeper()?;
        let mut left = self.unary()?;
        let mut before = None;
        while let Some((sign, level, operator)) = self.operator() {
            if level < least {
                break;
            }
            if level == COMPARISONS && before == Some(level) {
                return Err(wrong(
                    &self.here(),
                    format!("`{sign}` compares the result of a comparison"),
                    "join two comparisons with &&",
                ));
            }
            self.at += 1;
            let right = self.level(level + 1)?;
            left = match operator {
                Some(operator) => Expr::binary(operator, left, right),
                None => {
                    let instead = self.take_word("else").then(|| self.unary()).transpose()?;
                    Expr::quotient(left, right, instead)
                }
            };
            if left.height > HEIGHT {
                return Err(too_deep(&left.at));
            }
            before = Some(level);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator with two sides that comes next: its sign, how much it binds, and which it is; `None`: the quotient.
    fn operator(&self) -> Option<(&'static str, usize, Option<Binary>)> {
        let Some((Token::Sign(sign), _)) = self.peek() else {
            return None;
        };
        if *sign == "/" {
            return Some((sign, LEVELS.len() - 1, None));
        }
        LEVELS.iter().enumerate().find_map(|(level, operators)| {
            let (sign, operator) = operators.iter().find(|(known, _)| known == sign)?;
            Some((*sign, level, Some(*operator)))
        })
    }

    /// One call further down: to be taken back on the way up.
    fn deeper(&mut self) -> Result<(), Wrong> {
        self.depth += 1;
        match self.depth <= DEPTH {
            true => Ok(()),
            false => Err(too_deep(&self.here())),
        }
    }

    fn unary(&mut self) -> Result<Expr, Wrong> {
        let signs = [
            ("-", Unary::Minus),
            ("!", Unary::Not),
            ("~", Unary::Complement),
        ];
        let start = self.here().start;
        let Some((_, operator)) = signs.into_iter().find(|(sign, _)| self.take(sign)) else {
            return self.primary();
        };
        self.deeper()?;
        let inner = self.unary()?;
        self.depth -= 1;
        Ok(Expr::unary(start, operator, inner))
    }

    fn primary(&mut self) -> Result<Expr, Wrong> {
        let found = self.next();
        let at = self.place(found.as_ref());
        let what = match found.map(|(token, _)| token) {
            Some(Token::Number(number)) => What::Number(number, self.unit()),
            Some(Token::Word(name)) if !KEYWORDS.contains(&name.as_str()) => match self.take("(") {
                true => What::Call(self.call(name)?),
                false => What::Name(name),
            },
            Some(Token::Name(name)) => What::Name(name),
            Some(Token::Sign("(")) => {
                let inner = self.level(0)?;
                self.close(&at)?;
                return Ok(inner);
            }
            _ => {
                return Err(wrong(
                    &at,
                    "a channel, a number or a function is missing",
                    "write one, as in adc.a, 2.5 V or diff(enc.pos)",
                ));
            }
        };
        let end = match self
            .at
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last))
        {
            Some((_, last)) => last.end,
            None => at.end,
        };
        Ok(Expr::leaf(at.start..end, what))
    }

    /// The unit of a number, if one follows: a word, a quotient of words without spaces, or any text in quotes.
    fn unit(&mut self) -> String {
        let (mut unit, mut end) = match self.peek() {
            Some((Token::Text(text), _)) => {
                let text = text.clone();
                self.at += 1;
                return text;
            }
            Some((Token::Word(word), at)) if !KEYWORDS.contains(&word.as_str()) => {
                (word.clone(), at.end)
            }
            _ => return String::new(),
        };
        self.at += 1;
        while let [(Token::Sign("/"), sign), (Token::Word(word), at), ..] = &self.tokens[self.at..]
        {
            if sign.start != end
                || at.start != sign.end
                || !Unit::is_known(word.trim_end_matches(['²', '³']))
            {
                break;
            }
            unit = format!("{unit}/{word}");
            end = at.end;
            self.at += 2;
        }
        unit
    }

    fn call(&mut self, name: String) -> Result<Call, Wrong> {
        let open = self.tokens[self.at - 1].1.clone();
        let mut args = Vec::new();
        let mut since_emit = false;
        while !since_emit && !matches!(self.peek(), Some((Token::Sign(")"), _))) {
            if self.take_word("since") {
                if !self.take_word("emit") {
                    return Err(wrong(
                        &self.here(),
                        "`since` is not followed by `emit`",
                        "write since emit: from the last row that was kept",
                    ));
                }
                since_emit = true;
                break;
            }
            args.push(self.level(0)?);
            if !self.take(",")
                && !matches!(self.peek(), Some((Token::Word(word), _)) if word == "since")
            {
                break;
            }
        }
        self.close(&open)?;
        Ok(Call {
            name,
            args,
            since_emit,
        })
    }

    fn close(&mut self, open: &Range<usize>) -> Result<(), Wrong> {
        match self.take(")") {
            true => Ok(()),
            false if self.peek().is_none() => Err(wrong(open, "`(` has no end", "write a `)`")),
            false => Err(wrong(
                &self.here(),
                "a `)` is missing",
                "write it before this",
            )),
        }
    }
}

fn too_deep(at: &Range<usize>) -> Wrong {
    wrong(
        at,
        "the expression is nested too deeply",
        "give a part of it a name, as a derived column",
    )
}
