// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a value stands in a scan: `scan_elements/NAME_type`, such as `le:s12/16>>4`.

use std::fs;
use std::path::Path;

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) big_endian: bool,
    pub(super) signed: bool,
    /// Of the value.
    pub(super) bits: u32,
    /// Of its place.
    pub(super) storage: u32,
    pub(super) shift: u32,
    /// Its place among the others.
    pub(super) index: u32,
}

impl Format {
    /// That of a channel of a device.
    ///
    /// # Errors
    /// It is not one of a scan, or of a form that is not known.
    pub(super) fn of(device: &Path, part: &str) -> Result<Format, String> {
        let scan = device.join("scan_elements");
        let read = |end: &str| {
            let path = scan.join(format!("{part}_{end}"));
            fs::read_to_string(path).map(|text| text.trim_end().to_owned())
        };
        let there = || {
            format!(
                "its scans have no {part}; they have {}",
                names(device).join(", ")
            )
        };
        let text = read("type").map_err(|_| there())?;
        let index = read("index")
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(there)?;
        let format = parse(&text)
            .ok_or_else(|| format!("its format {text} is not supported; read another channel"))?;
        Ok(Format { index, ..format })
    }

    /// Bytes of its place.
    pub(super) fn bytes(&self) -> usize {
        self.storage as usize / 8
    }

    /// The value that stands in these bytes, its sign extended.
    #[inline]
    pub(super) fn value(&self, bytes: &[u8]) -> u64 {
        let add = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        let word = match self.big_endian {
            true => bytes.iter().fold(0, add),
            false => bytes.iter().rev().fold(0, add),
        };
        let unused = u64::BITS - self.bits;
        let top = (word >> self.shift) << unused;
        match self.signed {
            true => ((top as i64) >> unused) as u64,
            false => top >> unused,
        }
    }
}

/// The channels that a scan of a device can have; sorted.
pub(super) fn names(device: &Path) -> Vec<String> {
    let entries = fs::read_dir(device.join("scan_elements"))
        .into_iter()
        .flatten()
        .flatten();
    let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = files
        .filter_map(|file| file.strip_suffix("_en").map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// `le:s12/16>>4`; one that stands there several times (`X2`) is not known here.
fn parse(text: &str) -> Option<Format> {
    let (order, rest) = text.split_once(':')?;
    let (bits, rest) = rest.split_once('/')?;
    let (storage, shift) = rest.split_once(">>")?;
    let format = Format {
        big_endian: match order {
            "be" => true,
            "le" => false,
            _ => return None,
        },
        signed: match bits.get(..1)? {
            "s" => true,
            "u" => false,
            _ => return None,
        },
        bits: bits.get(1..)?.parse().ok()?,
        storage: storage.parse().ok()?,
        shift: shift.parse().ok()?,
        index: 0,
    };
    let fits = matches!(format.storage, 8 | 16 | 24 | 32 | 40 | 48 | 56 | 64)
        && format.bits >= 1
        && format
            .bits
            .checked_add(format.shift)
            .is_some_and(|end| end <= format.storage);
    fits.then_some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_cut_from_its_place_as_its_form_says() {
        for (text, bytes, value) in [
            ("le:s12/16>>4", &[0xf0, 0xff][..], -1_i64),
            ("le:s12/16>>4", &[0x10, 0x80], -2047),
            ("be:u12/16>>4", &[0x80, 0x1f], 0x801),
            ("be:s24/32>>8", &[0xff, 0xff, 0xfe, 0x77], -2),
            ("le:u8/8>>0", &[200], 200),
            ("le:s8/8>>0", &[200], -56),
            ("le:s64/64>>0", &[0xff; 8], -1),
            ("be:u32/32>>0", &[0, 0, 1, 2], 258),
            ("be:s24/24>>0", &[0x80, 0, 0], -8_388_608),
        ] {
            let format = parse(text).expect(text);
            assert_eq!(format.bytes(), bytes.len(), "{text}");
            assert_eq!(format.value(bytes) as i64, value, "{text}");
        }
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for text in [
            "",
            "le",
            "le:s12",
            "le:s12/16",
            "xe:s12/16>>4",
            "le:f32/32>>0",
            "le:s12/16X2>>4",
            "le:s13/16>>4",
            "le:s0/16>>0",
            "le:s12/17>>0",
            "le:s64/64>>1",
            "le:s-1/16>>0",
            "le:s4294967295/16>>4294967295",
            "le:é/8>>0",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
