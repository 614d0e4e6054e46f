// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `NAME?` answers.

use super::answer::{Answer, Status};
use super::capture;
use super::command::encode;
use super::field::{Extra, Field, Kind};
use super::model::{BITS, Found, Model};
use super::number::{self, UNITS};
use super::panel::Panel;
use super::table::{self, TRIGGERS};
use super::values::Content;

type Got = Result<Answer, String>;

fn line(text: impl Into<String>) -> Got {
    Ok(Answer::Line(text.into()))
}

fn lines<T: ToString>(lines: impl IntoIterator<Item = T>) -> Got {
    Ok(Answer::Lines(
        lines.into_iter().map(|line| line.to_string()).collect(),
    ))
}

fn unknown() -> String {
    "No such field".to_owned()
}

/// `*NAME?`
pub fn star(panel: &Panel, status: &Status, name: &str) -> Got {
    let model = &panel.model;
    match name {
        "IDN" => line(format!(
            "PandA SW: 4.1 FPGA: 0.0.0 0 0 rootfs: strobe {}",
            env!("CARGO_PKG_VERSION")
        )),
        "WHO" => lines(panel.clients()),
        "BLOCKS" => lines(
            model
                .blocks
                .iter()
                .map(|b| format!("{} {}", b.name, b.count)),
        ),
        "CAPTURE" => panel.with(|values| {
            let captured = capture::chosen(model, values).into_iter();
            lines(captured.map(|c| format!("{} {}", c.name, c.how.word())))
        }),
        "POSITIONS" => lines(named(model, |kind| matches!(kind, Kind::PosOut(_)))),
        "BITS" => lines(named(model, |kind| matches!(kind, Kind::BitOut(_)))),
        "PCAP.STATUS" => {
            let state = if status.is_active { "Busy" } else { "Idle" };
            line(format!("{state} {} 0", status.readers))
        }
        "PCAP.CAPTURED" => line(status.rows.to_string()),
        "PCAP.COMPLETION" => line(match status.is_active {
            true => "Busy",
            false => status.completion,
        }),
        _ => starred(panel, name),
    }
}

fn starred(panel: &Panel, name: &str) -> Got {
    let model = &panel.model;
    if let Some(text) = name.strip_prefix("ECHO ") {
        return line(text);
    }
    if let Some(name) = name.strip_prefix("DESC.") {
        return describe(model, name);
    }
    if let Some(name) = name.strip_prefix("ENUMS.") {
        return enums(model, name);
    }
    match name.strip_prefix("METADATA.") {
        Some("*") => panel.with(|values| {
            let names = values.list().iter().map(|value| value.name.clone());
            lines(names.filter_map(|name| Some(name.strip_prefix("*METADATA.")?.to_owned())))
        }),
        Some(_) => value(panel, &format!("*{name}")),
        None => Err("Unknown command".to_owned()),
    }
}

fn named(model: &Model, wanted: impl Fn(&Kind) -> bool) -> Vec<String> {
    model
        .fields()
        .filter(|(_, found)| wanted(&found.field.kind))
        .map(|(name, _)| name)
        .collect()
}

fn describe(model: &Model, name: &str) -> Got {
    if let Some((table, column)) = name.split_once("[].") {
        let found = model.find(table).ok_or_else(unknown)?;
        return match found.field.kind == Kind::Table && table::has_column(column) {
            true => line(column_about(column)),
            false => Err(unknown()),
        };
    }
    if let Some(found) = model.find(name) {
        return line(found.field.about.clone());
    }
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match model.block(kind) {
        Some(block) => line(block.about.clone()),
        None => Err("No such block".to_owned()),
    }
}

fn column_about(column: &str) -> &'static str {
    match column {
        "REPEATS" => "How often the line is done",
        "TRIGGER" => "What each repetition waits for",
        "POSITION" => "The position that it waits for",
        time if time.starts_with("TIME") => "Time of the phase, in units of PRESCALE",
        _ => "Output in the phase",
    }
}

fn enums(model: &Model, name: &str) -> Got {
    if let Some((table, column)) = name.split_once("[].") {
        let found = model.find(table).ok_or_else(unknown)?;
        return match found.field.kind == Kind::Table && column == "TRIGGER" {
            true => lines(TRIGGERS),
            false => Err(unknown()),
        };
    }
    if let Some(found) = model.find(name) {
        return match found.field.kind.labels() {
            Some(labels) => lines(labels),
            None => Err("The field is no choice".to_owned()),
        };
    }
    let (name, attribute) = name.rsplit_once('.').ok_or_else(unknown)?;
    let found = model.find(name).ok_or_else(unknown)?;
    match (attribute, &found.field.kind) {
        ("CAPTURE", kind) => match kind.captures() {
            Some(labels) => lines(labels),
            None => Err(unknown()),
        },
        ("UNITS", Kind::Time(_)) => lines(UNITS.map(|(unit, _)| unit)),
        _ => Err(unknown()),
    }
}

