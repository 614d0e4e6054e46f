// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: what there are, and what is done with them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use strobe::error::Words;
use strobe_files::recipe::Recipe;
use tokio::time::timeout;

use super::Http;
use super::body::{JsonBody, word};
use super::failure::{Failure, blocking};
use super::recipes::{self, of_client};
use super::view::RunView;
use crate::served_run::{Refusal, ServedRun};
use crate::spool::Progress;

/// Triggers that one request can make, at most.
const TRIGGERS: u32 = 100_000;
/// Those that are made at once: between them the run hears what else it is told, and others have their turn.
const AT_ONCE: u32 = 1000;
/// So long the rows that are in the ring when a run is stopped may take into the spool, before the answer is given without them.
const LAST_ROWS: Duration = Duration::from_secs(5);

/// The answer to `GET /api/runs`.
#[derive(Serialize)]
pub struct List {
    runs: Vec<RunView>,
}

/// The run of this number.
///
/// # Errors
/// There is none.
pub fn run(http: &Http, id: &str) -> Result<Arc<ServedRun>, Failure> {
    let served = id.parse().ok().and_then(|id| http.daemon.runs.get(id));
    served.ok_or_else(|| {
        let words = Words::new(format!("run {id}"), "there is no such run");
        Failure::none(words.mend("GET /api/runs shows the runs"))
    })
}

/// `GET /api/runs`
pub async fn list(State(http): State<Arc<Http>>) -> Json<List> {
    let runs = http.daemon.runs.list();
    let runs = runs.iter().map(|served| RunView::of(served)).collect();
    Json(List { runs })
}

/// `GET /api/runs/ID`
pub async fn show(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Failure> {
    Ok(Json(RunView::of(run(&http, &id)?.as_ref())))
}

/// What a client says to make a run: one of the two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    recipe: Option<String>,
    name: Option<String>,
    #[serde(default = "yes")]
    start: bool,
}

fn yes() -> bool {
    true
}

/// `POST /api/runs`
pub async fn create(
    State(http): State<Arc<Http>>,
    JsonBody(asked): JsonBody<Create>,
) -> Result<(StatusCode, Json<RunView>), Failure> {
    let work = move || {
        let (name, recipe) = match (asked.recipe, asked.name) {
            (Some(text), None) => {
                let recipe = of_client("recipe", &text)?;
                (recipe.event.to_string(), recipe)
            }
            (None, Some(name)) => {
                let recipe = recipes::named(&http, &name)?;
                (name, recipe)
            }
            _ => {
                let words = Words::new("request", "it must have either `recipe` or `name`");
                return Err(Failure::bad(words.mend(
                    "give the text of a recipe, or the name of one on this server",
                )));
            }
        };
        make(&http, &name, &recipe, asked.start)
    };
    blocking("run", work).await
}

fn make(
    http: &Http,
    name: &str,
    recipe: &Recipe,
    start: bool,
) -> Result<(StatusCode, Json<RunView>), Failure> {
    let runs = &http.daemon.runs;
    let most = http.limits.runs;
    let made = runs.create_within(most, name, recipe);
    let Some(served) = made.map_err(Failure::refused)? else {
        let words = Words::new(
            format!("run {name}"),
            format!("{most} runs have not ended yet, which is the limit"),
        );
        return Err(Failure::conflict(
            words.mend("stop one, or raise `runs` in [limits]"),
        ));
    };
    if start {
        if let Err(words) = served.start() {
            runs.remove(served.id());
            return Err(Failure::refused(words));
        }
    }
    Ok((StatusCode::CREATED, Json(RunView::of(&served))))
}

/// `DELETE /api/runs/ID`
pub async fn remove(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failure> {
    let id = run(&http, &id)?.id();
    let work = move || {
        http.daemon.runs.remove(id);
        Ok(StatusCode::NO_CONTENT)
    };
    blocking("run", work).await
}

/// `POST /api/runs/ID/start`
pub async fn start(http: State<Arc<Http>>, id: Path<String>) -> Result<Json<RunView>, Failure> {
    control(http, id, ServedRun::start).await
}

/// `POST /api/runs/ID/stop`
pub async fn stop(http: State<Arc<Http>>, id: Path<String>) -> Result<Json<RunView>, Failure> {
    let served = run(&http, &id)?;
    let _ = control(http, id, ServedRun::stop).await?;
    // Until its last rows are here. Should they not come, the answer says so: it has no end.
    let mut progress = served.spool().watch();
    let _ = timeout(LAST_ROWS, progress.wait_for(Progress::is_over)).await;
    Ok(Json(RunView::of(&served)))
}

/// `POST /api/runs/ID/pause`
pub async fn pause(http: State<Arc<Http>>, id: Path<String>) -> Result<Json<RunView>, Failure> {
    control(http, id, ServedRun::pause).await
}

/// `POST /api/runs/ID/resume`
pub async fn resume(http: State<Arc<Http>>, id: Path<String>) -> Result<Json<RunView>, Failure> {
    control(http, id, ServedRun::resume).await
}

/// What a client says to trigger a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    count: Number,
}

/// `POST /api/runs/ID/trigger`
pub async fn trigger(
    http: State<Arc<Http>>,
    Path(id): Path<String>,
    JsonBody(asked): JsonBody<Trigger>,
) -> Result<Json<RunView>, Failure> {
    let count = word(&asked.count).and_then(|count| u32::try_from(count).ok());
    let Some(count) = count.filter(|count| (1..=TRIGGERS).contains(count)) else {
        let reason = format!("{} triggers at once are not possible", asked.count);
        let words = Words::new("count", reason);
        return Err(Failure::bad(words.mend(format!("ask for 1 to {TRIGGERS}"))));
    };
    let mut left = count;
    loop {
        let turn = http.triggers.acquire().await;
        let now = left.min(AT_ONCE);
        left -= now;
        let view = control(http.clone(), Path(id.clone()), move |served| {
            served.trigger(now)
        });
        let view = view.await;
        drop(turn);
        match view {
            // It has ended, as it may in the midst of a thousand.
            Err(_) if left + now < count => return show(http, Path(id)).await,
            view if left == 0 || view.is_err() => return view,
            _ => {}
        }
    }
}

/// What a client says to tune a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    name: String,
    value: Tuned,
}

/// A number, in the unit of the tunable's column; or a text, which may have another unit.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Tuned {
    Number(Number),
    Text(String),
}

/// `POST /api/runs/ID/tune`
pub async fn tune(
    http: State<Arc<Http>>,
    id: Path<String>,
    JsonBody(asked): JsonBody<Tune>,
) -> Result<Json<RunView>, Failure> {
    let value = match asked.value {
        Tuned::Number(number) => number.to_string(),
        Tuned::Text(text) => text,
    };
    control(http, id, move |served| served.tune(&asked.name, &value)).await
}

async fn control<E: Into<Refusal>>(
    State(http): State<Arc<Http>>,
    Path(id): Path<String>,
    call: impl FnOnce(&ServedRun) -> Result<(), E> + Send + 'static,
) -> Result<Json<RunView>, Failure> {
    let served = run(&http, &id)?;
    let work = move || {
        call(&served).map_err(|error| match error.into() {
            Refusal {
                words,
                is_wrong: true,
            } => Failure::bad(words),
            Refusal { words, .. } => Failure::conflict(words),
        })?;
        Ok(Json(RunView::of(&served)))
    };
    blocking("run", work).await
}
