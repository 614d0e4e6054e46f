// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels of an instrument, and rubbish for what reads its board file and its answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use strobe_board::Board;
use strobe_board::instrument::{Binary, Command, Language, Number, Order, Pattern};

use crate::channel::Channel;
use crate::engine::user::User;
use crate::event::EventSpec;
use crate::fuzz::{bytes, texts};
use crate::once;
use crate::plan::{Plan, Step};

const BOARD: &str = r#"
[board]
name = "psu"
[transport]
kind = "tcp"
address = "127.0.0.1:PORT"
timeout = 5
[channel.count]
query = "COUNT?"
type = "integer"
[channel.first]
query = "BOTH?"
answer = "{},{*}"
type = "integer"
[channel.second]
query = "BOTH?"
answer = "{*},{}"
type = "integer"
[channel.level]
query = "LEVEL?"
type = "integer"
[channel.latest]
query = "COUNT?"
mode = "latest"
every = 60
type = "integer"
[output.level]
send = "LEVEL {}"
"#;

const PLC: &str = r#"
[board]
name = "plc"
[transport]
kind = "modbus-rtu"
device = "/dev/ttyUSB0"
unit = 3
[channel.x]
query = "holding 10"
binary = "i32"
words = "little"
bits = "11:4"
[open]
send = ["coil 3 = 1"]
"#;

/// An instrument that counts what it is asked, and remembers its level.
fn peer() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let (mut asked, mut level) = (0, 0);
            for line in BufReader::new(stream.try_clone().expect("a stream")).lines() {
                let Ok(line) = line else { break };
                asked += 1;
                match line.split_once(' ') {
                    Some((_, value)) => level = value.parse().expect("a level"),
                    None => {
                        let answer = match line.as_str() {
                            "BOTH?" => format!("{asked},{}", 100 + asked),
                            "LEVEL?" => format!("{level}"),
                            _ => format!("{asked}"),
                        };
                        stream
                            .write_all(format!("{answer}\n").as_bytes())
                            .expect("to answer");
                    }
                }
            }
        }
    });
    port
}

fn engine() -> User {
    let text = BOARD.replace("PORT", &peer().to_string());
    let board = Board::from_toml("test.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    User::default().with_board(board)
}

/// The words of the first row of these steps.
fn row(engine: &User, steps: &[(&str, Option<u64>)]) -> Vec<u64> {
    let step = |(name, value): &(&str, Option<u64>)| match value {
        Some(value) => Step::Write {
            output: format!("psu.{name}"),
            value: *value,
        },
        None => Step::Read(format!("psu.{name}")),
    };
    let plan = once::plan(steps.iter().map(step).collect());
    let run = engine.create(&plan).unwrap_or_else(|why| panic!("{why}"));
    let row = once::once(&run).unwrap_or_else(|why| panic!("{why}"));
    assert!(
        row.outputs.iter().all(|(_, written)| *written),
        "{:?}",
        row.outputs
    );
    let word = |(channel, word): (Channel, Option<u64>)| word.expect(&channel.name);
    row.values.into_iter().map(word).collect()
}

#[test]
fn channels_of_one_answer_are_asked_for_once_before_the_first_of_them() {
    let engine = engine();
    let read = |name| (name, None);
    // The counters come first, and the questions have been asked all the same.
    let words = row(&engine, &[read("second"), read("count"), read("first")]);
    assert_eq!(words, [101, 2, 1]);
    // A channel that is there twice is asked for twice.
    let words = row(&engine, &[read("count"), read("count")]);
    assert_eq!(words, [1, 2]);
}

#[test]
fn what_follows_a_write_is_asked_after_it() {
    let engine = engine();
    let steps = [
        ("level", None),
        ("level", Some(5)),
        ("level", None),
        ("level", Some(-7_i64 as u64)),
        ("level", None),
        ("answers", None),
    ];
    assert_eq!(row(&engine, &steps), [0, 5, -7_i64 as u64, 5]);
}

#[test]
fn the_first_row_has_a_latest_answer_and_its_age() {
    let words = row(
        &engine(),
        &[("latest", None), ("latest.age", None), ("questions", None)],
    );
    let [latest, age, questions] = words[..] else {
        panic!("{words:?}");
    };
    assert_eq!((latest, questions), (1, 1));
    assert!(age > 0);
}

#[test]
fn every_channel_that_is_listed_can_be_had() {
    let engine = engine();
    let catalogue = engine.catalogue();
    let names = catalogue.channels.iter().map(|channel| &channel.name);
    let names: Vec<String> = names
        .filter(|name| name.starts_with("psu."))
        .cloned()
        .collect();
    assert!(
        names.contains(&"psu.latest.age".to_owned()) && names.len() == 16,
        "{names:?}"
    );
    let plan = Plan {
        steps: names.into_iter().map(Step::Read).collect(),
        ..Plan::new(EventSpec::soft())
    };
    let dry = engine.dry_run(&plan).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(dry.channels.len(), 16);
    engine.create(&plan).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn rubbish_in_patterns_and_answers_is_refused_or_read() {
    let patterns = ["{} V", "{*},{},{*}", "\"A\" {x}", "{{{}}}", "ACME{*}"];
    texts(&patterns, |text| Pattern::new(text, false).is_ok());
    let answers: [&[u8]; 6] = [
        b"1.5 V",
        b"-1.25E-03",
        b"9.9E37",
        b"a,2,b",
        b"\"A\" #H1f",
        b"{7}",
    ];
    let read: Vec<Pattern> = patterns
        .iter()
        .flat_map(|text| [true, false].map(|whole| Pattern::new(text, whole).expect(text)))
        .collect();
    bytes(&answers, |answer| {
        Pattern::leading(answer);
        let binary = |(_, number): (&str, Number)| Binary::new(number, Order::LittleOfPairs, 1);
        let binaries = Number::NAMES.map(binary);
        let read_one = binaries
            .iter()
            .filter(|binary| binary.read(answer).is_some())
            .count();
        let matched = read
            .iter()
            .filter(|pattern| pattern.read(answer).is_some())
            .count();
        read_one + matched > 13
    });
}

#[test]
fn rubbish_in_commands_and_board_files_is_refused_or_understood() {
    for (language, right) in [
        (Language::Text, &["VOLT {}", "*IDN?", "MEAS:VOLT? (@1)"]),
        (Language::Bytes, &["00 0f", "01 {} ff", "0xa0"]),
        (
            Language::Modbus,
            &["holding 100", "coil 3 = {}", "input 0x10"],
        ),
    ] {
        let value = Some(Binary::new(Number::Unsigned(2), Order::Big, 0));
        texts(right, |text| {
            let command = Command::new(text, language, value);
            command.is_ok_and(|command| command.bytes_for(1.0).is_some())
        });
    }
    let supply = BOARD.replace("PORT", "5025");
    texts(&[&supply, PLC], |text| {
        Board::from_toml("rubbish.toml", text).is_ok()
    });
}
