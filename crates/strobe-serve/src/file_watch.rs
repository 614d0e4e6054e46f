// SPDX-License-Identifier: MIT OR Apache-2.0
//! What files say that may change while the daemon runs: certificates and tokens.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strobe::error::Words;

/// Reads files anew when they have changed.
pub struct FileWatch<T> {
    paths: Vec<PathBuf>,
    load: Box<dyn Fn() -> Result<T, Words> + Send + Sync>,
    now: Mutex<Now<T>>,
}

struct Now<T> {
    stamps: Vec<Option<Stamp>>,
    /// What they said when they were last right.
    last: Arc<T>,
    wrong: Option<Words>,
}

/// Tells one state of a file from another.
type Stamp = (u64, u64, i64, i64);

impl<T> FileWatch<T> {
    /// What `load` makes of these files.
    ///
    /// # Errors
    /// That of `load`.
    pub fn new(
        paths: &[&Path],
        load: impl Fn() -> Result<T, Words> + Send + Sync + 'static,
    ) -> Result<Self, Words> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
        let now = Now {
            stamps: stamps(&paths),
            last: Arc::new(load()?),
            wrong: None,
        };
        Ok(FileWatch {
            paths,
            load: Box::new(load),
            now: Mutex::new(now),
        })
    }

    /// What they say now.
    ///
    /// # Errors
    /// They are wrong now.
    pub fn get(&self) -> Result<Arc<T>, Words> {
        let now = self.look();
        match &now.wrong {
            Some(words) => Err(words.clone()),
            None => Ok(Arc::clone(&now.last)),
        }
    }

    /// What they said when they were last right.
    pub fn last(&self) -> Arc<T> {
        Arc::clone(&self.look().last)
    }

    fn look(&self) -> MutexGuard<'_, Now<T>> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.paths);
        if stamps != now.stamps {
            now.stamps = stamps;
            now.wrong = match (self.load)() {
                Ok(said) => {
                    now.last = Arc::new(said);
                    None
                }
                Err(words) => {
                    eprintln!("strobe serve: {words}");
                    Some(words)
                }
            };
        }
        now
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let about = path.metadata().ok()?;
        // The change of a mode counts as well.
        Some((about.ino(), about.size(), about.ctime(), about.ctime_nsec()))
    };
    paths.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_is_read_anew_and_a_wrong_one_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let put = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).expect("a text");
            std::fs::rename(&new, &path).expect("a name");
        };
        put("1");
        let from = path.clone();
        let load = move || {
            let text = std::fs::read_to_string(&from).unwrap_or_default();
            text.parse::<u32>()
                .map_err(|error| Words::new("file", error.to_string()))
        };
        let watched = FileWatch::new(&[&path], load).expect("a number");
        assert_eq!(watched.get().ok().as_deref(), Some(&1));
        put("22");
        assert_eq!(watched.get().ok().as_deref(), Some(&22));
        put("three");
        assert!(watched.get().is_err());
        assert_eq!(*watched.last(), 22);
        std::fs::remove_file(&path).expect("removed");
        assert!(watched.get().is_err());
        put("4444");
        assert_eq!(watched.get().ok().as_deref(), Some(&4444));
    }
}
