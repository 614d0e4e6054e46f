// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rubbish for every parser: nothing panics, nothing grows, and what was right before is right after.

use strobe::catalogue::Catalogue;

use super::answer::Status;
use super::command::{Command, Parser, TABLE_WORDS};
use super::control::Session;
use super::line::{Line, Lines};
use super::options::Options;
use super::panel::Panel;
use super::table;

/// Inputs; `STROBE_FUZZ` asks for more.
fn inputs() -> u64 {
    let asked = std::env::var("STROBE_FUZZ").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

/// Numbers that are the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts.get(self.below(texts.len())).copied().unwrap_or("")
    }
}

const PARTS: [&str; 48] = [
    "*IDN",
    "*BLOCKS",
    "*CHANGES",
    "*CHANGES.",
    "*DESC.",
    "*ENUMS.",
    "*METADATA.",
    "*PCAP.ARM",
    "*CAPTURE",
    "*ECHO ",
    "PCAP",
    "SEQ1",
    "SEQ",
    "EVENT2",
    "SIM",
    "BITS",
    "ENABLE",
    "TABLE",
    "PERIOD",
    "COUNTER",
    "CAPTURE",
    "UNITS",
    "SCALE",
    "B",
    "[].",
    "TRIGGER",
    ".",
    ".",
    ".*",
    "?",
    "?",
    "=",
    "=",
    "<",
    "<<",
    "<B",
    "|",
    "Value",
    "Diff",
    "ONE",
    "1",
    "-1",
    "1e999",
    "18446744073709551616",
    "\u{1F980}",
    " ",
    "\0",
    "AAAA",
];

fn rubbish(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.below(8) {
        match random.below(12) {
            0 => text.push(random.next() as u8),
            1 => text.extend_from_slice(b"\n"),
            2 => text.extend((0..random.below(64)).map(|_| random.next() as u8)),
            _ => text.extend_from_slice(random.pick(&PARTS).as_bytes()),
        }
    }
    text.push(b'\n');
    text
}

fn catalogue() -> Catalogue {
    strobe::engine::user::User::default().catalogue()
}

#[test]
fn no_command_breaks_the_control_port() {
    let panel = Panel::new(&catalogue());
    let mut random = Random(1);
    let (mut lines, mut parser, mut session) =
        (Lines::default(), Parser::default(), Session::default());
    let count = panel.with(|values| values.list().len());
    for _ in 0..inputs() {
        lines.push(&rubbish(&mut random));
        while let Some(line) = lines.next_line() {
            let command = match line {
                Line::Text(text) => parser.line(&text),
                Line::Wrong(why) => parser.wrong(why),
            };
            if let Some(command) = command {
                let answer = session.answer(&panel, &Status::default(), command).text();
                assert!(answer.ends_with('\n'), "an answer is whole lines");
                assert!(answer.starts_with(['O', 'E', '!', '.']), "{answer}");
            }
        }
    }
    // A table that was begun swallows what follows up to a blank line.
    parser.line("");
    let answer = session.answer(&panel, &Status::default(), Command::Get("*IDN".to_owned()));
    assert!(answer.text().starts_with("OK =PandA SW: "));
    assert_eq!(
        panel.with(|values| values.list().len()),
        count,
        "values neither come nor go"
    );
    for name in ["SEQ1.TABLE", "SEQ2.TABLE"] {
        assert!(panel.with(|values| values.words(name).len()) <= TABLE_WORDS);
    }
}

#[test]
fn no_option_line_breaks_the_data_port() {
    const WORDS: [&str; 14] = [
        "XML",
        "FRAMED",
        "RAW",
        "SCALED",
        "ASCII",
        "FROM=",
        "FROM=18446744073709551615",
        "COLS=",
        "COLS=a,,b",
        "GAPS",
        "TIMES",
        "BARE",
        "\u{1F980}",
        "=",
    ];
    let mut random = Random(2);
    for _ in 0..inputs() {
        let mut line = String::new();
        for _ in 0..random.below(6) {
            line.push_str(random.pick(&WORDS));
            line.push_str(random.pick(&[" ", "", "\t"]));
        }
        if let Ok(options) = Options::read(&line) {
            assert!(options.columns.is_none_or(|columns| !columns.is_empty()));
        }
    }
}

#[test]
fn no_table_breaks_the_sequencer() {
    let mut random = Random(3);
    for _ in 0..inputs() {
        let words: Vec<u32> = (0..random.below(40))
            .map(|_| random.next() as u32)
            .collect();
        if let Ok(steps) = table::steps(&words) {
            assert_eq!(steps.len() * 4, words.len());
            for output in 0..8 {
                if let Some((period, rises)) = table::as_timer(&steps, output) {
                    assert!(period > 0 && rises > 0);
                }
            }
        }
    }
}
