// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run, whatever it comes from: made here, another's, a recording, or one of a server.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use strobe::engine::user::{Lock, ReplayOptions, Settings, Speed, User};
use strobe::error::{Error, Words};
use strobe::info::RunInfo;
use strobe::program::ProgramText;
use strobe::reader::ReaderOptions;
use strobe::ring::{Begin, State};
use strobe::run::{OwnedRun, Run as Any};
use strobe::runs::{RunName, Runs};
use strobe::stop::Stop;
use strobe_files::recipe::Recipe;
use strobe_files::record::{self, Observer, Options, Progress, record_rows};
use strobe_files::sink::Existing;
use strobe_files::summary::Summary;
use strobe_remote::rows::{Begin as RemoteBegin, Part};
use strobe_remote::run::RemoteRun;

use crate::arrow;
use crate::error::Failure;
use crate::ours::Ours;
use crate::patient::{Answer, patient};
use crate::reader::{Losses, LostRows, Reader};
use crate::recording::{Recording, Since};
use crate::text::{info_text, snapshot_text};

/// While it is recorded, it is looked for signals this often: a recording needs some time to end in an orderly way.
const RECORDING_LOOK: Duration = Duration::from_millis(20);

/// What there is to be done about rows that are lost in a recording.
const LOST_BY_RECORDING: &str =
    "they were lost when it was recorded: take the rows that are there, with on_loss=\"report\"";
/// The same, of a run of a server.
const LOST_BY_SERVER: &str =
    "read them sooner, or give its ring, or the spool of the daemon, more room";

/// Whose it is.
#[derive(Clone)]
enum Kind {
    Own(Arc<dyn OwnedRun>),
    Others(Arc<dyn Any>),
    File(Recording),
    Server(Arc<RemoteRun>),
}

/// A run that can be read.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Run {
    kind: Ours<Kind>,
    name: String,
    info: RunInfo,
}

impl Run {
    fn new(kind: Kind, info: RunInfo) -> Run {
        let name = match &kind {
            Kind::File(file) => file.path.display().to_string(),
            Kind::Server(run) => run.name(),
            Kind::Own(_) | Kind::Others(_) => format!("run {}:{}", info.engine.name(), info.run),
        };
        Run {
            kind: Ours::new(kind),
            name,
            info,
        }
    }

    /// A server's.
    pub fn of_server(run: RemoteRun) -> Run {
        let info = run.info().clone();
        Run::new(Kind::Server(Arc::new(run)), info)
    }

    fn kind(&self) -> PyResult<&Kind> {
        self.kind.get(&self.name)
    }

    /// What is asked of a run that somebody may steer. One of this machine answers between two rows, and a row may wait for a
    /// slow channel.
    fn steer(
        &self,
        py: Python<'_>,
        verb: &'static str,
        own: impl FnOnce(&dyn OwnedRun) -> Result<(), Error> + Send + 'static,
        server: impl FnOnce(&RemoteRun) -> Result<(), Error> + Send + 'static,
    ) -> PyResult<()> {
        let done = match self.kind()?.clone() {
            Kind::Own(run) => patient(py, move || own(run.as_ref()))?,
            Kind::Server(run) => patient(py, move || server(&run))?,
            Kind::Others(_) | Kind::File(_) => {
                let why = format!(
                    "only the program that made it can {verb} it; here it can only be read"
                );
                return Err(Failure::of(&self.name, why).into());
            }
        };
        Ok(done.map_err(Failure::from)?)
    }
}

#[pymethods]
impl Run {
    /// What it is called, among runs.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether this process has made it, and not one that has forked since.
    #[getter]
    fn is_ours(&self) -> bool {
        self.kind.is_ours()
    }

    /// What is known of it, as JSON.
    #[getter]
    fn info(&self) -> String {
        info_text(&self.info)
    }

