// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of rubbish: whoever may publish to the bus can send anything.

use async_nats::{HeaderMap, HeaderValue};

use super::message::Head;
use super::order::Order;
use crate::fuzz::texts;

#[test]
fn headers_of_rubbish_are_those_of_a_message_or_of_none() {
    let right = [
        "10 20 3 0 1 0",
        "0 18446744073709551615 0 7 0 0",
        "18446744073709551615 18446744073709551615 1 0 0 9",
    ];
    let names = ["first", "next", "lost", "missed", "end", "begun"];
    let mut order = Order::new(0);
    texts(&right, |text| {
        let mut headers = HeaderMap::new();
        for (name, value) in names.iter().zip(text.split(' ')) {
            if let Ok(value) = value.parse::<HeaderValue>() {
                headers.insert(format!("strobe-{name}"), value);
            }
        }
        let Some(head) = Head::read(&headers) else {
            return false;
        };
        assert!(head.begun <= head.first && head.begin() <= head.first);
        assert!(head.first <= head.next);
        order.take(head, ());
        while order.next().is_some() {}
        true
    });
}
