// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of co-processors: what the firmware sends, what the host makes of it, and of what is damaged.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use strobe_board::frame::{BadSize, Command, Counters, Decoder, FRAME_MIN, HEADER_SIZE, Refusal};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines of a file of tests/frames that are not comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits = match hex {
        "-" => "",
        digits => digits,
    };
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).unwrap_or_else(|_| panic!("not hexadecimal: {hex}"))
        })
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes it");
        text
    })
}

/// A decoder whose next stream is this one, and started.
fn started(frame_bytes: usize, stream: u8) -> Decoder {
    let decoder = Decoder::new(frame_bytes).expect("a good size");
    let mut decoder = decoder.after_stream(stream.wrapping_sub(1));
    decoder.start(0);
    decoder
}

/// A message of frames, and in each payload its sequence.
fn message(frame_bytes: usize, stream: u8, sequences: &[u32]) -> Vec<u8> {
    let mut message = b"SF\x01\x01".to_vec();
    message.push(sequences.len() as u8);
    message.push(stream);
    message.extend((frame_bytes as u16).to_le_bytes());
    for sequence in sequences {
        message.extend(sequence.to_le_bytes());
        message.extend([0; 12]);
        for _ in (FRAME_MIN..frame_bytes).step_by(8) {
            message.extend(payload(*sequence));
        }
    }
    message
}

