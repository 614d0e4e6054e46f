// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a row was late, as `strobe record --trace-late` says it: four causes, each staged five times, so that the row
//! that is due meanwhile suffers from it and no other does. Where sanitizers work, every row is late, and of itself.
//!
//! `$STROBE_ROUNDS` says how often: `make verify` asks twenty times.
// kernels: amd64 rt newest
// lab: --module lab_stall --device lab-stop

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use strobe::clock::monotonic;
use strobe::map::Region;
use strobe::rt::{Policy, set_up_thread};
use strobe_cases::pci::cards;
use strobe_cases::rounds::rounds;

const PERIOD: u64 = 1_000_000;
/// Once in so many times a cause need not be named.
const NOT_NAMED: usize = 20;
/// How long what is staged lasts.
const LASTS: u64 = 300_000;
/// How long before a row is due it begins.
const BEFORE: u64 = 150_000;
/// A row that is later than this is looked at.
const LATE: &str = "80us";
/// Between two of them, so that nobody looks at one while the next is staged.
const APART: Duration = Duration::from_millis(500);

const KEPT: &str = "/tmp/late";
const ROWS: &str = "/tmp/rows.csv";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const STALL: &str = "/sys/devices/platform/lab_stall";
const BOARD: &str = r#"
[board]
name = "stall"
[match]
uio = "lab_stall"
[register]
word = { map = "page", offset = 0 }
[channel]
word = {}
"#;

/// How often each cause is staged.
fn staged() -> usize {
    rounds(5, 5) as usize
}

/// A recording of `strobe`.
struct Recording {
    strobe: Child,
    /// When some row was due.
    due: u64,
}

impl Recording {
    fn begin(engine: &str, channels: &str, more: &[&str]) -> Recording {
        let _ = fs::remove_dir_all(KEPT);
        let _ = fs::remove_file(ROWS);
        // Else khugepaged is a cause, too, for two milliseconds in ten seconds. (rt has none.)
        if Path::new(HUGE_PAGES).exists() {
            fs::write(HUGE_PAGES, "never").expect("to keep khugepaged away");
        }
        let strobe = Command::new("strobe")
            .args(["record", "--engine", engine, "--event", "timer:1ms"])
            .args(["--read", channels, "--trace-late", LATE, "--trace-to", KEPT])
            .args(["-o", ROWS, "--json"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("strobe");
        thread::sleep(2 * APART);
        let rows = fs::read_to_string(ROWS).expect("rows");
        let row: Vec<&str> = rows.lines().nth(50).expect("a row").split(',').collect();
        let [_, _, time, _, late, ..] = row.as_slice() else {
            panic!("{row:?}");
        };
        let number = |word: &str| word.parse::<u64>().expect("a number");
        Recording {
            strobe,
            due: number(time) - number(late),
        }
    }

    /// Sleeps until a little before a row is due; when that is.
    fn wait(&self) -> u64 {
        let from = monotonic() + PERIOD;
        let due = from + PERIOD - (from - self.due) % PERIOD;
        thread::sleep(Duration::from_nanos(due - BEFORE - monotonic()));
        due
    }

    /// What it says of late rows.
    fn end(self) -> Vec<Value> {
        let pid = self.strobe.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().is_ok());
        let output = self.strobe.wait_with_output().expect("its end");
        let mut account: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        println!("{} rows, {} missed", account["rows"], account["missed"]);
        let late = account["late_rows"].take();
        late.as_array().expect("late rows").clone()
    }
}

/// Stages a cause again and again, from a thread that comes first, and counts how often the row that was due is said to
/// have suffered from it.
fn named(stage: impl Fn(u64) + Send, recording: Recording, is_named: impl Fn(&Value) -> bool) {
    let rows = &recording;
    let stage_all = move || -> Vec<u64> {
        set_up_thread(Some(0), Policy::Fifo(80));
        let each = (0..staged()).map(|_| {
            let due = rows.wait();
            stage(due);
            thread::sleep(APART);
            due
        });
        each.collect()
    };
    let dues = thread::scope(|scope| {
        let stager = thread::Builder::new().name("stager".to_owned());
        let stager = stager.spawn_scoped(scope, stage_all).expect("a thread");
        stager.join().expect("its end")
    });
    let late = recording.end();
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let of = |due: u64| {
        let its = due - PERIOD..due + 4 * PERIOD;
        let is_its = |row: &&Value| its.contains(&number(row, "due_ns"));
        late.iter()
            .filter(is_its)
            .max_by_key(|row| number(row, "delay_ns"))
    };
    let rows: Vec<Option<&Value>> = dues.iter().map(|due| of(*due)).collect();
    let right = rows.iter().flatten().filter(|row| is_named(row)).count();
    println!(
        "{right} of {} named; {} late rows in all",
        rows.len(),
        late.len()
    );
    for row in rows.iter().flatten().take(2) {
        println!(
            "  {} of {} ns: {}",
            row["cause"], row["delay_ns"], row["shares"]
        );
    }
    for row in late.iter().filter(|row| !rows.contains(&Some(row))).take(5) {
        println!(
            "  not staged: {} of {} ns: {}",
            row["row"], row["delay_ns"], row["shares"]
        );
    }
    for (due, row) in dues.iter().zip(&rows) {
        if !row.is_some_and(&is_named) {
            println!(
                "  not named: due {due}: {:?}",
                row.map(|row| row.to_string())
            );
        }
    }
    assert_eq!(dues.len(), staged());
    let least = dues.len() - dues.len() / NOT_NAMED;
    assert!(right >= least, "{right} of {}", dues.len());
    // The events are kept, and the instance is not.
    let kept = rows
        .iter()
        .flatten()
        .find_map(|row| row["trace"].as_str())
        .expect("a file");
    assert!(fs::read_to_string(kept).is_ok_and(|text| text.contains("sched_switch: ")));
    let instances = fs::read_dir("/sys/kernel/tracing/instances").expect("tracefs");
    assert_eq!(instances.count(), 0);
}

fn main_share<'a>(row: &'a Value, cause: &str) -> Option<&'a str> {
    let shares = row["shares"].as_array()?;
    let share = shares.iter().find(|share| share["cause"] == cause)?;
    Some(share["who"].as_str().unwrap_or_default())
}

