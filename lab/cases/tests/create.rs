// SPDX-License-Identifier: MIT OR Apache-2.0
//! STROBE_CREATE: each field wrong in turn, and the edges of what is right.
// lab: --module strobe_sample

use std::os::fd::AsRawFd;

use libc::{
    E2BIG, EFAULT, EINVAL, ENOENT, ENOSPC, EOPNOTSUPP, ERANGE, MAP_SHARED, PROT_READ, PROT_WRITE,
};
use strobe_cases::raw::*;
use strobe_ring::RowShape;

/// enum strobe_why.
mod why {
    pub const NONE: u32 = 0;
    pub const EVENT: u32 = 1;
    pub const PERIOD: u32 = 2;
    pub const STEPS: u32 = 3;
    pub const STEP: u32 = 4;
    pub const NAME: u32 = 5;
    pub const VALUE: u32 = 7;
    pub const DUE: u32 = 8;
    pub const CAPACITY: u32 = 9;
    pub const CLOCK: u32 = 10;
    pub const MEMORY: u32 = 11;
    pub const PRIORITY: u32 = 13;
}

const UNMAPPED: usize = 0x1000;
const KERNEL: usize = 0xffff_8880_0000_0000;
const NON_CANONICAL: usize = 0x8000_0000_0000_0000;

/// What makes a request wrong, and what the kernel has to answer.
struct Wrong {
    what: String,
    steps: Vec<Step>,
    change: Box<dyn Fn(&mut Create)>,
    want: (i32, u32, u32),
}

/// A request wrong by itself.
fn field(what: &str, errno: i32, why: u32, change: impl Fn(&mut Create) + 'static) -> Wrong {
    let steps = vec![step(READ, "sim.counter", 0), step(WRITE, "sim.latch", 5)];
    Wrong {
        what: what.into(),
        steps,
        change: Box::new(change),
        want: (errno, why, NO_STEP),
    }
}

/// A request wrong by its third step.
fn third(what: &str, errno: i32, why: u32, wrong: Step) -> Wrong {
    let mut this = field(what, errno, why, |_| ());
    this.steps.push(wrong);
    this.want.2 = 2;
    this
}

fn wrong_fields() -> Vec<Wrong> {
    const HOUR: u64 = 3_600_000_000_000;
    let timer = |period| move |c: &mut Create| (c.event, c.period_ns) = (named("timer"), period);
    let event = |name: &'static str| move |c: &mut Create| c.event = named(name);
    vec![
        field("event without NUL", EINVAL, why::NONE, |c| {
            c.event = [b't'; 64]
        }),
        field("event of 63 characters", ENOENT, why::EVENT, |c| {
            c.event[..63].fill(b't')
        }),
        field("no event", ENOENT, why::EVENT, event("")),
        field(
            "event of a device that is not there",
            ENOENT,
            why::EVENT,
            event("nothing.pulse"),
        ),
        field(
            "event that its device has not",
            ENOENT,
            why::EVENT,
            event("sim.nothing"),
        ),
        field(
            "event with two dots",
            ENOENT,
            why::EVENT,
            event("sim.pulse.pulse"),
        ),
        field("channel as event", ENOENT, why::EVENT, event("sim.counter")),
        field("device as event", ENOENT, why::EVENT, event("sim")),
        field("device and dot as event", ENOENT, why::EVENT, event("sim.")),
        field("dot and event", ENOENT, why::EVENT, event(".pulse")),
        field("capitals", ENOENT, why::EVENT, event("Timer")),
        field("timer without period", EINVAL, why::PERIOD, timer(0)),
        field("period 999", EINVAL, why::PERIOD, timer(999)),
        field(
            "period beyond an hour",
            EINVAL,
            why::PERIOD,
            timer(HOUR + 1),
        ),
        field("greatest period", EINVAL, why::PERIOD, timer(u64::MAX)),
        field("soft with a period", EINVAL, why::PERIOD, |c| {
            c.period_ns = 1000
        }),
        field("pulse with a period", EINVAL, why::PERIOD, |c| {
            (c.event, c.period_ns) = (named("sim.pulse"), 1_000_000);
        }),
        field("capacity 1", EINVAL, why::CAPACITY, |c| c.capacity = 1),
        field("capacity 3", EINVAL, why::CAPACITY, |c| c.capacity = 3),
        field("capacity 2^33", EINVAL, why::CAPACITY, |c| {
            c.capacity = 1 << 33
        }),
        field("greatest capacity", EINVAL, why::CAPACITY, |c| {
            c.capacity = u64::MAX
        }),
        field(
            "capacity 2^32, which no guest has",
            ENOSPC,
            why::MEMORY,
            |c| c.capacity = 1 << 32,
        ),
        Wrong {
            steps: vec![step(READ, "sim.counter", 0); 1024],
            ..field(
                "2^32 rows of 1024 channels, which no machine has",
                ENOSPC,
                why::MEMORY,
                |c| c.capacity = 1 << 32,
            )
        },
        field("clock REALTIME", EINVAL, why::CLOCK, |c| c.clock = 5),
        field("clock 12", EINVAL, why::CLOCK, |c| c.clock = 12),
        field("clock -1", EINVAL, why::CLOCK, |c| c.clock = u32::MAX),
        field("priority 100", EINVAL, why::PRIORITY, |c| c.priority = 100),
        field("1025 steps", EINVAL, why::STEPS, |c| c.step_count = 1025),
        field("4 G steps", EINVAL, why::STEPS, |c| c.step_count = u32::MAX),
        field("step_size 0", EINVAL, why::NONE, |c| c.step_size = 0),
        field("step_size 79", EINVAL, why::NONE, |c| c.step_size = 79),
        field("step_size 4 G", E2BIG, why::NONE, |c| {
            c.step_size = u32::MAX
        }),
        field("steps at NULL", EFAULT, why::NONE, |c| c.steps = 0),
        field("steps unmapped", EFAULT, why::NONE, |c| {
            c.steps = UNMAPPED as u64
        }),
        field("steps in the kernel", EFAULT, why::NONE, |c| {
            c.steps = KERNEL as u64
        }),
        field("steps not canonical", EFAULT, why::NONE, |c| {
            c.steps = NON_CANONICAL as u64
        }),
        field("steps at the end of all", EFAULT, why::NONE, |c| {
            c.steps = u64::MAX - 79
        }),
        field("something reserved", EINVAL, why::NONE, |c| c.reserved = 1),
    ]
}

