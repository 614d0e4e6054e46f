// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may let the kernel engine compute: whoever may make a run there. No capability is asked for, and none is of any use.
//!
//! The kernels with sanitizers keep no capabilities of a file.
// kernels: amd64 rt newest

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{XattrFlags, setxattr};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use strobe_cases::grouped::{GROUP, Grouped, USER};

/// A copy of the program that gives whoever starts it CAP_PERFMON and CAP_BPF, and nothing else; gone when this is dropped.
struct Capable(PathBuf);

/// The two, as bits of a set of capabilities.
const CAPABILITIES: u64 = 1 << 38 | 1 << 39;

impl Capable {
    fn new() -> Capable {
        let folder = std::env::temp_dir().join(format!("capable-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let capable = Capable(folder);
        let path = std::env::var("PATH").expect("a path");
        let mut places = path.split(':').map(|place| Path::new(place).join("strobe"));
        let strobe = places.find(|place| place.exists()).expect("strobe");
        fs::copy(strobe, capable.program()).expect("a copy");
        // Version 2, effective; the low and the high half of what is permitted, each followed by what is inherited.
        let words: [u32; 5] = [0x0200_0001, 0, 0, (CAPABILITIES >> 32) as u32, 0];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let flags = XattrFlags::empty();
        setxattr(capable.program(), "security.capability", &value, flags).expect("capabilities");
        capable
    }

    fn program(&self) -> PathBuf {
        self.0.join("strobe")
    }
}

impl Drop for Capable {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A run with everything that a program may have: the capabilities that it had, and `Ok` if its rows are right.
fn recorded(program: &Path, user: u32, group: u32, engine: &str) -> (u64, Result<(), String>) {
    let words =
        "record --event timer:1kHz --read sim.counter,sim.latch --rows 20 --allow-loss -o -";
    let child = Command::new(program)
        .args(words.split(' '))
        .args(["--engine", engine])
        .args(["--derive", "step = diff(sim.counter)"])
        .args(["--keep", "sim.counter % 2 == 1"])
        .args(["--when", "sim.counter % 4 == 3", "--set", "sim.latch=5"])
        .uid(user)
        .gid(group)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("strobe runs");
    // At its end, and there until it is waited for: right after the start it may not have them yet.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(&child)), ended).expect("its end");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its status");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.expect("capabilities").trim();
    let capabilities = u64::from_str_radix(effective, 16).expect("a set of bits");
    let output = child.wait_with_output().expect("its end");
    let [rows, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let answer = match output.status.code() {
        Some(0) => {
            check(&rows);
            Ok(())
        }
        Some(1) => Err(said),
        other => panic!("{other:?}: {said}"),
    };
    (capabilities, answer)
}

/// Twenty rows: row, trigger, time, status, skipped, the counter, the latch, the step, and the output of the rule.
fn check(rows: &str) {
    let rows = rows
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 20, "{rows:?}");
    for row in &rows {
        let counter: u64 = row[5].parse().expect("a number");
        assert_eq!((counter % 2, row[7]), (1, "1"), "{row:?}");
        // Written in the row with 3, read from the next one on.
        assert!(counter <= 3 || row[6] == "5", "{row:?}");
    }
}

#[test]
fn who_may_make_a_run_may_let_it_compute_and_nobody_else() {
    let _device = Grouped::begin();
    let capable = Capable::new();
    let plain = Path::new("strobe");
    for (who, program, user, group, is_allowed) in [
        ("root", plain, 0, 0, true),
        ("group strobe", plain, USER, GROUP, true),
        (
            "CAP_BPF and CAP_PERFMON",
            &*capable.program(),
            USER,
            USER,
            false,
        ),
        ("nobody", plain, USER, USER, false),
    ] {
        let (capabilities, of_kernel) = recorded(program, user, group, "kernel");
        if user != 0 {
            let wanted = if program == plain { 0 } else { CAPABILITIES };
            assert_eq!(capabilities, wanted, "{who}");
        }
        match of_kernel {
            Ok(()) => assert!(is_allowed, "{who}"),
            Err(said) => {
                assert!(!is_allowed, "{who}: {said}");
                assert!(
                    said.contains("/dev/strobe") && said.contains("permission"),
                    "{said}"
                );
            }
        }
        // It runs in the user's own process.
        let (_, of_user) = recorded(program, user, group, "user");
        of_user.unwrap_or_else(|said| panic!("{who}: {said}"));
    }
}
