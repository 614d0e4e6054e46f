// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a word may be: the least and the greatest number. This is the proof against overflow.

/// From `lo` to `hi`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub lo: i128,
    pub hi: i128,
}

const S64: Range = Range {
    lo: i64::MIN as i128,
    hi: i64::MAX as i128,
};
const U64: Range = Range {
    lo: 0,
    hi: u64::MAX as i128,
};

impl Range {
    pub const SIGNED: Range = S64;
    pub const ZERO: Range = Range::only(0);

    pub const fn only(number: i128) -> Range {
        Range {
            lo: number,
            hi: number,
        }
    }

    pub fn new(a: i128, b: i128) -> Range {
        Range {
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    /// The numbers of so many bits.
    pub fn of_bits(bits: u32, signed: bool) -> Range {
        let bits = bits.clamp(1, 64);
        match signed {
            true => Range::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => Range::new(0, (1 << bits) - 1),
        }
    }

    pub fn is_signed(self) -> bool {
        self.within(S64)
    }

    pub fn is_unsigned(self) -> bool {
        self.within(U64)
    }

    /// Whether a word holds each of them, with or without a sign.
    pub fn fits(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    pub fn has(self, number: i128) -> bool {
        self.lo <= number && number <= self.hi
    }

    /// The greatest distance from 0.
    pub fn magnitude(self) -> i128 {
        self.lo.saturating_abs().max(self.hi.saturating_abs())
    }

    /// Bits of a word with these numbers.
    pub fn bits(self) -> u32 {
        let bits = |number: i128| 128 - number.leading_zeros();
        match self.lo < 0 {
            true => 1 + bits(self.hi.max(0)).max(bits(!self.lo)),
            false => bits(self.hi).max(1),
        }
    }

    pub fn add(self, other: Range) -> Range {
        Range {
            lo: self.lo.saturating_add(other.lo),
            hi: self.hi.saturating_add(other.hi),
        }
    }

    pub fn sub(self, other: Range) -> Range {
        self.add(other.times(-1))
    }

    pub fn times(self, factor: i128) -> Range {
        Range::new(
            self.lo.saturating_mul(factor),
            self.hi.saturating_mul(factor),
        )
    }

    pub fn mul(self, other: Range) -> Range {
        self.times(other.lo).with(self.times(other.hi))
    }

    /// Of quotients cut off towards 0; the divisor is not 0.
    pub fn div(self, other: Range) -> Range {
        let ends = [other.lo, other.hi, -1, 1];
        let ends = ends.into_iter().filter(|end| *end != 0 && other.has(*end));
        let by = |end| Range::new(self.lo / end, self.hi / end);
        let all = ends.map(by).reduce(Range::with).unwrap_or(self);
        // Large divisors give 0.
        if other.magnitude() > 1 {
            all.with(Range::only((all.lo.max(0)).min(all.hi)))
        } else {
            all
        }
    }

    /// The numbers of both, and those between.
    pub fn with(self, other: Range) -> Range {
        Range {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    pub fn min(self, other: Range) -> Range {
        Range::new(self.lo.min(other.lo), self.hi.min(other.hi))
    }

    pub fn max(self, other: Range) -> Range {
        Range::new(self.lo.max(other.lo), self.hi.max(other.hi))
    }

    pub fn and(self, other: Range) -> Range {
        match (self.lo >= 0, other.lo >= 0) {
            (true, true) => Range::new(0, self.hi.min(other.hi)),
            (true, false) => Range::new(0, self.hi),
            (false, true) => Range::new(0, other.hi),
            (false, false) => self.wide(other),
        }
    }

    /// Of `|` and `^`.
    pub fn or(self, other: Range) -> Range {
        self.wide(other)
    }

    /// All numbers of as many bits as the longer of both has.
    fn wide(self, other: Range) -> Range {
        let signed = self.lo < 0 || other.lo < 0;
        let bits = |range: Range| range.bits() + u32::from(signed && range.lo >= 0);
        let bits = bits(self).max(bits(other)).min(100);
        match signed {
            true => Range::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => Range::new(0, (1 << bits) - 1),
        }
    }

    fn within(self, other: Range) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All small ranges, and for each two all numbers of them: none is left out.
    #[test]
    fn no_result_lies_outside_of_its_range() {
        let ranges: Vec<Range> = (-5..=5)
            .flat_map(|lo| (lo..=5).map(move |hi| Range { lo, hi }))
            .collect();
        for a in &ranges {
            for b in &ranges {
                for x in a.lo..=a.hi {
                    for y in b.lo..=b.hi {
                        assert!(a.add(*b).has(x + y) && a.sub(*b).has(x - y));
                        assert!(a.mul(*b).has(x * y));
                        assert!(a.and(*b).has(x & y) && a.or(*b).has(x | y) && a.or(*b).has(x ^ y));
                        assert!(a.min(*b).has(x.min(y)) && a.max(*b).has(x.max(y)));
                        assert!(y == 0 || a.div(*b).has(x / y), "{a:?} {b:?} {x} {y}");
                    }
                }
            }
        }
    }

    #[test]
    fn bits_are_those_of_a_word() {
        let bits = |lo, hi| Range { lo, hi }.bits();
        assert_eq!((bits(0, 0), bits(0, 255), bits(0, 256)), (1, 8, 9));
        assert_eq!(
            (bits(-1, 0), bits(-128, 127), bits(-129, 0), bits(-1, 128)),
            (1, 8, 9, 9)
        );
        assert!(Range::of_bits(64, false).fits() && Range::of_bits(64, true).fits());
        assert!(!Range::new(-1, 1 << 63).fits());
    }
}
