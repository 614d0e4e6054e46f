// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs that are served.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use strobe::engine::kernel::Control;
use strobe::error::Words;
use strobe::info::RunInfo;
use strobe::run::OwnedRun;
use strobe::runs::RunName;
use strobe_files::recipe::Recipe;
use tokio::sync::watch;

use crate::served_run::ServedRun;
use crate::spool::{Bounds, Spool};
use crate::store::{About, Left, Store};
use crate::systemd::{FdStoreEntry, HandedOver};

/// Runs that have ended and are kept, at most: the oldest one goes when there are more.
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
    runs: BTreeMap<u32, Arc<ServedRun>>,
    last: u32,
    /// Runs that are being made, and have a place among those that there can be at once.
    reserved: usize,
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
        let mut owners: BTreeMap<FdStoreEntry, OwnedFd> = handed_over.runs.into_iter().collect();
        let left = store.runs();
        let is_known = left.is_ok();
        let mut left = left.unwrap_or_else(|error| {
            wrong.push(Words::new("the rows on disk", error.to_string()));
            Left::default()
        });
        // Those that go on come first: their rings do not wait until the files of all others are looked through.
        left.runs
            .sort_by_key(|(id, about)| !owners.contains_key(&about.kept(*id)));
        for (id, about) in left.runs {
            let folder = store.run(id);
            let mut kept = None;
            let adopted = owners.remove(&about.kept(id)).map(|owner| {
                kept = Some(about.kept(id));
                adopt(id, &about, owner, &folder, bounds)
            });
            let is_lost = matches!(adopted, Some(Err(_)));
            let served = match adopted {
                Some(Ok(Some(served))) => Ok(Some(served)),
                Some(Err(words)) => {
                    wrong.push(words);
                    past(id, &about, &folder, bounds, kept)
                }
                Some(Ok(None)) | None => {
                    // Its end is written already.
                    kept.iter().for_each(FdStoreEntry::end);
                    past(id, &about, &folder, bounds, None)
                }
            };
            match served {
                Ok(Some(served)) => drop(all.runs.insert(id, served)),
                // The next daemon may have more luck.
                Ok(None) if is_lost => {}
                Ok(None) => store.remove(id),
                Err(words) => wrong.push(words),
            }
        }
        for kept in owners.into_keys() {
            let is_ours = |(id, _): &(u32, Words)| *id == kept.id;
            if is_known && !left.wrong.iter().any(is_ours) {
                wrong.push(stray(&kept));
            }
        }
        wrong.extend(left.wrong.into_iter().map(|(_, words)| words));
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
    pub fn list(&self) -> Vec<Arc<ServedRun>> {
        self.lock().runs.values().cloned().collect()
    }

    /// That of this number.
    pub fn get(&self, id: u32) -> Option<Arc<ServedRun>> {
        self.lock().runs.get(&id).cloned()
    }

    /// The run of this name that has not ended, if there is one.
    pub fn live(&self, name: &str) -> Option<Arc<ServedRun>> {
        let mut runs = self.list().into_iter();
        runs.find(|served| served.name() == name && !served.progress().is_over())
    }

    /// Makes the run of a recipe; its sinks are left aside, for the rows go into the spool. It is not started yet.
    /// Takes as long as the engine needs.
    ///
    /// # Errors
    /// The engine's reason.
    pub fn create(&self, name: &str, recipe: &Recipe) -> Result<Arc<ServedRun>, Words> {
        self.make(name, recipe, 0)
    }

    /// The same, unless so many runs are there already that have not ended: `None` then.
    ///
    /// # Errors
    /// The engine's reason.
    pub fn create_within(
        &self,
        most: usize,
        name: &str,
        recipe: &Recipe,
    ) -> Result<Option<Arc<ServedRun>>, Words> {
        {
            let mut all = self.lock();
            let going = all.runs.values().filter(|run| !run.progress().is_over());
            if going.count() + all.reserved >= most {
                return Ok(None);
            }
            all.reserved += 1;
        }
        let made = self.make(name, recipe, 1);
        made.inspect_err(|_| self.lock().reserved -= 1).map(Some)
    }

    fn make(&self, name: &str, recipe: &Recipe, reserved: usize) -> Result<Arc<ServedRun>, Words> {
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
            run: run.info().run,
            made: now(),
            wake_within: recipe.wake_within.to_string(),
        };
        // Without a folder the next daemon would not know what it is.
        let is_stored = self.store.is_some();
        self.add(about, &run.info().clone(), reserved, |id, about, spool| {
            let owner = run.owner().filter(|_| is_stored);
            let kept = owner.and_then(|owner| about.kept(id).give(owner));
            ServedRun::own(id, about.name, run, spool, kept.clone())
                .inspect_err(|_| kept.iter().for_each(FdStoreEntry::end))
        })
    }

    /// Serves a run of somebody else on this machine.
    ///
    /// # Errors
    /// It has ended, or is another user's.
    pub fn export(&self, name: &RunName) -> Result<Arc<ServedRun>, Words> {
        let failed = |why: String| Words::new(format!("run {name}"), why);
        let place = strobe::runs::Runs::now().find(name).map_err(failed)?;
        let run = place.attach().map_err(|error| failed(error.to_string()))?;
        let about = About {
            name: name.to_string(),
            own: false,
            run: run.info().run,
            made: now(),
            wake_within: String::new(),
        };
        self.add(about, &run.info().clone(), 0, |id, about, spool| {
            ServedRun::of_another(id, about.name, run.as_ref(), spool)
        })
    }

    /// Ends a run, if it is the daemon's own, and gives up its rows.
    pub fn remove(&self, id: u32) -> Option<Arc<ServedRun>> {
        let removed = self.lock().runs.remove(&id)?;
        removed.release();
        if !removed.is_own() {
            removed.spool().abandon();
        }
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
            let why = match place < many {
                true => format!("more than {ENDED} runs have ended"),
                false if served.spool().is_old() => "its rows are too old".to_owned(),
                false => continue,
            };
            if self.remove(served.id()).is_some() {
                let (id, name) = (served.id(), served.name());
                eprintln!("strobe serve: run {id} ({name}) was removed with its rows: {why}");
            }
        }
    }

    /// The daemon ends: runs that cannot outlive it are stopped, and rows are brought to the disk. Those of runs that go on
    /// come last, for until then they are written.
    pub fn leave(&self, patience: Duration) {
        let (kept, others): (Vec<_>, Vec<_>) =
            self.list().into_iter().partition(|run| run.goes_on());
        for some in [others, kept] {
            std::thread::scope(|scope| {
                for served in &some {
                    scope.spawn(|| served.leave(patience));
                }
            });
        }
    }

    fn add(
        &self,
        about: About,
        info: &RunInfo,
        reserved: usize,
        make: impl FnOnce(u32, About, Arc<Spool>) -> Result<Arc<ServedRun>, Words>,
    ) -> Result<Arc<ServedRun>, Words> {
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
                format!("no room on the disk: {error}"),
            )
            .mend("make room, or name another folder: --data DIR")
        })?;
        let served = make(id, about, Arc::clone(&spool)).inspect_err(|_| {
            spool.discard();
        })?;
        {
            let mut all = self.lock();
            all.runs.insert(id, Arc::clone(&served));
            all.reserved -= reserved;
        }
        self.changes.send_modify(|changes| *changes += 1);
        Ok(served)
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of a run that was given to the service manager, and that no folder knows: its rows would be seen by nobody.
pub(crate) fn stray(kept: &FdStoreEntry) -> Words {
    kept.end();
    let object = format!("run kernel:{}", kept.run);
    Words::new(
        object,
        "the service manager kept it for another folder of rows, so it is ended",
    )
}

