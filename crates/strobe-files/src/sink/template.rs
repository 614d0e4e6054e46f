// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files that are filled in when a recording begins: `scan-{n:05}.h5`, `{date}-{event}.arrows`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Error;
use crate::date::iso8601;

/// What a name consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The next free number, with at least so many digits.
    Number(usize),
    Date,
    Event,
}

/// A name, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

/// What stands for what in a name.
#[derive(Debug)]
pub(super) struct Values<'a> {
    event: &'a str,
    date: String,
}

/// More digits than a number has are a mistake.
const DIGITS_MAX: usize = 20;

impl<'a> Values<'a> {
    /// Those of a run on this event that is recorded now.
    pub(super) fn now(event: &'a str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let ns = since.map_or(0, |since| since.as_nanos());
        let mut date = iso8601(u64::try_from(ns).unwrap_or(u64::MAX));
        date.truncate("2025-12-31".len());
        Values { event, date }
    }
}

impl Template {
    /// # Errors
    /// A word in braces means nothing, or a number is where none can be counted.
    pub(super) fn parse(name: &str) -> Result<Template, Error> {
        let wrong = |why: String| Error::Template {
            name: name.to_owned(),
            why,
        };
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = name;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            text += before;
            if let Some(after) = from.strip_prefix("{{").or(from.strip_prefix("}}")) {
                text += from.get(..1).unwrap_or_default();
                rest = after;
                continue;
            }
            let word = from.strip_prefix('{').and_then(|from| from.split_once('}'));
            let Some((word, after)) = word else {
                return Err(wrong("a brace without its counterpart".to_owned()));
            };
            let part = part(word).ok_or_else(|| wrong(format!("{{{word}}} is unknown")))?;
            parts.extend([Part::Text(std::mem::take(&mut text)), part]);
            rest = after;
        }
        parts.push(Part::Text(text + rest));
        parts.retain(|part| *part != Part::Text(String::new()));
        let template = Template(parts);
        match template.number() {
            Some((_, _, behind)) if behind.iter().any(|part| part.is_number()) => {
                Err(wrong("{n} is there more than once".to_owned()))
            }
            Some((_, _, behind)) if behind.iter().any(|part| part.has_slash()) => Err(wrong(
                "{n} numbers files and cannot be in the name of a folder".to_owned(),
            )),
            _ => Ok(template),
        }
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.number().is_some()
    }

    /// What comes before the number, its digits, and what comes behind it.
    fn number(&self) -> Option<(&[Part], usize, &[Part])> {
        let at = self.0.iter().position(Part::is_number)?;
        let (before, from) = self.0.split_at(at);
        match from {
            [Part::Number(digits), behind @ ..] => Some((before, *digits, behind)),
            _ => None,
        }
    }

    /// The number after the greatest one of a file with this name; 1 if there is none.
    pub(super) fn next_number(&self, values: &Values<'_>) -> u64 {
        let Some((before, _, behind)) = self.number() else {
            return 1;
        };
        let (before, behind) = (fill(before, values, 0), fill(behind, values, 0));
        let (folder, before) = match before.rsplit_once('/') {
            Some(("", before)) => ("/", before),
            Some((folder, before)) => (folder, before),
            None => (".", before.as_str()),
        };
        // A folder that cannot be read is one in which no file can be made, as will be said then.
        let Ok(files) = Path::new(folder).read_dir() else {
            return 1;
        };
        let numbers = files.filter_map(|file| {
            let name = file.ok()?.file_name();
            let digits = name
                .to_str()?
                .strip_prefix(before)?
                .strip_suffix(&*behind)?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number)
        });
        numbers.max().unwrap_or(0).saturating_add(1)
    }

    /// The name with this number.
    pub(super) fn fill(&self, values: &Values<'_>, number: u64) -> String {
        fill(&self.0, values, number)
    }
}

impl Part {
    fn is_number(&self) -> bool {
        matches!(self, Part::Number(_))
    }

    fn has_slash(&self) -> bool {
        matches!(self, Part::Text(text) if text.contains('/'))
    }
}

/// What a word in braces stands for.
fn part(word: &str) -> Option<Part> {
    match word {
        "n" => Some(Part::Number(0)),
        "date" => Some(Part::Date),
        "event" => Some(Part::Event),
        _ => {
            let digits = word.strip_prefix("n:0")?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let digits = digits.parse().ok().filter(|_| is_number)?;
            (1..=DIGITS_MAX)
                .contains(&digits)
                .then_some(Part::Number(digits))
        }
    }
}

fn fill(parts: &[Part], values: &Values<'_>, number: u64) -> String {
    let word = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Number(digits) => format!("{number:0digits$}"),
        Part::Date => values.date.clone(),
        // `timer:1kHz` and `gpio:lab/wave:rising` are no names of files.
        Part::Event => values.event.replace(|c: char| !is_plain(c), "-"),
    };
    parts.iter().map(word).collect()
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values<'static> {
        Values {
            event: "gpio:lab/wave:rising",
            date: "2026-01-31".to_owned(),
        }
    }

    fn filled(name: &str) -> String {
        let template = Template::parse(name).expect("a template");
        template.fill(&values(), 7)
    }

    #[test]
    fn words_in_braces_are_filled_in() {
        assert_eq!(filled("a.csv"), "a.csv");
        assert_eq!(filled("scan-{n}.csv"), "scan-7.csv");
        assert_eq!(
            filled("/data/{date}/{event}-{n:05}.h5"),
            "/data/2026-01-31/gpio-lab-wave-rising-00007.h5"
        );
        assert_eq!(filled("{{n}}.csv"), "{n}.csv");
    }

    #[test]
    fn the_date_is_a_date() {
        let date = Values::now("soft").date;
        assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    }

    #[test]
    fn a_wrong_template_is_refused_with_the_remedy() {
        for (name, why) in [
            ("{m}.csv", "{m} is unknown"),
            ("{n:5}.csv", "{n:5} is unknown"),
            ("{n:099}.csv", "{n:099} is unknown"),
            ("{n:0+1}.csv", "{n:0+1} is unknown"),
            ("{}.csv", "{} is unknown"),
            ("{n.csv", "a brace without its counterpart"),
            ("n}.csv", "a brace without its counterpart"),
            ("{n}-{n}.csv", "{n} is there more than once"),
            ("{n}/a.csv", "cannot be in the name of a folder"),
        ] {
            let error = Template::parse(name).err().map(|error| error.to_string());
            let text = error.unwrap_or_default();
            assert!(
                text.contains(why) && text.contains("use {n}, {n:05}, {date} or {event}"),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn the_next_number_is_one_more_than_the_greatest() {
        let dir = tempfile::tempdir().expect("a folder");
        let name = dir.path().join("scan-{n:03}.csv");
        let template = Template::parse(name.to_str().expect("a name")).expect("a template");
        assert_eq!(template.next_number(&values()), 1);
        for file in [
            "scan-002.csv",
            "scan-1000.csv",
            "scan-7.h5",
            "scan-x9.csv",
            "other-2000.csv",
            "scan-+8.csv",
        ] {
            std::fs::write(dir.path().join(file), "").expect("a file");
        }
        assert_eq!(template.next_number(&values()), 1001);
        let nowhere = Template::parse("/nonexistent/{n}.csv").expect("a template");
        assert_eq!(nowhere.next_number(&values()), 1);
    }
}
