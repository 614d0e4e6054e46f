// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of a run allocates nothing and touches no new page in its loop. Seen by the run itself: what its
//! thread has allocated so far, and its page faults, are channels here.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use strobe::catalogue::Catalogue;
use strobe::channel::{Channel, Class, Type};
use strobe::engine;
use strobe::engine::user::provider::{ChannelOpener, Provider, ReadChannel, Row};
use strobe::engine::user::{Settings, User, WaitMode};
use strobe::plan::{Plan, Step};
use strobe::rt::Usage;
use strobe::run::{OwnedRun, Run};
use strobe_hw::allocations::{Counting, calls};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Has the channels `own.calls` and `own.faults`, and `own.fails`, which always fails.
struct Own;

struct Number(fn() -> io::Result<u64>);

impl ReadChannel for Number {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        (self.0)()
    }
}

fn faults() -> io::Result<u64> {
    let usage = Usage::of_this_thread();
    Ok(usage.minor_faults + usage.major_faults)
}

impl Provider for Own {
    fn list(&self, _: &mut Catalogue) {}

    fn channel(&self, name: &str) -> Option<Result<ChannelOpener<'_>, engine::Error>> {
        let number: fn() -> io::Result<u64> = match name {
            "own.calls" => || Ok(calls()),
            "own.faults" => faults,
            "own.fails" => || Err(io::Error::from_raw_os_error(5)),
            _ => return None,
        };
        let about = Channel {
            name: name.to_owned(),
            description: String::new(),
            unit: String::new(),
            kind: Type::U64,
            class: Class::Hard,
            scale: 1.0,
            offset: 0.0,
            bits: 64,
            cost_ns: 0,
            in_use: false,
        };
        let reader = Box::new(Number(number));
        Some(Ok(ChannelOpener::ready(about, reader)))
    }
}

const OWN: [&str; 2] = ["own.calls", "own.faults"];

/// The values of [`OWN`] in each row of a run that reads these channels as well; `trigger` is called when the
/// run was started.
fn rows(
    event: &str,
    wait: WaitMode,
    more: &[&str],
    rows: u64,
    trigger: impl FnOnce(&dyn OwnedRun),
) -> Vec<[u64; 2]> {
    let settings = Settings {
        wait,
        ..Settings::default()
    };
    let mut plan = Plan::new(event.parse().expect("an event"));
    let names = OWN.iter().chain(more);
    plan.steps = names.map(|name| Step::Read((*name).into())).collect();
    (plan.ring, plan.limit) = (Some(rows), Some(rows));
    let run = User::new(settings).with(Arc::new(Own)).create(&plan);
    let run = run.expect("a run");
    let mut reader = run.reader().expect("a reader");
    run.start().expect("to start");
    trigger(&run);
    let minute = Duration::from_secs(60);
    reader.wait(rows, minute).expect("rows");
    let mut buffer = vec![0; reader.ring().row_words() * rows as usize];
    let batch = reader.read(&mut buffer);
    assert_eq!((batch.lost, batch.rows.len() as u64), (0, rows));
    batch
        .rows
        .map(|row| [row.values[0], row.values[1]])
        .collect()
}

/// From the second row on: the first may pay for what only the first row needs.
fn nothing_changes(rows: &[[u64; 2]], what: &str) {
    let second = rows.get(1).expect("two rows");
    for (number, row) in rows.iter().enumerate().skip(1) {
        assert_eq!(
            row, second,
            "calls of the allocator and page faults, {what}, row {number}"
        );
    }
}

#[test]
fn a_timer_takes_no_memory_however_it_waits() {
    let more = [
        "sim.counter",
        "clock.late",
        "event.time",
        "file:/proc/uptime",
    ];
    for wait in [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin] {
        let rows = rows("timer:2kHz", wait, &more, 500, |_| {});
        nothing_changes(&rows, &wait.to_string());
    }
}

#[test]
fn a_channel_that_fails_takes_no_memory() {
    let rows = rows("timer:2kHz", WaitMode::Block, &["own.fails"], 200, |_| {});
    nothing_changes(&rows, "a failing channel");
}

#[test]
fn an_event_with_a_descriptor_takes_no_memory() {
    let flags = rustix::event::EventfdFlags::CLOEXEC;
    let fd = rustix::event::eventfd(0, flags).expect("an eventfd");
    let event = format!("eventfd:{}", fd.as_raw_fd());
    let rows = rows(&event, WaitMode::Block, &["event.count"], 200, |run| {
        let reader = run.reader().expect("a reader");
        while !reader.snapshot().state.is_final() {
            // It may have ended in the meantime: then this is left over.
            rustix::io::write(&fd, &1_u64.to_ne_bytes()).expect("to add");
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    nothing_changes(&rows, "eventfd");
}

#[test]
fn software_triggers_take_no_memory() {
    let rows = rows("soft", WaitMode::Block, &["sim.counter"], 500, |run| {
        run.trigger(500).expect("to trigger");
    });
    nothing_changes(&rows, "soft");
}

#[test]
fn the_allocator_does_count() {
    let before = calls();
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert_eq!(calls(), before + 2);
}
