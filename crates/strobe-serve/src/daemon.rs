// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon as a whole: its runs, and what speaks to clients.

use std::path::Path;

use strobe::error::Words;
use strobe::ring::State;
use strobe_files::recipe::Recipe;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Exported, Made};
use crate::runs::{self, Runs};
use crate::store::Store;
use crate::systemd::HandedOver;

/// What everything in the daemon shares.
pub struct Daemon {
    /// What it was told.
    pub config: Config,
    /// The runs.
    pub runs: Runs,
    /// Said when the daemon is to end: connections end in an orderly way then.
    pub stop: CancellationToken,
}

impl Daemon {
    /// One without runs, whose rows are in memory only.
    pub fn new(config: Config) -> Self {
        Daemon {
            runs: Runs::new(config.spool.bounds()),
            config,
            stop: CancellationToken::new(),
        }
    }

    /// One with the runs that its folder has, if it has one; and what is wrong with some of them.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(config: Config, handed_over: HandedOver) -> Result<(Self, Vec<Words>), Words> {
        let Some(data) = &config.data else {
            let kept = handed_over.runs.iter();
            let wrong = kept.map(|(kept, _)| runs::stray(kept)).collect();
            return Ok((Daemon::new(config), wrong));
        };
        let store = Store::open(data)?;
        let (runs, wrong) = Runs::open(config.spool.bounds(), store, handed_over);
        let stop = CancellationToken::new();
        Ok((Daemon { config, runs, stop }, wrong))
    }

    /// Makes the runs of the configuration that are not there yet, and serves those of others. What went wrong; the
    /// others are there.
    pub fn begin(&self) -> Vec<Words> {
        let made = self.config.run.iter().map(|run| self.make(run));
        let exported = self.config.export.iter().map(|run| self.export(run));
        made.chain(exported).filter_map(Result::err).collect()
    }

    fn make(&self, made: &Made) -> Result<(), Words> {
        let path = match &self.config.recipes {
            Some(folder) => folder.join(&made.recipe),
            None => made.recipe.clone(),
        };
        let name = name(&path);
        if let Some(live) = self.runs.live(&name) {
            // The daemon of before may have ended before it could start it.
            let is_waiting = live.is_own() && live.state() == State::Ready;
            return match made.start && is_waiting {
                true => live.start(),
                false => Ok(()),
            };
        }
        let recipe = Recipe::read(&path).map_err(|faults| {
            Words::new(path.display().to_string(), faults.to_string())
                .mend("`strobe check` says more about a recipe")
        })?;
        let served = self.runs.create(&name, &recipe)?;
        match made.start {
            true => served.start(),
            false => Ok(()),
        }
    }

    fn export(&self, exported: &Exported) -> Result<(), Words> {
        let name = exported.run.parse();
        let name = name
            .map_err(|mend| Words::new(&exported.run, "it is not the name of a run").mend(mend))?;
        self.runs.export(&name).map(drop)
    }
}

/// A recipe's name is that of its file.
fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
