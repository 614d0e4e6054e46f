// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a board file is that is called by its name.

use std::path::{Path, PathBuf};

/// There is no board of this name.
#[derive(Debug, thiserror::Error)]
#[error(
    "board {name}: there is no {name}.toml in {}; put it there, or write the path of the file", list(.looked)
)]
pub struct NotFound {
    /// The name.
    pub name: String,
    /// The folders that were looked into.
    pub looked: Vec<PathBuf>,
}

fn list(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
    names.join(", ")
}

/// Whether a word is the name of a board, and no path of a file.
fn is_name(word: &str) -> bool {
    !word.contains('/') && !word.ends_with(".toml")
}

/// The file of a board: `word` is a path, from `folder`, or a name. `NAME.toml` is looked for in `folder`, in its folder
/// `boards`, and where programs keep their data.
///
/// # Errors
/// No board has this name. That a path is one of a file is not looked at.
pub fn find(word: &str, folder: &Path) -> Result<PathBuf, NotFound> {
    if !is_name(word) {
        return Ok(folder.join(word));
    }
    let looked = folders(folder);
    let file = format!("{word}.toml");
    let found = looked.iter().map(|folder| folder.join(&file));
    match found.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => Err(NotFound {
            name: word.to_owned(),
            looked,
        }),
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned(), folder.join("boards")];
    // Where this program was installed, whatever the prefix.
    let program = std::env::current_exe().ok();
    let prefix = program.as_deref().and_then(Path::parent);
    let prefix = prefix.and_then(Path::parent).map(Path::to_owned);
    for prefix in prefix
        .into_iter()
        .chain(["/usr/local".into(), "/usr".into()])
    {
        let shared = prefix.join("share/strobe/boards");
        if !folders.contains(&shared) {
            folders.push(shared);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_as_it_is_and_a_name_is_looked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("boards")).expect("a folder");
        let beside = dir.path().join("boards/edu.toml");
        std::fs::write(&beside, "").expect("a file");
        assert_eq!(find("edu", dir.path()).ok(), Some(beside.clone()));
        let nearer = dir.path().join("edu.toml");
        std::fs::write(&nearer, "").expect("a file");
        assert_eq!(find("edu", dir.path()).ok(), Some(nearer));
        assert_eq!(find("boards/edu.toml", dir.path()).ok(), Some(beside));
        let absolute = Path::new("/no/such.toml");
        assert_eq!(
            find("/no/such.toml", dir.path()).ok().as_deref(),
            Some(absolute)
        );
    }

    #[test]
    fn a_name_that_no_board_has_is_refused_with_the_folders_that_were_looked_into() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = find("nosuch", dir.path())
            .expect_err("no board")
            .to_string();
        let boards = dir.path().join("boards").display().to_string();
        assert!(
            error.starts_with("board nosuch: there is no nosuch.toml in "),
            "{error}"
        );
        assert!(error.contains(&boards), "{error}");
        assert!(error.contains("/usr/share/strobe/boards"), "{error}");
    }
}
