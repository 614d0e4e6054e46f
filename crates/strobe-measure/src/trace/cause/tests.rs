// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const THREAD: u32 = 99;

/// The trace of a machine's CPU 0, and an event long after on CPU 1, from lines as `TIME-in-us TASK-PID EVENT DETAILS`; ` => f` adds to the stack.
fn text(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        if line.starts_with(" => ") {
            text += &format!("{line}\n");
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let time: u64 = words.next().expect("a time").parse().expect("us");
        let task = words.next().expect("a task");
        let said = words.next().expect("an event");
        text += &format!(
            "{task:>20} [000] d..2. {}.{:06}: {said}\n",
            time / 1_000_000,
            time % 1_000_000
        );
    }
    text + "          <idle>-0       [001] d..2.   99.000000: local_timer_entry: vector=236\n"
}

fn judged(lines: &[&str], from: u64, due: u64, to: u64) -> Vec<Share> {
    let text = text(lines);
    let trace = Trace::parse(&text).with_stacks();
    assert_eq!(trace.damaged, 0, "{text}");
    let [from, due, to] = [from, due, to].map(|us| us * 1000);
    let shares = shares(&trace, Maker::Thread(THREAD), Delay { from, due, to });
    let sum: u64 = shares.iter().map(|share| share.ns).sum();
    assert_eq!(sum, to - from, "all of the time: {shares:?}");
    shares
}

/// The greatest share: what, who, us.
fn cause(shares: &[Share]) -> (Cause, &str, u64) {
    let share = main_share(shares).expect("a share");
    (share.cause, share.who.as_str(), share.ns / 1000)
}

const SLEEPS: &str = "9000 strobe-run-99 sched_switch: prev_comm=strobe-run prev_pid=99 prev_prio=39 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120";
const WOKEN: &str = "sched_waking: comm=strobe-run pid=99 prio=39 target_cpu=000";
const FROM_IDLE: &str = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=strobe-run next_pid=99 next_prio=39";

/// It was due at 10000 us; the interrupt came at this time, and found `who` with this stack.
fn interrupt_at(time: u64, who: &str, stack: &[&str]) -> Vec<String> {
    let mut lines = vec![
        format!("{time} {who} local_timer_entry: vector=236"),
        format!(
            "{} {who} hrtimer_expire_entry: hrtimer=1 function=hrtimer_wakeup now=1",
            time + 1
        ),
        format!("{} {who} {WOKEN}", time + 2),
        format!("{} {who} hrtimer_expire_exit: hrtimer=1", time + 3),
        format!("{} {who} local_timer_exit: vector=236", time + 4),
    ];
    if !stack.is_empty() {
        lines.push(format!("{} {who} <stack trace>", time + 4));
        lines.extend(stack.iter().map(|function| format!(" => {function}")));
    }
    lines
}

