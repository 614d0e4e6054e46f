// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers in bytes: where they are in an answer, and how they are to be understood; and the same for what is sent.

use crate::kind::Kind;

/// A number in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binary {
    /// What it is.
    pub number: Number,
    /// Which byte comes first.
    pub order: Order,
    /// The first of its bytes; of bits of Modbus, which.
    pub at: usize,
    /// Lowest bit, and how many, if not all.
    pub field: Option<(u8, u8)>,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A natural number of so many bytes.
    Unsigned(u8),
    /// Two's complement of so many bytes.
    Signed(u8),
    /// IEEE 754 of 4 or 8 bytes.
    Float(u8),
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The most significant one.
    Big,
    /// The least significant one.
    Little,
    /// The least significant pair, and of each pair the most significant one: registers of Modbus in the other order.
    LittleOfPairs,
}

impl Number {
    /// The names of all of them.
    pub const NAMES: [(&'static str, Number); 13] = [
        ("u8", Number::Unsigned(1)),
        ("i8", Number::Signed(1)),
        ("u16", Number::Unsigned(2)),
        ("i16", Number::Signed(2)),
        ("u24", Number::Unsigned(3)),
        ("i24", Number::Signed(3)),
        ("u32", Number::Unsigned(4)),
        ("i32", Number::Signed(4)),
        ("u48", Number::Unsigned(6)),
        ("u64", Number::Unsigned(8)),
        ("i64", Number::Signed(8)),
        ("f32", Number::Float(4)),
        ("f64", Number::Float(8)),
    ];

    /// Its bytes.
    pub fn size(self) -> usize {
        let (Number::Unsigned(size) | Number::Signed(size) | Number::Float(size)) = self;
        size.into()
    }

    /// Its bytes for a value, the most significant one first; `None` if it has no room for it.
    fn bytes(self, value: f64) -> Option<[u8; 8]> {
        let bits = 8 * self.size() as u32;
        let whole = value.round();
        let word = match self {
            Number::Float(4) => u64::from((value as f32).to_bits()),
            Number::Float(_) => value.to_bits(),
            Number::Unsigned(_) => {
                let end = 2_f64.powi(bits as i32);
                (0.0..end).contains(&whole).then_some(whole as u64)?
            }
            Number::Signed(_) => {
                let end = 2_f64.powi(bits as i32 - 1);
                (-end..end)
                    .contains(&whole)
                    .then_some(whole as i64 as u64)?
            }
        };
        Some((word << (64 - bits)).to_be_bytes())
    }
}

impl Order {
    /// Brings bytes into this order from that of the most significant one first, or back.
    fn turn(self, bytes: &mut [u8]) {
        match self {
            Order::Big => {}
            Order::Little => bytes.reverse(),
            Order::LittleOfPairs => {
                bytes.reverse();
                bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
            }
        }
    }
}

impl Binary {
    /// A whole number from this byte on.
    pub fn new(number: Number, order: Order, at: usize) -> Binary {
        Binary {
            number,
            order,
            at,
            field: None,
        }
    }

    /// The first byte that is not of it any more.
    pub fn end(&self) -> usize {
        self.at + self.number.size()
    }

    /// How its word is to be understood.
    pub fn kind(&self) -> Kind {
        match self.number {
            Number::Unsigned(_) => Kind::Unsigned,
            Number::Signed(_) => Kind::Signed,
            Number::Float(_) => Kind::Float,
        }
    }

    /// Bits of its word.
    pub fn bits(&self) -> u8 {
        match (self.number, self.field) {
            (Number::Float(_), _) => 64,
            (_, Some((_, bits))) => bits,
            (number, None) => 8 * number.size() as u8,
        }
    }

    /// The word of these bytes; `None` if there are too few.
    pub fn read(&self, answer: &[u8]) -> Option<u64> {
        let size = self.number.size();
        let mut bytes = [0; 8];
        let place = bytes.get_mut(8 - size..)?;
        place.copy_from_slice(answer.get(self.at..self.at.checked_add(size)?)?);
        self.order.turn(place);
        let word = u64::from_be_bytes(bytes);
        let (shift, bits) = self.field.unwrap_or((0, 8 * size as u8));
        let unused = 64 - u32::from(bits.clamp(1, 64));
        let field = (word >> shift) << unused;
        Some(match self.number {
            Number::Float(4) => f64::from(f32::from_bits(word as u32)).to_bits(),
            Number::Float(_) => word,
            Number::Unsigned(_) => field >> unused,
            Number::Signed(_) => (field as i64 >> unused) as u64,
        })
    }

    /// Appends the bytes of a value; `None` if it has no room for it.
    pub fn write(&self, value: f64, bytes: &mut Vec<u8>) -> Option<()> {
        let all = self.number.bytes(value)?;
        let start = bytes.len();
        bytes.extend_from_slice(all.get(..self.number.size())?);
        self.order.turn(bytes.get_mut(start..)?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(name: &str, order: Order) -> Binary {
        let number = Number::NAMES.iter().find(|(known, _)| *known == name);
        Binary {
            number: number.expect(name).1,
            order,
            at: 1,
            field: None,
        }
    }

    #[test]
    fn a_number_is_read_in_its_order_and_with_its_sign() {
        let answer = [0xee, 0xff, 0xfe, 0x01, 0x02];
        for (name, order, value) in [
            ("u8", Order::Big, 0xff),
            ("i8", Order::Big, -1),
            ("u16", Order::Big, 0xfffe),
            ("i16", Order::Big, -2),
            ("i16", Order::Little, -257),
            ("u24", Order::Big, 0xfffe01),
            ("u32", Order::Big, 0xfffe_0102),
            ("u32", Order::Little, 0x0201_feff),
            ("u32", Order::LittleOfPairs, 0x0102_fffe),
        ] {
            let read = binary(name, order).read(&answer).map(|word| word as i64);
            assert_eq!(read, Some(value), "{name} {order:?}");
        }
        assert_eq!(binary("u64", Order::Big).read(&answer), None);
    }

    #[test]
    fn a_field_is_cut_from_it_and_keeps_its_sign() {
        let mut field = binary("i16", Order::Big);
        field.field = Some((4, 12));
        assert_eq!(field.read(&[0, 0xff, 0xe7]), Some(-2_i64 as u64));
        assert_eq!((field.bits(), field.kind()), (12, Kind::Signed));
        field.number = Number::Unsigned(2);
        assert_eq!(field.read(&[0, 0xff, 0xe7]), Some(0xffe));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for order in [Order::Big, Order::Little, Order::LittleOfPairs] {
            for (name, value) in [
                ("u16", 65535.0),
                ("i16", -32768.0),
                ("u32", 4_294_967_295.0),
                ("f32", 1.5),
                ("f64", -0.1),
                ("i64", -5.0),
            ] {
                let binary = binary(name, order);
                let mut bytes = vec![0];
                binary.write(value, &mut bytes).expect(name);
                let word = binary.read(&bytes).expect(name);
                let read = match binary.kind() {
                    Kind::Float => f64::from_bits(word),
                    _ => word as i64 as f64,
                };
                assert_eq!(read, value, "{name} {order:?}");
            }
        }
        for (name, value) in [
            ("u8", 256.0),
            ("u8", -1.0),
            ("i8", 128.0),
            ("u16", f64::NAN),
        ] {
            let binary = binary(name, Order::Big);
            assert_eq!(binary.write(value, &mut Vec::new()), None, "{name} {value}");
        }
    }
}
