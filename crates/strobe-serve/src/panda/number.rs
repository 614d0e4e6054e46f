// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and times as texts.

/// Units of time, and their seconds.
pub const UNITS: [(&str, f64); 4] = [("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)];

/// The shortest text that is this number.
pub fn text(number: f64) -> String {
    let plain = format!("{number}");
    let short = format!("{number:e}");
    match plain.len() <= short.len() + 4 {
        true => plain,
        false => short,
    }
}

/// A finite number.
pub fn read(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

/// Seconds of a unit of time.
pub fn unit(name: &str) -> Option<f64> {
    UNITS
        .iter()
        .find(|(unit, _)| *unit == name)
        .map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_back_as_it_was() {
        for number in [
            0.0,
            1.0,
            0.001,
            1e-6,
            3.051_850_947_599_719e-5,
            1e300,
            -12.5,
        ] {
            assert_eq!(read(&text(number)), Some(number));
            assert!(text(number).len() < 24, "{}", text(number));
        }
        assert_eq!(text(1.0), "1");
        assert_eq!(text(1e-9), "1e-9");
        assert_eq!((read("nan"), read("inf"), read("x")), (None, None, None));
    }
}
