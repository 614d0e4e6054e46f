// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs that are served.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strobe::engine::kernel::Control;
use strobe::error::Words;
use strobe::info::RunInfo;
use strobe::plan::WakeWithin;
use strobe::run::OwnedRun;
use strobe::runs::RunName;
use strobe_files::recipe::Recipe;
use tokio::sync::watch;

use crate::served::Served;
use crate::spool::{Bounds, Spool};
use crate::store::{About, Store};
use crate::systemd::{HandedOver, Kept};

/// Runs that have ended and are kept, at most.
const ENDED: usize = 64;

/// All of them, by number.
pub struct Runs {
    bounds: Bounds,
    /// Where rows are, if they are not in memory only.
    store: Option<Store>,
    all: Mutex<All>,
    /// One more whenever a run comes or goes.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct All {
    runs: BTreeMap<u32, Arc<Served>>,
    last: u32,
}

impl Runs {
    /// None yet; of each so much is kept, in memory only.
    pub fn new(bounds: Bounds) -> Self {
        Runs {
            bounds,
            store: None,
            all: Mutex::default(),
            changes: watch::channel(0).0,
        }
    }

    /// Those that this folder has: runs that outlived the daemon go on, of the others the rows are left. Answers also what
    /// went wrong with some of them.
    pub fn open(bounds: Bounds, store: Store, handed_over: HandedOver) -> (Self, Vec<Words>) {
        let mut wrong = Vec::new();
        let mut all = All {
            last: store.last(),
            ..All::default()
        };
        let mut owners: BTreeMap<u32, (u32, OwnedFd)> = (handed_over.runs.into_iter())
            .map(|(id, run, owner)| (id, (run, owner)))
            .collect();
        let left = store.runs().unwrap_or_else(|error| {
            wrong.push(Words::new("the rows on disk", error.to_string()));
            Vec::new()
        });
        for (id, about) in left {
            let adopted = owners.remove(&id).map(|(run, owner)| {
                let kept = Kept::again(id, run);
                adopt(id, &about, (run, owner), kept, &store, bounds)
            });
            let served = match adopted {
                Some(Ok(served)) => Ok(Some(served)),
                Some(Err(words)) => {
                    wrong.push(words);
                    past(id, &about, &store, bounds)
                }
                None => past(id, &about, &store, bounds),
            };
            match served {
                Ok(Some(served)) => drop(all.runs.insert(id, served)),
                Ok(None) => store.remove(id),
                Err(words) => wrong.push(words),
            }
        }
        let runs = Runs {
            store: Some(store),
            all: Mutex::new(all),
            ..Runs::new(bounds)
        };
        (runs, wrong)
    }

    /// One more whenever a run comes or goes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All, by number.
    pub fn list(&self) -> Vec<Arc<Served>> {
        self.lock().runs.values().cloned().collect()
    }

    /// That of this number.
    pub fn get(&self, id: u32) -> Option<Arc<Served>> {
        self.lock().runs.get(&id).cloned()
    }

    /// The run of this name that has not ended, if there is one.
    pub fn live(&self, name: &str) -> Option<Arc<Served>> {
        let mut runs = self.list().into_iter();
        runs.find(|served| served.name() == name && !served.progress().is_over())
    }

    /// Makes the run of a recipe; its sinks are left aside, for the rows go into the spool. It is not started yet.
    /// Takes as long as the engine needs.
    ///
    /// # Errors
    /// The engine's reason.
    pub fn create(&self, name: &str, recipe: &Recipe) -> Result<Arc<Served>, Words> {
        let failed = |why: String| Words::new(format!("run {name}"), why);
        let mut selection = recipe
            .selection()
            .map_err(|error| failed(error.to_string()))?;
        // The daemon is large: only what makes rows is locked in memory.
        selection.lock = strobe::engine::user::Lock::RingAndStack;
        let plan = recipe.plan();
        let chosen = selection
            .choose(&plan)
            .map_err(|error| failed(error.to_string()))?;
        let run = chosen
            .create(&plan)
            .map_err(|error| failed(error.to_string()))?;
        let about = About {
            name: name.to_owned(),
            own: true,
        };
        self.add(about, &run.info().clone(), |id, name, spool| {
            let owner = run.owner();
            let kept = owner.and_then(|owner| Kept::give(id, run.info().run, owner));
            Served::own(id, name, run, spool, kept)
        })
    }

