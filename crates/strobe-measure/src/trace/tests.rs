// SPDX-License-Identifier: MIT OR Apache-2.0

use std::process::Command;
use std::time::Duration;

use super::*;

#[path = "../../../../tests/skip.rs"]
mod skip;

use skip::skip;

const TEXT: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [001] d.h1.    11.576226: hrtimer_expire_entry: hrtimer=0000000043 function=tick now=11576088464
CPU:1 [LOST 12 EVENTS]
  my [0] - task-171     [000] d..2.    11.576230: sched_switch: prev_comm=my [0] - task prev_pid=171 prev_prio=39 prev_state=S ==> next_comm=a next_pid=9 next_pid=172 next_prio=120
          strobe-171     [000] d.h..    13.154632: local_timer_exit: vector=236
          strobe-171     [000] d.h..    13.154656: <stack trace>
 => local_apic_timer
 => asm_timer
          strobe-171     [000] .....    13.154700: sys_read -> 0x8
          strobe-171     [000] .....    13.154701: sys_read(fd: 3, buf: 7f00, count: 8)
          strobe-171     [001] .....    13.154600: tracing_mark_write: hello
";

#[test]
fn each_line_is_an_event_with_its_time_and_its_words() {
    let trace = Trace::parse(TEXT);
    assert_eq!((trace.lost, trace.damaged), (12, 0));
    let names: Vec<&str> = trace.events.iter().map(|event| event.name).collect();
    let wanted = [
        "hrtimer_expire_entry",
        "sched_switch",
        "tracing_mark_write",
        "local_timer_exit",
        "<stack trace>",
        "sys_read",
        "sys_read",
    ];
    assert_eq!(names, wanted, "in the order of their times");
    let first = &trace.events[0];
    assert_eq!((first.task, first.pid, first.cpu), ("<idle>", 0, 1));
    assert_eq!(first.time, 11_576_226_000);
    assert_eq!(first.word("function"), Some("tick"));
    assert_eq!(first.number("now"), Some(11_576_088_464));
    assert_eq!(first.number("ow"), None, "a word is whole");
    assert_eq!(trace.events[2].details, "hello");
    assert_eq!(trace.events[5].details, "-> 0x8");
    assert!(trace.events[6].details.starts_with("(fd: 3"));
}

#[test]
fn a_task_may_call_itself_anything() {
    let trace = Trace::parse(TEXT);
    let switch = &trace.events[1];
    assert_eq!(
        (switch.task, switch.pid, switch.cpu),
        ("my [0] - task", 171, 0)
    );
    assert_eq!(switch.number("prev_pid"), Some(171));
    assert_eq!(switch.number("next_pid"), Some(172), "the last one counts");
    assert_eq!(
        switch.between("prev_comm", "prev_pid"),
        Some("my [0] - task")
    );
    assert_eq!(
        switch.between("next_comm", "next_pid"),
        Some("a next_pid=9")
    );
}

#[test]
fn functions_belong_to_the_event_before_them() {
    let trace = Trace::parse(TEXT).with_stacks();
    let exit = &trace.events[3];
    assert_eq!(exit.name, "local_timer_exit");
    assert_eq!(exit.stack, ["local_apic_timer", "asm_timer"]);
    assert_eq!(trace.events.len(), 6);
    let stack = &Trace::parse(TEXT).events[4];
    assert!(stack.text.ends_with(" => asm_timer"), "{}", stack.text);
}

#[test]
fn a_damaged_text_costs_its_damaged_lines_and_nothing_else() {
    // Each text with one byte taken away or changed, cut off anywhere: no panic, and never more events than lines.
    let mut seen = 0;
    for at in 0..TEXT.len() {
        for new in ["", "=", " ", "[", "\n", "-", "9", "\u{fffd}"] {
            let text = format!("{}{new}{}", &TEXT[..at], &TEXT[at + 1..]);
            for part in [text.as_str(), text.get(..at).unwrap_or_default()] {
                let trace = Trace::parse(part).with_stacks();
                assert!(trace.events.len() <= 8, "{part}");
                seen += trace.damaged;
                for event in &trace.events {
                    let _ = (
                        event.number("next_pid"),
                        event.between("prev_comm", "prev_pid"),
                    );
                }
            }
        }
    }
    assert!(seen > 1000, "{seen}: most of these are damage");
    for line in [
        "a-1 [0] . 1.2",
        "a-1 [0] . 1.x: b: c",
        "a-1 [0] . 99999999999999999999.1: b: c",
        "a-1 [0] . 99999999999.1: b: c",
        "a-x [0] . 1.0: b: c",
        " => f",
    ] {
        let trace = Trace::parse(line);
        assert_eq!((trace.events.len(), trace.damaged), (0, 1), "{line}");
    }
}

#[test]
fn an_instance_of_a_process_that_is_gone_is_known_by_its_name() {
    assert_eq!(owner("strobe-12-0"), Some(12));
    for other in [
        "strobe-12",
        "strobe-x-0",
        "strobe-12-0x",
        "mine",
        "strobe--1",
    ] {
        assert_eq!(owner(other), None, "{other}");
    }
    assert!(is_gone(u32::MAX) && !is_gone(std::process::id()));
}

