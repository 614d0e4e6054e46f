// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers in texts and blocks, however they come, and rubbish instead of them.

use std::collections::VecDeque;
use std::io;

use strobe_board::Board;
use strobe_board::instrument::Language;

use super::*;

/// What comes, piece by piece; then nothing more.
struct Pieces {
    left: VecDeque<Vec<u8>>,
    are_messages: bool,
}

impl Stream for Pieces {
    fn read(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        let piece = match within {
            Duration::ZERO => None,
            _ => self.left.pop_front(),
        };
        let Some(mut piece) = piece else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        let size = piece.len().min(bytes.len());
        let rest = piece.split_off(size);
        bytes[..size].copy_from_slice(&piece);
        if !rest.is_empty() {
            self.left.push_front(rest);
        }
        Ok(size)
    }

    fn write(&mut self, bytes: &[u8], _: Duration) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn is_of_messages(&self) -> bool {
        self.are_messages
    }
}

/// Longest answer.
const LONGEST: usize = 64;

/// The answer that these pieces are.
fn answer(pieces: &[&[u8]], reply: Reply, are_messages: bool) -> Result<Vec<u8>, Fault> {
    let text = format!(
        "[board]\nname = \"x\"\n[transport]\nkind = \"usbtmc\"\ndevice = \"/dev/x\"\nend = \"\\r\\n\"\n\
         longest = {LONGEST}\n[channel.x]\nquery = \"X?\"\n"
    );
    let board = Board::from_toml("test.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let left = pieces.iter().filter(|piece| !piece.is_empty());
    let stream = Pieces {
        left: left.map(|piece| piece.to_vec()).collect(),
        are_messages,
    };
    let mut text = Text::new(Box::new(stream), &board.instrument.expect("an instrument"));
    let query = Command::new("X?", Language::Text, None).expect("a command");
    let mut answer = Vec::new();
    let until = Instant::now() + Duration::from_secs(60);
    let asked = text.ask(&query, reply, &mut answer, until);
    assert!(answer.len() <= LONGEST, "{} bytes", answer.len());
    asked.map(|()| answer).map_err(|trouble| trouble.fault)
}

#[test]
fn an_answer_is_the_same_in_whatever_pieces_it_comes() {
    for (whole, reply, right) in [
        (&b"1.5\r\n"[..], Reply::Text, Ok(&b"1.5"[..])),
        (b"1\r5\n\r\n", Reply::Text, Ok(b"1\r5\n")),
        (b"\r\n", Reply::Text, Ok(b"")),
        (b"#15\r\n\r\n#\r\n", Reply::Block, Ok(b"\r\n\r\n#")),
        (b"#10\r\n", Reply::Block, Ok(b"")),
        (b"ERR 5\r\n", Reply::Block, Err(Fault::Wrong)),
        (b"#0\r\n", Reply::Block, Err(Fault::Wrong)),
        (b"#13abcd\r\n", Reply::Block, Err(Fault::Wrong)),
        (b"1.5", Reply::Text, Err(Fault::Cut)),
        (b"#13ab", Reply::Block, Err(Fault::Cut)),
        (b"", Reply::Text, Err(Fault::Late)),
        (&[b'7'; LONGEST + 9], Reply::Text, Err(Fault::Long)),
        (b"#9999999999", Reply::Block, Err(Fault::Cut)),
    ] {
        for at in 0..=whole.len() {
            let (first, second) = whole.split_at(at);
            let found = answer(&[first, second], reply, false);
            assert_eq!(found, right.map(<[u8]>::to_vec), "{whole:?} at {at}");
        }
    }
}

#[test]
fn what_follows_an_answer_is_extra() {
    assert_eq!(
        answer(&[b"1\r\n1\r\n"], Reply::Text, false),
        Err(Fault::Extra)
    );
    assert_eq!(
        answer(&[b"#11a\r\n\n"], Reply::Block, false),
        Err(Fault::Extra)
    );
}

#[test]
fn a_message_needs_no_end() {
    assert_eq!(answer(&[b"1.5"], Reply::Text, true), Ok(b"1.5".to_vec()));
    assert_eq!(
        answer(&[b"1.5\r\n"], Reply::Text, true),
        Ok(b"1.5".to_vec())
    );
    assert_eq!(answer(&[b"#12ab"], Reply::Block, true), Ok(b"ab".to_vec()));
}

#[test]
fn rubbish_is_a_fault_or_an_answer_and_is_not_kept() {
    // The same numbers each time (xorshift).
    let mut state = 0x5eed_u64;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % end
    };
    let mut understood = 0;
    for _ in 0..20_000 {
        let letters = b"#0129\r\nx\0\xff";
        let mut piece = || -> Vec<u8> {
            (0..below(12))
                .map(|_| letters[below(letters.len())])
                .collect()
        };
        let pieces = [piece(), piece(), piece()];
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        for (reply, are_messages) in [
            (Reply::Text, false),
            (Reply::Block, false),
            (Reply::Block, true),
        ] {
            understood += u32::from(answer(&pieces, reply, are_messages).is_ok());
        }
    }
    assert!(understood > 200, "{understood}");
}

#[test]
fn the_size_of_a_block_is_read_as_it_comes() {
    assert_eq!(block(b""), Block::Part);
    assert_eq!(block(b"#"), Block::Part);
    assert_eq!(block(b"#2"), Block::Part);
    assert_eq!(block(b"#21"), Block::Part);
    assert_eq!(block(b"#212"), Block::Of { start: 4, size: 12 });
    assert_eq!(block(b"#10"), Block::Of { start: 3, size: 0 });
    assert_eq!(
        block(b"#9999999999"),
        Block::Of {
            start: 11,
            size: 999_999_999
        }
    );
    for not in [&b"1.5\n"[..], b"#0abc", b"#x", b"#2x", b"#21x"] {
        assert_eq!(block(not), Block::Not);
    }
}
