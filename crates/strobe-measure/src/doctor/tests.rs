// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each check on machines made of files: as it should be, as it should not, and hidden or damaged.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use strobe::engine;
use strobe::samples::info;
use strobe_hw::rt::Step;

use super::*;

mod cpu;
mod kernel;
mod machine;
mod own;
mod permission;
mod power;

/// What a made-up machine answers when something is tried.
#[derive(Clone, Copy)]
struct Answers {
    fifo: fn(u8) -> io::Result<Step>,
    awake: fn() -> Step,
    lock: fn(u64) -> io::Result<()>,
    resolution_ns: fn() -> io::Result<u64>,
    control: fn() -> Result<usize, engine::Error>,
}

/// One that nothing can be tried on.
const DEAF: Answers = Answers {
    fifo: |_| Err(error(libc::EAGAIN)),
    awake: || got("awake CPUs", false, "/dev/cpu_dma_latency: no permission"),
    lock: |_| Err(error(libc::ENOSYS)),
    resolution_ns: || Err(error(libc::EINVAL)),
    control: || {
        Err(engine::Error::Run {
            event: "none".to_owned(),
            doing: "opening",
            source: error(libc::EIO),
        })
    },
};

fn got(what: &'static str, ok: bool, got: &str) -> Step {
    Step {
        what: what.into(),
        ok,
        got: got.to_owned(),
    }
}

fn error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

impl Trial for Answers {
    fn fifo(&self, priority: u8) -> io::Result<Step> {
        (self.fifo)(priority)
    }

    fn awake(&self) -> Step {
        (self.awake)()
    }

    fn lock(&self, bytes: u64) -> io::Result<()> {
        (self.lock)(bytes)
    }

    fn resolution_ns(&self) -> io::Result<u64> {
        (self.resolution_ns)()
    }

    fn control(&self) -> Result<usize, engine::Error> {
        (self.control)()
    }
}

type Files = BTreeMap<String, Vec<u8>>;

/// A machine, and what a check is to say of it.
struct Case {
    check: &'static str,
    state: State,
    /// What the machine is like.
    sentence: &'static str,
    files: Files,
    /// What other files are when it was watched; none: it was not.
    later: Option<Files>,
    answers: Answers,
    intent: Intent,
    /// Words of the evidence or of the remedy.
    says: &'static str,
}

/// A machine of which nothing is to be seen yet.
fn case(check: &'static str, state: State, sentence: &'static str) -> Case {
    Case {
        check,
        state,
        sentence,
        files: Files::new(),
        later: None,
        answers: DEAF,
        intent: Intent::default(),
        says: "",
    }
}

impl Case {
    fn file(mut self, path: &str, text: &str) -> Case {
        self.files.insert(path.to_owned(), text.into());
        self
    }

    fn bytes(mut self, path: &str, bytes: &[u8]) -> Case {
        self.files.insert(path.to_owned(), bytes.into());
        self
    }

    fn without(mut self, path: &str) -> Case {
        self.files.remove(path);
        self
    }

    /// Is so at the end of the time that it was watched for.
    fn later(mut self, path: &str, text: &str) -> Case {
        let files = self.later.get_or_insert_with(Files::new);
        files.insert(path.to_owned(), text.into());
        self
    }

    /// Its own status, as of a process of root.
    fn with_status(self) -> Case {
        self.file("/proc/self/status", STATUS)
            .file("/proc/self/uid_map", "         0          0 4294967295\n")
    }

    /// A machine of two CPUs, whose processes are to be seen.
    fn with_tasks(self) -> Case {
        self.with_status()
            .file("/sys/devices/system/cpu/online", "0-1\n")
            .file("/proc/2/comm", "kthreadd\n")
            .task(2, "kthreadd", 0, 0)
            .task(18, "migration/0", 99, 1)
    }

