// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI ids as board files write them: `1234:11e8`, as lspci prints them.

/// Two ids of four hexadecimal digits each. `ffff` is no vendor's or device's: absent hardware reads so.
pub(super) fn ids(text: &str) -> Option<(u16, u16)> {
    let (left, right) = text.split_once(':')?;
    Some((id(left)?, id(right)?))
}

fn id(text: &str) -> Option<u16> {
    if text.len() != 4 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(text, 16)
        .ok()
        .filter(|id| *id != 0xffff)
}

#[cfg(test)]
mod tests {
    use super::ids;

    #[test]
    fn ids_are_four_hexadecimal_digits_each() {
        assert_eq!(ids("1234:11E8"), Some((0x1234, 0x11e8)));
        for wrong in [
            "1234",
            "1234:11e",
            "0x1234:0x11e8",
            "1234:+1e8",
            "1234:11e8:1",
            "ffff:0001",
            "1234:ffff",
            "",
        ] {
            assert_eq!(ids(wrong), None, "{wrong}");
        }
    }
}
