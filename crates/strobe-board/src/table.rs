// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a TOML table key by key.
//!
//! Not serde: it stops at the first fault and forgets where values stood, and the author of a board file or a recipe
//! wants to see all of them, with their lines.

use std::ops::{Range, RangeInclusive};

use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Log, hint};

/// A value and where it stands in the text.
pub type At<T> = (T, Range<usize>);

/// A table of the file. Every key it is asked for is a known one; `finish` complains about the others.
pub struct Table<'t> {
    /// What the table describes, as faults name it.
    pub object: String,
    /// Where it stands.
    pub at: Range<usize>,
    entries: &'t DeTable<'t>,
    known: Vec<&'static str>,
    log: &'t Log<'t>,
}

impl<'t> Table<'t> {
    fn new(object: String, at: Range<usize>, entries: &'t DeTable<'t>, log: &'t Log<'t>) -> Self {
        Table {
            object,
            at,
            entries,
            known: Vec::new(),
            log,
        }
    }

    /// Notes what is wrong with this table as a whole.
    pub fn fault(&self, message: impl Into<String>) {
        self.log.add(&self.at, &self.object, message);
    }

    /// Notes what is wrong at one place of it.
    pub fn fault_at(&self, at: &Range<usize>, message: impl Into<String>) {
        self.log.add(at, &self.object, message);
    }

    /// Notes what is wrong with another object of the file.
    pub(super) fn fault_of(&self, at: &Range<usize>, object: &str, message: impl Into<String>) {
        self.log.add(at, object, message);
    }

    /// The line of a place in the text.
    pub fn line(&self, at: &Range<usize>) -> usize {
        self.log.line(at)
    }

    fn value(&mut self, key: &'static str) -> Option<At<&'t DeValue<'t>>> {
        self.known.push(key);
        let value = self.entries.get(key)?;
        Some((value.get_ref(), value.span()))
    }

    fn wrong(&self, key: &str, at: &Range<usize>, found: &DeValue<'_>, wanted: &str) {
        self.fault_at(
            at,
            format!("`{key}` is {}; write {wanted}", article(found.type_str())),
        );
    }

    /// A text.
    pub fn string(&mut self, key: &'static str) -> Option<At<&'t str>> {
        let (value, at) = self.value(key)?;
        match value {
            DeValue::String(text) => Some((text.as_ref(), at)),
            other => {
                self.wrong(key, &at, other, "a text in quotes");
                None
            }
        }
    }

    /// One of several words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.choice_at(key, choices).map(|(choice, _)| choice)
    }

