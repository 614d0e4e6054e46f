// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of runs.

use std::fmt;
use std::str::FromStr;

use super::Runs;
use crate::event::run_number;

/// A run, as people name it: `3`, or `user:3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    engine: Option<&'static str>,
    number: u32,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose it is: `kernel` or `user`.
    pub engine: &'static str,
    /// Its number there.
    pub number: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.engine, self.number)
    }
}

impl FromStr for RunName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let remedy = "write its number, as `strobe status` shows it: 3, user:3 or kernel:3";
        let (engine, number) = run_number(text).ok_or(remedy)?;
        Ok(RunName { engine, number })
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.engine {
            Some(engine) => write!(f, "{engine}:{}", self.number),
            None => self.number.fmt(f),
        }
    }
}

impl Runs {
    /// Where they are.
    pub fn places(&self) -> Vec<Place> {
        let place = |engine, number| Place { engine, number };
        let runs = self.runs.iter().map(|run| place(run.engine, run.run));
        let silent = self.silent.iter().map(|run| place("user", run.run));
        runs.chain(silent).collect()
    }

    /// The one that is meant; what is wrong with the name, if there is none, or more.
    ///
    /// # Errors
    /// The words for it.
    pub fn find(&self, name: &RunName) -> Result<Place, String> {
        let places = self.places();
        let is_meant = |place: &&Place| {
            place.number == name.number && name.engine.is_none_or(|engine| engine == place.engine)
        };
        let list = |places: Vec<&Place>| {
            let names: Vec<String> = places.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        match places
            .iter()
            .filter(is_meant)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [place] => Ok(**place),
            [] if places.is_empty() => Err(format!("run {name}: there are no runs")),
            [] => Err(format!(
                "run {name}: no such run; the runs are {}",
                list(places.iter().collect())
            )),
            several => Err(format!(
                "run {name}: two runs have this number; write {}",
                list(several.to_vec())
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::RunStatus;
    use crate::engine::user::registry::UnresponsiveRun;
    use strobe_ring::State;

    fn status(engine: &'static str, run: u32) -> RunStatus {
        RunStatus {
            run,
            engine,
            event: "timer".into(),
            program: "strobe".into(),
            state: State::Running,
            error: 0,
            channels: 1,
            readers: 1,
            uid: 0,
            pid: 1,
            capacity: 1024,
            limit: None,
            rows: 10,
            triggers: 10,
            missed: 0,
            skipped: 0,
            errors: 0,
            period_ns: 1_000_000,
            elapsed_ns: 10_000_000,
        }
    }

    fn found(name: &str) -> Result<String, String> {
        let runs = Runs {
            runs: vec![status("kernel", 1), status("kernel", 2), status("user", 1)],
            silent: vec![UnresponsiveRun {
                run: 7,
                pid: 1,
                why: "does not answer".into(),
            }],
            notes: Vec::new(),
        };
        let name = name.parse().map_err(str::to_owned)?;
        runs.find(&name).map(|place| place.to_string())
    }

    #[test]
    fn a_run_is_named_by_its_number_and_by_its_engine_where_there_are_two() {
        assert_eq!(found("2"), Ok("kernel:2".into()));
        assert_eq!(found("kernel:1"), Ok("kernel:1".into()));
        assert_eq!(found("user:1"), Ok("user:1".into()));
        assert_eq!(found("7"), Ok("user:7".into()));
        assert_eq!(
            found("1"),
            Err("run 1: two runs have this number; write kernel:1, user:1".into())
        );
        assert_eq!(
            found("user:2"),
            Err("run user:2: no such run; the runs are kernel:1, kernel:2, user:1, user:7".into())
        );
        for wrong in ["", "x", "1:user", "user:", "kernel:-1", "lab:1"] {
            assert!(
                found(wrong).is_err_and(|why| why.starts_with("write ")),
                "{wrong}"
            );
        }
    }
}