fn payload(sequence: u32) -> [u8; 8] {
    (u64::from(sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

/// tests/frames/frames.txt is what firmware/strobe_frames.c sends; tests/firmware/run makes it.
#[test]
fn what_the_firmware_sends_is_decoded_bit_for_bit() {
    let text = read("tests/frames/frames.txt");
    let (mut bytes, mut decoder) = (0, started(16, 0));
    let (mut cases, mut rows, mut missed) = (0, 0, 0);
    let mut found: Vec<String> = Vec::new();
    for (number, line) in lines(&text).enumerate() {
        let (word, rest) = line.split_once(' ').expect("two words");
        match word {
            "case" => {
                assert!(found.is_empty(), "left over: {found:?}");
                rows += decoder.counters().rows;
                missed += decoder.counters().missed;
                cases += 1;
            }
            "bytes" => bytes = rest.parse().expect("a number"),
            "stream" => decoder = started(bytes, rest.parse().expect("a number")),
            "message" => {
                assert!(found.is_empty(), "left over: {found:?}");
                let message = from_hex(rest);
                let frames = decoder.feed(&message, number as u64).expect("it is good");
                found = frames
                    .map(|frame| {
                        let frame = frame.expect("it is good");
                        assert_eq!(frame.arrival, number as u64);
                        let payload = to_hex(frame.payload());
                        format!(
                            "{} {} {} {:016x} {}",
                            frame.missed_before,
                            frame.sequence,
                            frame.status,
                            frame.time,
                            if payload.is_empty() { "-" } else { &payload }
                        )
                    })
                    .collect();
                // The last first, to be popped.
                found.reverse();
            }
            "frame" => assert_eq!(found.pop().as_deref(), Some(rest), "of frames.txt"),
            other => panic!("frames.txt: {other}?"),
        }
    }
    assert!(found.is_empty(), "left over: {found:?}");
    assert!(
        cases >= 9 && rows >= 50 && missed >= 9,
        "{cases} cases, {rows} rows, {missed} missed"
    );
}

/// tests/frames/commands.txt is what the firmware understands; tests/firmware/test.c reads it.
#[test]
fn the_host_sends_what_the_firmware_understands() {
    let text = read("tests/frames/commands.txt");
    let mut kinds = Vec::new();
    for line in lines(&text) {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, stream, credits, hex] = words[..] else {
            panic!("commands.txt: {line}")
        };
        let stream: u8 = stream.parse().expect("a number");
        let credits: u32 = credits.parse().expect("a number");
        let decoder = Decoder::new(16).expect("a good size");
        let mut decoder = decoder.after_stream(stream.wrapping_sub(1));
        let start = decoder.start(credits);
        let command = match kind {
            "start" => start,
            "credit" => decoder.credit(credits),
            _ => decoder.stop(),
        };
        assert_eq!(to_hex(&command.encode()), hex, "{command:?}");
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    assert_eq!(kinds, ["start", "credit", "stop"]);
}

#[test]
fn what_is_refused_is_counted_by_name_and_changes_nothing_else() {
    let text = read("tests/frames/refused.txt");
    let mut names: Vec<&str> = Vec::new();
    for line in lines(&text) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [counter, by, hex, name] = words[..] else {
            panic!("refused.txt: {line}")
        };
        assert!(!names.contains(&name), "{name}: twice");
        names.push(name);
        let mut decoder = started(32, 1);
        assert!(
            decoder
                .feed(&message(32, 1, &[5]), 0)
                .is_ok_and(|mut frames| frames.all(|frame| frame.is_ok()))
        );

        let mut expected = decoder.counters();
        expected.messages += 1;
        *match counter {
            "short" => &mut expected.short,
            "long" => &mut expected.long,
            "malformed" => &mut expected.malformed,
            _ => &mut expected.out_of_order,
        } += by.parse::<u64>().expect("a number");
        let refused = from_hex(hex);
        let refusal = match decoder.feed(&refused, 0) {
            Err(refusal) => refusal,
            Ok(frames) => {
                let list: Result<Vec<_>, Refusal> = {
                    let all: Vec<_> = frames.collect();
                    assert!(all.iter().all(|frame| frame.is_err()), "{name}: a row");
                    all.into_iter().collect()
                };
                list.expect_err(name)
            }
        };
        let named = match refusal {
            Refusal::Short { .. } => "short",
            Refusal::Long { .. } => "long",
            Refusal::Malformed { .. } => "malformed",
            Refusal::OtherStream { .. } | Refusal::OutOfOrder { .. } => "out_of_order",
        };
        assert_eq!(named, counter, "{name}: {refusal}");
        assert_eq!(decoder.counters(), expected, "{name}");

        let good = message(32, 1, &[6]);
        let mut frames = decoder.feed(&good, 0).expect("it is good");
        let frame = frames.next().expect("one").expect("it is good");
        assert_eq!(frame.missed_before, 0, "{name}");
    }
    assert!(names.len() >= 30, "{} kinds", names.len());
}

/// Blocks of ```hex: a name before the bytes of each message, which may have several lines.
#[test]
fn the_example_of_the_document_is_right() {
    let text = read("docs/reference/frames.md");
    let mut messages: Vec<(&str, Vec<u8>)> = Vec::new();
    for block in text.split("```hex\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            let hex = match line.split_once(' ') {
                Some((who @ ("host" | "remote"), hex)) => {
                    messages.push((who, Vec::new()));
                    hex
                }
                _ => line,
            };
            let bytes = from_hex(&hex.replace(' ', ""));
            messages.last_mut().expect("a name first").1.extend(bytes);
        }
    }
    let mut decoder = started(32, 1);
    let sent = [
        Command::Start {
            stream: 1,
            credits: 64,
        },
        decoder.credit(64),
        decoder.stop(),
    ];
    let mut sent = sent.iter();
    for (who, message) in &messages {
        if *who == "host" {
            let command = sent.next().expect("three commands").encode();
            assert_eq!(to_hex(message), to_hex(&command));
            continue;
        }
        for frame in decoder.feed(message, 0).expect("it is good") {
            let frame = frame.expect("it is good");
            assert_eq!(frame.time, 1000 * (u64::from(frame.sequence) + 1));
            let first = 4 * frame.sequence as u8 + 1;
            assert_eq!(frame.payload()[..4], [first, 0, 0, 0]);
        }
    }
    assert_eq!(sent.next(), None);
    assert_eq!((decoder.counters().rows, decoder.counters().missed), (5, 3));
}

#[test]
fn a_size_that_no_frame_can_have_is_refused() {
    for bytes in [0, 8, 15, 17, 20, 484, 489, 496, 65552] {
        assert_eq!(Decoder::new(bytes).err(), Some(BadSize(bytes)));
    }
    assert!(Decoder::new(16).is_ok() && Decoder::new(488).is_ok());
    let error = BadSize(20).to_string();
    assert!(error.contains("20") && error.contains("multiple of 8"));
}

