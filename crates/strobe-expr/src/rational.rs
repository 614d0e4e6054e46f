// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact fractions, for scales, offsets and numbers that were written in decimals.

/// A fraction in lowest terms; the denominator is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rational {
    num: i128,
    den: i128,
}

impl Rational {
    pub const ZERO: Rational = Rational::whole(0);
    pub const ONE: Rational = Rational::whole(1);

    pub const fn whole(num: i128) -> Rational {
        Rational { num, den: 1 }
    }

    pub fn new(num: i128, den: i128) -> Option<Rational> {
        if den == 0 || num == i128::MIN || den == i128::MIN {
            return None;
        }
        let by = gcd(num, den) * den.signum();
        Some(Rational {
            num: num / by,
            den: den / by,
        })
    }

    /// The number that these digits are: `12`, `2.5`, `1e-3`. `None` if they are none, or too many.
    pub fn parse(text: &str) -> Option<Rational> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let num: i128 = format!("{whole}{part}").parse().ok()?;
        let exponent = exponent.checked_sub(i32::try_from(part.len()).ok()?)?;
        let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
        match exponent {
            0.. => Some(Rational::whole(num.checked_mul(power)?)),
            _ => Rational::new(num, power),
        }
    }

    /// What was meant by a binary number: the shortest decimal that is nearest to it. 0.1 is a tenth.
    pub fn of_f64(value: f64) -> Option<Rational> {
        value.is_finite().then_some(())?;
        Rational::parse(&format!("{value:e}"))
    }

    /// The nearest binary number.
    pub fn to_f64(self) -> f64 {
        let den = self.den.unsigned_abs();
        let (mut quotient, mut rest) =
            (self.num.unsigned_abs() / den, self.num.unsigned_abs() % den);
        let mut halved = 0;
        // As many bits as it takes to round right; the last says whether anything is left.
        while rest != 0 && quotient < 1 << 64 && halved < 1000 {
            rest *= 2;
            quotient = quotient * 2 + rest / den;
            rest %= den;
            halved += 1;
        }
        let magnitude = (quotient | u128::from(rest != 0)) as f64 * 2_f64.powi(-halved);
        if self.num < 0 { -magnitude } else { magnitude }
    }

    pub fn add(self, other: Rational) -> Option<Rational> {
        let by = gcd(self.den, other.den);
        let left = self.num.checked_mul(other.den / by)?;
        let right = other.num.checked_mul(self.den / by)?;
        Rational::new(
            left.checked_add(right)?,
            self.den.checked_mul(other.den / by)?,
        )
    }

    pub fn sub(self, other: Rational) -> Option<Rational> {
        self.add(other.neg())
    }

    pub fn neg(self) -> Rational {
        Rational {
            num: -self.num,
            den: self.den,
        }
    }

    pub fn mul(self, other: Rational) -> Option<Rational> {
        let (a, b) = (gcd(self.num, other.den), gcd(other.num, self.den));
        let num = (self.num / a).checked_mul(other.num / b)?;
        Rational::new(num, (self.den / b).checked_mul(other.den / a)?)
    }

    pub fn div(self, other: Rational) -> Option<Rational> {
        self.mul(Rational::new(other.den, other.num)?)
    }

    pub fn floor(self) -> i128 {
        self.num.div_euclid(self.den)
    }

    pub fn ceil(self) -> i128 {
        -(-self.num).div_euclid(self.den)
    }

    /// If it is whole, that number.
    pub fn to_whole(self) -> Option<i128> {
        (self.den == 1).then_some(self.num)
    }

    /// With at most so many decimals; `None` if that is not all of it.
    pub fn to_decimal(self, decimals: u32) -> Option<String> {
        let tens = 10_i128.checked_pow(decimals)?;
        let all = self.mul(Rational::whole(tens))?.to_whole()?;
        let sign = if all < 0 { "-" } else { "" };
        let (whole, rest) = (
            all.unsigned_abs() / tens as u128,
            all.unsigned_abs() % tens as u128,
        );
        let rest = format!("{rest:0width$}", width = decimals as usize);
        let text = format!("{sign}{whole}.{rest}");
        Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    }

    pub fn den(self) -> i128 {
        self.den
    }

    pub fn sign(self) -> i128 {
        self.num.signum()
    }

    /// The largest of which both are whole multiples.
    pub fn common(self, other: Rational) -> Option<Rational> {
        let den = self.den.checked_mul(other.den / gcd(self.den, other.den))?;
        let left = self.num.checked_mul(den / self.den)?;
        let right = other.num.checked_mul(den / other.den)?;
        Rational::new(gcd(left, right), den)
    }
}

/// At least 1.
fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Rational {
        Rational::parse(text).expect("a number")
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(of("2.50"), Rational { num: 5, den: 2 });
        assert_eq!(of("-1e-3"), Rational { num: -1, den: 1000 });
        assert_eq!(of("1.5e3"), Rational::whole(1500));
        assert_eq!(Rational::of_f64(0.1), Some(of("0.1")));
        for text in ["", ".", "e3", "1e99", "1e-99", "1.2.3"] {
            assert_eq!(Rational::parse(text), None, "{text}");
        }
        assert_eq!(Rational::of_f64(f64::NAN), None);
    }

    #[test]
    fn a_binary_number_comes_back_as_it_was() {
        for value in [
            0.0,
            1.0,
            -0.001,
            0.1,
            10.0 / 3.0,
            2.5e-9,
            1e18,
            0.000_305_175_781_25,
            f64::MAX / 1e290,
        ] {
            let back = Rational::of_f64(value).map(Rational::to_f64);
            assert_eq!(back, Some(value));
        }
    }

    #[test]
    fn sums_products_and_what_both_are_multiples_of() {
        assert_eq!(of("0.5").add(of("0.25")), Some(of("0.75")));
        assert_eq!(of("0.5").mul(of("-4")), Some(of("-2")));
        assert_eq!(of("1").div(of("0")), None);
        assert_eq!(of("0.006").common(of("0.004")), Some(of("0.002")));
        assert_eq!((of("-2.5").floor(), of("-2.5").ceil()), (-3, -2));
        assert_eq!(
            (of("2.5").floor(), of("2.5").ceil(), of("3").ceil()),
            (2, 3, 3)
        );
        assert_eq!(Rational::whole(i128::MAX).mul(of("2")), None);
    }
}
