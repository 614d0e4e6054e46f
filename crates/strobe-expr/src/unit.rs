// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units, as channels have them: names with SI prefixes, their powers and quotients.
//!
//! `mV` is a thousandth of `V`, `Hz` is `1/s`. A name that is not known here, such as `counts`, is a unit of its own. A
//! unit that cannot be taken apart, such as `°C over ground`, is one, too.

use std::collections::BTreeMap;

use crate::rational::Rational;

/// A unit: as it is written, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    text: String,
    factor: Rational,
    powers: BTreeMap<String, i32>,
}

/// Names that take a prefix.
const NAMES: [&str; 23] = [
    "s", "m", "g", "A", "V", "W", "K", "N", "Pa", "J", "C", "T", "F", "H", "Ohm", "Ω", "rad",
    "bar", "eV", "lm", "Hz", "B", "bit",
];
const PREFIXES: [(&str, i32); 11] = [
    ("f", -15),
    ("p", -12),
    ("n", -9),
    ("u", -6),
    ("µ", -6),
    ("μ", -6),
    ("m", -3),
    ("c", -2),
    ("k", 3),
    ("M", 6),
    ("G", 9),
];
/// Names that are so many of another one, to some power.
const OTHERS: [(&str, i128, &str, i32); 3] =
    [("min", 60, "s", 1), ("h", 3600, "s", 1), ("Hz", 1, "s", -1)];
/// How the powers are written.
const POWERS: [(&str, i32); 4] = [("²", 2), ("³", 3), ("^2", 2), ("^3", 3)];

impl Unit {
    /// That of a plain number.
    pub fn none() -> Unit {
        Unit {
            text: String::new(),
            factor: Rational::ONE,
            powers: BTreeMap::new(),
        }
    }

    /// Any text is a unit.
    pub fn parse(text: &str) -> Unit {
        let text = text.trim();
        let mut unit = Unit::none();
        if text.is_empty() {
            return unit;
        }
        let mut sign = 1;
        let is_word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
        let mut parts = text.split('/');
        let known = parts.all(|part| {
            let done = part
                .split(['*', '·'])
                .all(|word| is_word(word) && unit.take(word, sign).is_some());
            sign = -1;
            done
        });
        if !known {
            unit = Unit::none();
            unit.powers.insert(text.to_owned(), 1);
        }
        unit.text = text.to_owned();
        unit
    }

    /// Whether this word is a unit that is known by its name.
    pub fn is_known(word: &str) -> bool {
        OTHERS.iter().any(|(name, ..)| *name == word) || split(word).is_some()
    }

    fn take(&mut self, word: &str, sign: i32) -> Option<()> {
        let power = POWERS
            .iter()
            .find_map(|(end, power)| Some((word.strip_suffix(end)?, *power)));
        let (word, power) = power.unwrap_or((word, 1));
        if word == "1" {
            return Some(());
        }
        let (name, factor, power) =
            match (OTHERS.iter().find(|(name, ..)| *name == word), split(word)) {
                (Some((_, many, name, by)), _) => (*name, Rational::whole(*many), power * by),
                (None, Some(("Hz", factor))) => ("s", Rational::ONE.div(factor)?, -power),
                (None, Some((name, factor))) => (name, factor, power),
                (None, None) => (word, Rational::ONE, power),
            };
        let power = power * sign;
        for _ in 0..power.abs() {
            self.factor = match power > 0 {
                true => self.factor.mul(factor)?,
                false => self.factor.div(factor)?,
            };
        }
        self.count(name, power);
        Some(())
    }

    fn count(&mut self, name: &str, power: i32) {
        let count = self.powers.entry(name.to_owned()).or_insert(0);
        *count += power;
        if *count == 0 {
            self.powers.remove(name);
        }
    }