#[test]
fn frames_of_the_stream_before_are_no_gap_in_the_next() {
    let mut decoder = started(16, 255);
    let before = message(16, 255, &[0, 1, 2]);
    assert_eq!(decoder.feed(&before, 0).expect("it is good").count(), 3);
    let late = message(16, 255, &[7000, 7001]);
    assert_eq!(
        decoder.start(0),
        Command::Start {
            stream: 0,
            credits: 0
        }
    );
    assert_eq!(
        decoder.feed(&late, 0).err(),
        Some(Refusal::OtherStream {
            found: 255,
            wanted: 0
        })
    );
    let first = message(16, 0, &[0]);
    let mut frames = decoder.feed(&first, 0).expect("it is good");
    assert!(
        frames
            .next()
            .is_some_and(|frame| frame.is_ok_and(|frame| frame.missed_before == 0))
    );
    let counters = decoder.counters();
    assert_eq!(
        (counters.rows, counters.missed, counters.out_of_order),
        (4, 0, 2)
    );
}

#[test]
fn frames_that_nobody_takes_are_missed() {
    let mut decoder = started(16, 1);
    let first = message(16, 1, &[0, 1, 2, 3]);
    let mut frames = decoder.feed(&first, 0).expect("it is good");
    assert!(frames.next().is_some_and(|frame| frame.is_ok()));
    let next = message(16, 1, &[4]);
    let mut frames = decoder.feed(&next, 0).expect("it is good");
    let frame = frames.next().expect("one").expect("it is good");
    assert_eq!((frame.sequence, frame.missed_before), (4, 3));
    assert_eq!((decoder.counters().rows, decoder.counters().missed), (2, 3));
}

#[test]
fn a_refused_frame_leaves_those_beside_it_in_its_message() {
    let mut decoder = started(16, 1);
    let message = message(16, 1, &[0, 1, 1, 0, 4]);
    let frames = decoder.feed(&message, 0).expect("it is good");
    let good: Vec<bool> = frames.map(|frame| frame.is_ok()).collect();
    assert_eq!(good, [true, true, false, false, true]);
    let counters = decoder.counters();
    assert_eq!(
        (counters.rows, counters.missed, counters.out_of_order),
        (3, 2, 2)
    );
}

/// xorshift64*: the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

const FUZZ_BYTES: usize = 32;
/// Some of them are dropped. `STROBE_FUZZ` says how many there are; with fewer than 10000, not all that is asked for would happen.
fn fuzz_messages() -> u64 {
    let said = std::env::var("STROBE_FUZZ").ok();
    let messages = said.and_then(|said| said.parse().ok());
    messages.unwrap_or(110_000).max(10_000)
}

/// What must come of the messages, known without a look into them: samples have numbers that never wrap.
struct Oracle {
    decoder: Decoder,
    stream: u8,
    /// What must be counted.
    counters: Counters,
    /// The number that comes next.
    expected: u64,
}

impl Oracle {
    /// Feeds a message that must be refused as a whole.
    fn refused(&mut self, message: &[u8], name: impl FnOnce(&mut Counters) -> &mut u64, by: u64) {
        *name(&mut self.counters) += by;
        self.counters.messages += 1;
        assert!(self.decoder.feed(message, 0).is_err(), "{message:02x?}");
    }

    /// Feeds a message that is whole, of samples with these numbers.
    fn whole(&mut self, numbers: &[u64]) {
        let sequences: Vec<u32> = numbers.iter().map(|number| *number as u32).collect();
        let message = message(FUZZ_BYTES, self.stream, &sequences);
        self.counters.messages += 1;
        let mut frames = self.decoder.feed(&message, 0).expect("it is whole");
        for number in numbers {
            let frame = frames.next().expect("as many as were put in");
            if *number < self.expected {
                self.counters.out_of_order += 1;
                assert!(frame.is_err(), "{number} before {}", self.expected);
                continue;
            }
            let frame = frame.expect("it is new");
            let missed = number - self.expected;
            assert_eq!(
                (frame.sequence, u64::from(frame.missed_before)),
                (*number as u32, missed)
            );
            for word in frame.payload().chunks(8) {
                assert_eq!(word, payload(*number as u32));
            }
            self.counters.rows += 1;
            self.counters.missed += missed;
            self.expected = number + 1;
        }
        assert!(frames.next().is_none());
    }
}

