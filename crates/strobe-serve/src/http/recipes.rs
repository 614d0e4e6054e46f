// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recipes: those in the daemon's folder, and those that clients bring.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path as InPath, State};
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use strobe::error::Words;
use strobe::plan::Step;
use strobe_files::recipe::Recipe;

use super::Http;
use super::body::{BODY_MAX, JsonBody};
use super::failure::{Failure, blocking};
use super::query::query;

/// Characters of a name, at most.
const NAME_MAX: usize = 64;
/// Recipes that clients can put there, at most.
const RECIPES_MAX: usize = 1000;

/// The answer to `GET /api/recipes`.
#[derive(Serialize)]
pub struct List {
    recipes: Vec<Named>,
}

/// A recipe.
#[derive(Serialize)]
pub struct Named {
    name: String,
    text: String,
}

/// The text of a recipe from a client: it may say nothing of files of this machine.
///
/// # Errors
/// All that is wrong with it.
pub fn of_client(name: &str, text: &str) -> Result<Recipe, Failure> {
    let bad = |reason: &str, remedy: &str| {
        let words = Words::new(format!("recipe {name}"), reason);
        Err(Failure::refused(words.mend(remedy)))
    };
    let recipe = match Recipe::from_toml(name, text) {
        Ok(recipe) => recipe,
        Err(faults) => return bad(&faults.to_string(), "correct the recipe"),
    };
    if !recipe.sinks.is_empty() {
        return bad(
            "it has sinks, which clients cannot choose",
            "leave out `sinks`; the rows are kept in the spool, from which any client can read them",
        );
    }
    let board = recipe.board.as_deref();
    if board.is_some_and(|board| board.contains('/') || board.ends_with(".toml")) {
        return bad(
            "its board is a path, which clients cannot choose",
            "give the name of a board that is installed here",
        );
    }
    let writes = recipe.set.iter().chain(&recipe.acts).map(Step::name);
    let event = recipe.event.to_string();
    let names = recipe.read.iter().map(String::as_str).chain(writes);
    for name in names.chain([event.as_str()]) {
        no_path(name)?;
    }
    Ok(recipe)
}

/// A channel, output or event that a client may name: not one that is a file, or a descriptor of the daemon's.
///
/// # Errors
/// It is one.
pub fn no_path(name: &str) -> Result<(), Failure> {
    let is_path = |part: &str| name.contains(part);
    let why = if name.starts_with("eventfd:") {
        "it is a descriptor of the daemon, which clients cannot choose"
    } else if name.starts_with("file:") || [":/", ".."].into_iter().any(is_path) {
        "it is a file of this machine, which clients cannot choose"
    } else {
        return Ok(());
    };
    let words = Words::new(name, why);
    Err(Failure::bad(words.mend(
        "describe it on a board, or use it in a recipe in the daemon's folder",
    )))
}

/// The recipe of this name in the daemon's folder.
///
/// # Errors
/// There is none, or something is wrong with it.
pub fn named(http: &Http, name: &str) -> Result<Recipe, Failure> {
    let path = place(http, name)?;
    if !path.is_file() {
        let words = Words::new(format!("recipe {name}"), "there is no such recipe");
        return Err(Failure::none(
            words.mend("GET /api/recipes shows the recipes"),
        ));
    }
    let read = Recipe::read(&path);
    read.map_err(|faults| {
        let words = Words::new(format!("recipe {name}"), faults.to_string());
        Failure::refused(words.mend("correct the recipe"))
    })
}

/// `GET /api/recipes`
pub async fn list(State(http): State<Arc<Http>>) -> Result<Json<List>, Failure> {
    let work = move || {
        let recipes = http.daemon.config.recipes.as_deref().map(all);
        Ok(Json(List {
            recipes: recipes.unwrap_or_default(),
        }))
    };
    blocking("recipes", work).await
}

/// What a client says of a recipe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct PutQuery {
    overwrite: bool,
}

/// `PUT /api/recipes/NAME`
pub async fn put(
    State(http): State<Arc<Http>>,
    InPath(name): InPath<String>,
    uri: Uri,
    JsonBody(said): JsonBody<Put>,
) -> Result<StatusCode, Failure> {
    let PutQuery { overwrite } = query(&uri)?;
    let work = move || {
        let path = place(&http, &name)?;
        of_client(&name, &said.text)?;
        // One after the other: what is looked at here stays so until it is written.
        let _turn = http
            .recipes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let object = format!("recipe {name}");
        let there = path.symlink_metadata().is_ok();
        if there && !overwrite {
            let words = Words::new(object, "a recipe of this name exists");
            return Err(Failure::conflict(
                words.mend("use another name, or ?overwrite=true"),
            ));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if !there && names(folder).count() >= RECIPES_MAX {
            let words = Words::new(object, format!("there are {RECIPES_MAX} recipes already"));
            return Err(Failure::conflict(words.mend("overwrite one")));
        }
        write(&path, &said.text).map_err(|error| {
            Failure::refused(
                Words::new(object, format!("it cannot be written: {error}"))
                    .mend("give the daemon permission to write into its folder of recipes"),
            )
        })?;
        Ok(match there {
            true => StatusCode::OK,
            false => StatusCode::CREATED,
        })
    };
    blocking("recipe", work).await
}

/// In one step: whoever reads it has the old text or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("toml.new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, path)
}

/// Where the recipe of this name is. The name is that of a file in the folder, and of nothing else.
fn place(http: &Http, name: &str) -> Result<PathBuf, Failure> {
    if !is_name(name) {
        let words = Words::new(format!("recipe {name}"), "this is not a valid name");
        return Err(Failure::bad(words.mend(format!(
            "use at most {NAME_MAX} letters, digits, `-` and `_`"
        ))));
    }
    let Some(folder) = &http.daemon.config.recipes else {
        let words = Words::new(
            format!("recipe {name}"),
            "the daemon has no folder of recipes",
        );
        return Err(Failure::none(
            words.mend("set `recipes` in its configuration"),
        ));
    };
    Ok(folder.join(format!("{name}.toml")))
}

fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_fine)
}

/// Names of those in a folder, in any order.
fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_suffix(".toml").filter(|name| is_name(name))?;
        Some(name.to_owned())
    })
}

/// All that can be read, by name; a file that is longer than a client's can be is none.
fn all(folder: &Path) -> Vec<Named> {
    let named = names(folder).filter_map(|name| {
        let path = folder.join(format!("{name}.toml"));
        let is_short = path
            .metadata()
            .is_ok_and(|about| about.len() <= BODY_MAX as u64);
        let text = is_short.then(|| std::fs::read_to_string(path).ok())??;
        Some(Named { name, text })
    });
    let mut all: Vec<Named> = named.collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_file_in_the_folder() {
        for name in ["scan", "scan-2_b", "A"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in [
            "", ".", "..", "../x", "a/b", "a.b", "a b", "ä", "a\0", &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_recipe_of_a_client_says_nothing_of_files() {
        let event = "event = \"soft\"\n";
        assert!(of_client("r", &format!("{event}read = [\"sim.counter\"]")).is_ok());
        for more in [
            "sinks = [\"/nonexistent/x.h5\"]",
            "board = \"../x.toml\"",
            "board = \"x.toml\"",
            "read = [\"file:/etc/hostname\"]",
            "read = [\"gpio:/nonexistent/1\"]",
            "rows = -1",
        ] {
            assert!(of_client("r", &format!("{event}{more}")).is_err(), "{more}");
        }
        let eventfd = of_client("r", "event = \"eventfd:5\"\nread = [\"sim.counter\"]");
        assert!(eventfd.is_err(), "a descriptor of the daemon");
    }
}