fn late_by_interrupt(who: &str, stack: &[&str]) -> Vec<Share> {
    let mut lines = vec![SLEEPS.to_owned()];
    let (comm, pid) = who.rsplit_once('-').expect("a task");
    if pid != "0" {
        lines.push(format!("9100 <idle>-0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={comm} next_pid={pid} next_prio=120"));
    }
    lines.extend(interrupt_at(10_300, who, stack));
    lines.push(format!("10306 {who} sched_switch: prev_comm={comm} prev_pid={pid} prev_prio=120 prev_state=R ==> next_comm=strobe-run next_pid=99 next_prio=39"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    judged(&lines, 10_000, 10_000, 10_310)
}

#[test]
fn an_interrupt_that_comes_late_to_an_idle_cpu_was_kept_from_it_from_outside() {
    let shares = late_by_interrupt("<idle>-0", &[]);
    assert_eq!(cause(&shares), (Cause::Outside, "", 300));
    assert_eq!((shares[1].cause, shares[1].ns), (Cause::Way, 10_000));
}

#[test]
fn an_interrupt_that_comes_late_to_a_program_was_kept_from_it_from_outside() {
    let shares = late_by_interrupt("busy-7", &["__sysvec", "asm_sysvec_apic_timer_interrupt"]);
    assert_eq!(cause(&shares), (Cause::Outside, "", 300));
}

#[test]
fn an_interrupt_that_comes_late_to_the_kernel_names_its_function_and_its_task() {
    let stack = [
        "__sysvec",
        "asm_sysvec_apic_timer_interrupt",
        "lab_stall_interrupts_off",
        "kthread",
    ];
    let shares = late_by_interrupt("lab_stall-7", &stack);
    let wanted = (
        Cause::InterruptsOff,
        "lab_stall_interrupts_off, in lab_stall-7",
        300,
    );
    assert_eq!(cause(&shares), wanted);
}

#[test]
fn what_the_trace_does_not_tell_is_not_known() {
    let shares = late_by_interrupt("busy-7", &[]);
    assert_eq!(cause(&shares), (Cause::Unknown, "busy-7", 300));
    assert_eq!(
        cause(&judged(&[], 10_000, 10_000, 10_500)),
        (Cause::Unknown, "", 500)
    );
}

#[test]
fn what_comes_after_the_last_event_is_not_known() {
    let text = text(&[SLEEPS]).replace("99.000000", " 0.010100");
    let trace = Trace::parse(&text).with_stacks();
    let delay = Delay {
        from: 10_000_000,
        due: 10_000_000,
        to: 10_500_000,
    };
    let shares = shares(&trace, Maker::Thread(THREAD), delay);
    assert_eq!(cause(&shares), (Cause::Unknown, "", 400));
}

#[test]
fn a_task_that_comes_first_is_named_with_its_priority() {
    let mut lines = vec![SLEEPS.to_owned()];
    lines.push("9990 <idle>-0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=spinner next_pid=50 next_prio=19".into());
    lines.extend(interrupt_at(
        10_002,
        "spinner-50",
        &["asm_sysvec_apic_timer_interrupt"],
    ));
    lines.push("10400 spinner-50 sched_switch: prev_comm=spinner prev_pid=50 prev_prio=19 prev_state=S ==> next_comm=strobe-run next_pid=99 next_prio=39".into());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let shares = judged(&lines, 10_000, 10_000, 10_405);
    assert_eq!(cause(&shares), (Cause::Task, "spinner-50, fifo:80", 394));
}

#[test]
fn the_handler_of_an_interrupt_is_named() {
    let lines = [
        SLEEPS,
        "9950 <idle>-0 irq_handler_entry: irq=24 name=eth0-rx",
        "10250 <idle>-0 irq_handler_exit: irq=24 ret=handled",
        "10251 <idle>-0 local_timer_entry: vector=236",
        &format!("10252 <idle>-0 {WOKEN}"),
        "10253 <idle>-0 local_timer_exit: vector=236",
        &format!("10255 <idle>-0 {FROM_IDLE}"),
    ];
    let shares = judged(&lines, 10_000, 10_000, 10_260);
    assert_eq!(cause(&shares), (Cause::Interrupt, "eth0-rx", 250));
}

#[test]
fn a_thread_that_runs_and_makes_no_row_stands_still() {
    let mut lines = vec![SLEEPS.to_owned()];
    lines.extend(interrupt_at(10_002, "<idle>-0", &[]));
    lines.push(format!("10010 <idle>-0 {FROM_IDLE}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(
        cause(&judged(&lines, 10_000, 10_000, 10_200)),
        (Cause::Outside, "", 190)
    );
}

#[test]
fn a_page_fault_in_the_row_before_is_why_the_trigger_after_it_is_missed() {
    let mut lines = vec![SLEEPS.to_owned()];
    lines.extend(interrupt_at(10_002, "<idle>-0", &[]));
    lines.push(format!("10010 <idle>-0 {FROM_IDLE}"));
    lines.push(
        "10020 strobe-run-99 page_fault_user: address=0x7f00 ip=0x7f01 error_code=0x4".into(),
    );
    lines.push("10025 strobe-run-99 sched_switch: prev_comm=strobe-run prev_pid=99 prev_prio=39 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120".into());
    lines.extend(interrupt_at(11_500, "<idle>-0", &[]));
    lines.push(format!("11510 <idle>-0 {FROM_IDLE}"));
    lines.push("11530 strobe-run-99 sched_switch: prev_comm=strobe-run prev_pid=99 prev_prio=39 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120".into());
    lines.extend(interrupt_at(12_002, "<idle>-0", &[]));
    lines.push(format!("12010 <idle>-0 {FROM_IDLE}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    // The trigger of 11000 made no row, that of 12000 made one at 12015.
    let shares = judged(&lines, 11_000, 12_000, 12_015);
    assert_eq!(cause(&shares), (Cause::PageFault, "", 522));
    let waiting = shares.iter().find(|share| share.cause == Cause::Waiting);
    assert_eq!(waiting.map(|share| share.ns), Some(470_000));
    // And the same row with a late interrupt after it had waited.
    let late: Vec<&str> = lines.iter().copied().take(lines.len() - 6).collect();
    let again = interrupt_at(12_900, "<idle>-0", &[]);
    let late: Vec<&str> = late
        .into_iter()
        .chain(again.iter().map(String::as_str))
        .collect();
    assert_eq!(
        cause(&judged(&late, 11_000, 12_000, 12_905)),
        (Cause::Outside, "", 900)
    );
}

#[test]
fn a_thread_whose_cpu_is_given_to_others_that_come_after_it_is_throttled() {
    let lines = [
        "9000 strobe-run-99 sched_switch: prev_comm=a prev_pid=98 prev_prio=120 prev_state=S ==> next_comm=strobe-run next_pid=99 next_prio=39",
        "9900 strobe-run-99 sched_switch: prev_comm=strobe-run prev_pid=99 prev_prio=39 prev_state=R ==> next_comm=make next_pid=7 next_prio=120",
        "59900 make-7 sched_switch: prev_comm=make prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=strobe-run next_pid=99 next_prio=39",
    ];
    let shares = judged(&lines, 10_000, 10_000, 59_905);
    assert_eq!(cause(&shares), (Cause::Throttled, "make-7, other", 49_900));
}

#[test]
fn the_timer_of_the_kernel_engine_is_late_as_its_interrupt_is() {
    let stack = [
        "asm_sysvec_apic_timer_interrupt",
        "_raw_spin_unlock_irqrestore",
    ];
    let mut lines = vec![SLEEPS.to_owned(), "9100 <idle>-0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=x next_pid=7 next_prio=120".to_owned()];
    lines.extend(
        interrupt_at(10_300, "x-7", &stack)
            .into_iter()
            .map(|line| line.replace("hrtimer_wakeup", "timer_fire")),
    );
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = text(&lines);
    let trace = Trace::parse(&text).with_stacks();
    let delay = Delay {
        from: 10_000_000,
        due: 10_000_000,
        to: 10_301_500,
    };
    let shares = shares(&trace, Maker::Timer, delay);
    assert_eq!(
        cause(&shares),
        (
            Cause::InterruptsOff,
            "_raw_spin_unlock_irqrestore, in x-7",
            300
        )
    );
}

#[test]
fn a_share_says_what_who_and_how_much() {
    let share = Share {
        cause: Cause::Task,
        who: "spin-50, fifo:80".into(),
        ns: 394_000,
    };
    assert_eq!(share.to_string(), "another task (spin-50, fifo:80) 394 us");
    let json = serde_json::to_string(&share).expect("JSON");
    assert_eq!(
        json,
        r#"{"cause":"task","who":"spin-50, fifo:80","ns":394000}"#
    );
}
