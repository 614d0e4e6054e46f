// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times and frequencies as people write them: `250us`, `1.5s`, `1kHz`.

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not start with a number.
    #[error("`{0}`: not a number; write for example 250us, 10s or 1kHz")]
    Number(String),
    /// What follows the number is not a unit known here.
    #[error("`{text}`: `{unit}` is not a unit; use {known}")]
    Unit {
        /// The whole text.
        text: String,
        /// What stands where the unit should.
        unit: String,
        /// Units that would be understood.
        known: &'static str,
    },
    /// Zero, negative, or beyond what fits.
    #[error("`{0}`: the value must be more than 0 and less than 100 years")]
    Range(String),
}

const TIMES: &str = "ns, us, ms, s, min or h";
const BOTH: &str = "ns, us, ms, s, min, h, mHz, Hz, kHz or MHz";
/// 100 years.
const LONGEST_NS: f64 = 3.2e18;

/// Nanoseconds of a duration: `10s`, `250us`, `1.5min`.
///
/// # Errors
/// The text is not a number with a unit of time.
pub fn duration_ns(text: &str) -> Result<u64, Error> {
    let (number, unit) = split(text)?;
    let scale = time_unit(unit).ok_or_else(|| unknown(text, unit, TIMES))?;
    whole(text, number * scale)
}

/// Nanoseconds of a period, which may be written as a frequency: `250us`,
/// `4kHz`. Rounded to the nanosecond.
///
/// # Errors
/// The text is not a number with a unit of time or of frequency.
pub fn period_ns(text: &str) -> Result<u64, Error> {
    let (number, unit) = split(text)?;
    if let Some(scale) = time_unit(unit) {
        return whole(text, number * scale);
    }
    let hertz = match unit {
        "mHz" => 1e-3,
        "Hz" => 1.0,
        "kHz" => 1e3,
        "MHz" => 1e6,
        _ => return Err(unknown(text, unit, BOTH)),
    };
    whole(text, 1e9 / (number * hertz))
}

/// A duration for people: the largest unit that leaves a number of at least 1,
/// with at most four significant digits.
pub fn show_ns(ns: f64) -> String {
    // Rounded first, so that 999.96 us is 1 ms, as 1 ms is.
    let magnitude = ns.abs();
    let (value, unit) = match magnitude {
        m if m < 999.5 => (ns, "ns"),
        m if m < 999.95e3 => (ns / 1e3, "us"),
        m if m < 999.95e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {unit}")
}

fn split(text: &str) -> Result<(f64, &str), Error> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse().map_err(|_| Error::Number(text.to_owned()))?;
    Ok((number, unit.trim()))
}

fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

fn unknown(text: &str, unit: &str, known: &'static str) -> Error {
    Error::Unit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        known,
    }
}

fn whole(text: &str, ns: f64) -> Result<u64, Error> {
    let ns = ns.round();
    if (1.0..LONGEST_NS).contains(&ns) {
        // In range, so the conversion is exact up to 2^53 and never wraps.
        Ok(ns as u64)
    } else {
        Err(Error::Range(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(duration_ns("10s"), Ok(10_000_000_000));
        assert_eq!(duration_ns("250us"), Ok(250_000));
        assert_eq!(duration_ns("250µs"), Ok(250_000));
        assert_eq!(duration_ns("1.5 ms"), Ok(1_500_000));
        assert_eq!(duration_ns("2min"), Ok(120_000_000_000));
        assert_eq!(duration_ns("1h"), Ok(3_600_000_000_000));
    }

    #[test]
    fn a_period_may_be_a_frequency() {
        assert_eq!(period_ns("1kHz"), Ok(1_000_000));
        assert_eq!(period_ns("10kHz"), Ok(100_000));
        assert_eq!(period_ns("3kHz"), Ok(333_333));
        assert_eq!(period_ns("0.5Hz"), Ok(2_000_000_000));
        assert_eq!(period_ns("1MHz"), Ok(1_000));
        assert_eq!(period_ns("250us"), Ok(250_000));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_with_the_reason() {
        assert_eq!(duration_ns("fast"), Err(Error::Number("fast".into())));
        assert_eq!(duration_ns(""), Err(Error::Number("".into())));
        assert_eq!(duration_ns("-1s"), Err(Error::Number("-1s".into())));
        assert_eq!(duration_ns("1.2.3s"), Err(Error::Number("1.2.3s".into())));
        assert_eq!(duration_ns("0s"), Err(Error::Range("0s".into())));
        assert_eq!(period_ns("0Hz"), Err(Error::Range("0Hz".into())));
        assert_eq!(
            period_ns("9999999999h"),
            Err(Error::Range("9999999999h".into()))
        );
        let error = duration_ns("1kHz").map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("`1kHz`: `kHz` is not a unit; use ns, us, ms, s, min or h".into())
        );
        let error = period_ns("10").map_err(|e| e.to_string());
        assert!(error.is_err_and(|e| e.contains("is not a unit; use ns, us, ms, s, min, h, mHz")));
    }

    #[test]
    fn times_are_shown_in_a_unit_that_fits() {
        assert_eq!(show_ns(0.0), "0 ns");
        assert_eq!(show_ns(999.0), "999 ns");
        assert_eq!(show_ns(1234.0), "1.234 us");
        assert_eq!(show_ns(100_000.0), "100 us");
        assert_eq!(show_ns(-2_500_000.0), "-2.5 ms");
        assert_eq!(show_ns(12_345_678_901.0), "12.35 s");
    }
}
