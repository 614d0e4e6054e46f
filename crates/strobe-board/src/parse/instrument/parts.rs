// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables [channel.NAME] and [output.NAME] of an instrument.

use super::transport::{self, Said, seconds};
use crate::instrument::{
    Area, Binary, COUNTERS, Channel, Command, Cut, Language, Mode, Number, Order, Output, Pattern,
    Question, Reply,
};
use crate::resolve::{Labels, field, labels};
use crate::table::{Either, Table};
use crate::words::{NAME_MAX, name_at};

/// Bytes of an answer of a bus.
const BYTES_MAX: u64 = 4096;
/// Registers of one answer of Modbus.
const REGISTERS_MAX: u64 = 120;

/// The channels, and the questions that they are cut from.
pub(super) fn channels(
    root: &mut Table<'_>,
    object: impl Fn(&str) -> String,
    said: &Said,
) -> (Vec<Channel>, Vec<Question>) {
    let (mut channels, mut questions) = (Vec::new(), Vec::new());
    for (name, mut table) in root.tables("channel", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        if COUNTERS.iter().any(|(counter, _)| *counter == name) {
            table.fault("each instrument has a counter of this name; choose another name");
        }
        if let Some((labels, question, cut)) = channel(&mut table, said) {
            let Labels {
                description,
                unit,
                scale,
                offset,
            } = labels;
            let question = ask(&mut questions, question, channels.len());
            channels.push(Channel {
                name: name.into(),
                description,
                unit,
                scale,
                offset,
                question,
                cut,
            });
        }
        table.finish();
    }
    (channels, questions)
}

/// The question of one more channel: that which another channel has, if it has the same answer.
fn ask(questions: &mut Vec<Question>, question: Question, channel: usize) -> usize {
    let alike = |other: &&mut Question| {
        let same_reply = matches!(
            (other.reply, question.reply),
            (Reply::Text, Reply::Text)
                | (Reply::Block, Reply::Block)
                | (Reply::Bytes(_), Reply::Bytes(_))
        );
        let same_mode = matches!(
            (other.mode, question.mode),
            (Mode::Wait, Mode::Wait) | (Mode::Latest(_), Mode::Latest(_))
        );
        other.command == question.command && same_reply && same_mode
    };
    let number = questions.len();
    let Some(other) = questions.iter_mut().find(alike) else {
        questions.push(Question {
            channels: vec![channel],
            ..question
        });
        return number;
    };
    if let (Reply::Bytes(has), Reply::Bytes(wants)) = (other.reply, question.reply) {
        other.reply = Reply::Bytes(has.max(wants));
    }
    if let (Mode::Latest(has), Mode::Latest(wants)) = (other.mode, question.mode) {
        other.mode = Mode::Latest(has.min(wants));
    }
    other.timeout = other.timeout.max(question.timeout);
    other.channels.push(channel);
    let known = |q: &Question| q.channels.contains(&channel);
    questions.iter().position(known).unwrap_or(number)
}

fn channel(table: &mut Table<'_>, said: &Said) -> Option<(Labels, Question, Cut)> {
    let labels = labels(table);
    let timeout = seconds(table, "timeout", said.timeout.as_secs_f64());
    let latest = table.choice("mode", &[("wait", false), ("latest", true)]);
    let mode_wrong = latest.is_none() && table.has("mode");
    let latest = latest.unwrap_or(false);
    let every = seconds(table, "every", 1.0);
    if table.has("every") && !latest && !mode_wrong {
        table.fault("`every` is for channels that are asked periodically; add mode = \"latest\", or leave `every` out");
    }
    let language = said.kind.map(transport::Kind::language);
    let query = table.string("query");
    let example = match language {
        Some(Language::Bytes) => "query = \"00\", the bytes to send",
        Some(Language::Modbus) => "query = \"holding 100\", what to read",
        _ => "query = \"MEAS:VOLT?\", what to ask",
    };
    table.missing("query", example);
    let Some(language) = language else {
        // Whatever it will be, these are keys of some.
        for key in [
            "answer", "type", "block", "binary", "endian", "at", "bits", "words",
        ] {
            table.known(key);
        }
        return None;
    };
    let command = query.and_then(|(text, at)| command(table, "query", text, &at, language, None));
    let cut = match language {
        Language::Text => text(table),
        Language::Bytes => {
            bytes(table).map(|binary| (Reply::Bytes(binary.end()), Cut::Binary(binary)))
        }
        Language::Modbus => match &command {
            Some(Command::Modbus { area, .. }) => modbus(table, *area),
            _ => {
                for key in ["binary", "words", "at", "bits"] {
                    table.known(key);
                }
                None
            }
        },
    };
    let (reply, cut) = cut?;
    let mode = match latest {
        true => Mode::Latest(every),
        false => Mode::Wait,
    };
    let question = Question {
        command: command?,
        reply,
        timeout,
        mode,
        channels: Vec::new(),
    };
    Some((labels, question, cut))
}

