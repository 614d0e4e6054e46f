// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recipes: `strobe record --save`, `strobe record RECIPE` and `strobe check RECIPE`.

use std::path::Path;
use std::process::Output;

fn strobe(dir: &Path, words: &str) -> Output {
    let mut command = crate::common::command(dir);
    command.args(words.split(' ')).current_dir(dir);
    command.output().expect("strobe runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rows(dir: &Path, name: &str) -> usize {
    let text = std::fs::read_to_string(dir.join(name)).expect("text");
    text.lines().count() - 1
}

const RECORD: &str = "record --engine user --event timer:1kHz --read sim.counter,clock.late --set sim.latch=3 \
                      --rows 5 --allow-loss --policy other --clock tai -o a-{n}.csv";

#[test]
fn what_was_saved_records_the_same_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let first = strobe(dir, &format!("{RECORD} --save scan.toml"));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let text = std::fs::read_to_string(dir.join("scan.toml")).expect("a recipe");
    for line in [
        "event = \"timer:1kHz\"",
        "engine = \"user\"",
        "set = [\"sim.latch=3\"]",
        "policy = \"other\"",
        "clock = \"tai\"",
        "rows = 5",
        "sinks = [\"a-{n}.csv\"]",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let again = strobe(dir, "record scan.toml --allow-loss");
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let fewer = strobe(
        dir,
        "record scan.toml --allow-loss --rows 2 -o few.csv --read sim.ramp",
    );
    assert_eq!(fewer.status.code(), Some(0), "{}", said(&fewer));
    assert_eq!(
        [
            rows(dir, "a-1.csv"),
            rows(dir, "a-2.csv"),
            rows(dir, "few.csv")
        ],
        [5, 5, 2]
    );
    let few = std::fs::read_to_string(dir.join("few.csv")).expect("text");
    assert!(
        few.starts_with("row,trigger,time,status,sim.ramp,"),
        "{few}"
    );
}

#[test]
fn a_dry_run_saves_the_recipe_and_records_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let dry = strobe(
        dir.path(),
        &format!("{RECORD} --dry-run --force --save scan.toml"),
    );
    assert_eq!(dry.status.code(), Some(0), "{}", said(&dry));
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| !name.to_string_lossy().starts_with("run"))
        .collect();
    names.retain(|name| name != "lock");
    assert_eq!(names, ["scan.toml"]);
}

#[test]
fn an_existing_recipe_is_replaced_only_if_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    std::fs::write(dir.join("scan.toml"), "precious").expect("a file");
    let refusal = strobe(dir, &format!("{RECORD} --save scan.toml"));
    assert_eq!(refusal.status.code(), Some(1));
    let text = said(&refusal);
    assert!(
        text.contains("recipe scan.toml: the file exists") && text.contains("--overwrite"),
        "{text}"
    );
    assert!(!dir.join("a-1.csv").exists());
    let replaced = strobe(dir, &format!("{RECORD} --save scan.toml --overwrite"));
    assert_eq!(replaced.status.code(), Some(0), "{}", said(&replaced));
    assert_eq!(strobe(dir, "check scan.toml").status.code(), Some(0));
}

#[test]
fn what_cannot_be_recorded_is_not_saved() {
    let dir = tempfile::tempdir().expect("a folder");
    for wrong in [
        "record --engine user --event timer:1kHz --read no.such --save scan.toml",
        "record --engine user --event timer:1kHz --read sim.ramp -o a.txt --save scan.toml",
    ] {
        assert_eq!(strobe(dir.path(), wrong).status.code(), Some(1));
        assert!(!dir.path().join("scan.toml").exists(), "{wrong}");
    }
}

#[test]
fn check_says_every_fault_with_its_line_and_so_does_record() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let text = "event = \"timer:1kHz\"\nengine = \"user\"\nread = [\"sim.counter\",\n\"sim.nothing\"]\nrign = 5\n\
                sinks = [\"a.txt\"]\n";
    std::fs::write(dir.join("scan.toml"), text).expect("a file");
    let check = strobe(dir, "check scan.toml");
    assert_eq!(check.status.code(), Some(1));
    let found = said(&check);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(
        lines[0].starts_with("scan.toml:4: channel sim.nothing: no such channel"),
        "{found}"
    );
    assert!(
        lines[1].starts_with("scan.toml:5: unknown key `rign`; did you mean `ring`?"),
        "{found}"
    );
    assert!(
        lines[2].starts_with("scan.toml:6: sink a.txt: unknown format"),
        "{found}"
    );
    let record = strobe(dir, "record scan.toml");
    assert_eq!(record.status.code(), Some(1));
    assert!(
        said(&record).contains("scan.toml:5: unknown key `rign`"),
        "{}",
        said(&record)
    );
    let missing = strobe(dir, "check nothing.toml");
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        said(&missing).contains("nothing.toml: No such file"),
        "{}",
        said(&missing)
    );
}

#[test]
fn a_board_is_found_by_its_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards");
    std::fs::create_dir(dir.join("boards")).expect("a folder");
    std::fs::copy(boards.join("host.toml"), dir.join("boards/host.toml")).expect("a board");
    let list = crate::common::command(dir)
        .args(["list", "--json", "--board"])
        .arg(boards.join("host.toml"))
        .output()
        .expect("strobe runs");
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let from = text.find("\"host.").expect("a channel of the board") + 1;
    let channel = &text[from..from + text[from..].find('"').expect("its end")];
    let recipe = format!("event = \"soft\"\nread = [\"{channel}\"]\nboard = \"host\"\n");
    std::fs::write(dir.join("scan.toml"), recipe).expect("a file");
    let check = strobe(dir, "check scan.toml");
    assert!(
        !said(&check).contains("board host: there is no"),
        "{}",
        said(&check)
    );
    let none = strobe(
        dir,
        &format!("record --event soft --read {channel} --board nosuch"),
    );
    assert_eq!(none.status.code(), Some(1));
    assert!(
        said(&none).contains("--board: board nosuch: there is no nosuch.toml in "),
        "{}",
        said(&none)
    );
}

#[test]
fn a_recipe_that_cannot_be_written_leaves_the_one_that_is_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let saves = "record --engine user --event soft --dry-run --save scan.toml --read";
    let first = strobe(dir, &format!("{saves} sim.counter"));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let before = std::fs::read_to_string(dir.join("scan.toml")).expect("a recipe");
    // As on a disk that is full.
    let script = format!("trap '' XFSZ; ulimit -f 0; \"$STROBE\" {saves} sim.ramp --overwrite");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("STROBE", env!("CARGO_BIN_EXE_strobe"))
        .env("STROBE_RUNTIME_DIR", dir)
        .current_dir(dir)
        .output()
        .expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let why = "recipe scan.toml: cannot be written: File too large";
    assert!(said(&output).contains(why), "{}", said(&output));
    let after = std::fs::read_to_string(dir.join("scan.toml")).expect("a recipe");
    assert_eq!(after, before);
    let names = std::fs::read_dir(dir).expect("the folder").flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().starts_with(".scan")),
        "{names:?}"
    );
}
