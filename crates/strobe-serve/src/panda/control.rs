// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers of the control port; no connection in here.

use super::answer::{Answer, Status};
use super::changes::Seen;
use super::command::Command;
use super::get;
use super::panel::Panel;
use super::put;
use super::values::{Content, Group};

/// Answers the commands of one connection.
#[derive(Default)]
pub struct Session {
    seen: Seen,
}

impl Session {
    /// The answer to a command.
    pub fn answer(&mut self, panel: &Panel, status: &Status, command: Command) -> Answer {
        let answer = match command {
            Command::Get(name) => self.get(panel, status, &name),
            Command::Put(name, value) => self.put(panel, &name, &value),
            Command::Table {
                name,
                append,
                words,
            } => put::table(panel, &name, append, words),
            Command::Lines(name, lines) => match panel.with(|values| {
                let is_there = values.get(&name).is_some();
                values.set(&name, Content::Lines(lines));
                is_there
            }) {
                true => Ok(Answer::Ok),
                false => Err("No such metadata".to_owned()),
            },
            Command::Wrong(why) => Err(why),
        };
        answer.unwrap_or_else(Answer::Error)
    }

    fn get(&mut self, panel: &Panel, status: &Status, name: &str) -> Result<Answer, String> {
        if let Some(group) = name.strip_prefix("*CHANGES") {
            let groups = groups(group)?;
            return Ok(Answer::Lines(
                panel.with(|values| self.seen.news(values, &groups)),
            ));
        }
        match name.strip_prefix('*') {
            Some(star) => get::star(panel, status, star),
            None => get::field(panel, name),
        }
    }

    fn put(&mut self, panel: &Panel, name: &str, value: &str) -> Result<Answer, String> {
        if let Some(group) = name.strip_prefix("*CHANGES") {
            let groups = groups(group)?;
            match value {
                "" | "E" => panel.with(|values| self.seen.skip(values, &groups)),
                "S" => self.seen.rewind(&groups),
                _ => return Err("Write =E for the end, or =S for the start".to_owned()),
            }
            return Ok(Answer::Ok);
        }
        match name {
            "*PCAP.ARM" => Ok(Answer::Arm),
            "*PCAP.DISARM" => Ok(Answer::Disarm),
            "*CAPTURE" => put::capture_nothing(panel),
            _ if name.starts_with("*METADATA.") => put::metadata(panel, name, value),
            _ if name.starts_with('*') => Err("Unknown command".to_owned()),
            _ => put::field(panel, name, value),
        }
    }
}

/// The groups of `*CHANGES` and what follows.
fn groups(suffix: &str) -> Result<Vec<Group>, String> {
    if suffix.is_empty() {
        return Ok(Group::ALL.map(|(_, group)| group).into());
    }
    let name = suffix.strip_prefix('.').unwrap_or_default();
    let found = Group::ALL.into_iter().find(|(known, _)| *known == name);
    found
        .map(|(_, group)| vec![group])
        .ok_or_else(|| "Unknown group of changes".to_owned())
}
