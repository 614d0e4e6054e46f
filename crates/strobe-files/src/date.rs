// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dates, as people and other programs read them.

/// A time in UTC: `2026-01-01T00:00:00.000000000Z`.
pub fn iso8601(realtime_ns: u64) -> String {
    let (seconds, ns) = (realtime_ns / 1_000_000_000, realtime_ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin with March have their leap day at the end; an era of
    // 400 of them has 146097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(
            iso8601(951_827_696_000_000_001),
            "2000-02-29T12:34:56.000000001Z"
        );
        assert_eq!(
            iso8601(1_767_225_599_000_000_000),
            "2025-12-31T23:59:59.000000000Z"
        );
        assert_eq!(
            iso8601(1_767_225_600_000_000_000),
            "2026-01-01T00:00:00.000000000Z"
        );
        assert_eq!(
            iso8601(4_107_542_400_000_000_000),
            "2100-03-01T00:00:00.000000000Z"
        );
        assert!(iso8601(u64::MAX).starts_with("2554-07-21T"));
    }
}
