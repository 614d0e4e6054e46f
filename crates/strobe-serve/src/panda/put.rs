// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `NAME=VALUE` and `NAME<` do.

use std::ops::RangeInclusive;

use super::answer::Answer;
use super::field::Kind;
use super::get::whole;
use super::model::Found;
use super::number;
use super::panel::Panel;
use super::table;
use super::values::{Content, Values};

type Did = Result<Answer, String>;

/// Bytes of a text that is set.
const TEXT: usize = 256;
/// Times in any unit: each of them is finite in each other unit. In the shortest one it is 31 years.
const TIMES: RangeInclusive<f64> = 0.0..=1e15;

/// `BLOCK.FIELD=VALUE`, `BLOCK.FIELD.ATTRIBUTE=VALUE`
pub fn field(panel: &Panel, name: &str, value: &str) -> Did {
    let unknown = || "No such field".to_owned();
    if let Some(found) = panel.model.find(name) {
        let name = whole(&found)?;
        let text = allowed(&found.field.kind, value)?;
        panel.with(|values| {
            values.set_line(&name, text);
            // A switch is seen at its output.
            if found.field.kind == Kind::Bit {
                let output = name.replacen('.', ".OUT", 1);
                values.set_bit(&output, value == "1");
            }
        });
        return Ok(Answer::Ok);
    }
    let (name, attribute) = name.rsplit_once('.').ok_or_else(unknown)?;
    let found = panel.model.find(name).ok_or_else(unknown)?;
    let name = whole(&found)?;
    panel.with(|values| set_attribute(values, &found, &name, attribute, value))
}

/// The value as it is kept.
fn allowed(kind: &Kind, value: &str) -> Result<String, String> {
    match kind {
        Kind::Uint { max, .. } => match value.parse::<u32>() {
            Ok(number) if number <= *max => Ok(number.to_string()),
            _ => Err("Number missing or out of range".to_owned()),
        },
        Kind::Int => match value.parse::<i32>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err("Number missing or out of range".to_owned()),
        },
        Kind::Bit => match value {
            "0" | "1" => Ok(value.to_owned()),
            _ => Err("Write 0 or 1".to_owned()),
        },
        Kind::Time(_) => match number::read(value) {
            Some(time) if TIMES.contains(&time) => Ok(number::text(time)),
            _ => Err("Time missing or out of range".to_owned()),
        },
        Kind::Enum(labels) | Kind::BitMux(_, labels) | Kind::PosMux(labels) => {
            match labels.iter().any(|label| label == value) {
                true => Ok(value.to_owned()),
                false => Err("Label not found".to_owned()),
            }
        }
        Kind::Table => Err("Write a table with <".to_owned()),
        _ => Err("Field is not writeable".to_owned()),
    }
}

fn set_attribute(
    values: &mut Values,
    found: &Found<'_>,
    name: &str,
    attribute: &str,
    value: &str,
) -> Did {
    let kind = &found.field.kind;
    let whole = format!("{name}.{attribute}");
    let text = match (attribute, kind) {
        ("CAPTURE", kind) => match kind.captures() {
            Some(labels) if labels.contains(&value) => value.to_owned(),
            Some(labels) => {
                let labels = labels.join(", ");
                return Err(format!("Label not found: there are {labels}"));
            }
            None => return Err("No such attribute".to_owned()),
        },
        ("DELAY", Kind::BitMux(..)) => match value {
            "0" => value.to_owned(),
            _ => return Err("Value out of range: there is no delay".to_owned()),
        },
        ("SCALE" | "OFFSET", Kind::PosOut(_)) => match number::read(value) {
            Some(number) => number::text(number),
            None => return Err("Number missing or out of range".to_owned()),
        },
        ("UNITS", Kind::PosOut(_)) => text(value)?,
        ("UNITS", Kind::Time(_)) => {
            let old = number::unit(values.line(&whole)).unwrap_or(1.0);
            let new = number::unit(value).ok_or("Label not found")?;
            let time = number::read(values.line(name)).unwrap_or_default();
            // The time stays the same. Digits that only come from binary fractions are dropped.
            let scaled = time * old / new;
            let rounded = number::read(&format!("{scaled:.12e}")).unwrap_or(scaled);
            values.set_line(name, number::text(rounded));
            value.to_owned()
        }
        _ => return Err("Attribute is not writeable".to_owned()),
    };
    values.set_line(&whole, text);
    Ok(Answer::Ok)
}

/// A text that a client may keep here.
fn text(value: &str) -> Result<String, String> {
    match value.len() <= TEXT {
        true => Ok(value.to_owned()),
        false => Err(format!("The text is longer than {TEXT} bytes")),
    }
}

/// `*METADATA.NAME=TEXT`
pub fn metadata(panel: &Panel, name: &str, value: &str) -> Did {
    let value = text(value)?;
    panel.with(|values| match values.get(name).is_some() {
        true => {
            values.set_line(name, value);
            Ok(Answer::Ok)
        }
        false => Err("No such metadata".to_owned()),
    })
}

/// `*CAPTURE=`: nothing is captured.
pub fn capture_nothing(panel: &Panel) -> Did {
    panel.with(|values| {
        for (name, found) in panel.model.fields() {
            if found.field.kind.captures().is_some() {
                values.set_line(&format!("{name}.CAPTURE"), "No");
            }
        }
    });
    Ok(Answer::Ok)
}

/// `BLOCK.TABLE<`
pub fn table(panel: &Panel, name: &str, append: bool, words: Vec<u32>) -> Did {
    let found = panel.model.find(name).ok_or("No such field")?;
    if found.field.kind != Kind::Table {
        return Err("Field is no table".to_owned());
    }
    let name = whole(&found)?;
    panel.with(|values| {
        let mut all = match append {
            true => values.words(&name).to_vec(),
            false => Vec::new(),
        };
        all.extend(words);
        table::steps(&all)?;
        values.set(&name, Content::Words(all));
        Ok(Answer::Ok)
    })
}
