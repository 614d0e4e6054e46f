// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run, whatever it comes from: made here, another's, a recording, or one of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use strobe::engine::user::{Lock, ReplayOptions, Settings, Speed, User};
use strobe::error::Words;
use strobe::info::RunInfo;
use strobe::reader::{OnLoss, ReaderOptions};
use strobe::ring::{AfterLoss, Begin, State};
use strobe::run::{OwnedRun, Run as Any};
use strobe::runs::{RunName, Runs};
use strobe::stop::Stop;
use strobe_files::recipe::Recipe;
use strobe_files::record::{Observer, Options, Progress, record, record_rows};
use strobe_files::sink::Existing;
use strobe_remote::rows::{Begin as RemoteBegin, Part};
use strobe_remote::run::RemoteRun;

use crate::arrow;
use crate::begin::Since;
use crate::error::Failure;
use crate::patient::patient;
use crate::reader::Reader;
use crate::text::{info_text, snapshot_text};

/// Whose it is.
enum Kind {
    Own(Arc<dyn OwnedRun>),
    Others(Box<dyn Any>),
    File(PathBuf),
    Server(Arc<RemoteRun>),
}

/// A run that can be read.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Run {
    kind: Kind,
    info: RunInfo,
}

impl Run {
    /// A server's.
    pub fn of_server(run: RemoteRun) -> Run {
        let info = run.info().clone();
        Run {
            kind: Kind::Server(Arc::new(run)),
            info,
        }
    }

    /// What is asked of a run that somebody may steer.
    fn steer(
        &self,
        py: Python<'_>,
        verb: &'static str,
        own: impl FnOnce(&dyn OwnedRun) -> Result<(), strobe::error::Error> + Send,
        server: impl FnOnce(&RemoteRun) -> Result<(), strobe::error::Error> + Send + 'static,
    ) -> PyResult<()> {
        let done = match &self.kind {
            Kind::Own(run) => py.detach(|| own(run.as_ref())),
            Kind::Server(run) => {
                let run = Arc::clone(run);
                patient(py, move || server(&run))?
            }
            Kind::Others(_) | Kind::File(_) => {
                let why = format!(
                    "only the program that made it can {verb} it; here it can only be read"
                );
                return Err(Failure::of(&self.name(), why).into());
            }
        };
        Ok(done.map_err(Failure::from)?)
    }
}

