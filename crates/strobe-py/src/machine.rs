// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is: on this machine, or on that of a server.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use strobe::error::{Error, Words};
use strobe::machine::{self, ThisMachine};
use strobe::once::{self, once};
use strobe::plan::Step;
use strobe::select::Selection;
use strobe_files::recipe::{Recipe, setting};
use strobe_remote::server::{Access, Hints, Server};

use crate::error::Failure;
use crate::ours::Ours;
use crate::patient::patient;
use crate::run::Run;

/// A machine with engines and runs.
#[pyclass(frozen, module = "strobe._strobe")]
pub struct Machine(Option<Ours<Server>>);

/// The machine of a server.
#[pyfunction]
#[pyo3(signature = (url, token = None, ca = None))]
pub fn connect(
    py: Python<'_>,
    url: String,
    token: Option<String>,
    ca: Option<PathBuf>,
) -> PyResult<Machine> {
    let access = Access {
        token,
        ca,
        hints: Hints {
            token: " (`token=`)",
            ca: " (`ca=`)",
        },
        ..Access::default()
    };
    // Who cannot be reached is to be known at once.
    let server = patient(py, move || {
        let server = Server::at(&url, &access)?;
        server.views().map(|_| server)
    })?;
    Ok(Machine(Some(Ours::new(server.map_err(Failure::from)?))))
}

impl Machine {
    fn asked<T: Send + 'static>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&dyn machine::Machine) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        match self.server()? {
            Some(server) => of_server(py, server, |server| ask(server)),
            None => {
                let answer = patient(py, move || ask(&ThisMachine::default()))?;
                Ok(answer.map_err(Failure::from)?)
            }
        }
    }

    /// The server whose machine it is, if it is not this one.
    fn server(&self) -> PyResult<Option<&Server>> {
        self.0
            .as_ref()
            .map(|server| server.get("server"))
            .transpose()
    }
}

#[pymethods]
impl Machine {
    /// This machine.
    #[staticmethod]
    fn here() -> Machine {
        Machine(None)
    }

    /// What the engines have, as JSON.
    fn catalogue(&self, py: Python<'_>) -> PyResult<String> {
        let found = self.asked(py, |machine| machine.catalogues())?;
        let kernel = match &found.kernel {
            Ok(catalogue) => json!(catalogue),
            Err(error) => json!({"error": error.to_string()}),
        };
        Ok(json!({"kernel": kernel, "user": found.user, "notes": found.notes}).to_string())
    }

    /// The runs there are, as JSON.
    fn runs(&self, py: Python<'_>) -> PyResult<String> {
        let runs = self.asked(py, |machine| machine.runs())?;
        Ok(json!({"runs": runs.runs, "notes": runs.notes}).to_string())
    }

    /// A run that is there, by its name.
    fn run(&self, py: Python<'_>, name: &str) -> PyResult<Run> {
        let Some(server) = self.server()? else {
            return crate::run::attach(py, name);
        };
        let id = name.parse();
        let id = id.map_err(|_| {
            Failure::of(
                &format!("run {name}"),
                "runs of a server are named by numbers",
            )
        })?;
        Ok(Run::of_server(of_server(py, server, move |server| {
            server.run(id)
        })?))
    }

    /// The run of a recipe's text. It waits for its start; one of this machine ends with the last one who has it.
    fn create(&self, py: Python<'_>, text: &str) -> PyResult<Run> {
        let recipe = Recipe::from_toml("recipe", text).map_err(|faults| {
            // Keywords have written it: nobody has seen its lines.
            let said: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            Failure::text(format!("recipe: {}", said.join("\n")))
        })?;
        let Some(server) = self.server()? else {
            return crate::run::create(py, &recipe);
        };
        let run = of_server(py, server, move |server| server.create(&recipe))?;
        Ok(Run::of_server(run))
    }

    /// Reads channels once, as JSON: each name, its value (`null`: it failed) and its unit.
    fn get(&self, py: Python<'_>, channels: Vec<String>) -> PyResult<String> {
        if let Some(server) = self.server()? {
            let got = of_server(py, server, move |server| server.get(&channels))?;
            return Ok(json!(got.values).to_string());
        }
        let got = self.once(py, channels.into_iter().map(Step::Read).collect())?;
        let value = |(channel, word): (strobe::channel::Channel, Option<u64>)| {
            let value = word.map_or(Value::Null, |word| channel.json(word));
            (channel.name, value)
        };
        Ok(Value::Object(got.values.into_iter().map(value).collect()).to_string())
    }

    /// Writes outputs once, in this order; as JSON, whether each was written.
    fn set(&self, py: Python<'_>, outputs: Vec<(String, u64)>) -> PyResult<String> {
        if let Some(server) = self.server()? {
            let outputs: Map<_, _> = outputs
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect();
            let set = of_server(py, server, move |server| server.set(&outputs))?;
            return Ok(json!(set.values).to_string());
        }
        let steps: Result<Vec<_>, _> = outputs
            .iter()
            .map(|(name, value)| setting(&format!("{name}={value}")))
            .collect();
        let set = self.once(py, steps.map_err(Failure::text)?)?;
        let written: Map<_, _> = set
            .outputs
            .into_iter()
            .map(|(name, done)| (name, done.into()))
            .collect();
        Ok(Value::Object(written).to_string())
    }
}

/// What a server answers.
fn of_server<T: Send + 'static>(
    py: Python<'_>,
    server: &Server,
    ask: impl FnOnce(&Server) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let server = server.clone();
    Ok(patient(py, move || ask(&server))?.map_err(Failure::from)?)
}

impl Machine {
    fn once(&self, py: Python<'_>, steps: Vec<Step>) -> PyResult<once::Once> {
        let plan = once::plan(steps);
        let selection = Selection {
            lock: strobe::engine::user::Lock::RingAndStack,
            ..Selection::default()
        };
        let row = patient(py, move || {
            let chosen = selection
                .choose(&plan)
                .and_then(|chosen| Ok(chosen.create(&plan)?));
            let run = chosen.map_err(|error| Words::from(&error))?;
            once(run.as_ref()).map_err(|error| Words::from(&error))
        })?;
        Ok(row.map_err(Failure::from)?)
    }
}