/// An instance, if this test may have one.
fn instance(events: impl IntoIterator<Item = EventRequest>) -> Option<Instance> {
    match Instance::create(&Settings::of(events)) {
        Ok(instance) => Some(instance),
        Err(error @ (Error::NotMounted(_) | Error::Denied { .. } | Error::None)) => {
            assert!(
                !rustix::process::getuid().is_root() || is_contained(),
                "{error}"
            );
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Root of a container may be refused what root may do.
fn is_contained() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // CAP_SYS_ADMIN.
    capabilities.is_none_or(|set| set & 1 << 21 == 0)
}

#[test]
fn an_instance_records_what_was_asked_for_until_it_is_dropped() {
    let switches = EventRequest::event("sched:sched_switch").only("prev_pid != 0");
    let none = EventRequest::event("strobe:no_such").or_without();
    let Some(instance) = instance([switches, none]) else {
        return;
    };
    assert_eq!(instance.missing(), ["strobe:no_such"]);
    instance.mark("before").expect("to write");
    instance.turn_on().expect("to begin");
    instance.mark("within").expect("to write");
    let before = strobe::clock::monotonic();
    std::thread::sleep(Duration::from_millis(5));
    let after = strobe::clock::monotonic();
    instance.turn_off().expect("to end");
    let text = instance.text().expect("a text");
    let trace = text.trace();
    let of = |name: &str| {
        trace
            .events
            .iter()
            .filter(|event| event.name == name)
            .collect::<Vec<_>>()
    };
    assert_eq!(trace.damaged, 0, "{}", text.as_str());
    let marks: Vec<&str> = of("tracing_mark_write")
        .iter()
        .map(|mark| mark.details)
        .collect();
    assert_eq!(marks, ["within"]);
    let me = i64::from(rustix::thread::gettid().as_raw_pid());
    let slept = of("sched_switch")
        .into_iter()
        .find(|event| event.number("prev_pid") == Some(me));
    let slept = slept.expect("it went to sleep");
    assert!(
        slept.time + 1000 > before && slept.time < after,
        "{slept:?}"
    );
    assert!(
        of("sched_switch")
            .iter()
            .all(|event| event.number("prev_pid") != Some(0))
    );
    instance.clear().expect("to forget");
    assert!(instance.text().expect("a text").trace().events.is_empty());
    let dir = instance.dir().to_owned();
    assert!(dir.exists());
    // Another finds it in use, whoever its name says it belongs to.
    let place = dir.parent().expect("a place").to_owned();
    let tracefs = Tracefs::find().expect("a tracefs");
    assert!(fs::remove_dir(&dir).is_err(), "it is in use");
    drop(instance);
    let left = tracefs
        .dir()
        .join("instances")
        .join(dir.file_name().expect("a name"));
    assert!(!left.exists(), "{} of {}", left.display(), place.display());
}

#[test]
fn what_the_kernel_does_not_have_or_does_not_take_is_named_and_nothing_is_left() {
    let Some(one) = instance([]) else { return };
    for (wanted, said) in [
        (
            EventRequest::event("sched:no_such"),
            "this kernel has no event sched:no_such",
        ),
        (
            EventRequest::event("enable"),
            "this kernel has no event enable",
        ),
        (
            EventRequest::event("sched:sched_switch").only("nobody == 1"),
            "event sched:sched_switch: the filter `nobody == 1` was refused: ",
        ),
        (
            EventRequest::event("sched:sched_switch").with_stack_if("x"),
            "event sched:sched_switch: the filter `x` was refused: ",
        ),
    ] {
        let refused = Instance::create(&Settings::of([wanted]))
            .map(|_| ())
            .map_err(|error| error.to_string());
        assert!(
            refused.as_ref().is_err_and(|error| error.starts_with(said)),
            "{refused:?}"
        );
    }
    let names = fs::read_dir(one.dir().parent().expect("a place")).expect("instances");
    let mine = format!("{PREFIX}{}-", std::process::id());
    let mine = names
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine));
    // Other tests of this process have theirs.
    assert!(mine.count() <= 3);
}

/// The tests of this file, as processes that can be killed.
const CHILD: &str = "STROBE_TEST_TRACE";

#[test]
fn an_instance_of_a_process_that_was_killed_is_removed_by_its_guard() {
    const NAME: &str =
        "trace::tests::an_instance_of_a_process_that_was_killed_is_removed_by_its_guard";
    if std::env::var_os(CHILD).is_some() {
        let instance = instance([EventRequest::event("sched:sched_switch")]).expect("an instance");
        println!(
            "made {}",
            instance
                .dir()
                .file_name()
                .expect("a name")
                .to_string_lossy()
        );
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if instance([]).is_none() {
        return;
    }
    let itself = std::env::current_exe().expect("this program");
    let mut child = Command::new(itself)
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a child");
    let said = io::BufReader::new(child.stdout.take().expect("its output"));
    let name = io::BufRead::lines(said)
        .map_while(Result::ok)
        .find_map(|line| line.split_once("made ").map(|(_, name)| name.to_owned()))
        .expect("a name");
    let tracefs = Tracefs::find().expect("a tracefs");
    let dir = tracefs.dir().join("instances").join(name);
    assert!(dir.exists());
    child.kill().expect("to kill it");
    child.wait().expect("its end");
    let gone = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !dir.exists()
    });
    assert!(gone, "{}", dir.display());
}
