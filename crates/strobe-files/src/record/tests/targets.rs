// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that are made: which, when, and none that is lost.

use super::*;

/// A folder, and what is recorded into files of these names there.
fn into(names: &[&str]) -> (tempfile::TempDir, Options) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &&str| match *name {
        "-" => "-".to_owned(),
        name => format!("{}/{name}", dir.path().display()),
    };
    let options = Options {
        sinks: names.iter().map(path).collect(),
        ..Options::default()
    };
    (dir, options)
}

fn refusal(run: &TestRun, options: &Options) -> String {
    let error = record(run, options, &Stop::default(), &mut |_: Progress| {}).err();
    error.expect("a refusal").to_string()
}

/// The files of a folder and what is in them.
fn files(dir: &Path) -> Vec<(String, String)> {
    let files = dir.read_dir().expect("a folder");
    let files = files.map(|file| file.expect("a file"));
    let mut files: Vec<_> = files
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("text");
            (file.file_name().into_string().expect("a name"), text)
        })
        .collect();
    files.sort();
    files
}

fn short() -> TestRun {
    run(1024, 5, vec![act(|w| push(w, 0, 5)), done()])
}

#[test]
fn a_file_that_exists_is_refused_before_the_run_starts_and_left_as_it_is() {
    for names in [vec!["a.csv"], vec!["b.csv", "a.csv"]] {
        let (dir, options) = into(&names);
        std::fs::write(dir.path().join("a.csv"), "older").expect("text");
        let run = short();
        let text = refusal(&run, &options);
        assert!(
            text.contains("a.csv: the file exists") && text.contains("a-{n}.csv"),
            "{text}"
        );
        assert_eq!(run.producer().writer.state(), State::Ready);
        assert_eq!(
            files(dir.path()),
            [("a.csv".to_owned(), "older".to_owned())]
        );
    }
}

#[test]
fn a_file_is_overwritten_if_that_is_asked_for() {
    let (dir, mut options) = into(&["a.csv"]);
    std::fs::write(dir.path().join("a.csv"), "older".repeat(1000)).expect("text");
    options.existing = Existing::Overwrite;
    short().record(&options, &Stop::default());
    assert_eq!(lines(&dir.path().join("a.csv")), 6);
    assert!(!files(dir.path())[0].1.contains("older"));
}

#[test]
fn a_run_that_does_not_start_leaves_nothing_behind_and_destroys_nothing() {
    let (dir, mut options) = into(&["a.csv", "new.csv", "new.arrows"]);
    std::fs::write(dir.path().join("a.csv"), "older").expect("text");
    options.existing = Existing::Overwrite;
    let mut run = short();
    run.at_start = Box::new(|| Err(io::ErrorKind::Other.into()));
    let text = refusal(&run, &options);
    assert!(text.contains("starting it failed"), "{text}");
    assert_eq!(
        files(dir.path()),
        [("a.csv".to_owned(), "older".to_owned())]
    );
}

#[test]
fn files_are_made_when_the_run_has_started_and_all_or_none() {
    let (dir, options) = into(&["a.csv", "b.csv"]);
    let mut run = short();
    let folder = dir.path().to_owned();
    run.at_start = Box::new(move || {
        assert_eq!(files(&folder), []);
        // Somebody else is faster.
        std::fs::write(folder.join("b.csv"), "of somebody else")
    });
    let text = refusal(&run, &options);
    assert!(text.contains("b.csv: the file exists"), "{text}");
    assert_ne!(run.producer().writer.state(), State::Running);
    let left = ("b.csv".to_owned(), "of somebody else".to_owned());
    assert_eq!(files(dir.path()), [left]);
}

#[test]
fn a_number_that_somebody_else_takes_meanwhile_is_not_taken_twice() {
    let (dir, options) = into(&["a-{n:03}.csv", "b-{n}.csv"]);
    std::fs::write(dir.path().join("b-6.csv"), "older").expect("text");
    let mut run = short();
    let folder = dir.path().to_owned();
    run.at_start = Box::new(move || std::fs::write(folder.join("b-7.csv"), "of somebody else"));
    let summary = run.record(&options, &Stop::default());
    let paths: Vec<_> = summary
        .sinks
        .iter()
        .map(|sink| sink.path.as_str())
        .collect();
    let path = |name: &str| dir.path().join(name).display().to_string();
    assert_eq!(paths, [path("a-008.csv"), path("b-8.csv")]);
    let names: Vec<_> = files(dir.path())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["a-008.csv", "b-6.csv", "b-7.csv", "b-8.csv"]);
}

#[test]
fn one_file_by_two_names_is_refused() {
    let twice = |names: &[&str], prepare: &dyn Fn(&Path)| {
        let (dir, mut options) = into(names);
        options.existing = Existing::Overwrite;
        prepare(dir.path());
        let text = refusal(&short(), &options);
        assert!(text.contains("given twice"), "{text}");
    };
    twice(&["a.csv", "a.csv"], &|_| {});
    twice(&["a.csv", "./a.csv"], &|_| {});
    twice(&["-", "-"], &|_| {});
    twice(&["a.csv", "folder/a.csv"], &|dir| {
        std::os::unix::fs::symlink(".", dir.join("folder")).expect("a link");
    });
    twice(&["a.csv", "b.csv"], &|dir| {
        std::fs::write(dir.join("a.csv"), "").expect("a file");
        std::fs::hard_link(dir.join("a.csv"), dir.join("b.csv")).expect("a link");
    });
    twice(&["{n}.csv", "1.csv"], &|_| {});
}