/// A run that has outlived the daemon; `None`: it has not, its account is there. If that fails, it goes on nevertheless.
fn adopt(
    id: u32,
    about: &About,
    owner: OwnedFd,
    folder: &Path,
    bounds: Bounds,
) -> Result<Option<Arc<ServedRun>>, Words> {
    if Spool::has_account(folder) {
        return Ok(None);
    }
    let failed = |why: String| {
        let object = format!("run {id} ({})", about.name);
        Words::new(object, format!("its rows are not stored: {why}")).mend(
            "it goes on: start the daemon again once this is mended, or remove the run to end it",
        )
    };
    let control = Control::open().map_err(|error| failed(error.to_string()))?;
    let wake_within = about.wake_within.parse().unwrap_or_default();
    let run = control.adopt(owner, about.run, wake_within);
    let run: Arc<dyn OwnedRun> = Arc::new(run.map_err(|error| failed(error.to_string()))?);
    let spool = Spool::on_disk(run.info().clone(), bounds, folder);
    let spool = spool.map_err(|error| failed(error.to_string()))?;
    let kept = Some(about.kept(id));
    let served = ServedRun::own(id, about.name.clone(), run, Arc::clone(&spool), kept);
    // Nobody else would tell its thread to end.
    let served = served.inspect_err(|_| {
        spool.close(Duration::ZERO);
    });
    served.map(Some).map_err(|words| failed(words.to_string()))
}

/// What is left of a run; `None`: nothing. If the manager still has it, it ends when it is removed.
fn past(
    id: u32,
    about: &About,
    folder: &Path,
    bounds: Bounds,
    kept: Option<FdStoreEntry>,
) -> Result<Option<Arc<ServedRun>>, Words> {
    let spool = Spool::past(bounds, folder).map_err(|error| {
        let object = format!("the rows of run {} ({})", id, about.name);
        Words::new(object, error.to_string())
    })?;
    let served = |spool| ServedRun::past(id, about.name.clone(), Arc::new(spool), about.own, kept);
    Ok(spool.map(served))
}

/// ns since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
