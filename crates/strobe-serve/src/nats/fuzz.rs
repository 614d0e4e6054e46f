// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of rubbish: whoever may publish to the bus can send anything.

use std::sync::Arc;
use std::sync::mpsc::channel as pipe;
use std::time::Duration;

use async_nats::{HeaderMap, HeaderValue};
use strobe::block::Block;
use strobe::channel::Type;
use strobe::samples::{channel, info, totals};
use strobe::source::RowSource as _;

use super::message::{self, Head};
use super::message_rows::MessageRows;
use super::order::Order;
use strobe::fuzz::{bytes, texts};

#[test]
fn rows_and_accounts_of_rubbish_are_read_or_refused() {
    let info = info(vec![channel("a.x", Type::U64), channel("a.y", Type::F64)]);
    let words = (0..20).flat_map(|row| [row, row, 2_000 + row, 0, row, 0]);
    let words = Arc::new(words.collect());
    let block = Block::new(Arc::new(info.clone()), words, 0..20, (0, 0), &mut None);
    let rows = message::rows(&block).expect("rows");
    let account = message::account(&info, Some(&totals(20))).expect("an account");
    let head = Head::of(&block, 0);
    let mut is_end = false;
    bytes(&[&rows, &account], |bytes| {
        is_end = !is_end;
        let (sender, messages) = pipe();
        let head = Head {
            end: is_end,
            ..head
        };
        sender.send((head, bytes.to_vec())).expect("a message");
        drop(sender);
        let mut incoming = MessageRows::new("a".to_owned(), info.clone(), 0, messages);
        // As many rows as there are bytes for them, whatever the message says.
        match incoming.next(Duration::MAX) {
            Ok(block) => block.is_none_or(|block| block.words().len() * 8 <= bytes.len()),
            Err(_) => false,
        }
    });
}

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