    /// A thread that may run on both CPUs.
    fn task(self, id: u32, name: &str, priority: u32, policy: u32) -> Case {
        let zeros = "0 ".repeat(36);
        self.file(
            &format!("/proc/{id}/task/{id}/stat"),
            &format!("{id} ({name}) S {zeros}{priority} {policy} 0 0\n"),
        )
        .file(
            &format!("/proc/{id}/task/{id}/status"),
            "Cpus_allowed_list:\t0-1\n",
        )
    }

    fn answering(mut self, answers: Answers) -> Case {
        self.answers = answers;
        self
    }

    fn on_cpu(mut self, cpu: usize) -> Case {
        self.intent.cpu = Some(cpu);
        self
    }

    fn with_priority(mut self, priority: u8) -> Case {
        self.intent.priority = priority;
        self
    }

    fn spinning(mut self) -> Case {
        self.intent.wait = WaitMode::Spin;
        self
    }

    fn says(mut self, words: &'static str) -> Case {
        self.says = words;
        self
    }

    fn find(&self) -> Finding {
        let root = tempfile::tempdir().expect("a directory");
        write(root.path(), &self.files);
        let mut system = System::new(root.path(), Box::new(self.answers));
        if let Some(later) = &self.later {
            system.watch_while(|| write(root.path(), later));
        }
        named(self.check).find(&system, &self.intent)
    }
}

const STATUS: &str = "Name:\tstrobe\nTgid:\t4711\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t \n\
                      VmSize:\t   20000 kB\nVmLck:\t       0 kB\nCpus_allowed_list:\t0-1\n";

fn write(root: &Path, files: &Files) {
    for (path, bytes) in files {
        let path = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, bytes).expect("a file");
    }
}

fn named(name: &str) -> &'static Check {
    let check = CHECKS.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("no check {name}"))
}

