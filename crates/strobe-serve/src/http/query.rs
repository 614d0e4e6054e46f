// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind the question mark of a URL.

use std::collections::HashSet;

use axum::extract::Query;
use axum::http::Uri;
use serde::de::{DeserializeOwned, Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use strobe::error::Words;

use super::failure::Failure;
use crate::cursor::From;

/// Reads all of it; a name that nobody knows is an error.
///
/// # Errors
/// It says something else than what can be said there.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Failure> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|Query(query)| query).map_err(|error| {
        let words = Words::new(format!("query of {}", uri.path()), error.body_text());
        Failure::bad(words.mend("docs/reference/serve.md describes the requests"))
    })
}

/// A list of names with commas between them; an empty one has none.
///
/// # Errors
/// A name is in it twice.
pub fn names(list: &str) -> Result<Vec<String>, Failure> {
    let names = list.split(',').filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    match twice(&names) {
        None => Ok(names),
        Some(name) => {
            let words = Words::new(name, "it is there twice");
            Err(Failure::bad(words.mend("name each channel once")))
        }
    }
}

/// A name that is there twice. What a client gets of a row is never more than the row.
pub fn twice(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

/// `oldest`, `now`, or the number of a row.
///
/// # Errors
/// It is none of these.
pub fn place<'de, D: Deserializer<'de>>(from: D) -> Result<From, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Row(u64),
        Text(String),
    }
    let text = match Said::deserialize(from)? {
        Said::Row(row) => return Ok(From::Row(row)),
        Said::Text(text) => text,
    };
    let row = || text.parse().ok().map(From::Row);
    let place = match text.as_str() {
        "oldest" => Some(From::Oldest),
        "now" => Some(From::Now),
        _ => row(),
    };
    let wanted = &"the number of a row, `oldest` or `now`";
    place.ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), wanted))
}

/// The form of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Arrow IPC stream.
    #[default]
    Arrow,
    /// Lines of text.
    Csv,
}

/// What is done about rows that cannot be given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLoss {
    /// The numbers of the rows show it.
    #[default]
    Report,
    /// The answer ends there, and not as if it were whole.
    Fail,
}

/// Which rows a client wants, and how.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowsQuery {
    /// The first one.
    #[serde(deserialize_with = "place")]
    pub from: From,
    /// The one after the last one.
    pub to: Option<u64>,
    /// Channels, with commas between them; all, unless it is said.
    pub columns: Option<String>,
    /// In what form.
    pub format: Format,
    /// What is done about loss.
    pub on_loss: OnLoss,
    /// Whether rows that are yet to be made are waited for.
    pub follow: bool,
}

impl Default for RowsQuery {
    fn default() -> Self {
        RowsQuery {
            from: From::Oldest,
            to: None,
            columns: None,
            format: Format::default(),
            on_loss: OnLoss::default(),
            follow: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<RowsQuery, Failure> {
        query(&format!("/rows?{text}").parse().expect("a URL"))
    }

    #[test]
    fn what_can_be_asked_is_understood_and_all_else_refused() {
        assert_eq!(rows("").expect("a query"), RowsQuery::default());
        let asked = rows("from=17&to=20&columns=a.x,b%232&format=csv&on_loss=fail&follow=false");
        let asked = asked.expect("a query");
        assert_eq!((asked.from, asked.to), (From::Row(17), Some(20)));
        let columns = names(&asked.columns.expect("columns"));
        assert_eq!(columns.expect("names"), ["a.x", "b#2"]);
        assert!(names("a.x,b#2,a.x").is_err(), "a channel twice");
        assert_eq!((asked.format, asked.on_loss), (Format::Csv, OnLoss::Fail));
        assert!(!asked.follow);
        assert_eq!(rows("from=now").expect("a query").from, From::Now);
        for wrong in [
            "from=-1",
            "from=yesterday",
            "to=now",
            "form=1",
            "from=1&from=2",
            "follow=maybe",
            "format=xlsx",
        ] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }
}
