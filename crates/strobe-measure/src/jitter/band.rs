// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a period may be from the one that was asked for.

use std::fmt;
use std::str::FromStr;

use strobe::quantity::{duration_ns, show_ns};

/// A part of the period, or a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Band {
    /// So many hundredths of the period.
    Percent(f64),
    /// ns.
    Time(u64),
}

impl Band {
    /// ns.
    pub fn of(self, period_ns: u64) -> u64 {
        match self {
            Band::Percent(percent) => (period_ns as f64 * percent / 100.0) as u64,
            Band::Time(ns) => ns,
        }
    }
}

impl FromStr for Band {
    type Err = String;

    fn from_str(text: &str) -> Result<Band, String> {
        let Some(number) = text.strip_suffix('%') else {
            return duration_ns(text)
                .map(Band::Time)
                .map_err(|error| format!("{error}; or a part of the period, as in 3%"));
        };
        match number.trim().parse() {
            Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Band::Percent(percent)),
            _ => Err(format!("`{text}`: write more than 0% and less than 100%")),
        }
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Band::Percent(percent) => write!(f, "{percent}%"),
            Band::Time(ns) => f.write_str(&show_ns(*ns as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_a_part_of_the_period_or_a_time() {
        assert_eq!("3%".parse::<Band>().map(|b| b.of(1_000_000)), Ok(30_000));
        assert_eq!("0.5%".parse::<Band>().map(|b| b.of(1000)), Ok(5));
        assert_eq!("100us".parse::<Band>().map(|b| b.of(1)), Ok(100_000));
        for wrong in ["0%", "100%", "-3%", "x%", "3", "", "0us", "nan%", "inf%"] {
            assert!(wrong.parse::<Band>().is_err(), "{wrong}");
        }
    }
}