fn cases() -> Vec<Case> {
    [
        permission::cases(),
        kernel::cases(),
        cpu::cases(),
        power::cases(),
        machine::cases(),
        own::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn each_machine_is_found_to_be_as_it_is() {
    let mut wrong = Vec::new();
    for case in cases() {
        let found = case.find();
        let words = format!(
            "{} {}",
            found.evidence,
            found.remedy.as_deref().unwrap_or("")
        );
        if found.state != case.state || !words.contains(case.says) {
            wrong.push(format!("{}: {}: {found:?}", case.check, case.sentence));
        }
        assert_eq!(
            found.remedy.is_some(),
            found.state == State::Advice,
            "{found:?}"
        );
        assert!(!found.evidence.is_empty(), "{}", case.sentence);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_check_is_tried_on_a_machine_that_is_ok_one_that_is_not_and_one_that_does_not_say() {
    let cases = cases();
    for check in CHECKS {
        for state in [State::Ok, State::Advice, State::Unknown] {
            let is_there = |case: &Case| case.check == check.name && case.state == state;
            assert!(
                cases.iter().any(is_there),
                "{} {}",
                check.name,
                state.word()
            );
        }
    }
}

/// Intents that make a difference to a check.
fn intents() -> [Intent; 3] {
    let on_a_cpu = Intent {
        cpu: Some(1),
        ..Intent::default()
    };
    let spinning = Intent {
        wait: WaitMode::Spin,
        ..on_a_cpu.clone()
    };
    [Intent::default(), on_a_cpu, spinning]
}

#[test]
fn nothing_is_ok_on_a_machine_of_which_nothing_is_to_be_seen() {
    let root = tempfile::tempdir().expect("a directory");
    let mut system = System::new(root.path(), Box::new(DEAF));
    system.watch_while(|| {});
    for intent in intents() {
        for check in CHECKS {
            let found = check.find(&system, &intent);
            assert_ne!(found.state, State::Ok, "{}: {found:?}", check.name);
        }
    }
}

/// Numbers by chance, the same each time: what fails can be looked at.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }
}

/// All files of all cases; of those that are in several, one.
fn all_files() -> Files {
    let parts = |case: Case| case.files.into_iter().chain(case.later.unwrap_or_default());
    cases().into_iter().flat_map(parts).collect()
}

#[test]
fn nothing_is_ok_where_all_directories_are_empty() {
    let root = tempfile::tempdir().expect("a directory");
    for path in all_files().into_keys() {
        let path = root.path().join(path.trim_start_matches('/'));
        let directory = path.parent().expect("a directory");
        std::fs::create_dir_all(directory).expect("a directory");
    }
    let mut system = System::new(root.path(), Box::new(DEAF));
    system.watch_while(|| {});
    // Where boards would be, none is.
    for check in CHECKS.iter().filter(|check| check.name != "boards") {
        for intent in intents() {
            let found = check.find(&system, &intent);
            assert_ne!(found.state, State::Ok, "{}: {found:?}", check.name);
        }
    }
}

/// Any name is one; what these check is that there is something of that name.
const OF_ANY_NAME: [&str; 2] = ["uio", "ptp"];

#[test]
fn nothing_is_ok_where_all_files_are_garbage() {
    let mut chance = Chance(1);
    for round in 0..12 {
        let root = tempfile::tempdir().expect("a directory");
        let is_text = round % 2 == 1;
        let mut garbage = |length: usize| -> Vec<u8> {
            (0..length)
                .map(|_| match is_text {
                    true => b"abcdefghijk \n"[chance.below(13)],
                    false => 128 + chance.below(128) as u8,
                })
                .collect()
        };
        let files = all_files();
        let garbled = files.into_keys().map(|path| (path, garbage(50)));
        write(root.path(), &garbled.collect());
        let mut system = System::new(root.path(), Box::new(DEAF));
        system.watch_while(|| {});
        for check in CHECKS {
            if is_text && OF_ANY_NAME.contains(&check.name) {
                continue;
            }
            for intent in intents() {
                let found = check.find(&system, &intent);
                assert_ne!(found.state, State::Ok, "{}: {found:?}", check.name);
            }
        }
    }
}

#[test]
fn no_file_however_damaged_makes_a_check_panic() {
    let mut chance = Chance(2);
    for case in cases() {
        for _ in 0..8 {
            let mut case = Case {
                files: case.files.clone(),
                later: case.later.clone(),
                intent: case.intent.clone(),
                ..case
            };
            let several = case.files.values_mut();
            for bytes in several.chain(case.later.iter_mut().flat_map(BTreeMap::values_mut)) {
                match (chance.below(3), bytes.len()) {
                    (0, length @ 1..) => bytes.truncate(chance.below(length)),
                    (1, length @ 1..) => bytes[chance.below(length)] = chance.below(256) as u8,
                    (_, length) => {
                        bytes.insert(chance.below(length + 1), b"9 -\n"[chance.below(4)])
                    }
                }
            }
            case.find();
        }
    }
}

#[test]
fn each_check_has_a_name_of_its_own() {
    let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CHECKS.len());
}

#[test]
fn what_a_run_needs_is_read_from_its_set_up() {
    let mut info = info(Vec::new());
    assert_eq!(Intent::of(&info), Intent::default());
    for (what, got) in [("wait", "spin"), ("cpu", "1"), ("policy", "fifo:70")] {
        let (what, got, ok) = (what.into(), got.into(), true);
        info.set_up.push(Step { what, ok, got });
    }
    let intent = Intent {
        cpu: Some(1),
        priority: 70,
        wait: WaitMode::Spin,
    };
    assert_eq!(Intent::of(&info), intent);
    info.set_up[1].got = "0,1".into();
    assert_eq!(Intent::of(&info).cpu, None);
}

#[test]
fn what_a_recording_notes_is_each_check_that_takes_a_moment_only() {
    let noted = note(&info(Vec::new()));
    let names: Vec<&str> = noted.iter().map(|noted| noted.check.as_ref()).collect();
    let quick = CHECKS.iter().filter(|check| check.when == When::Always);
    let quick: Vec<&str> = quick.map(|check| check.name).collect();
    assert_eq!(names, quick);
    assert!(noted.iter().all(|noted| !noted.evidence.is_empty()));
}
