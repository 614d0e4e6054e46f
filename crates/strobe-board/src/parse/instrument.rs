// SPDX-License-Identifier: MIT OR Apache-2.0
//! The board file of an instrument: one with a table [transport].

use super::VALUES_MAX;
use crate::hardware::Hardware;
use crate::instrument::{Command, Identity, Instrument, Language, Pattern};
use crate::model::Board;
use crate::table::Table;

mod parts;
mod transport;

use parts::{channels, command, outputs};
use transport::transport;

/// Most commands of [open].
const OPEN_MAX: usize = 256;

/// Reads what follows [board]; `object` names a part of a kind.
pub fn instrument<F: Fn(&str) -> String>(
    mut root: Table<'_>,
    name: String,
    description: String,
    object: impl Fn(&'static str) -> F,
) -> Option<Board> {
    let said = root.table("transport").map(transport);
    for (key, why) in [
        (
            "match",
            "[transport] says where an instrument is; leave out [match]",
        ),
        (
            "interrupt",
            "an instrument has no interrupt; leave out [interrupt]",
        ),
        ("bar", "an instrument has no memory; leave out [bar.N]"),
        (
            "register",
            "an instrument is read by [channel.NAME] and written by [output.NAME]; leave out [register]",
        ),
        ("frame", "an instrument sends no frames; leave out [frame]"),
        (
            "event",
            "an instrument triggers no rows; leave out [event.NAME], and record on a timer or another event",
        ),
        (
            "setup",
            "[open] has what an instrument is sent at the beginning; write it there",
        ),
    ] {
        root.forbid(key, why);
    }
    let Some(said) = said else {
        for key in ["identity", "errors", "open", "channel", "output"] {
            root.known(key);
        }
        root.finish();
        return None;
    };
    let language = said.kind.map(transport::Kind::language);
    let identity = root
        .table("identity")
        .map(|table| identity(table, language));
    let errors = root.table("errors").map(|table| errors(table, language));
    let open = root.table("open").map(|table| open(table, language));
    let (channels, questions) = channels(&mut root, object("channel"), &said);
    let outputs = outputs(&mut root, object("output"), &said);
    if !root.has("channel") && !root.has("output") {
        root.fault(
            "the file has no channel and no output; add a [channel.NAME] with query = \"...\"",
        );
    }
    for (kind, count) in [("channels", channels.len()), ("outputs", outputs.len())] {
        if count > VALUES_MAX {
            root.fault(format!(
                "{count} {kind}, and a board may have {VALUES_MAX}; leave some out"
            ));
        }
    }
    root.finish();
    let instrument = Instrument {
        transport: said.transport?,
        timeout: said.timeout,
        retry: said.retry,
        longest: said.longest,
        command_end: said.command_end,
        answer_end: said.answer_end,
        identity: identity.map_or(Some(None), |found| found.map(Some))?,
        errors: errors.map_or(Some(None), |found| found.map(Some))?,
        open: open.unwrap_or_default(),
        questions,
        channels,
        outputs,
    };
    Some(Board {
        file: String::new(),
        name,
        description,
        hardware: Hardware::Instrument,
        interrupt: None,
        bars: Vec::new(),
        registers: Vec::new(),
        channels: Vec::new(),
        files: Vec::new(),
        outputs: Vec::new(),
        events: Vec::new(),
        setup: Vec::new(),
        instrument: Some(instrument),
        chip: None,
    })
}

/// Whether a table that is about texts may be there.
fn of_texts(table: &Table<'_>, language: Option<Language>) -> bool {
    let fits = language.is_none_or(|language| language == Language::Text);
    if !fits {
        table.fault("only instruments with a text protocol have this; leave it out");
    }
    fits
}

fn query(table: &mut Table<'_>, usual: &str) -> Option<Command> {
    match table.string("query") {
        Some((text, at)) => command(table, "query", text, &at, Language::Text, None),
        None if table.has("query") => None,
        None => {
            let at = table.at.clone();
            command(table, "query", usual, &at, Language::Text, None)
        }
    }
}

fn identity(mut table: Table<'_>, language: Option<Language>) -> Option<Identity> {
    let fits = of_texts(&table, language);
    let query = query(&mut table, "*IDN?");
    let expect = table.string("expect");
    table.missing(
        "expect",
        "expect = \"MAKER,MODEL{*}\", the answer of the right instrument",
    );
    let expect = expect.and_then(|(text, at)| match Pattern::new(text, false) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            table.fault_at(
                &at,
                format!("`expect` is \"{}\": {error}", text.escape_debug()),
            );
            None
        }
    });
    table.finish();
    fits.then_some(())?;
    Some(Identity {
        query: query?,
        expect: expect?,
    })
}

fn errors(mut table: Table<'_>, language: Option<Language>) -> Option<Command> {
    let fits = of_texts(&table, language);
    let query = query(&mut table, "SYST:ERR?");
    table.finish();
    query.filter(|_| fits)
}

fn open(mut table: Table<'_>, language: Option<Language>) -> Vec<Command> {
    let texts = table.texts("send");
    table.missing("send", "send = [\"...\"], the commands after each connect");
    let mut commands = Vec::new();
    if texts.len() > OPEN_MAX {
        table.fault(format!(
            "{} commands, and {OPEN_MAX} are possible; leave some out",
            texts.len()
        ));
    }
    for (text, at) in texts {
        let Some(language) = language else { continue };
        let Some(command) = command(&table, "send", text, &at, language, None) else {
            continue;
        };
        match &command {
            Command::Modbus { write: None, .. } => table.fault_at(&at, format!(
                "`send` is \"{text}\", which writes no value; add one, such as \"{text} = 1\"")),
            command if command.has_place() => table.fault_at(&at, format!(
                "`send` is \"{text}\", whose value is missing; write one, or make it an [output.NAME]")),
            _ => commands.push(command),
        }
    }
    table.finish();
    commands
}
