// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any part of a run in a few points, for a picture of it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, Uri};
use serde::Deserialize;
use strobe::error::Words;

use super::Http;
use super::bins::{Bins, POINTS_MAX};
use super::failure::Failure;
use super::query::{names, place, query};
use super::runs::run;
use crate::cursor::From;

/// Rows that are read at once.
const ROWS: usize = 8192;
/// Points, unless it is said.
const POINTS: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TraceQuery {
    #[serde(deserialize_with = "place")]
    from: From,
    to: Option<u64>,
    points: usize,
    columns: Option<String>,
}

impl Default for TraceQuery {
    fn default() -> Self {
        TraceQuery {
            from: From::Oldest,
            to: None,
            points: POINTS,
            columns: None,
        }
    }
}

/// `GET /api/runs/ID/trace`
pub async fn trace(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<([(HeaderName, &'static str); 1], Vec<u8>), Failure> {
    let asked: TraceQuery = query(&uri)?;
    let served = run(&http, &id)?;
    let wanted = asked.columns.as_deref().map(names).transpose()?;
    if !(1..=POINTS_MAX).contains(&asked.points) {
        let words = Words::new("points", format!("{} are not possible", asked.points));
        return Err(Failure::bad(
            words.mend(format!("ask for 1 to {POINTS_MAX}")),
        ));
    }
    let bins = Bins::new(&served.info(), wanted.as_deref(), asked.points);
    let none = |why| {
        let words = Words::new(format!("run {id}"), why);
        Failure::refused(words.mend("leave out `columns` to get all"))
    };
    let mut bins = bins.map_err(none)?;
    // Each takes a processor's time; a few at once are enough for all.
    let _turn = http.traces.acquire().await;
    let mut cursor = served.cursor(asked.from);
    let to = asked.to.unwrap_or(u64::MAX).min(served.progress().next);
    while cursor.next_row() < to {
        let left = usize::try_from(to - cursor.next_row()).unwrap_or(ROWS);
        let Some(block) = cursor.next(left.min(ROWS)).await else {
            break;
        };
        if block.first() + block.len() as u64 <= to {
            bins.add(&block);
        } else {
            // Rows were lost before it, so that it goes on after those that were asked for.
            bins.add_up_to(&block, to);
        }
        tokio::task::yield_now().await;
    }
    let kind = [(CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, bins.take()))
}