#[test]
fn whatever_is_dropped_or_damaged_rows_and_missed_are_the_samples() {
    let seed = 0x5EED_0FF4_A3E5;
    println!("seed 0x{seed:x}");
    let mut dice = Dice(seed);
    let mut oracle = Oracle {
        decoder: started(FUZZ_BYTES, 1),
        stream: 1,
        counters: Counters::default(),
        expected: 0,
    };
    let mut sampled = 0;
    let mut held = vec![0];
    let mut checked = 0_u64;
    let messages = fuzz_messages();
    for round in 0..messages {
        // Twice a gap of nearly half of all numbers, so that they wrap on the way.
        if round == 1000 || round == 2000 {
            sampled += 0x7fff_0000;
        }
        // Some samples could not be sent.
        let mut numbers: Vec<u64> = Vec::new();
        for _ in 0..1 + dice.below(15) {
            sampled += u64::from(dice.below(8) == 0) * dice.below(50);
            numbers.push(sampled);
            sampled += 1;
        }
        let sequences: Vec<u32> = numbers.iter().map(|number| *number as u32).collect();
        let mut bytes = message(FUZZ_BYTES, oracle.stream, &sequences);
        let count = numbers.len() as u64;
        match dice.below(24) {
            0 => {}
            1 => {
                bytes.truncate(dice.below(bytes.len() as u64) as usize);
                oracle.refused(&bytes, |counters| &mut counters.short, 1);
            }
            2 => {
                bytes.resize(bytes.len() + 1 + dice.below(64) as usize, 0xa5);
                oracle.refused(&bytes, |counters| &mut counters.long, 1);
            }
            3 => damage_header(&mut oracle, &mut dice, &mut bytes, count),
            4 => {
                bytes.clear();
                bytes.resize_with(dice.below(497) as usize, || dice.below(256) as u8);
                match bytes.len() < HEADER_SIZE {
                    true => oracle.refused(&bytes, |counters| &mut counters.short, 1),
                    false => oracle.refused(&bytes, |counters| &mut counters.malformed, 1),
                }
            }
            5 => {
                oracle.whole(&numbers);
                oracle.whole(&numbers);
            }
            6 => held = numbers,
            7 => oracle.whole(&held),
            8 => {
                let (one, other) = (dice.below(count) as usize, dice.below(count) as usize);
                numbers.swap(one, other);
                oracle.whole(&numbers);
            }
            9 => {
                let one = dice.below(count) as usize;
                numbers[one] = numbers[one].saturating_sub(1 + dice.below(1000));
                oracle.whole(&numbers);
            }
            // Rarely: the good ones that it has skipped are out of order.
            10 if dice.below(16) == 0 => {
                let one = dice.below(count) as usize;
                numbers[one] += 1 + dice.below(1000);
                oracle.whole(&numbers);
            }
            _ => oracle.whole(&numbers),
        }
        assert_eq!(oracle.decoder.counters(), oracle.counters, "round {round}");
        // If the last frame of all has arrived, all are accounted for.
        if oracle.expected == sampled {
            let Counters { rows, missed, .. } = oracle.decoder.counters();
            assert_eq!(rows + missed, sampled, "round {round}");
            checked += 1;
        }
    }
    let counters = oracle.decoder.counters();
    println!("{counters:?}, {sampled} sampled, compared {checked} times");
    assert!(checked > messages / 3 && sampled > 1 << 32);
    assert!(counters.messages > messages / 11 * 10);
    for count in [
        counters.short,
        counters.long,
        counters.malformed,
        counters.out_of_order,
    ] {
        assert!(count > messages / 55, "{counters:?}");
    }
}

/// Flips a bit of the header; the field that it is of says what the message is then.
fn damage_header(oracle: &mut Oracle, dice: &mut Dice, bytes: &mut [u8], count: u64) {
    let bit = dice.below(64) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    let now = u64::from(bytes[4]);
    match bit / 8 {
        4 if now == 0 => oracle.refused(bytes, |counters| &mut counters.malformed, 1),
        4 if now < count => oracle.refused(bytes, |counters| &mut counters.long, 1),
        4 => oracle.refused(bytes, |counters| &mut counters.short, 1),
        5 => oracle.refused(bytes, |counters| &mut counters.out_of_order, count),
        _ => oracle.refused(bytes, |counters| &mut counters.malformed, 1),
    }
}
