// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the rows of one run from the bus into files, on any machine; or those of two, joined by time.
//!
//! The bus remembers how far this subscriber has come with a run, by its name. A message is acknowledged once its rows
//! are in the files, so that one that is killed goes on where it was.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::Stream;
use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use strobe::error::Words;
use strobe::stop::Stop;
use strobe_files::sink::{Existing, is_whole_or_nothing};
use strobe_files::summary::Summary;
use tokio::time::sleep;

use super::bus_recording::{BusRecording, Joining};
pub use super::join::Matches;
use super::publish::with_sources;
use super::run_receiver::{Choice, RunReceiver};
use super::{AGAIN, PREFIX, connect, shown, word};

/// What to take, and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the bus is.
    pub url: String,
    /// The stream that keeps the rows.
    pub stream: String,
    /// The run: the name of its recipe, or its whole subject. None: the only one. Two, if they are to be joined.
    pub runs: Vec<String>,
    /// Two runs are joined: rows that are no further apart than this.
    pub join: Option<Duration>,
    /// Under which name the bus remembers how far this has come.
    pub name: String,
    /// Where rows go.
    pub sinks: Vec<String>,
    /// What becomes of files that are there already.
    pub existing: Existing,
}

/// What has become of it.
pub enum Outcome {
    /// Rows were taken. If they were joined, how many found each other.
    Recorded(Box<Summary>, Option<Matches>),
    /// Under this name all of the run was taken before.
    TakenBefore,
    /// It was told to stop before there were any rows.
    Interrupted,
}

/// Takes the rows of a run to its end, or until it is told to stop.
///
/// # Errors
/// There is no such run, or nothing can be written.
pub fn subscribe(options: Options, stop: &Stop) -> BoxFuture<'_, Result<Outcome, Words>> {
    Box::pin(take(options, stop))
}

async fn take(options: Options, stop: &Stop) -> Result<Outcome, Words> {
    check(&options)?;
    let context = connect(&options.url).await?;
    let wanted = options.runs.iter().map(Some);
    let wanted = wanted.chain(options.runs.is_empty().then_some(None));
    let mut found = Vec::new();
    for run in wanted {
        match find(&context, &options, run.map(String::as_str), stop).await? {
            Some(run) => found.push(run),
            None => return Ok(Outcome::Interrupted),
        }
    }
    let mut found = found.into_iter();
    let (Some(first), second) = (found.next(), found.next()) else {
        return Ok(Outcome::Interrupted);
    };
    if second
        .as_ref()
        .is_some_and(|(subject, _)| *subject == first.0)
    {
        let words = Words::new(&first.0, "a run cannot be joined with itself");
        return Err(words.mend("name two different runs: --run A --run B"));
    }
    let joining = options.join.zip(second.as_ref());
    let joining = joining.map(|(within, (subject, _))| Joining {
        within,
        name: machine(subject),
    });
    let recording = BusRecording::new(options.sinks, options.existing, joining);
    let done = Arc::default();
    let receive = |run, is_first| RunReceiver::new(&options.name, run, &recording, is_first, &done);
    let (mut first, mut second) = (receive(first, true), second.map(|run| receive(run, false)));
    let others = async {
        match &mut second {
            Some(second) => second.run(stop).await,
            None => Ok(()),
        }
    };
    let (taken, others) = tokio::join!(first.run(stop), others);
    taken.and(others)?;
    let Some(recorder) = recording.recording() else {
        return Ok(match first.is_over() {
            true => Outcome::TakenBefore,
            false => Outcome::Interrupted,
        });
    };
    let summary = tokio::task::spawn_blocking(move || recorder.join()).await;
    let failed = |why: String| Words::new("the recording", why);
    let summary = summary.map_err(|error| failed(error.to_string()))?;
    let summary = summary.map_err(|error| failed(error.to_string()))?;
    let is_whole = summary.sinks.iter().all(|sink| sink.error.is_none());
    // If the bus is not reachable just now, what was not acknowledged comes once more to who starts this again.
    let told = first.acknowledge(is_whole).await;
    if let (Ok(()), Some(second)) = (told, &mut second) {
        let _ = second.acknowledge(is_whole).await;
    }
    Ok(Outcome::Recorded(Box::new(summary), recording.matches()))
}

/// What can be asked for.
fn check(options: &Options) -> Result<(), Words> {
    let runs = options.runs.len();
    let wrong = match (runs, options.join) {
        (2, Some(_)) | (0 | 1, None) => None,
        (_, Some(_)) => Some("--join takes exactly two runs"),
        (_, None) => Some("several runs go into one file only if they are joined"),
    };
    if let Some(why) = wrong {
        let words = Words::new(format!("{runs} runs"), why);
        return Err(words
            .mend("name both, and how far apart their rows may be: --run A --run B --join 1ms"));
    }
    // What was acknowledged does not come again, so that it must be in a file by then.
    let Some(sink) = (options.sinks.first())
        .filter(|_| options.sinks.iter().all(|name| is_whole_or_nothing(name)))
    else {
        return Ok(());
    };
    let why = "a Parquet file is readable only when it is complete, but rows are acknowledged on the bus as they come";
    let words = Words::new(format!("sink {sink}"), why);
    Err(words
        .mend("write a journal and convert it: -o X.arrows; strobe convert X.arrows X.parquet"))
}

/// The machine that publishes to this subject.
fn machine(subject: &str) -> String {
    subject.split('.').nth(1).unwrap_or("other").to_owned()
}

/// Where a run is, as soon as there is one; `None`: it was told to stop.
async fn find(
    context: &Context,
    options: &Options,
    run: Option<&str>,
    stop: &Stop,
) -> Result<Option<(String, Stream)>, Words> {
    let mut said = String::new();
    while !stop.is_over() {
        let found = match context.get_stream(&options.stream).await {
            Ok(stream) => match choose(&stream, &options.stream, run).await {
                Ok(Some(subject)) => {
                    eprintln!("strobe subscribe: {subject}");
                    return Ok(Some((subject, stream)));
                }
                Ok(None) => match run {
                    Some(run) => format!("it has no run {run} yet"),
                    None => "it has no run yet".to_owned(),
                },
                Err(Choice::Words(words)) => return Err(words),
                Err(Choice::Away(why)) => why,
            },
            Err(error) => with_sources(&error),
        };
        if found != said {
            eprintln!(
                "strobe subscribe: {}, stream {}: {found}; waiting for it",
                shown(&options.url),
                options.stream
            );
            said = found;
        }
        sleep(AGAIN).await;
    }
    Ok(None)
}

/// The subject of the run that is meant.
async fn choose(stream: &Stream, name: &str, run: Option<&str>) -> Result<Option<String>, Choice> {
    let filter = match run {
        Some(run) if run.starts_with(&format!("{PREFIX}.")) => run.to_owned(),
        Some(run) => format!("{PREFIX}.*.{}.*", word(run)),
        None => format!("{PREFIX}.>"),
    };
    let away = |error: &dyn std::error::Error| Choice::Away(with_sources(error));
    let found = stream.info_with_subjects(&filter).await;
    let found = found.map_err(|error| away(&error))?;
    let found: Vec<(String, usize)> = found.try_collect().await.map_err(|error| away(&error))?;
    let mut subjects: Vec<String> = found.into_iter().map(|(subject, _)| subject).collect();
    subjects.sort_unstable();
    match subjects.as_slice() {
        [] => Ok(None),
        [subject] => Ok(Some(subject.clone())),
        several => Err(Choice::Words(
            Words::new(format!("stream {name}"), "it has several such runs")
                .mend(format!("name one: --run {}", several.join(", or --run "))),
        )),
    }
}
