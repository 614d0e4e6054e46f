// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of all spools: below it, one folder a run, named by its number.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::Builder;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use strobe::error::Words;

use crate::systemd::FdStoreEntry;

/// The folder, which is this daemon's alone.
pub struct Store {
    folder: PathBuf,
    _lock: File,
}

/// What is known of a run beside its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name: that of its recipe, or of its event.
    pub name: String,
    /// Whether it is the daemon's own.
    pub own: bool,
    /// Its number, as its engine gave it.
    #[serde(default)]
    pub run: u32,
    /// When it was made, ns since 1970: what tells it from others of the same numbers.
    #[serde(default)]
    pub made: u64,
    /// How long CPUs may take to wake, as a recipe says it.
    #[serde(default)]
    pub wake_within: String,
}

impl About {
    /// What a service manager that keeps the run calls it.
    pub fn kept(&self, id: u32) -> FdStoreEntry {
        FdStoreEntry {
            id,
            run: self.run,
            made: self.made,
        }
    }
}

/// Runs that were left.
#[derive(Debug, Default)]
pub struct Left {
    /// Their numbers, in their order, and what is known of them.
    pub runs: Vec<(u32, About)>,
    /// Numbers of those of which that cannot be read, and why.
    pub wrong: Vec<(u32, Words)>,
}

impl Store {
    /// In this folder, which is made.
    ///
    /// # Errors
    /// It cannot be written, or another daemon uses it.
    pub fn open(data: &Path) -> Result<Self, Words> {
        let failed = |error: io::Error| {
            Words::new(data.display().to_string(), error.to_string())
                .mend("name a folder that this program may write to: --data DIR")
        };
        let folder = data.join("runs");
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock = File::create(data.join("lock")).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => Words::new(
                data.display().to_string(),
                "another strobe serve uses this folder",
            )
            .mend("end it, or name another folder: --data DIR"),
            // A file system that cannot lock, for instance.
            error => failed(error.into()),
        })?;
        Ok(Store {
            folder,
            _lock: lock,
        })
    }

    /// Runs that were left here.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn runs(&self) -> io::Result<Left> {
        let mut left = Left::default();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match self.about(id) {
                Ok(about) => left.runs.push((id, about)),
                // A daemon that was killed while it made this had no rows yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_empty(id) => {}
                Err(error) => {
                    let file = self.run(id).join(ABOUT);
                    let words = Words::new(file.display().to_string(), error.to_string()).mend(
                        "repair the file, or remove the folder; `strobe convert` can read its rows",
                    );
                    left.wrong.push((id, words));
                }
            }
        }
        left.runs.sort_unstable_by_key(|(id, _)| *id);
        Ok(left)
    }

    fn about(&self, id: u32) -> io::Result<About> {
        let text = fs::read(self.run(id).join(ABOUT))?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Whether there are no rows of a run.
    fn is_empty(&self, id: u32) -> bool {
        let is_rows = |name: OsString| Path::new(&name).extension().is_some_and(|e| e == "arrows");
        let mut files = fs::read_dir(self.run(id)).into_iter().flatten();
        !files.any(|file| file.map_or(true, |file| is_rows(file.file_name())))
    }

    /// The largest number that a run has had here.
    pub fn last(&self) -> u32 {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.max().unwrap_or(0)
    }

    /// The folder of a run.
    pub fn run(&self, id: u32) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Makes the folder of a run.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(&self, id: u32, about: &About) -> io::Result<PathBuf> {
        let folder = self.run(id);
        fs::create_dir(&folder)?;
        // Whole, or not at all.
        let new = folder.join("new");
        let written = serde_json::to_vec(about)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, folder.join(ABOUT)));
        written.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(folder)
    }

    /// Removes what is left of a run, which may take a while: on a thread of its own, so that nobody waits for it.
    pub fn remove(&self, id: u32) {
        let folder = self.run(id);
        let remove = move || drop(fs::remove_dir_all(folder));
        let _ = Builder::new().name("remove".to_owned()).spawn(remove);
    }
}

const ABOUT: &str = "run.json";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_folder_has_one_daemon_and_its_runs_are_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a store");
        let about = |name: &str| About {
            name: name.to_owned(),
            own: true,
            run: 7,
            made: 1_700_000_000_000_000_000,
            wake_within: "any".to_owned(),
        };
        for id in [10, 9] {
            store.make(id, &about(&id.to_string())).expect("a folder");
        }
        let twice = Store::open(folder.path()).err().expect("one daemon");
        assert!(
            twice.to_string().contains("another strobe serve"),
            "{twice}"
        );
        drop(store);
        let store = Store::open(folder.path()).expect("a store");
        let left = store.runs().expect("runs");
        assert_eq!(left.runs, [(9, about("9")), (10, about("10"))]);
        assert!(left.wrong.is_empty());
        assert_eq!(store.last(), 10);
        store.remove(10);
        let until = Instant::now() + Duration::from_secs(120);
        while store.last() != 9 {
            assert!(Instant::now() < until, "it stays");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_run_of_which_nothing_can_be_read_is_said_and_an_empty_folder_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a store");
        for id in [1, 2, 3] {
            fs::create_dir(store.run(id)).expect("a folder");
        }
        fs::write(store.run(1).join(ABOUT), "").expect("a file");
        fs::write(store.run(2).join("00000000000000000000.arrows"), "").expect("a file");
        let left = store.runs().expect("runs");
        assert!(left.runs.is_empty());
        let mut wrong: Vec<_> = left.wrong.iter().map(|(id, _)| *id).collect();
        wrong.sort_unstable();
        assert_eq!(wrong, [1, 2]);
        let (_, words) = &left.wrong[0];
        assert!(words.to_string().contains("run.json"), "{words}");
    }
}