    /// The columns of its rows, as Arrow's C interface has them.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.info)
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        self.steer(py, "start", |run| run.start(), |run| run.start().map(drop))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.steer(py, "stop", |run| run.stop(), |run| run.stop().map(drop))
    }

    /// Ends it, and gives up its rows; of a run of this machine those go with whoever reads them last.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        self.steer(py, "remove", |run| run.stop(), |run| run.remove())
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        self.steer(py, "pause", |run| run.pause(), |run| run.pause().map(drop))
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.steer(
            py,
            "resume",
            |run| run.resume(),
            |run| run.resume().map(drop),
        )
    }

    fn trigger(&self, py: Python<'_>, count: u32) -> PyResult<()> {
        self.steer(
            py,
            "trigger",
            move |run| run.trigger(count),
            move |run| run.trigger(count).map(drop),
        )
    }

    /// Gives a tunable of its program a new value; that of another program, too, as far as this user may.
    fn tune(&self, py: Python<'_>, name: String, value: String) -> PyResult<()> {
        if let Kind::Others(run) = self.kind()? {
            let run = Arc::clone(run);
            let tuned = patient(py, move || run.tune(&name, &value))?;
            return Ok(tuned.map_err(Failure::from)?);
        }
        let (there, new) = (name.clone(), value.clone());
        self.steer(
            py,
            "tune",
            move |run| run.tune(&name, &value),
            move |run| run.tune(&there, &new).map(drop),
        )
    }

    /// State and counters, now, as JSON; `None` of a recording.
    fn look(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let snapshot = match self.kind()? {
            Kind::Own(run) => run.snapshot(),
            Kind::Others(run) => run.snapshot(),
            Kind::Server(run) => {
                let run = Arc::clone(run);
                patient(py, move || run.look())?.map(|view| view.snapshot())
            }
            Kind::File(_) => return Ok(None),
        };
        Ok(Some(snapshot_text(&snapshot.map_err(Failure::from)?)))
    }

    /// Records it into these sinks, and answers the summary as JSON; one that was made here is started for it, and is at its
    /// end then. `look` is called ten times a second with rows, missed and lost. Ctrl-C ends the recording in an orderly way.
    #[pyo3(signature = (sinks, overwrite, sync, last, look))]
    fn record(
        &self,
        py: Python<'_>,
        sinks: Vec<String>,
        overwrite: bool,
        sync: bool,
        last: Option<u64>,
        look: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let options = Options {
            sinks,
            existing: match overwrite {
                true => Existing::Overwrite,
                false => Existing::Refuse,
            },
            sync,
            last,
            ..Options::default()
        };
        let kind = self.kind()?.clone();
        if let Kind::Server(run) = &kind {
            let asked = Arc::clone(run);
            let begun = patient(py, move || match asked.look()?.state() {
                State::Ready => asked.start().map(drop),
                _ => Ok(()),
            });
            begun?.map_err(Failure::from)?;
        }
        let (stop, now) = (Stop::default(), Arc::new(Mutex::new(None)));
        let mut answer = {
            let (stop, now) = (stop.clone(), Arc::clone(&now));
            Answer::of(move || {
                let mut said = move |progress: Progress| {
                    *now.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
                };
                recorded(&kind, &options, &stop, &mut said)
            })?
        };
        // It is read and written in a thread of its own; what is of Python is called here.
        let mut raised = Ok(());
        let summary = loop {
            let summary = answer.heard(py, RECORDING_LOOK)?;
            let now = now.lock().unwrap_or_else(PoisonError::into_inner).take();
            let looked = py.check_signals().and_then(|()| match (&look, now) {
                (Some(look), Some(now)) => {
                    look.call1(py, (now.rows, now.missed, now.lost)).map(drop)
                }
                _ => Ok(()),
            });
            if looked.is_err() {
                stop.interrupt.store(true, Ordering::Relaxed);
                raised = raised.and(looked);
            }
            if let Some(summary) = summary {
                break summary;
            }
        };
        raised?;
        let summary = summary.map_err(|error| Failure::from(error.words()))?;
        serde_json::to_string(&summary).map_err(|error| Failure::of("summary", error).into())
    }

    /// A reader of its own. `begin` is a row, `oldest` or `now`; it says there what it has `lost`.
    #[pyo3(signature = (begin = None, fail = false, follow = true, lost = None))]
    fn reader(
        &self,
        py: Python<'_>,
        begin: Option<&str>,
        fail: bool,
        follow: bool,
        lost: Option<Py<LostRows>>,
    ) -> PyResult<Reader> {
        let losses = |remedy| Losses {
            fail: fail.then(|| (self.name.clone(), remedy)),
            said: lost,
        };
        let row = |text: &str| {
            text.parse().map_err(|_| {
                PyValueError::new_err(format!(
                    "begin is {text:?}: use the number of a row, \"oldest\" or \"now\""
                ))
            })
        };
        let options = || {
            Ok::<_, PyErr>(ReaderOptions {
                begin: match begin {
                    None | Some("oldest") => Begin::Oldest,
                    Some("now") => Begin::Now,
                    Some(text) => Begin::Row(row(text)?),
                },
                ..ReaderOptions::default()
            })
        };
        match self.kind()? {
            Kind::Own(run) => Ok(Reader::of_ring(
                run.reader_with(options()?).map_err(Failure::from)?,
                follow,
                losses(None),
            )),
            Kind::Others(run) => Ok(Reader::of_ring(
                run.reader_with(options()?).map_err(Failure::from)?,
                follow,
                losses(None),
            )),
            Kind::File(file) => {
                let file = file.clone();
                let rows = patient(py, move || file.rows())?.map_err(Failure::from)?;
                let begin = match begin {
                    None | Some("oldest") => 0,
                    // No more are made.
                    Some("now") => u64::MAX,
                    Some(text) => row(text)?,
                };
                let losses = losses(Some(LOST_BY_RECORDING));
                Ok(Reader::of_rows(Box::new(Since { rows, begin }), losses))
            }
            Kind::Server(run) => {
                let from = match begin {
                    None | Some("oldest") => RemoteBegin::Oldest,
                    Some("now") => RemoteBegin::Now,
                    Some(text) => RemoteBegin::Row(row(text)?),
                };
                let part = Part {
                    from,
                    to: None,
                    follow,
                };
                let losses = losses(Some(LOST_BY_SERVER));
                Ok(Reader::of_server(run.rows(part), losses))
            }
        }
    }
}

