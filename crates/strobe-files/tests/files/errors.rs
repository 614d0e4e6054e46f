// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of files: the object, the reason, what to do, and no option of any program.

use std::io;

use strobe::error::Words;
use strobe_files::convert;
use strobe_files::recipe::WriteError;
use strobe_files::record;
use strobe_files::sink::{self, Existing};

/// The object, and whether anything can be done.
fn told(words: &Words, shown: String) -> (String, bool) {
    assert_eq!(words.to_string(), shown);
    assert!(!shown.contains("--"), "{shown}");
    (words.object.clone(), words.remedy.is_some())
}

fn sink(error: &sink::Error) -> (String, bool) {
    told(&error.words(), error.to_string())
}

#[test]
fn of_a_sink_it_is_said_what_to_do() {
    let name = || "a.txt".to_owned();
    let why = || "no".to_owned();
    for error in [
        sink::Error::Format(name()),
        sink::Error::NotBuilt {
            name: name(),
            extension: why(),
        },
        sink::Error::Template {
            name: name(),
            why: why(),
        },
        sink::Error::Exists { name: name() },
        sink::Error::Twice(name()),
    ] {
        assert_eq!(sink(&error), ("sink a.txt".to_owned(), true));
    }
    let error = sink::Error::Exists { name: name() };
    let remedy = error.words().remedy.expect("a remedy");
    assert_eq!(
        remedy,
        "give it another name, such as 'a-{n}.txt' for the next free number"
    );
}

#[test]
fn of_a_recording_it_is_said_what_to_do() {
    for error in [
        record::Error::NoJournal,
        record::Error::SyncAndLast,
        record::Error::Last { rows: 7, bytes: 8 },
        record::Error::Sink(sink::Error::Twice("a.csv".to_owned())),
    ] {
        let (_, has_remedy) = told(&error.words(), error.to_string());
        assert!(has_remedy, "{error}");
    }
}

#[test]
fn of_a_recipe_that_is_there_it_is_said_what_to_do() {
    let error = WriteError::Exists("a.toml".into());
    let told = told(&error.words(), error.to_string());
    assert_eq!(told, ("recipe a.toml".to_owned(), true));
    let error = WriteError::Write("a.toml".into(), io::Error::other("the disk is full"));
    assert_eq!(error.words().reason, "cannot be written: the disk is full");
}

#[test]
fn a_recording_that_would_be_its_own_copy_is_refused_with_the_remedy_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.arrows");
    std::fs::write(&file, "no recording").expect("a file");
    let name = file.to_str().expect("a name");
    let error = convert::convert(&file, name, Existing::Overwrite).expect_err("no recording");
    let (object, _) = told(&error.words(), error.to_string());
    assert_eq!(object, name);
    let error = convert::Error::Same(name.to_owned());
    assert_eq!(
        told(&error.words(), error.to_string()),
        (name.to_owned(), true)
    );
    assert_eq!(std::fs::read(&file).expect("bytes"), b"no recording");
}
