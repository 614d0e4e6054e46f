// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may let the kernel engine compute: whoever may make a run there. No capability is asked for, and none is of any use.
//!
//! The kernels with sanitizers keep no capabilities of a file.
// kernels: amd64 rt newest

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{XattrFlags, setxattr};

const DEVICE: &str = "/dev/strobe";
const PROGRAM: &str = "/tmp/strobe-with-capabilities";
/// A user's own group, and that of the device.
const USER: u32 = 1000;
const GROUP: u32 = 900;

/// The device belongs to a group, as the installed rules have it; to root alone again when this is dropped.
struct Grouped(fs::Permissions);

impl Grouped {
    fn new() -> Grouped {
        let mode = fs::metadata(DEVICE).expect(DEVICE).permissions();
        chown(DEVICE, Some(0), Some(GROUP)).expect("a group");
        fs::set_permissions(DEVICE, fs::Permissions::from_mode(0o660)).expect("a mode");
        Grouped(mode)
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        let _ = chown(DEVICE, Some(0), Some(0));
        let _ = fs::set_permissions(DEVICE, self.0.clone());
        let _ = fs::remove_file(PROGRAM);
    }
}

/// A copy of the program that gives whoever starts it CAP_PERFMON (38) and CAP_BPF (39), and nothing else.
fn with_capabilities() -> &'static str {
    let strobe = std::env::var("PATH").expect("a path");
    let mut places = strobe.split(':').map(|place| format!("{place}/strobe"));
    let strobe = places.find(|place| fs::exists(place).unwrap_or(false));
    fs::copy(strobe.expect("strobe"), PROGRAM).expect("a copy");
    // Version 2, effective; two times permitted and inheritable.
    let words: [u32; 5] = [0x0200_0001, 0, 0, 1 << (38 - 32) | 1 << (39 - 32), 0];
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    setxattr(PROGRAM, "security.capability", &value, XattrFlags::empty()).expect("capabilities");
    PROGRAM
}

/// What came of a run with everything that a program may have: `Ok` if its rows are right.
fn recorded(program: &str, user: u32, group: u32, engine: &str) -> Result<(), String> {
    let words = [
        "record",
        "--engine",
        engine,
        "--event",
        "timer:1kHz",
        "--read",
        "sim.counter,sim.latch",
        "--derive",
        "step = diff(sim.counter)",
        "--keep",
        "sim.counter % 2 == 1",
        "--when",
        "sim.counter % 4 == 3",
        "--set",
        "sim.latch=5",
        "--rows",
        "20",
        "--allow-loss",
        "-o",
        "-",
    ];
    let output = Command::new(program)
        .args(words)
        .uid(user)
        .gid(group)
        .output()
        .expect("strobe runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => {
            assert!(!output.stdout.is_empty(), "{said}");
            Ok(())
        }
        Some(1) => Err(said),
        other => panic!("{other:?}: {said}"),
    }
}

#[test]
fn who_may_make_a_run_may_let_it_compute_and_nobody_else() {
    let _device = Grouped::new();
    let capable = with_capabilities();
    for (who, program, user, group, is_allowed) in [
        ("root", "strobe", 0, 0, true),
        ("group strobe", "strobe", USER, GROUP, true),
        ("CAP_BPF and CAP_PERFMON", capable, USER, USER, false),
        ("nobody", "strobe", USER, USER, false),
    ] {
        let of_kernel = recorded(program, user, group, "kernel");
        println!("{who}: kernel engine {of_kernel:?}");
        match of_kernel {
            Ok(()) => assert!(is_allowed, "{who}"),
            Err(said) => {
                assert!(!is_allowed, "{who}: {said}");
                assert!(
                    said.contains(DEVICE) && said.contains("permission"),
                    "{said}"
                );
            }
        }
        // It runs in the user's own process.
        recorded(program, user, group, "user").unwrap_or_else(|said| panic!("{who}: {said}"));
    }
}