    /// Serves a run of somebody else on this machine.
    ///
    /// # Errors
    /// It has ended, or is another user's.
    pub fn export(&self, name: &RunName) -> Result<Arc<Served>, Words> {
        let failed = |why: String| Words::new(format!("run {name}"), why);
        let place = strobe::runs::Runs::now().find(name).map_err(failed)?;
        let run = place.attach().map_err(|error| failed(error.to_string()))?;
        let about = About {
            name: name.to_string(),
            own: false,
        };
        self.add(about, &run.info().clone(), |id, name, spool| {
            Served::of_another(id, name, run.as_ref(), spool)
        })
    }

    /// Ends a run, if it is the daemon's own, and gives up its rows.
    pub fn remove(&self, id: u32) -> Option<Arc<Served>> {
        let removed = self.lock().runs.remove(&id)?;
        removed.release();
        let is_written = removed.spool().discard();
        if let Some(store) = self.store.as_ref().filter(|_| !is_written) {
            store.remove(id);
        }
        self.changes.send_modify(|changes| *changes += 1);
        Some(removed)
    }

    /// Gives up runs that have ended: the oldest ones, where there are too many, and those whose rows are too old.
    pub fn tidy(&self) {
        let all = self.list();
        let ended: Vec<_> = (all.iter())
            .filter(|served| served.progress().is_over())
            .collect();
        let many = ended.len().saturating_sub(ENDED);
        for (place, served) in ended.into_iter().enumerate() {
            if place < many || served.spool().is_old() {
                self.remove(served.id());
            }
        }
    }

    /// The daemon ends: rows are brought to the disk, and runs that cannot outlive it are stopped.
    pub fn leave(&self, patience: Duration) {
        let all = self.list();
        std::thread::scope(|scope| {
            for served in &all {
                scope.spawn(|| served.leave(patience));
            }
        });
    }

    fn add(
        &self,
        about: About,
        info: &RunInfo,
        make: impl FnOnce(u32, String, Arc<Spool>) -> Result<Arc<Served>, Words>,
    ) -> Result<Arc<Served>, Words> {
        self.tidy();
        let id = {
            let mut all = self.lock();
            all.last += 1;
            all.last
        };
        let spool = match &self.store {
            None => Ok(Arc::new(Spool::new(info.clone(), self.bounds))),
            Some(store) => (store.make(id, &about))
                .and_then(|folder| Spool::on_disk(info.clone(), self.bounds, &folder)),
        };
        let spool = spool.map_err(|error| {
            Words::new(
                format!("the rows of run {}", about.name),
                format!("no place on the disk: {error}"),
            )
            .mend("make room, or name another folder: --data DIR")
        })?;
        let served = make(id, about.name, Arc::clone(&spool)).inspect_err(|_| {
            spool.discard();
        })?;
        self.lock().runs.insert(id, Arc::clone(&served));
        self.changes.send_modify(|changes| *changes += 1);
        Ok(served)
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that has outlived the daemon.
fn adopt(
    id: u32,
    about: &About,
    (run, owner): (u32, OwnedFd),
    kept: Kept,
    store: &Store,
    bounds: Bounds,
) -> Result<Arc<Served>, Words> {
    let failed = |why: String| Words::new(format!("run {} ({})", id, about.name), why);
    let control = Control::open().map_err(|error| failed(error.to_string()))?;
    let run = control.adopt(owner, run, WakeWithin::default());
    let run: Arc<dyn OwnedRun> = Arc::new(run.map_err(|error| failed(error.to_string()))?);
    let spool = Spool::on_disk(run.info().clone(), bounds, &store.run(id));
    let spool = spool.map_err(|error| failed(error.to_string()))?;
    Served::own(id, about.name.clone(), run, spool, Some(kept))
}

/// What is left of a run; `None`: nothing.
fn past(
    id: u32,
    about: &About,
    store: &Store,
    bounds: Bounds,
) -> Result<Option<Arc<Served>>, Words> {
    let spool = Spool::past(bounds, &store.run(id)).map_err(|error| {
        let object = format!("the rows of run {} ({})", id, about.name);
        Words::new(object, error.to_string())
    })?;
    let served = |spool| Served::past(id, about.name.clone(), Arc::new(spool), about.own);
    Ok(spool.map(served))
}
