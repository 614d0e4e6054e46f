// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `strobe board show` says of an instrument.

use std::fmt::Write as _;

use serde_json::{Value, json};
use strobe_board::instrument::{AGE, Channel, Instrument, Mode, Question};

use super::{labelled, section};

fn mode(question: &Question) -> String {
    match question.mode {
        Mode::Wait => "wait".to_owned(),
        Mode::Latest(every) => format!("latest, every {} s", every.as_secs_f64()),
    }
}

fn asked<'i>(instrument: &'i Instrument, channel: &Channel) -> Option<&'i Question> {
    instrument.questions.get(channel.question)
}

/// In lines.
pub fn as_text(instrument: &Instrument) -> String {
    let mut text = format!("{}\n", instrument.transport);
    let timeout = instrument.timeout.as_secs_f64();
    let retry = instrument.retry.as_secs_f64();
    let _ = writeln!(text, "timeout {timeout} s, retry {retry} s");
    if let Some(identity) = &instrument.identity {
        let _ = writeln!(text, "identity: {}", identity.query);
    }
    if let Some(errors) = &instrument.errors {
        let _ = writeln!(text, "errors: {errors}");
    }
    let channels = instrument.channels.iter().map(|channel| {
        let question = asked(instrument, channel);
        vec![
            channel.name.clone(),
            question.map_or(String::new(), |question| question.command.to_string()),
            question.map_or(String::new(), mode),
            channel.kind().to_string(),
            labelled(&channel.unit, channel.scale, channel.offset),
            channel.description.clone(),
        ]
    });
    text += &section(
        "channel",
        ["query", "mode", "type", "unit", ""],
        channels.collect(),
    );
    let outputs = instrument.outputs.iter().map(|output| {
        vec![
            output.name.clone(),
            output.send.to_string(),
            labelled(&output.unit, output.scale, output.offset),
            output.description.clone(),
        ]
    });
    text += &section("output", ["send", "unit", ""], outputs.collect());
    let open = instrument.open.iter();
    text + &section(
        "open",
        [],
        open.map(|command| vec![command.to_string()]).collect(),
    )
}

/// As JSON.
pub fn as_json(instrument: &Instrument) -> Value {
    let channels = instrument.channels.iter().map(|channel| {
        let question = asked(instrument, channel);
        let latest = instrument.is_latest(channel);
        json!({
            "name": channel.name, "description": channel.description, "unit": channel.unit,
            "scale": channel.scale, "offset": channel.offset, "type": channel.kind().to_string(),
            "query": question.map(|question| question.command.to_string()),
            "mode": question.map(mode),
            "timeout_s": question.map(|question| question.timeout.as_secs_f64()),
            "age": latest.then(|| format!("{}{AGE}", channel.name)),
        })
    });
    let outputs = instrument.outputs.iter().map(|output| {
        json!({
            "name": output.name, "description": output.description, "unit": output.unit,
            "scale": output.scale, "offset": output.offset, "send": output.send.to_string(),
        })
    });
    json!({
        "transport": instrument.transport.to_string(),
        "timeout_s": instrument.timeout.as_secs_f64(),
        "retry_s": instrument.retry.as_secs_f64(),
        "identity": instrument.identity.as_ref().map(|identity| identity.query.to_string()),
        "errors": instrument.errors.as_ref().map(ToString::to_string),
        "open": instrument.open.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "channels": channels.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
    })
}