/// A command in a key; what is wrong with it is noted.
pub(super) fn command(
    table: &Table<'_>,
    key: &str,
    text: &str,
    at: &std::ops::Range<usize>,
    language: Language,
    value: Option<Binary>,
) -> Option<Command> {
    match Command::new(text, language, value) {
        Ok(command) if key == "query" && !command.is_question() => {
            table.fault_at(
                at,
                "`query` reads and cannot write a value; leave out the value, or make it an [output.NAME]",
            );
            None
        }
        Ok(command) => Some(command),
        Err(error) => {
            table.fault_at(
                at,
                format!("`{key}` is \"{}\": {error}", text.escape_debug()),
            );
            None
        }
    }
}

/// The number of a text, or of a block of bytes.
fn text(table: &mut Table<'_>) -> Option<(Reply, Cut)> {
    let block = table.boolean("block").unwrap_or(false);
    if block {
        for key in ["answer", "type"] {
            table.forbid(
                key,
                "a block has bytes, not text; give its form with `binary`, or leave out `block`",
            );
        }
        return Some((Reply::Block, Cut::Binary(bytes(table)?)));
    }
    for key in ["binary", "endian", "at", "bits"] {
        table.forbid(
            key,
            "a text answer has no bytes to choose from; write `answer`, or add block = true",
        );
    }
    let whole = table
        .choice("type", &[("f64", false), ("integer", true)])
        .unwrap_or(false);
    let (text, at) = match table.string("answer") {
        Some(answer) => answer,
        None if table.has("answer") => return None,
        None => ("{}", table.at.clone()),
    };
    match Pattern::new(text, whole) {
        Ok(pattern) if pattern.has_number() => Some((Reply::Text, Cut::Text(pattern))),
        Ok(_) => {
            table.fault_at(&at, "`answer` has no place for the number; write {} there");
            None
        }
        Err(error) => {
            table.fault_at(
                &at,
                format!("`answer` is \"{}\": {error}", text.escape_debug()),
            );
            None
        }
    }
}

fn number(table: &mut Table<'_>) -> Option<Number> {
    table.choice("binary", &Number::NAMES)
}

/// A number in the bytes of an answer.
fn bytes(table: &mut Table<'_>) -> Option<Binary> {
    let number = number(table);
    table.missing("binary", "binary = \"u16\", or i16, u32, f32 and the like");
    let at = table.integer("at", 0..=BYTES_MAX - 8);
    let order = order(table, number);
    let field = bits(table, number);
    Some(Binary {
        number: number?,
        order: order?,
        at: at.map_or(0, |(at, _)| at as usize),
        field: field?,
    })
}

/// The order of a number's bytes, which has to be said if it has several.
fn order(table: &mut Table<'_>, number: Option<Number>) -> Option<Order> {
    let order = table.choice("endian", &[("big", Order::Big), ("little", Order::Little)]);
    match number {
        Some(number) if number.size() == 1 => {
            if table.has("endian") {
                table.fault("8 bits have no byte order; leave `endian` out");
            }
            Some(Order::Big)
        }
        Some(_) => {
            table.missing(
                "endian",
                "endian = \"big\" if the most significant byte comes first, else \"little\"",
            );
            order
        }
        None => order,
    }
}

/// Some bits of a whole number; `None` was noted.
fn bits(table: &mut Table<'_>, number: Option<Number>) -> Option<Option<(u8, u8)>> {
    let written = table.either("bits");
    let Some((written, at)) = written else {
        return (!table.has("bits")).then_some(None);
    };
    let has = match number? {
        Number::Float(_) => {
            table.fault_at(&at, "`bits` cannot choose from a float; leave it out");
            return None;
        }
        number => 8 * number.size() as u64,
    };
    match field(&written) {
        Some((high, low)) if high < has => Some(Some((low as u8, (high - low + 1) as u8))),
        Some((high, low)) => {
            table.fault_at(
                &at,
                format!(
                    "the number has bits 0 to {}, and {high}:{low} lies outside; correct `bits`",
                    has - 1
                ),
            );
            None
        }
        None => {
            let text = match written {
                Either::Number(bit) => bit.to_string(),
                Either::Text(text) => text.to_owned(),
            };
            table.fault_at(
                &at,
                format!(
                    "`bits` is {text}; write \"HIGH:LOW\" such as \"11:4\", or one bit's number"
                ),
            );
            None
        }
    }
}

