// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of all spools: below it, one folder a run, named by its number.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use strobe::error::Words;

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
}

impl Store {
    /// In this folder, which is made.
    ///
    /// # Errors
    /// It cannot be written, or another daemon uses it.
    pub fn open(data: &Path) -> Result<Self, Words> {
        let failed = |error: io::Error| {
            Words::new(data.display().to_string(), error.to_string())
                .mend("name a folder for the rows that can be written: --data DIR")
        };
        let folder = data.join("runs");
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock = File::create(data.join("lock")).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Words::new(
                data.display().to_string(),
                "another strobe serve has its rows here",
            )
            .mend("end it, or name another folder: --data DIR")
        })?;
        Ok(Store {
            folder,
            _lock: lock,
        })
    }

    /// Runs that were left here: their numbers, in their order, and what is known of them.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn runs(&self) -> io::Result<Vec<(u32, About)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let about = fs::read(self.run(id).join(ABOUT));
            // A daemon that was killed while it made this had no rows yet.
            if let Ok(Ok(about)) = about.map(|text| serde_json::from_slice(&text)) {
                found.push((id, about));
            }
        }
        found.sort_unstable_by_key(|(id, _)| *id);
        Ok(found)
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
        let mut file = File::create_new(folder.join(ABOUT))?;
        file.write_all(&serde_json::to_vec(about)?)?;
        Ok(folder)
    }

    /// Removes what is left of a run.
    pub fn remove(&self, id: u32) {
        let _ = fs::remove_dir_all(self.run(id));
    }
}

const ABOUT: &str = "run.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_daemon_and_its_runs_are_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a store");
        let about = |name: &str| About {
            name: name.to_owned(),
            own: true,
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
        let names: Vec<_> = store.runs().expect("runs");
        assert_eq!(names, [(9, about("9")), (10, about("10"))]);
        assert_eq!(store.last(), 10);
        store.remove(10);
        assert_eq!(store.last(), 9);
    }
}