    /// One of several words, and where it stands.
    pub fn choice_at<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<At<T>> {
        let (word, at) = self.string(key)?;
        let found = choices.iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let mut names: Vec<String> = choices
                .iter()
                .map(|(name, _)| format!("\"{name}\""))
                .collect();
            let last = names.pop().unwrap_or_default();
            self.fault_at(
                &at,
                format!(
                    "`{key}` is \"{word}\"; it must be {} or {last}",
                    names.join(", ")
                ),
            );
        }
        found.map(|(_, choice)| (*choice, at))
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.boolean_at(key).map(|(value, _)| value)
    }

    /// `true` or `false`, and where it stands.
    pub fn boolean_at(&mut self, key: &'static str) -> Option<At<bool>> {
        let (value, at) = self.value(key)?;
        if value.as_bool().is_none() {
            self.wrong(key, &at, value, "true or false");
        }
        Some((value.as_bool()?, at))
    }

    /// A whole number of this range.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let (value, at) = self.value(key)?;
        let Some(integer) = value.as_integer() else {
            self.wrong(key, &at, value, "a whole number");
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if range.contains(&number) => Some((number, at)),
            _ => {
                let (low, high) = (range.start(), range.end());
                self.fault_at(
                    &at,
                    format!("`{key}` is {integer}; it must be {}", between(*low, *high)),
                );
                None
            }
        }
    }

    /// A finite number, with or without a point.
    pub fn number(&mut self, key: &'static str) -> Option<At<f64>> {
        let (value, at) = self.value(key)?;
        let number = match value {
            DeValue::Float(text) => text.as_str().parse::<f64>().ok(),
            DeValue::Integer(text) if text.radix() == 10 => text.as_str().parse::<f64>().ok(),
            DeValue::Integer(text) => u64::from_str_radix(text.as_str(), text.radix())
                .ok()
                .map(|whole| whole as f64),
            other => {
                self.wrong(key, &at, other, "a number");
                return None;
            }
        };
        let number = number.filter(|number| number.is_finite());
        if number.is_none() {
            self.fault_at(
                &at,
                format!("`{key}` is not finite; write a number such as 0.001"),
            );
        }
        Some((number?, at))
    }

    /// Either a whole number or a text, as `numbers` and `texts` understand them.
    pub fn either(&mut self, key: &'static str) -> Option<At<Either<'t>>> {
        let (value, at) = self.value(key)?;
        match value {
            DeValue::String(text) => Some((Either::Text(text.as_ref()), at)),
            DeValue::Integer(whole) => match u64::from_str_radix(whole.as_str(), whole.radix()) {
                Ok(number) => Some((Either::Number(number), at)),
                Err(_) => {
                    self.fault_at(
                        &at,
                        format!("`{key}` is {whole}; it must be {}", between(0, u64::MAX)),
                    );
                    None
                }
            },
            other => {
                self.wrong(key, &at, other, "a whole number or a text in quotes");
                None
            }
        }
    }

    /// What a table below this one is called: as its head is written if this one is the file.
    fn below(&self, key: &str, head: String) -> String {
        match self.object.is_empty() {
            true => head,
            false => format!("{}, {key}", self.object),
        }
    }

    /// A table below this one.
    pub fn table(&mut self, key: &'static str) -> Option<Table<'t>> {
        self.known.push(key);
        let (name, value) = self.entries.get_key_value(key)?;
        match value.get_ref() {
            DeValue::Table(entries) => {
                let object = self.below(key, format!("[{key}]"));
                Some(Table::new(object, name.span(), entries, self.log))
            }
            other => {
                self.wrong(key, &value.span(), other, "a table");
                None
            }
        }
    }

    /// The named tables below a key, such as all `[channel.NAME]`, in the order of the file.
    pub fn tables(
        &mut self,
        key: &'static str,
        object: impl Fn(&str) -> String,
    ) -> Vec<(&'t str, Table<'t>)> {
        let Some((value, at)) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Table(entries) = value else {
            self.wrong(key, &at, value, &format!("tables [{key}.NAME]"));
            return Vec::new();
        };
        let mut list = Vec::new();
        for (name, value) in entries {
            let place = name.span();
            let name = name.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(entries) => list.push((name, Table::new(object(name), place, entries, self.log))),
                _ => self.log.add(&place, &self.object, format!(
                    "[{key}] holds named tables, and `{name}` is not one; write it below a header [{key}.NAME]")),
            }
        }
        // The map is sorted by name; channels shall come in the order in which they were written.
        list.sort_by_key(|(_, table)| table.at.start);
        list
    }

    /// A list of texts, such as `["sim.counter", "clock.late"]`.
    pub fn texts(&mut self, key: &'static str) -> Vec<At<&'t str>> {
        let Some((value, at)) = self.value(key) else {
            return Vec::new();
        };
        let wanted = "a list of texts in [ ], such as [\"one\", \"two\"]";
        let DeValue::Array(items) = value else {
            self.wrong(key, &at, value, wanted);
            return Vec::new();
        };
        let mut list = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => list.push((text.as_ref(), item.span())),
                other => self.wrong(key, &item.span(), other, wanted),
            }
        }
        list
    }

    /// A text that `parse` understands.
    pub fn parsed<T, E: std::fmt::Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<At<T>> {
        let (text, at) = self.string(key)?;
        match parse(text) {
            Ok(value) => Some((value, at)),
            Err(error) => {
                self.fault_at(&at, format!("`{key}`: {error}"));
                None
            }
        }
    }

    /// A list of inline tables, such as `[{ register = "x", write = 1 }]`.
    pub fn list(&mut self, key: &'static str) -> Vec<Table<'t>> {
        let Some((value, at)) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value else {
            self.wrong(key, &at, value, "a list of tables in [ ]");
            return Vec::new();
        };
        let mut list = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(entries) => {
                    let object = self.below(key, format!("[[{key}]]"));
                    list.push(Table::new(object, item.span(), entries, self.log));
                }
                other => self.wrong(key, &item.span(), other, "a list of tables in [ ]"),
            }
        }
        list
    }

    /// Whether a key is there, right or wrong.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// A key that may be there, whatever it says.
    pub fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Notes that a key is there which must not be.
    pub fn forbid(&mut self, key: &'static str, why: &str) {
        self.known.push(key);
        if let Some((name, _)) = self.entries.get_key_value(key) {
            self.fault_at(&name.span(), why);
        }
    }

    /// Notes that a key is missing, unless it is there but wrong, which was noted already.
    pub fn missing(&self, key: &str, example: &str) {
        if !self.has(key) {
            self.fault(format!("`{key}` is missing; add {example}"));
        }
    }

    /// Complains about keys that nobody asked for.
    pub fn finish(self) {
        for key in self.entries.keys() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let hint = hint(name, self.known.iter().copied());
                self.fault_at(&key.span(), format!("unknown key `{name}`; {hint}"));
            }
        }
    }
}

/// A value that may be written in two ways.
pub enum Either<'t> {
    /// A whole number.
    Number(u64),
    /// A text in quotes.
    Text(&'t str),
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

fn between(low: u64, high: u64) -> String {
    match (low, high) {
        (low, high) if low == high => format!("{low}"),
        (low, u64::MAX) => format!("a whole number from {low} to 0x{:x}", u64::MAX),
        (low, high) if high > 0xffff => format!("a whole number from {low} to 0x{high:x}"),
        (low, high) => format!("a whole number from {low} to {high}"),
    }
}

/// Reads a text of TOML: `whole` makes of its root what it says, or notes what is wrong. `file` names it in faults, and
/// `reference` is the page that explains its keys.
///
/// # Errors
/// All that is wrong with the text.
pub fn read<T>(
    file: &str,
    text: &str,
    reference: &str,
    whole: impl FnOnce(Table<'_>) -> Option<T>,
) -> Result<T, Faults> {
    let log = Log::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or(0..0);
        let found = match text.get(at.clone()).map(str::trim) {
            Some(found) if !found.is_empty() && !found.contains('\n') => format!(": `{found}`"),
            _ => String::new(),
        };
        log.add(&at, "", format!("not TOML: {}{found}", error.message()));
    }
    // What could be saved of a broken text would only be complained about.
    let result = match errors.is_empty() {
        true => whole(Table::new(String::new(), 0..0, document.get_ref(), &log)),
        false => None,
    };
    log.finish(file, reference, result)
}