fn is(cause: &'static str, who: &'static str) -> impl Fn(&Value) -> bool {
    move |row| {
        row["cause"] == cause && main_share(row, cause).is_some_and(|said| said.contains(who))
    }
}

#[test]
fn a_task_that_comes_first_is_named() {
    let recording = Recording::begin("user", "clock.late", &[]);
    let spin = |_| {
        let end = monotonic() + LASTS;
        while monotonic() < end {}
    };
    named(spin, recording, is("task", "stager-"));
}

#[test]
fn interrupts_that_are_off_are_named_with_the_function_and_its_task() {
    for engine in ["user", "kernel"] {
        let recording = Recording::begin(engine, "clock.late", &[]);
        let stall = |_| fs::write(Path::new(STALL).join("left"), "1").expect("a stall");
        let who = "lab_stall_interrupts_off, in lab_stall-";
        named(stall, recording, is("interrupts-off", who));
    }
}

#[test]
fn a_cpu_that_stood_still_is_told_from_one_whose_interrupts_were_off() {
    let card = cards(0x1ab4).pop().expect("the card lab-stop");
    fs::write(card.join("enable"), "1").expect("to enable it");
    let file = File::options()
        .read(true)
        .write(true)
        .open(card.join("resource0"));
    let registers = Region::map(&file.expect("its registers"), 0, 4096, true).expect("a mapping");
    let register = |offset| registers.register(offset, 4).expect("a register");
    let (length, after, stops) = (register(0x40), register(0x44), register(0x48));
    length.write(LASTS);
    let recording = Recording::begin("user", "clock.late", &[]);
    // Long after this thread has gone to sleep again.
    let stop = move |due: u64| after.write(due.saturating_sub(monotonic() + BEFORE / 5));
    named(stop, recording, is("outside", ""));
    assert_eq!(stops.read(), staged() as u64);
}

#[test]
fn a_page_fault_that_takes_longer_than_a_period_is_named_with_the_trigger_that_was_missed() {
    fs::write("/root/stall.toml", BOARD).expect("a board");
    fs::write("/sys/module/lab_stall/parameters/fault_us", "1200").expect("a parameter");
    let recording = Recording::begin(
        "user",
        "clock.late,stall.word",
        &["--board", "/root/stall.toml"],
    );
    let drop = |_| fs::write(Path::new(STALL).join("drop"), "1").expect("to take it away");
    named(drop, recording, |row| {
        is("page-fault", "")(row) && row["missed"].as_u64() > Some(0)
    });
}