/// A number in registers, or one bit.
fn modbus(table: &mut Table<'_>, area: Area) -> Option<(Reply, Cut)> {
    let at = table.integer("at", 0..=REGISTERS_MAX - 4);
    let at_wrong = at.is_none() && table.has("at");
    let at = at.map_or(0, |(at, _)| at as usize);
    if area.is_of_bits() {
        for key in ["binary", "words", "bits"] {
            table.forbid(
                key,
                "a coil or discrete input is one bit; leave out this key",
            );
        }
        let bit = Binary {
            number: Number::Unsigned(1),
            order: Order::Big,
            at,
            field: Some((0, 1)),
        };
        return (!at_wrong).then_some((Reply::Bytes(at + 1), Cut::Binary(bit)));
    }
    let binary = registers(table)?;
    let field = bits(table, Some(binary.number))?;
    let binary = Binary {
        at: 2 * at,
        field,
        ..binary
    };
    (!at_wrong).then_some((Reply::Bytes(binary.end()), Cut::Binary(binary)))
}

/// A number in whole registers.
fn registers(table: &mut Table<'_>) -> Option<Binary> {
    let number = number(table).or((!table.has("binary")).then_some(Number::Unsigned(2)));
    let words = table.choice(
        "words",
        &[("big", Order::Big), ("little", Order::LittleOfPairs)],
    );
    let words_wrong = words.is_none() && table.has("words");
    let number = number?;
    if number.size() % 2 != 0 {
        table.fault(format!(
            "a register has 16 bits, and the number has {}; write binary = \"u16\", \"i32\", \"f32\" and the like, and `bits`",
            8 * number.size()));
        return None;
    }
    (!words_wrong).then_some(Binary {
        number,
        order: words.unwrap_or(Order::Big),
        at: 0,
        field: None,
    })
}

pub(super) fn outputs(
    root: &mut Table<'_>,
    object: impl Fn(&str) -> String,
    said: &Said,
) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (name, mut table) in root.tables("output", object) {
        let at = table.at.clone();
        name_at(&table, name, &at, NAME_MAX);
        let Labels {
            description,
            unit,
            scale,
            offset,
        } = labels(&mut table);
        let timeout = seconds(&mut table, "timeout", said.timeout.as_secs_f64());
        if let Some(send) = output(&mut table, said) {
            outputs.push(Output {
                name: name.into(),
                description,
                unit,
                scale,
                offset,
                send,
                timeout,
            });
        }
        table.finish();
    }
    outputs
}

fn output(table: &mut Table<'_>, said: &Said) -> Option<Command> {
    let send = table.string("send");
    let language = said.kind.map(transport::Kind::language);
    let example = match language {
        Some(Language::Bytes) => "send = \"01 {}\", the bytes to send",
        Some(Language::Modbus) => "send = \"holding 100 = {}\", what to write",
        _ => "send = \"VOLT {}\", with {} for the value",
    };
    table.missing("send", example);
    let value = match language {
        None => {
            for key in ["binary", "endian", "words"] {
                table.known(key);
            }
            return None;
        }
        Some(Language::Text) => None,
        Some(Language::Bytes) => {
            let number = number(table);
            let order = order(table, number);
            let wrong = number.is_none() && table.has("binary");
            match (number, order) {
                (Some(number), Some(order)) => Some(Binary {
                    number,
                    order,
                    at: 0,
                    field: None,
                }),
                (None, _) if !wrong => None,
                _ => return None,
            }
        }
        Some(Language::Modbus) => {
            let of_bits = send
                .as_ref()
                .is_some_and(|(text, _)| text.trim_start().starts_with("coil"));
            match of_bits {
                true => None,
                false => Some(registers(table)?),
            }
        }
    };
    let (text, at) = send?;
    let command = command(table, "send", text, &at, language?, value)?;
    if !command.has_place() {
        table.fault_at(&at, "`send` has no place for the value; write {} there, or move a command without a value to \
        [open]");
        return None;
    }
    Some(command)
}