#[pymethods]
impl Run {
    /// What it is called, among runs.
    #[getter]
    fn name(&self) -> String {
        match &self.kind {
            Kind::File(path) => path.display().to_string(),
            Kind::Server(run) => run.name(),
            _ => format!("run {}:{}", self.info.engine.name(), self.info.run),
        }
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
            |run| run.trigger(count),
            move |run| run.trigger(count).map(drop),
        )
    }

    /// State and counters, now, as JSON; `None` of a recording.
    fn look(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let snapshot = match &self.kind {
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
        let mut view = View {
            stop: Stop::default(),
            look,
            error: None,
        };
        let stop = view.stop.clone();
        let summary = match &self.kind {
            // Somebody may read it already.
            Kind::Own(run) => py.detach(|| match run.snapshot()?.state {
                State::Ready => record(run.as_ref(), &options, &stop, &mut view),
                _ => {
                    let first = ReaderOptions {
                        begin: Begin::Row(0),
                        ..ReaderOptions::default()
                    };
                    let mut rows = run.reader_with(first)?;
                    record_rows(&mut rows, &options, &stop, &mut view)
                }
            }),
            Kind::Server(run) => {
                let asked = Arc::clone(run);
                let begun = patient(py, move || match asked.look()?.state() {
                    State::Ready => asked.start().map(drop),
                    _ => Ok(()),
                });
                begun?.map_err(Failure::from)?;
                py.detach(|| {
                    let mut rows = run.rows(Part::from(RemoteBegin::Oldest));
                    record_rows(&mut rows, &options, &stop, &mut view)
                })
            }
            Kind::Others(run) => py.detach(|| {
                let mut rows = run.reader()?;
                record_rows(&mut rows, &options, &stop, &mut view)
            }),
            Kind::File(path) => py.detach(|| {
                let mut rows = strobe_files::open(path).map_err(strobe::error::Error::from)?;
                record_rows(rows.as_mut(), &options, &stop, &mut view)
            }),
        };
        if let Some(error) = view.error {
            return Err(error);
        }
        let summary = summary.map_err(|error| Failure::from(error.words()))?;
        serde_json::to_string(&summary).map_err(|error| Failure::of("summary", error).into())
    }

    /// A reader of its own. `begin` is a row, `oldest` or `now`.
    #[pyo3(signature = (begin = None, fail = false, follow = true))]
    fn reader(
        &self,
        py: Python<'_>,
        begin: Option<&str>,
        fail: bool,
        follow: bool,
    ) -> PyResult<Reader> {
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
                on_loss: match fail {
                    true => OnLoss::Fail,
                    false => OnLoss::Report,
                },
                after_loss: AfterLoss::default(),
            })
        };
        match &self.kind {
            Kind::Own(run) => Ok(Reader::of_ring(
                run.reader_with(options()?).map_err(Failure::from)?,
                follow,
            )),
            Kind::Others(run) => Ok(Reader::of_ring(
                run.reader_with(options()?).map_err(Failure::from)?,
                follow,
            )),
            Kind::File(path) => {
                let rows = py.detach(|| strobe_files::open(path));
                let rows = rows.map_err(|error| Failure::from(error.words()))?;
                let begin = match begin {
                    None | Some("oldest") => 0,
                    // No more are made.
                    Some("now") => u64::MAX,
                    Some(text) => row(text)?,
                };
                Ok(Reader::of_rows(Box::new(Since { rows, begin })))
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
                Ok(Reader::of_server(run.rows(part)))
            }
        }
    }
}

/// Looks on while a run is recorded, for Python.
struct View {
    stop: Stop,
    look: Option<Py<PyAny>>,
    /// What a handler of signals, or who looks on, has raised.
    error: Option<PyErr>,
}

impl Observer for View {
    fn progress(&mut self, now: Progress) {
        let said = Python::attach(|py| {
            py.check_signals()?;
            if let Some(look) = &self.look {
                look.call1(py, (now.rows, now.missed, now.lost))?;
            }
            Ok(())
        });
        if let Err(error) = said {
            self.error.get_or_insert(error);
            self.stop.interrupt.store(true, Ordering::Relaxed);
        }
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
    let run = py.detach(|| {
        selection
            .choose(&plan)
            .and_then(|chosen| Ok(chosen.create(&plan)?))
    });
    let run = run.map_err(|error| Failure::from(Words::from(&error)))?;
    let info = run.info().clone();
    Ok(Run {
        kind: Kind::Own(run),
        info,
    })
}

/// Another's run on this machine, by its name.
pub fn attach(py: Python<'_>, name: &str) -> PyResult<Run> {
    let name: RunName = name
        .parse()
        .map_err(|why| Failure::of(&format!("run {name}"), why))?;
    let run = py.detach(|| {
        let place = Runs::now().find(&name).map_err(Failure::text)?;
        place
            .attach()
            .map_err(|error| Failure::from(Words::from(&error)))
    })?;
    let info = run.info().clone();
    Ok(Run {
        kind: Kind::Others(run),
        info,
    })
}

/// A recording.
#[pyfunction]
pub fn open(py: Python<'_>, path: PathBuf) -> PyResult<Run> {
    let info = py.detach(|| strobe_files::open(&path).map(|rows| rows.info().clone()));
    Ok(Run {
        info: info.map_err(|error| Failure::from(error.words()))?,
        kind: Kind::File(path),
    })
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
    let run = py.detach(|| {
        let rows = strobe_files::open(&path).map_err(|error| Failure::from(error.words()))?;
        User::new(settings)
            .replay(rows, &options)
            .map_err(Failure::from)
    })?;
    let info = run.info().clone();
    Ok(Run {
        kind: Kind::Own(Arc::new(run)),
        info,
    })
}
