// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: what it has, how it is, and one value of it, now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strobe::catalogue::Catalogue;
use strobe::engine::kernel::Control;
use strobe::engine::user::registry::Registry;
use strobe::engine::user::{Lock, User};
use strobe::error::Words;
use strobe::once::{self, Once, once};
use strobe::plan::Step;
use strobe::select::Selection;
use strobe_measure::doctor::{CHECKS, CheckResult, Intent, System};
use tokio::sync::Mutex;

use super::Http;
use super::body::{JsonBody, word};
use super::failure::{Failure, blocking};
use super::query::{names, query};
use super::recipes::no_path;
use crate::access::Role;

/// How old what is said of the machine may be.
const FRESH: Duration = Duration::from_secs(10);

/// What is known of the machine, and who uses it.
#[derive(Default)]
pub struct Machine {
    health: Arc<Mutex<Option<(Instant, Value)>>>,
    /// One row at a time: each takes a thread of high priority.
    row: Arc<Mutex<()>>,
}

/// The machine's own name.
pub fn name() -> String {
    let about = rustix::system::uname();
    about.nodename().to_string_lossy().into_owned()
}

/// `GET /api`
pub async fn about(State(http): State<Arc<Http>>, Extension(role): Extension<Role>) -> Json<Value> {
    let panda = &http.daemon.config.panda;
    let panda = panda.listen.map(|_| [panda.control, panda.data]);
    Json(json!({
        "strobe": env!("CARGO_PKG_VERSION"),
        "machine": name(),
        "role": role,
        "panda": panda,
    }))
}

/// `GET /api/catalogue`
pub async fn catalogue() -> Result<Json<Value>, Failure> {
    let work = || {
        let kernel: Option<Catalogue> =
            Control::look().and_then(|control| control.catalogue()).ok();
        let mut user = User::default().catalogue();
        // Without a registry there are none to be seen.
        user.runs = Registry::of_this_user()
            .runs()
            .map(|found| found.runs)
            .unwrap_or_default();
        Ok(Json(json!({"kernel": kernel, "user": user})))
    };
    blocking("catalogue", work).await
}

/// `GET /api/health`
pub async fn health(State(http): State<Arc<Http>>) -> Result<Json<Value>, Failure> {
    let mut known = Arc::clone(&http.machine.health).lock_owned().await;
    let fresh = known.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
    if let Some((_, health)) = fresh {
        return Ok(Json(health.clone()));
    }
    let work = move || {
        let (system, intent) = (System::this_one(), Intent::default());
        let fitting = CHECKS.iter().filter(|check| check.fits(&system, &intent));
        let notes: Vec<CheckResult> = fitting
            .map(|check| check.result(&system, &intent))
            .collect();
        let health = json!({"notes": notes});
        // Held by the work: who asks and goes away does not make the next one begin anew.
        *known = Some((Instant::now(), health.clone()));
        Ok(Json(health))
    };
    blocking("health", work).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetQuery {
    channels: String,
}

/// What was read.
#[derive(Serialize)]
pub struct Got {
    time_ns: u64,
    values: Map<String, Value>,
}

/// `GET /api/get`
pub async fn get(State(http): State<Arc<Http>>, uri: Uri) -> Result<Json<Got>, Failure> {
    let GetQuery { channels } = query(&uri)?;
    let channels = names(&channels)?;
    if channels.is_empty() {
        let words = Words::new("channels", "none is named");
        return Err(Failure::bad(words.mend("name at least one")));
    }
    channels.iter().try_for_each(|name| no_path(name))?;
    let steps = channels.into_iter().map(Step::Read).collect();
    let row = row(&http, steps).await?;
    let values = row.values.into_iter().map(|(channel, word)| {
        let value = word.map_or(Value::Null, |word| channel.json(word));
        (channel.name, value)
    });
    Ok(Json(Got {
        time_ns: row.time_ns,
        values: values.collect(),
    }))
}

/// What a client wants to write.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    outputs: Map<String, Value>,
}

/// What was written.
#[derive(Serialize)]
pub struct Written {
    time_ns: u64,
    outputs: Map<String, Value>,
}

/// `POST /api/set`
pub async fn set(
    State(http): State<Arc<Http>>,
    JsonBody(asked): JsonBody<Set>,
) -> Result<Json<Written>, Failure> {
    let mut steps = Vec::new();
    for (output, value) in asked.outputs {
        no_path(&output)?;
        let Some(value) = value.as_number().and_then(word) else {
            let words = Words::new(
                format!("output {output}"),
                format!("{value} is not a whole number"),
            );
            return Err(Failure::bad(
                words.mend("write a whole number of at most 64 bits"),
            ));
        };
        steps.push(Step::Write { output, value });
    }
    if steps.is_empty() {
        let words = Words::new("outputs", "none is named");
        return Err(Failure::bad(words.mend("name at least one, and its value")));
    }
    let row = row(&http, steps).await?;
    let written = row.outputs.into_iter();
    Ok(Json(Written {
        time_ns: row.time_ns,
        outputs: written.map(|(name, done)| (name, done.into())).collect(),
    }))
}

/// Makes one row of these steps.
async fn row(http: &Http, steps: Vec<Step>) -> Result<Once, Failure> {
    let turn = Arc::clone(&http.machine.row).lock_owned().await;
    let work = move || {
        // Held by the work: who asks does not end it by going away.
        let _turn = turn;
        let object = match steps.as_slice() {
            [Step::Read(name)] => format!("channel {name}"),
            [Step::Write { output, .. }] => format!("output {output}"),
            _ => "row".to_owned(),
        };
        let refused = |error: String| Failure::refused(Words::new(&object, error));
        let selection = Selection {
            lock: Lock::RingAndStack,
            ..Selection::default()
        };
        let plan = once::plan(steps.clone());
        let chosen = selection.choose(&plan);
        let chosen = chosen.map_err(|error| refused(error.to_string()))?;
        let run = chosen.create(&plan);
        let run = run.map_err(|error| Failure::refused(error.words()))?;
        once(run.as_ref()).map_err(|error| refused(error.to_string()))
    };
    blocking("row", work).await
}