fn wrong_steps() -> Vec<Wrong> {
    let read = |name: &str| step(READ, name, 0);
    let mut wrong = vec![
        third("op 0", EINVAL, why::STEP, step(0, "sim.counter", 0)),
        third("op 3", EINVAL, why::STEP, step(3, "sim.counter", 0)),
        third("op -1", EINVAL, why::STEP, step(u32::MAX, "sim.counter", 0)),
        third(
            "value on a read",
            EINVAL,
            why::STEP,
            step(READ, "sim.counter", 1),
        ),
        third(
            "name without NUL",
            EINVAL,
            why::STEP,
            Step {
                name: [b's'; 64],
                ..read("")
            },
        ),
        third("no name", ENOENT, why::NAME, read("")),
        third("no dot", ENOENT, why::NAME, read("counter")),
        third("two dots", ENOENT, why::NAME, read("sim.counter.counter")),
        third("a dot at the end", ENOENT, why::NAME, read("sim.counter.")),
        third("unknown channel", ENOENT, why::NAME, read("sim.nothing")),
        third("unknown device", ENOENT, why::NAME, read("nothing.counter")),
        third(
            "part of a device's name",
            ENOENT,
            why::NAME,
            read("si.counter"),
        ),
        third(
            "63 characters",
            ENOENT,
            why::NAME,
            read(&format!("sim.{}", "c".repeat(59))),
        ),
        third("event as channel", ENOENT, why::NAME, read("sim.pulse")),
        third("output as channel", ENOENT, why::NAME, read("sample.step")),
        third(
            "channel as output",
            ENOENT,
            why::NAME,
            step(WRITE, "sim.counter", 0),
        ),
        third(
            "value of 17 bits for 16",
            ERANGE,
            why::VALUE,
            step(WRITE, "sample.step", 1 << 16),
        ),
        third(
            "value of 64 bits for 16",
            ERANGE,
            why::VALUE,
            step(WRITE, "sample.step", 1 << 63),
        ),
        third(
            "late where nothing is due",
            EOPNOTSUPP,
            why::DUE,
            read("clock.late"),
        ),
    ];
    for bit in 0..32 {
        let flagged = Step {
            flags: 1 << bit,
            ..read("sim.counter")
        };
        wrong.push(third(
            &format!("flag {bit} of a step"),
            EINVAL,
            why::STEP,
            flagged,
        ));
    }
    wrong
}

