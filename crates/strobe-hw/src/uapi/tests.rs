// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C compiler's view of `include/uapi/strobe.h` against ours.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use super::*;

/// Lines of C that print a fact, and what Rust says of the same fact.
struct Facts {
    c: String,
    rust: BTreeMap<String, u64>,
}

impl Facts {
    fn add(&mut self, name: &str, c: &str, rust: u64) {
        self.c.push_str(&format!(
            "\tprintf(\"{name} %llu\\n\", (unsigned long long)({c}));\n"
        ));
        assert!(
            self.rust.insert(name.to_owned(), rust).is_none(),
            "{name} is there twice"
        );
    }
}

macro_rules! structure {
    ($facts:ident, $rust:ty, $c:literal, { $($field:ident = $cfield:literal),* $(,)? }) => {
        $facts.add($c, concat!("sizeof(struct ", $c, ")"), size_of::<$rust>() as u64);
        $($facts.add(
            concat!($c, ".", $cfield),
            concat!("offsetof(struct ", $c, ", ", $cfield, ")"),
            offset_of!($rust, $field) as u64,
        );)*
    };
}

macro_rules! constants {
    ($facts:ident, $($c:literal = $rust:expr),* $(,)?) => {
        $($facts.add($c, $c, u64::from($rust));)*
    };
}

