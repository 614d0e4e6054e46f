// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use strobe::program::Rule;

fn whole() -> Recipe {
    Recipe {
        read: vec!["sim.counter".into(), "clock.late".into()],
        set: vec![setting("sim.latch=0x10").expect("a step")],
        engine: EnginePreference::User,
        wait: Some(WaitMode::Hybrid),
        board: Some("edu".into()),
        cpu: Some(3),
        policy: Some(Policy::Fifo(70)),
        wake_within: CpuLatency(None),
        clock: Clock::Tai,
        ring: Some(4096),
        shared: true,
        duration_ns: Some(1_500_000_000),
        last: Some(100),
        sinks: vec!["scan-{n:05}.arrows".into(), "a \"b\".csv".into()],
        ..Recipe::new("timer:1kHz".parse().expect("an event"))
    }
}

fn faults(text: &str) -> Vec<String> {
    let faults = Recipe::from_toml("r.toml", text).expect_err("faults");
    faults.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_recipe_is_read_as_it_was_written() {
    let soft = Recipe {
        rows: Some(10),
        read: vec!["sim.ramp".into()],
        program: ProgramText {
            derive: vec!["step = diff(sim.ramp)".into(), "a = abs(step)".into()],
            keep: vec!["a > 1 \"µV\"".into()],
            every: Some(10),
            variables: vec!["next = 1 \"µV\" like sim.ramp".into(), "n = 0".into()],
            tunables: vec!["step = 3 \"µV\" like sim.ramp".into()],
            rules: vec![
                Rule {
                    when: "sim.ramp >= next".into(),
                    then: vec!["next += 100 \"µV\"".into(), "n += 1".into()],
                },
                Rule {
                    when: "n == 3".into(),
                    then: Vec::new(),
                },
            ],
        },
        acts: vec![
            Step::Act {
                output: "sim.latch".into(),
                value: 7,
                rule: 0,
            },
            Step::Act {
                output: "sim.level".into(),
                value: 1,
                rule: 1,
            },
        ],
        sync: true,
        ..Recipe::new(EventSpec::soft())
    };
    for recipe in [whole(), soft] {
        let text = recipe.to_toml();
        assert_eq!(Recipe::from_toml("r.toml", &text), Ok(recipe), "{text}");
    }
}

#[test]
fn the_shortest_recipe_has_an_event_and_a_channel() {
    let text = "event = \"soft\"\nread = [\"sim.counter\"]\n";
    let recipe = Recipe::from_toml("r.toml", text).expect("a recipe");
    let plan = recipe.plan();
    assert_eq!(plan.steps, [Step::Read("sim.counter".into())]);
    assert_eq!((plan.limit, recipe.engine), (None, EnginePreference::Auto));
}

#[test]
fn a_time_is_a_number_of_rows_where_the_event_has_a_period() {
    let plan = whole().plan();
    assert_eq!((plan.limit, plan.priority), (Some(1500), Some(70)));
}

#[test]
fn each_fault_is_said_with_its_line() {
    let text = "\
event = \"timer:fast\"
raed = [\"sim.counter\"]
read = [\"sim.counter\", 5]
set = [\"sim.latch\"]
wait = \"sleep\"
cpu = -1
policy = \"rr:5\"
rows = 0
sinks = [\"a.txt\", \"b-{x}.csv\"]
overwrite = true
clock = true
";
    let said = faults(text);
    for (line, part) in [
        (1, "timer:fast"),
        (2, "unknown key `raed`; did you mean `read`?"),
        (3, "a list of texts"),
        (4, "write OUTPUT=VALUE"),
        (5, "it must be \"block\", \"hybrid\" or \"spin\""),
        (6, "`cpu` is -1"),
        (7, "write fifo:1 to fifo:99, or other"),
        (8, "`rows` is 0"),
        (9, "sink a.txt: unknown format"),
        (9, "sink b-{x}.csv"),
        (10, "a recipe never replaces files"),
        (11, "`clock` is a boolean"),
    ] {
        let begin = format!("r.toml:{line}: ");
        let found = said
            .iter()
            .any(|fault| fault.starts_with(&begin) && fault.contains(part));
        assert!(found, "{line}: {part}: {said:#?}");
    }
    assert_eq!(said.len(), 12, "{said:#?}");
}

#[test]
fn a_recipe_without_event_or_channels_is_refused() {
    let said = faults("ring = 10\n");
    assert!(said[0].contains("`event` is missing"), "{said:?}");
    assert!(said[1].contains("`read` is missing"), "{said:?}");
    let both = "event = \"soft\"\nread = []\nrows = 1\nfor = \"1s\"\n";
    assert_eq!(
        faults(both),
        ["r.toml:4: `rows` and `for` are both there; leave one of them out"]
    );
}

#[test]
fn what_this_machine_has_not_is_said_with_its_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("r.toml");
    let text = "\
event = \"timer:1kHz\"
engine = \"user\"
read = [
    \"sim.counter\",
    \"sim.countre\",
    \"no.such\",
]
set = [\"sim.nothing=1\"]
cpu = 60000
sync = true
";
    std::fs::write(&file, text).expect("a file");
    let said = Recipe::check(&file).expect_err("faults").to_string();
    for part in [
        "r.toml:5: channel sim.countre: no such channel",
        "r.toml:6: channel no.such: no such channel",
        "r.toml:8: output sim.nothing: no such output",
        "r.toml:9: CPU 60000: no such CPU",
        "r.toml:10: the sinks: none is a journal",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.lines().count(), 5, "{said}");
}

#[test]
fn a_board_is_found_by_its_name_beside_the_recipe() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("r.toml");
    let text = "event = \"soft\"\nread = [\"sim.counter\"]\nboard = \"mine\"\n";
    std::fs::write(&file, text).expect("a file");
    let said = Recipe::check(&file).expect_err("no board").to_string();
    assert!(
        said.contains("r.toml:3: board mine: there is no mine.toml in "),
        "{said}"
    );
    std::fs::write(dir.path().join("mine.toml"), "[board]\n").expect("a file");
    let recipe = Recipe::read(&file).expect("a recipe");
    let found = dir.path().join("mine.toml");
    assert_eq!(recipe.board.as_deref(), found.to_str());
    let said = Recipe::check(&file).expect_err("a bad board").to_string();
    assert!(
        said.contains("r.toml:3: ") && said.contains("mine.toml:1: [board]: `name` is missing"),
        "{said}"
    );
}

#[test]
fn an_existing_recipe_is_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("r.toml");
    whole().write(&file, Existing::Refuse).expect("written");
    let error = whole().write(&file, Existing::Refuse).expect_err("there");
    assert!(
        error
            .to_string()
            .ends_with("the file exists; give it another name")
    );
    let soft = Recipe::new(EventSpec::soft());
    soft.write(&file, Existing::Overwrite).expect("replaced");
    let text = std::fs::read_to_string(&file).expect("text");
    assert_eq!(text, soft.to_toml());
}

#[test]
fn a_recipe_that_cannot_be_replaced_stays_as_it_was() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("r.toml");
    whole().write(&file, Existing::Refuse).expect("written");
    // The place of the new one is taken.
    let beside = dir.path().join(format!(".r.toml.{}", std::process::id()));
    std::fs::create_dir(&beside).expect("a folder");
    let soft = Recipe::new(EventSpec::soft());
    let error = soft.write(&file, Existing::Overwrite).expect_err("no room");
    // Of the new one, not of the recipe, it is said that it is there.
    assert!(error.to_string().contains(".r.toml."), "{error}");
    let text = std::fs::read_to_string(&file).expect("text");
    assert_eq!(text, whole().to_toml());
}