#[test]
fn a_wrong_create_says_what_is_wrong_and_a_dry_run_says_the_same() {
    let control = control();
    let before = census(&control);
    let mut findings = Findings::default();
    for Wrong {
        what,
        steps,
        change,
        want,
    } in wrong_fields().into_iter().chain(wrong_steps())
    {
        for flags in [0, DRY_RUN, SHARED] {
            let mut c = Create {
                flags,
                ..request("soft", 0, 4, &steps)
            };
            change(&mut c);
            let (result, answer) = ask(&control, &c);
            let errno = result.err().unwrap_or(0);
            let what = format!("{what}, flags {flags}");
            findings.equal(&what, (errno, answer.why, answer.fault_step), want);
            let made = (answer.fd, answer.run);
            findings.equal(format!("{what}: fd and run"), made, (-1, 0));
            if answer.fd > 2 && errno == 0 {
                drop(adopt(answer.fd));
            }
        }
    }
    findings.equal("census", census(&control), before);
}

#[test]
fn the_edges_of_what_is_right_are_accepted_and_a_dry_run_answers_the_same() {
    let control = control();
    let timer = |period| move |c: &mut Create| (c.event, c.period_ns) = (named("timer"), period);
    let mut right = vec![
        field("as it is", 0, 0, |_| ()),
        field("shortest period", 0, 0, timer(1000)),
        field("longest period", 0, 0, timer(3_600_000_000_000)),
        field("an event of a device", 0, 0, |c| {
            c.event = named("sim.pulse")
        }),
        field("capacity 2", 0, 0, |c| c.capacity = 2),
        field("default capacity", 0, 0, |c| c.capacity = 0),
        field("limit 1", 0, 0, |c| c.limit = 1),
        field("greatest limit", 0, 0, |c| c.limit = u64::MAX),
        field("MONOTONIC", 0, 0, |c| c.clock = 1),
        field("TAI", 0, 0, |c| c.clock = 11),
        field("no steps", 0, 0, |c| (c.steps, c.step_count) = (0, 0)),
        field("no steps, anywhere", 0, 0, |c| {
            (c.steps, c.step_count) = (KERNEL as u64, 0)
        }),
        third("16 bits", 0, 0, step(WRITE, "sample.step", 0xFFFF)),
        third("64 bits", 0, 0, step(WRITE, "sim.latch", u64::MAX)),
        third("the same channel again", 0, 0, step(READ, "sim.counter", 0)),
    ];
    let mut late = third("late on a timer", 0, 0, step(READ, "clock.late", 0));
    late.change = Box::new(timer(1_000_000));
    let mut most = field("1024 steps", 0, 0, |_| ());
    most.steps = vec![step(READ, "sim.counter", 0); 1024];
    right.extend([late, most]);
    let mut findings = Findings::default();
    for Wrong {
        what,
        steps,
        change,
        ..
    } in right
    {
        let before = census(&control);
        let mut c = request("soft", 0, 4, &steps);
        change(&mut c);
        let dry = Create {
            flags: DRY_RUN,
            ..c
        };
        let (result, dry) = ask(&control, &dry);
        findings.equal(format!("{what}, dry"), result, Ok(0));
        findings.equal(
            format!("{what}, dry: fd and run"),
            (dry.fd, dry.run),
            (-1, 0),
        );
        findings.equal(
            format!("{what}, dry: census"),
            census(&control),
            before.clone(),
        );
        let made = create(&control, &c);
        findings.equal(&what, made.as_ref().err(), None);
        let Ok((owner, made)) = &made else {
            continue;
        };
        let Ok(ring) = reader(&control, made.run, 0, 0) else {
            continue;
        };
        let map = Map::new(
            ring.as_raw_fd(),
            made.ring_bytes as usize,
            PROT_READ,
            MAP_SHARED,
            0,
        );
        let map = map.expect("a mapping");
        let reads = steps
            .iter()
            .filter(|s| s.op == READ)
            .count()
            .min(c.step_count as usize);
        let writes = steps.len().min(c.step_count as usize) - reads;
        let shape = RowShape {
            channels: reads as u32,
            outputs: writes as u32,
            skipped: false,
        };
        let counts = (made.channels, made.outputs);
        findings.equal(
            format!("{what}: channels"),
            counts,
            (shape.channels, shape.outputs),
        );
        let size = shape.bytes() as u32;
        findings.equal(format!("{what}: a row"), made.row_size, size);
        let stride = size.next_multiple_of(64);
        findings.equal(format!("{what}: stride"), made.row_stride, stride);
        let said = [OUTPUTS, ROW_SIZE, INCOMPAT].map(|at| map.get::<u32>(at));
        let shape = [shape.outputs, size, shape.incompat()];
        findings.equal(format!("{what}: the header"), said, shape);
        findings.equal(
            format!("{what}: capacity"),
            map.get::<u64>(24),
            made.capacity,
        );
        findings.equal(
            format!("{what}: clock"),
            map.get::<u32>(CLOCK),
            c.clock.max(1),
        );
        let limit = if c.limit == 0 { u64::MAX } else { c.limit };
        findings.equal(format!("{what}: limit"), map.get::<u64>(LIMIT), limit);
        let end = map.get::<u64>(DATA_OFFSET) + map.get::<u64>(24) * u64::from(stride);
        findings.equal(
            format!("{what}: ring"),
            made.ring_bytes,
            end.next_multiple_of(4096),
        );
        let not_made = Created {
            fd: -1,
            run: 0,
            ..*made
        };
        findings.equal(format!("{what}: the dry answer"), dry, not_made);
        drop((map, ring));
        findings.equal(
            format!("{what}: state"),
            order(owner, STATUS, 0).map(|s| s.state),
            Ok(READY),
        );
    }
}