fn facts() -> Facts {
    let mut f = Facts {
        c: String::new(),
        rust: BTreeMap::new(),
    };
    structure!(f, Value, "strobe_value", {
        kind = "type", cost_class = "cost_class", unit = "unit", scale = "scale",
        offset = "offset", bits = "bits", cost_ns = "cost_ns",
    });
    structure!(f, RunInfo, "strobe_run_info", {
        state = "state", error = "error", channels = "channels", readers = "readers",
        uid = "uid", pid = "pid", capacity = "capacity", limit = "limit", head = "head",
        triggers = "triggers", period_ns = "period_ns", elapsed_ns = "elapsed_ns",
        skipped = "skipped", errors = "errors", outputs = "outputs", reserved = "reserved",
    });
    structure!(f, Features, "strobe_features", {
        size = "size", flags = "flags", major = "major", minor = "minor",
        create_flags = "create_flags", reader_flags = "reader_flags", incompat = "incompat",
        causes = "causes", steps_max = "steps_max", features = "features",
    });
    structure!(f, Entry, "strobe_entry", {
        kind = "kind", id = "id", parent = "parent", flags = "flags", name = "name",
        text = "text", detail = "reserved",
    });
    structure!(f, List, "strobe_list", {
        size = "size", flags = "flags", run = "run", entry_size = "entry_size",
        buffer = "buffer", room = "room", count = "count", generation = "generation",
    });
    structure!(f, Step, "strobe_step", {
        op = "op", flags = "flags", value = "value", name = "name",
    });
    structure!(f, Create, "strobe_create", {
        size = "size", flags = "flags", event = "event", period_ns = "period_ns",
        capacity = "capacity", limit = "limit", steps = "steps", step_count = "step_count",
        step_size = "step_size", clock = "clock", priority = "priority", answer = "answer",
        answer_size = "answer_size", reserved = "reserved", program = "program",
    });
    structure!(f, program::Program, "strobe_program", {
        size = "size", flags = "flags", insns = "insns", insn_count = "insn_count",
        state = "state", derived = "derived", derived_count = "derived_count",
        derived_size = "derived_size", tunables = "tunables", reserved = "reserved",
    });
    structure!(f, program::Derived, "strobe_derived", { name = "name", value = "value" });
    structure!(f, Created, "strobe_created", {
        fd = "fd", run = "run", fault_step = "fault_step", why = "why", channels = "channels",
        outputs = "outputs", row_size = "row_size", row_stride = "row_stride",
        capacity = "capacity", ring_bytes = "ring_bytes", cost_ns = "cost_ns",
    });
    structure!(f, Control, "strobe_control", {
        size = "size", op = "op", flags = "flags", count = "count", state = "state",
        error = "error", head = "head", triggers = "triggers", skipped = "skipped",
        cause = "cause", reserved = "reserved",
    });
    structure!(f, Reader, "strobe_reader", {
        size = "size", flags = "flags", run = "run", reserved = "reserved", first = "first",
        fd = "fd", channels = "channels", outputs = "outputs", row_size = "row_size",
        ring_bytes = "ring_bytes",
    });
    structure!(f, Arm, "strobe_arm", { size = "size", flags = "flags", rows = "rows" });
    structure!(f, Tune, "strobe_tune", {
        size = "size", flags = "flags", run = "run", tunable = "tunable", value = "value",
    });
    constants!(
        f,
        "STROBE_LIST" = LIST,
        "STROBE_CREATE" = CREATE,
        "STROBE_CONTROL" = CONTROL,
        "STROBE_READER" = READER,
        "STROBE_ARM" = ARM,
        "STROBE_FEATURES" = FEATURES,
        "STROBE_TUNE" = TUNE,
        "STROBE_NAME_SIZE" = NAME_SIZE as u32,
        "STROBE_UNIT_SIZE" = UNIT_SIZE as u32,
        "STROBE_TEXT_SIZE" = TEXT_SIZE as u32,
        "STROBE_STEPS_MAX" = STEPS_MAX as u32,
        "STROBE_PRIORITY_MAX" = u32::from(PRIORITY_MAX),
        "STROBE_PRIORITY_DEFAULT" = u32::from(PRIORITY_DEFAULT),
        "STROBE_COST_MAX" = COST_MAX,
        "STROBE_TRIGGER_MAX" = TRIGGER_MAX,
        "STROBE_CAPACITY_MAX" = CAPACITY_MAX,
        "STROBE_NO_LIMIT" = NO_LIMIT,
        "STROBE_KIND_DEVICE" = kind::DEVICE,
        "STROBE_KIND_CHANNEL" = kind::CHANNEL,
        "STROBE_KIND_OUTPUT" = kind::OUTPUT,
        "STROBE_KIND_EVENT" = kind::EVENT,
        "STROBE_KIND_RUN" = kind::RUN,
        "STROBE_ENTRY_IN_USE" = entry_flag::IN_USE,
        "STROBE_ENTRY_PERIODIC" = entry_flag::PERIODIC,
        "STROBE_ENTRY_EXACT" = entry_flag::EXACT,
        "STROBE_ENTRY_BY_TIME" = entry_flag::BY_TIME,
        "STROBE_ENTRY_TUNABLE" = entry_flag::TUNABLE,
        "STROBE_OP_READ" = op::READ,
        "STROBE_OP_WRITE" = op::WRITE,
        "STROBE_OP_ACT" = op::ACT,
        "STROBE_DRY_RUN" = create_flag::DRY_RUN,
        "STROBE_SHARED" = create_flag::SHARED,
        "STROBE_WHY_EVENT" = why::EVENT,
        "STROBE_WHY_PERIOD" = why::PERIOD,
        "STROBE_WHY_STEPS" = why::STEPS,
        "STROBE_WHY_STEP" = why::STEP,
        "STROBE_WHY_NAME" = why::NAME,
        "STROBE_WHY_BUSY" = why::BUSY,
        "STROBE_WHY_VALUE" = why::VALUE,
        "STROBE_WHY_DUE" = why::DUE,
        "STROBE_WHY_CAPACITY" = why::CAPACITY,
        "STROBE_WHY_CLOCK" = why::CLOCK,
        "STROBE_WHY_MEMORY" = why::MEMORY,
        "STROBE_WHY_PROVIDER" = why::PROVIDER,
        "STROBE_WHY_PRIORITY" = why::PRIORITY,
        "STROBE_WHY_COST" = why::COST,
        "STROBE_WHY_RUNS" = why::RUNS,
        "STROBE_WHY_ASYNC" = why::ASYNC,
        "STROBE_WHY_PROGRAM" = why::PROGRAM,
        "STROBE_WHY_DERIVED" = why::DERIVED,
        "STROBE_FEATURE_PROGRAMS" = program::FEATURE_PROGRAMS,
        "STROBE_FEATURE_ACT" = program::FEATURE_ACT,
        "STROBE_FEATURE_TUNE" = program::FEATURE_TUNE,
        "STROBE_FEATURE_FOLLOW" = program::FEATURE_FOLLOW,
        "STROBE_PROGRAM_SKIPS" = program::SKIPS,
        "STROBE_STATUS" = control_op::STATUS,
        "STROBE_START" = control_op::START,
        "STROBE_PAUSE" = control_op::PAUSE,
        "STROBE_RESUME" = control_op::RESUME,
        "STROBE_STOP" = control_op::STOP,
        "STROBE_TRIGGER" = control_op::TRIGGER,
    );
    f
}

#[test]
fn every_structure_and_number_is_as_in_the_c_header() {
    let facts = facts();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/uapi");
    let dir = tempfile::tempdir().expect("a folder for the C program");
    let source = dir.path().join("facts.c");
    let program = dir.path().join("facts");
    let code = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"strobe.h\"\nint main(void)\n{{\n{}\treturn 0;\n}}\n",
        facts.c
    );
    std::fs::write(&source, code).expect("the C program is written");
    let cc = Command::new("cc")
        .args(["-Wall", "-Werror", "-I"])
        .arg(&include)
        .arg("-o")
        .args([&program, &source])
        .status()
        .expect("cc is installed");
    assert!(cc.success(), "the C header compiles");
    let output = Command::new(&program).output().expect("the C program runs");
    let c: BTreeMap<String, u64> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| {
            let (name, value) = line.split_once(' ').expect("name and value");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect();
    assert_eq!(c, facts.rust);
}
