// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contract as the C compiler sees it, against the layout of this crate and against
//! `tests/abi/layout.c`, for 64-bit and 32-bit programs.
#![cfg(all(not(miri), target_os = "linux"))]

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use strobe_ring::layout::*;

#[path = "../../../tests/skip.rs"]
mod skip;

use skip::skip;

const TARGETS: [&str; 2] = ["-m64", "-m32"];

fn tree() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the compiler says to C source given on its standard input: empty if all is well.
fn compile(language: &str, target: &str, source: &str) -> String {
    let include = tree().join("include/uapi");
    let mut child = Command::new("cc")
        .args(["-x", language, target, "-fsyntax-only", "-ffreestanding"])
        .args(["-Wall", "-Wextra", "-Wpadded", "-Werror", "-I"])
        .arg(include)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler (cc) is needed: install gcc");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(source.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), messages.is_empty(), "{messages}");
    messages
}

/// The targets that this compiler can do; says so if one is left out.
fn targets() -> Vec<&'static str> {
    let probe = "#include <linux/types.h>\n";
    let can = |target: &&str| compile("c", target, probe).is_empty();
    let (can, cannot): (Vec<_>, Vec<_>) = TARGETS.into_iter().partition(can);
    for target in cannot {
        eprintln!("NOT CHECKED: cc cannot compile for {target} (gcc-multilib would)");
    }
    assert!(!can.is_empty(), "cc compiles for none of {TARGETS:?}");
    can
}

fn field_size<S, F>(_: impl Fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Asserts in C that a structure is as it is in Rust: every field in its place and of its size, and no
/// field on one side only.
macro_rules! assert_structure {
    ($out:ident, $rust:ident, $c:literal: $($field:ident)*) => {
        let mut covered = 0;
        $(
            let (offset, size) = (offset_of!($rust, $field), field_size(|s: &$rust| &s.$field));
            let name = stringify!($field);
            let _ = writeln!($out, "AT({}, {name}, {offset}, {size});", $c);
            covered += size;
        )*
        assert_eq!(covered, size_of::<$rust>(), "a field of {} is not in this list", $c);
        let _ = writeln!($out, "ASSERT(sizeof(struct {}) == {});", $c, size_of::<$rust>());
    };
}

fn assertions() -> String {
    let mut out = String::from(
        "#include \"strobe.h\"\n\
         #define ASSERT(what) _Static_assert(what, #what)\n\
         #define AT(type, field, offset, size) \\\n\
           ASSERT(__builtin_offsetof(struct type, field) == (offset)); \\\n\
           ASSERT(sizeof(((struct type *)0)->field) == (size))\n",
    );
    assert_structure!(out, RingHeader, "strobe_ring_header":
        magic major minor header_size row_stride channels capacity limit data_offset clock incompat
        period_ns run engine outputs row_size reserved0 start_time start_realtime start_tai first_due reserved1 head
        triggers state error wake reserved2 missed errors end_time skipped reserved3);
    assert_structure!(out, RowHeader, "strobe_row": row trigger time status);
    let constants: [(&str, u64); 26] = [
        ("RING_MAGIC", RING_MAGIC),
        ("RING_MAJOR", RING_MAJOR.into()),
        ("RING_MINOR", RING_MINOR.into()),
        ("NO_LIMIT", NO_LIMIT),
        ("CAPACITY_MAX", CAPACITY_MAX),
        ("MISSED_CAUSES", MISSED_CAUSES as u64),
        ("ROW_RESUMED", ROW_RESUMED),
        ("ROW_LATE", ROW_LATE),
        ("ROW_FLAGS", ROW_FLAGS),
        ("ROW_FAULTS", ROW_FAULTS),
        ("INCOMPAT_FAULTS", INCOMPAT_FAULTS.into()),
        ("INCOMPAT_SKIPPED", INCOMPAT_SKIPPED.into()),
        ("INCOMPAT_ABSENT", INCOMPAT_ABSENT.into()),
        ("READY", State::Ready.to_raw().into()),
        ("RUNNING", State::Running.to_raw().into()),
        ("PAUSED", State::Paused.to_raw().into()),
        ("DONE", State::Done.to_raw().into()),
        ("STOPPED", State::Stopped.to_raw().into()),
        ("FAILED", State::Failed.to_raw().into()),
        ("MISSED_OVERRUN", Missed::Overrun as u64),
        ("MISSED_BUSY", Missed::Busy as u64),
        ("MISSED_THROTTLED", Missed::Throttled as u64),
        ("MISSED_SOURCE", Missed::Source as u64),
        ("MISSED_SUSPENDED", Missed::Suspended as u64),
        ("ENGINE_KERNEL", Engine::Kernel.to_raw().into()),
        ("ENGINE_USER", Engine::User.to_raw().into()),
    ];
    for (name, value) in constants {
        let _ = writeln!(out, "ASSERT(STROBE_{name} == {value}ULL);");
    }
    out
}

#[test]
fn the_ring_is_laid_out_as_the_contract_says() {
    for target in targets() {
        assert_eq!(compile("c", target, &assertions()), "", "{target}");
    }
}

#[test]
fn an_assertion_that_is_wrong_does_not_compile() {
    let wrong = assertions().replace("head, 128, 8", "head, 136, 8");
    assert!(compile("c", targets()[0], &wrong).contains("head"));
}

#[test]
fn all_structures_of_the_contract_are_where_they_were_frozen() {
    let layout = std::fs::read_to_string(tree().join("tests/abi/layout.c")).unwrap();
    for target in targets() {
        assert_eq!(compile("c", target, &layout), "", "{target}");
    }
}

#[test]
fn they_are_there_for_cpp_too() {
    let probe = "int main() { return 0; }\n";
    let compiler = Command::new("c++").arg("--version").output();
    if !compiler.is_ok_and(|output| output.status.success())
        || !compile("c++", "-m64", probe).is_empty()
    {
        return skip("there is no C++ compiler");
    }
    let layout = std::fs::read_to_string(tree().join("tests/abi/layout.c")).unwrap();
    for target in targets() {
        assert_eq!(compile("c++", target, &layout), "", "{target}");
    }
}

#[test]
fn a_status_word_is_split_as_in_c() {
    let status = Status(ROW_FAULTS | ROW_RESUMED);
    assert_eq!((status.resumed(), status.late()), (true, false));
    assert!(Status(ROW_LATE).late());
}

#[test]
fn the_names_of_causes_are_those_of_the_counters() {
    assert_eq!(
        Missed::NAMES[Missed::Source as usize],
        Missed::Source.name()
    );
    assert_eq!(Missed::Suspended.name(), "suspended");
    assert_eq!(
        Missed::NAMES
            .map(str::len)
            .iter()
            .filter(|&&length| length == 0)
            .count(),
        0
    );
    assert_eq!(Missed::NAMES[MISSED_CAUSES - 1], "cause7");
}
