// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages in the order of their rows, each row once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::message::Head;

/// How long rows wait for those before them, until these are lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Brings messages into the order of their rows: the bus gives one again that was not acknowledged, and then it comes
/// after those that follow it.
pub struct Order<T> {
    /// The row that comes next.
    next: u64,
    waiting: BTreeMap<(u64, bool), (Head, T)>,
    since: Instant,
}

impl<T> Order<T> {
    /// From this row on.
    pub fn new(next: u64) -> Self {
        Order {
            next,
            waiting: BTreeMap::new(),
            since: Instant::now(),
        }
    }

    /// Takes a message. What has nothing new is given back.
    pub fn take(&mut self, head: Head, message: T) -> Option<(Head, T)> {
        if head.next <= self.next && !head.end {
            return Some((head, message));
        }
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        let key = (head.begin(), head.end);
        match self.waiting.get(&key) {
            // Sent again by who did not know that it was kept, perhaps with other rows.
            Some((known, _)) if known.next >= head.next => Some((head, message)),
            _ => self.waiting.insert(key, (head, message)),
        }
    }

    /// The next message, if it is there.
    pub fn next(&mut self) -> Option<(Head, T)> {
        let (key, (head, _)) = self.waiting.first_key_value()?;
        let is_next = head.begin() <= self.next;
        if !is_next && self.since.elapsed() < PATIENCE {
            return None;
        }
        let key = *key;
        self.since = Instant::now();
        let (head, message) = self.waiting.remove(&key)?;
        self.next = self.next.max(head.next);
        Some((head, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first: u64, next: u64, lost: u64) -> Head {
        Head {
            first,
            next,
            lost,
            ..Head::default()
        }
    }

    #[test]
    fn messages_come_in_the_order_of_their_rows_and_none_twice() {
        let mut order = Order::new(0);
        assert_eq!(order.take(head(10, 20, 0), "b"), None);
        assert!(order.next().is_none(), "rows 0 to 9 may still come");
        assert_eq!(
            order.take(head(10, 15, 0), "b again"),
            Some((head(10, 15, 0), "b again"))
        );
        assert_eq!(order.take(head(3, 10, 3), "a"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("a"));
        assert_eq!(
            order.take(head(3, 10, 3), "a again"),
            Some((head(3, 10, 3), "a again"))
        );
        let end = Head {
            end: true,
            ..head(20, 20, 0)
        };
        assert_eq!(order.take(end, "end"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("b"));
        assert_eq!(order.take(head(18, 25, 0), "c, in part"), None);
        assert_eq!(order.next().map(|(_, message)| message), Some("c, in part"));
        assert_eq!(order.next().map(|(_, message)| message), Some("end"));
    }
}