    /// Of plain numbers, whatever their factor.
    pub fn is_none(&self) -> bool {
        self.powers.is_empty()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many of `other` one of this is; `None` if they are units of different things.
    pub fn in_units_of(&self, other: &Unit) -> Option<Rational> {
        (self.powers == other.powers).then(|| self.factor.div(other.factor))?
    }

    /// That of a product, or of a quotient. The factor is of what cancels out.
    pub fn combine(&self, other: &Unit, is_quotient: bool) -> Option<(Unit, Rational)> {
        let sign = if is_quotient { -1 } else { 1 };
        let mut unit = self.clone();
        for (name, power) in &other.powers {
            unit.count(name, sign * power);
        }
        unit.factor = match is_quotient {
            true => self.factor.div(other.factor)?,
            false => self.factor.mul(other.factor)?,
        };
        if unit.powers.is_empty() {
            return Some((Unit::none(), unit.factor));
        }
        let simple = !other.text.contains('/');
        unit.text = match (self.text.as_str(), other.text.as_str(), is_quotient) {
            (text, "", _) => text.to_owned(),
            ("", text, false) => text.to_owned(),
            (a, b, false) if simple && !a.contains('/') => format!("{a}*{b}"),
            ("", b, true) if simple => format!("1/{b}"),
            (a, b, true) if simple && !b.contains(['*', '·']) => format!("{a}/{b}"),
            _ => String::new(),
        };
        match Unit::parse(&unit.text) == unit {
            true => Some((unit, Rational::ONE)),
            // It would be read as another one.
            false => Some((plain(unit.powers), unit.factor)),
        }
    }
}

/// A unit of these powers, written without prefixes.
fn plain(powers: BTreeMap<String, i32>) -> Unit {
    let word = |(name, power): (&String, i32)| match power {
        1 => name.clone(),
        power => format!("{name}^{power}"),
    };
    let above: Vec<String> = powers
        .iter()
        .filter(|(_, p)| **p > 0)
        .map(|(n, p)| word((n, *p)))
        .collect();
    let below: Vec<String> = powers
        .iter()
        .filter(|(_, p)| **p < 0)
        .map(|(n, p)| word((n, -p)))
        .collect();
    let above = if above.is_empty() {
        "1".to_owned()
    } else {
        above.join("*")
    };
    Unit {
        text: below
            .iter()
            .fold(above, |text, word| format!("{text}/{word}")),
        factor: Rational::ONE,
        powers,
    }
}

/// A known name, and what its prefix makes of it.
fn split(word: &str) -> Option<(&'static str, Rational)> {
    let known = |name: &str| NAMES.into_iter().find(|known| *known == name);
    if let Some(name) = known(word) {
        return Some((name, Rational::ONE));
    }
    PREFIXES.iter().find_map(|(prefix, power)| {
        let name = known(word.strip_prefix(prefix)?)?;
        let ten = 10_i128.pow(power.unsigned_abs());
        let factor = if *power > 0 {
            Rational::new(ten, 1)
        } else {
            Rational::new(1, ten)
        };
        Some((name, factor?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(a: &str, b: &str) -> Option<f64> {
        Unit::parse(a)
            .in_units_of(&Unit::parse(b))
            .map(Rational::to_f64)
    }

    #[test]
    fn prefixes_are_powers_of_ten() {
        assert_eq!(factor("mV", "V"), Some(1e-3));
        assert_eq!(factor("µm", "um"), Some(1.0));
        assert_eq!(factor("min", "ms"), Some(60_000.0));
        assert_eq!(factor("kHz", "1/s"), Some(1000.0));
        assert_eq!(factor("mm/s", "m/min"), Some(0.06));
        assert_eq!(factor("m/s^2", "mm/s²"), Some(1000.0));
        assert_eq!(factor("counts/s", "counts per second"), None);
        assert_eq!(factor("counts", "counts"), Some(1.0));
        assert_eq!(
            (factor("V", "A"), factor("V", ""), factor("m", "min")),
            (None, None, None)
        );
    }

    #[test]
    fn products_and_quotients_are_written_so_that_they_are_read_again() {
        let of = |a: &str, b: &str, quotient| {
            let (unit, factor) = Unit::parse(a)
                .combine(&Unit::parse(b), quotient)
                .expect("a unit");
            assert_eq!(Unit::parse(unit.text()), unit);
            (unit.text().to_owned(), factor.to_f64())
        };
        assert_eq!(of("mm", "ns", true), ("mm/ns".into(), 1.0));
        assert_eq!(of("mm", "", true), ("mm".into(), 1.0));
        assert_eq!(of("mV", "V", true), (String::new(), 1e-3));
        assert_eq!(of("V", "A", false), ("V*A".into(), 1.0));
        assert_eq!(of("", "ms", true), ("1/ms".into(), 1.0));
        assert_eq!(of("mm/s", "ms", false), ("m".into(), 1e-6));
        assert_eq!(of("mm", "m/s", true), ("s".into(), 1e-3));
    }
}
