// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a run and of its channels as named values, which each format writes in its own way and reads again.

use serde::Serialize;
use serde_json::{Map, Value};
use strobe::channel::Channel;
use strobe::info::RunInfo;

/// Names and values.
pub(crate) type Fields = Map<String, Value>;

/// Those of a run that are in no column.
pub(crate) fn of_run(info: &RunInfo) -> Fields {
    let mut fields = of(info);
    for column in [CHANNELS, OUTPUTS, SKIPS] {
        fields.remove(column);
    }
    fields
}

/// Those of a channel that files have.
pub(crate) fn of_channel(channel: &Channel) -> Fields {
    let mut fields = of(channel);
    if let Some(name) = fields.remove(NAME) {
        fields.insert(CHANNEL.to_owned(), name);
    }
    // Of the machine that it was recorded on, not of what was recorded.
    fields.remove("cost_ns");
    fields.remove("in_use");
    fields
}

/// The run of these fields and columns; the reason if it is none.
pub(crate) fn run(
    mut fields: Fields,
    channels: Vec<Fields>,
    outputs: Vec<String>,
    skips: bool,
) -> Result<RunInfo, String> {
    forget_blanks(&mut fields);
    let channels = channels.into_iter().map(|mut channel| {
        forget_blanks(&mut channel);
        if let Some(name) = channel.remove(CHANNEL) {
            channel.insert(NAME.to_owned(), name);
        }
        Value::from(channel)
    });
    let outputs = outputs.into_iter().map(|name| {
        let output = [(NAME.to_owned(), Value::from(name))];
        Value::from(Map::from_iter(output))
    });
    fields.insert(CHANNELS.to_owned(), channels.collect());
    fields.insert(OUTPUTS.to_owned(), outputs.collect());
    fields.insert(SKIPS.to_owned(), skips.into());
    serde_json::from_value(fields.into()).map_err(|error| error.to_string())
}

/// Formats that have nothing but text have a blank where there is no value.
fn forget_blanks(fields: &mut Fields) {
    fields.retain(|_, value| value.as_str().is_none_or(|text| !text.trim().is_empty()));
}

/// As text: of nothing, and of an empty list, there is none.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => String::new(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(real) => real.to_string(),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

const CHANNEL: &str = "channel";
const CHANNELS: &str = "channels";
const NAME: &str = "name";
const OUTPUTS: &str = "outputs";
const SKIPS: &str = "skips";

fn of<T: Serialize>(object: &T) -> Fields {
    match serde_json::to_value(object) {
        Ok(Value::Object(fields)) => fields,
        // A structure of texts and numbers is always an object.
        _ => Fields::new(),
    }
}