/// `BLOCK.FIELD?`, `BLOCK.FIELD.ATTRIBUTE?`, `BLOCK.*?`
pub fn field(panel: &Panel, name: &str) -> Got {
    let model = &panel.model;
    if let Some(block) = name.strip_suffix(".*") {
        let kind = block.trim_end_matches(|c: char| c.is_ascii_digit());
        return match (model.block(kind), model.find(block)) {
            (Some(block), _) => lines(block.fields.iter().enumerate().map(listed)),
            (None, Some(found)) => lines(attributes(&found.field.kind)),
            _ => Err("No such block".to_owned()),
        };
    }
    if let Some(found) = model.find(name) {
        return value(panel, &whole(&found)?);
    }
    let (name, attribute) = name.rsplit_once('.').ok_or_else(unknown)?;
    let found = model.find(name).ok_or_else(unknown)?;
    attribute_of(panel, &found, attribute)
}

fn listed((place, field): (usize, &Field)) -> String {
    format!("{} {place} {}", field.name, field.kind.words())
}

/// The whole name of a field; it must be clear which.
pub fn whole(found: &Found<'_>) -> Result<String, String> {
    if !found.is_one {
        return Err(format!(
            "Missing block number: write {}1.{}",
            found.block.name, found.field.name
        ));
    }
    let block = found.block.name_of(found.number);
    Ok(format!("{block}.{}", found.field.name))
}

fn value(panel: &Panel, name: &str) -> Got {
    panel.with(
        |values| match values.get(name).map(|value| &value.content) {
            Some(Content::Line(text)) => line(text.clone()),
            Some(Content::Words(words)) => lines(words),
            Some(Content::Lines(text)) => lines(text),
            None => Err("The field is not readable".to_owned()),
        },
    )
}

fn attributes(kind: &Kind) -> Vec<&'static str> {
    let own: &[&str] = match kind {
        Kind::Uint { .. } | Kind::ReadUint => &["MAX"],
        Kind::Time(_) => &["UNITS"],
        Kind::BitOut(_) => &["CAPTURE_WORD", "OFFSET"],
        Kind::BitMux(..) => &["DELAY", "MAX_DELAY"],
        Kind::PosOut(_) => &["CAPTURE", "OFFSET", "SCALE", "SCALED", "UNITS"],
        Kind::ExtOut(Extra::Bits) => &["CAPTURE", "BITS"],
        Kind::ExtOut(_) => &["CAPTURE"],
        Kind::Table => &["B", "FIELDS", "LENGTH", "MAX_LENGTH", "ROW_WORDS"],
        _ => &[],
    };
    own.iter().copied().chain(["INFO"]).collect()
}

fn attribute_of(panel: &Panel, found: &Found<'_>, attribute: &str) -> Got {
    let kind = &found.field.kind;
    if attribute != "*" && !attributes(kind).contains(&attribute) {
        return Err("No such attribute".to_owned());
    }
    match (attribute, kind) {
        ("INFO", kind) => line(kind.words()),
        ("MAX", Kind::Uint { max, .. }) => line(max.to_string()),
        ("MAX", _) => line(u32::MAX.to_string()),
        ("MAX_DELAY", _) => line("0"),
        ("CAPTURE_WORD", Kind::BitOut(place)) => line(place.map_or("", |_| "PCAP.BITS0")),
        ("OFFSET", Kind::BitOut(place)) => line(place.unwrap_or(0).to_string()),
        ("BITS", _) => lines((0..32).map(|bit| BITS.get(bit).copied().unwrap_or_default())),
        ("MAX_LENGTH", _) => line((4 * table::LINES).to_string()),
        ("ROW_WORDS", _) => line("4"),
        ("FIELDS", _) => {
            let columns = table::columns().into_iter();
            lines(columns.map(|(bits, text)| format!("{bits} {text}")))
        }
        ("LENGTH" | "B", _) => {
            let name = whole(found)?;
            panel.with(|values| match attribute {
                "B" => lines(encode(values.words(&name))),
                _ => line(values.words(&name).len().to_string()),
            })
        }
        ("SCALED", _) => {
            let name = whole(found)?;
            panel.with(|values| {
                let read = |suffix: &str| number::read(values.line(&format!("{name}{suffix}")));
                let scaled = || Some(read("")? * read(".SCALE")? + read(".OFFSET")?);
                line(scaled().map(number::text).unwrap_or_default())
            })
        }
        (attribute, _) => {
            let name = whole(found)?;
            value(panel, &format!("{name}.{attribute}"))
        }
    }
}