#[test]
fn steps_may_grow_by_zeros_and_may_be_read_only() {
    let control = control();
    let page = Map::pages(2, PROT_READ | PROT_WRITE);
    let mut findings = Findings::default();
    let mut call =
        |what: &str, size: usize, at: usize, poison: Option<usize>, want: Option<i32>| {
            (0..8192).for_each(|at| page.put(at, 0u8));
            for i in [0, 1].into_iter().filter(|i| at + i * size + 80 <= 8192) {
                page.put(at + i * size, step(READ, "sim.counter", 0));
            }
            if let Some(at) = poison {
                page.put(at, 1u8);
            }
            page.protect(PROT_READ).expect("read-only");
            let before = census(&control);
            let address = (page.address + at) as u64;
            let c = Create {
                steps: address,
                step_count: 2,
                step_size: size as u32,
                ..request("soft", 0, 2, &[])
            };
            let (result, answer) = ask(&control, &c);
            if result.is_ok() {
                drop(adopt(answer.fd));
            }
            findings.equal(what, result.err(), want);
            if want.is_some() {
                findings.equal(format!("{what}: census"), census(&control), before);
                findings.equal(
                    format!("{what}: why"),
                    (answer.why, answer.fault_step),
                    (why::NONE, NO_STEP),
                );
            }
            page.protect(PROT_READ | PROT_WRITE).expect("writable");
        };
    call("as compiled", 80, 0, None, None);
    call("larger", 88, 0, None, None);
    call("odd, as a later version might be", 81, 0, None, None);
    call("a page each", 4096, 0, None, None);
    call(
        "something unknown in the first",
        88,
        0,
        Some(80),
        Some(E2BIG),
    );
    call(
        "something unknown in the second",
        96,
        0,
        Some(191),
        Some(E2BIG),
    );
    call("behind the last", 88, 0, Some(176), None);
    call("more than a page", 4104, 0, None, Some(E2BIG));
    call(
        "the second beyond the mapping",
        80,
        8192 - 80,
        None,
        Some(EFAULT),
    );
    call("up to the end of the mapping", 80, 8192 - 160, None, None);
}

#[test]
fn all_rings_together_keep_within_ring_bytes_max() {
    let control = control();
    let try_to = |what: &str, capacity: u64, want: Result<(), i32>| {
        let (got, answer) = ask(&control, &request("soft", 0, capacity, &[]));
        assert_eq!(got.map(drop), want, "{what}");
        assert_eq!(
            answer.why,
            if want.is_ok() { why::NONE } else { why::MEMORY },
            "{what}"
        );
        got.ok().map(|_| adopt(answer.fd))
    };
    // A page for the header and one for rows; should anything be left of what other tests had,
    // not even the first fits.
    let max = Parameter::set("ring_bytes_max", 8192);
    let before = census(&control);
    assert!(try_to("too large", 128, Err(ENOSPC)).is_none());
    assert_eq!(census(&control), before);
    let first = try_to("exactly", 64, Ok(()));
    let before = census(&control);
    assert!(try_to("a second", 2, Err(ENOSPC)).is_none());
    assert_eq!(census(&control), before);
    drop(first);
    let first = try_to("in the place of the first", 64, Ok(()));
    drop(max);
    let second = try_to("without the bound", 2, Ok(()));
    drop((first, second));
}
