// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a period may be from the one that was asked for, above and below.

use std::fmt;
use std::str::FromStr;

use strobe::quantity::{duration_ns, show_ns};

/// A part of the period, or a time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Width {
    /// So many hundredths of the period.
    Percent(f64),
    /// ns.
    Time(u64),
}

/// How much longer, and how much shorter, a period may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    over: Width,
    under: Width,
}

impl Band {
    /// How much longer, ns.
    pub fn over(self, period_ns: u64) -> u64 {
        self.over.of(period_ns)
    }

    /// How much shorter, ns.
    pub fn under(self, period_ns: u64) -> u64 {
        self.under.of(period_ns)
    }
}

impl Width {
    fn of(self, period_ns: u64) -> u64 {
        match self {
            Width::Percent(percent) => (period_ns as f64 * percent / 100.0) as u64,
            Width::Time(ns) => ns,
        }
    }
}

impl FromStr for Width {
    type Err = String;

    fn from_str(text: &str) -> Result<Width, String> {
        let Some(number) = text.strip_suffix('%') else {
            return duration_ns(text)
                .map(Width::Time)
                .map_err(|error| format!("{error}; or a part of the period, as in 3%"));
        };
        match number.trim().parse() {
            Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Width::Percent(percent)),
            _ => Err(format!("`{text}`: write more than 0% and less than 100%")),
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Width::Percent(percent) => write!(f, "{percent}%"),
            Width::Time(ns) => f.write_str(&show_ns(*ns as f64)),
        }
    }
}

/// `3%` on both sides, or `+3%-100us`.
impl FromStr for Band {
    type Err = String;

    fn from_str(text: &str) -> Result<Band, String> {
        let Some(sides) = text.strip_prefix('+') else {
            let width = text.parse()?;
            return Ok(Band {
                over: width,
                under: width,
            });
        };
        let (over, under) = sides
            .split_once('-')
            .ok_or_else(|| format!("`{text}`: write both sides, as in +3%-100us"))?;
        Ok(Band {
            over: over.parse()?,
            under: under.parse()?,
        })
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.over == self.under {
            true => self.over.fmt(f),
            false => write!(f, "+{}-{}", self.over, self.under),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_a_part_of_the_period_or_a_time() {
        assert_eq!("3%".parse::<Band>().map(|b| b.over(1_000_000)), Ok(30_000));
        assert_eq!("0.5%".parse::<Band>().map(|b| b.under(1000)), Ok(5));
        assert_eq!("100us".parse::<Band>().map(|b| b.over(1)), Ok(100_000));
        for wrong in [
            "0%", "100%", "-3%", "x%", "3", "", "0us", "nan%", "inf%", "+3%", "+3%-", "-3%+1%",
            "+3%-0us",
        ] {
            assert!(wrong.parse::<Band>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_band_may_be_wider_on_one_side() {
        let band: Band = "+3%-100us".parse().expect("a band");
        assert_eq!(
            (band.over(1_000_000), band.under(1_000_000)),
            (30_000, 100_000)
        );
        assert_eq!(band.to_string(), "+3%-100 us");
        assert_eq!("+3%-3%".parse(), "3%".parse::<Band>());
    }
}