/// Records a run into sinks: one that was made here and is ready is started for it.
fn recorded(
    kind: &Kind,
    options: &Options,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Summary, record::Error> {
    match kind {
        // Somebody may read it already.
        Kind::Own(run) => match run.snapshot()?.state {
            State::Ready => record::record(run.as_ref(), options, stop, observer),
            _ => {
                let first = ReaderOptions {
                    begin: Begin::Row(0),
                    ..ReaderOptions::default()
                };
                record_rows(&mut run.reader_with(first)?, options, stop, observer)
            }
        },
        Kind::Server(run) => {
            let mut rows = run.rows(Part::from(RemoteBegin::Oldest));
            record_rows(&mut rows, options, stop, observer)
        }
        Kind::Others(run) => record_rows(&mut run.reader()?, options, stop, observer),
        Kind::File(file) => record_rows(file.rows()?.as_mut(), options, stop, observer),
    }
}

/// The text of a recipe's file, with all that it says; a board is found from anywhere.
#[pyfunction]
pub fn recipe(path: PathBuf) -> PyResult<String> {
    Ok(Recipe::read(&path).map_err(Failure::text)?.to_toml())
}

/// The run of this recipe.
pub fn create(py: Python<'_>, recipe: &Recipe) -> PyResult<Run> {
    let mut selection = recipe.selection().map_err(Failure::text)?;
    // Python's memory is its own affair.
    selection.lock = Lock::RingAndStack;
    let plan = recipe.plan();
    if recipe.needs_a_clock() {
        return Err(Failure::text(
            "seconds: they give no number of rows here, because the event has no period, or a program chooses rows; \
             use rows=, or call stop() in time",
        )
        .into());
    }
    let run = patient(py, move || {
        let run = selection
            .choose(&plan)
            .and_then(|chosen| Ok(chosen.create(&plan)?));
        run.map_err(|error| Words::from(&error))
    })?;
    let run = run.map_err(Failure::from)?;
    let info = run.info().clone();
    Ok(Run::new(Kind::Own(run), info))
}

/// Another's run on this machine, by its name.
pub fn attach(py: Python<'_>, name: &str) -> PyResult<Run> {
    let name: RunName = name
        .parse()
        .map_err(|why| Failure::of(&format!("run {name}"), why))?;
    let run = patient(py, move || {
        let place = Runs::now().find(&name).map_err(Failure::text)?;
        place
            .attach()
            .map_err(|error| Failure::from(Words::from(&error)))
    })?;
    let run = run?;
    let info = run.info().clone();
    Ok(Run::new(Kind::Others(Arc::from(run)), info))
}

/// A recording, or what a program makes of it.
#[pyfunction]
#[pyo3(signature = (path, derive = Vec::new(), keep = Vec::new(), every = None))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    derive: Vec<String>,
    keep: Vec<String>,
    every: Option<u64>,
) -> PyResult<Run> {
    let program = ProgramText {
        derive,
        keep,
        every,
        ..ProgramText::default()
    };
    let file = Recording { path, program };
    let kind = Kind::File(file.clone());
    let info = patient(py, move || file.rows().map(|rows| rows.info().clone()))?;
    Ok(Run::new(kind, info.map_err(Failure::from)?))
}

/// A recording as a run of this machine, so many times as fast as it was; `None`: as fast as can be.
#[pyfunction]
#[pyo3(signature = (path, speed = None))]
pub fn replay(py: Python<'_>, path: PathBuf, speed: Option<f64>) -> PyResult<Run> {
    let settings = Settings {
        lock: Lock::RingAndStack,
        ..Settings::default()
    };
    let options = ReplayOptions {
        speed: speed.map_or(Speed::Max, Speed::Times),
        ..ReplayOptions::default()
    };
    let run = patient(py, move || {
        let rows = strobe_files::open(&path).map_err(|error| Failure::from(error.words()))?;
        User::new(settings)
            .replay(rows, &options)
            .map_err(Failure::from)
    })?;
    let run = run?;
    let info = run.info().clone();
    Ok(Run::new(Kind::Own(Arc::new(run)), info))
}
