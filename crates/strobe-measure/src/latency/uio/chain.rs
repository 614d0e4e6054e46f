// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's events say of the way of each row of a UIO device: interrupt, waking, switch, return of the wait.
//!
//! A device with an interrupt is served by irq_handler_entry, in hard interrupt context. One without, such as uio_dummy,
//! has a timer: then the hard interrupt is that of the CPU's timer, and the handler the function of the timer, which
//! the kernel names with its module. UIO wakes who waits at once when it is told of the event (uio_event_notify), so
//! that the waking is the moment of that.

use std::collections::HashMap;

use crate::trace::{Event, EventRequest, Trace};

/// The kernel's text of its events has whole microseconds.
pub const RESOLUTION_NS: u64 = 1000;

/// Instants of a row, as far as the kernel's events say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain {
    /// The hard interrupt was entered.
    pub interrupt: Option<u64>,
    /// The handler began: of a device with an interrupt, the same.
    pub handler: Option<u64>,
    /// Somebody has told UIO of the event, which wakes the thread of the run.
    pub woken: Option<u64>,
    /// Its CPU has switched to that thread.
    pub running: Option<u64>,
    /// The system call in which it had waited is about to return.
    pub returned: Option<u64>,
}

impl Chain {
    pub fn is_whole(&self) -> bool {
        let Chain {
            interrupt,
            handler,
            woken,
            running,
            returned,
        } = self;
        [interrupt, handler, woken, running, returned]
            .iter()
            .all(|time| time.is_some())
    }
}

/// The events that are needed for a device that is called so, served by this thread.
pub fn wanted(device: &str, thread: u32, has_interrupt: bool) -> Vec<EventRequest> {
    let mut wanted = vec![
        EventRequest::event("sched:sched_waking").only(format!("pid == {thread}")),
        EventRequest::event("sched:sched_switch").only(format!("next_pid == {thread}")),
    ];
    if has_interrupt {
        let only = format!("name == \"{device}\"");
        wanted.push(EventRequest::event("irq:irq_handler_entry").only(only));
    } else {
        wanted.push(EventRequest::event("timer:hrtimer_expire_entry"));
        wanted.push(EventRequest::event("irq_vectors:local_timer_entry").or_without());
    }
    // Which of them it is depends on the C library, and there are kernels without.
    for call in ["poll", "ppoll"] {
        let exit = EventRequest::event(format!("syscalls:sys_exit_{call}"));
        let only = format!("common_pid == {thread}");
        wanted.push(exit.only(only).or_without());
    }
    wanted
}

/// The way of each row of a run that was begun then, by the stamps of the rows, which are in their order.
pub fn chains(
    trace: &Trace<'_>,
    device: &str,
    thread: u32,
    begun: u64,
    stamps: &[u64],
) -> Vec<Chain> {
    // Before, the thread was woken to begin, and not by the device.
    let since = trace.events.iter().filter(|event| event.time >= begun);
    let mut events = since.peekable();
    let mut state = State {
        device,
        thread: thread.into(),
        timers: HashMap::new(),
        last: (None, None),
        chain: Chain::default(),
    };
    let of_row = |stamp: &u64| {
        // An event that is rounded up may seem to be after the stamp, which it was before.
        let end = stamp.saturating_add(RESOLUTION_NS / 2);
        while let Some(event) = events.next_if(|event| event.time <= end) {
            state.take(event);
        }
        std::mem::take(&mut state.chain)
    };
    stamps.iter().map(of_row).collect()
}

struct State<'a> {
    device: &'a str,
    thread: i64,
    /// The last timer interrupt of each CPU.
    timers: HashMap<u32, u64>,
    /// The last hard interrupt of the device, or of the timer that it has instead, and the handler.
    last: (Option<u64>, Option<u64>),
    chain: Chain,
}

impl State<'_> {
    fn take(&mut self, event: &Event<'_>) {
        let time = Some(event.time);
        let mine = |key: &str| event.number(key) == Some(self.thread);
        match event.name {
            "irq_handler_entry" if event.word("name") == Some(self.device) => {
                self.last = (time, time);
            }
            "local_timer_entry" => {
                self.timers.insert(event.cpu, event.time);
            }
            "hrtimer_expire_entry" if event.details.contains(&format!("[{}]", self.device)) => {
                self.last = (self.timers.get(&event.cpu).copied(), time);
            }
            "sched_waking" if mine("pid") => match std::mem::take(&mut self.last) {
                // By the device: the way of the row begins here, whatever the thread has done before.
                (interrupt, Some(handler)) => {
                    self.chain = Chain {
                        interrupt,
                        handler: Some(handler),
                        woken: time,
                        ..Chain::default()
                    };
                }
                // It has met a lock on its way out, and is woken for that: a kernel with PREEMPT_RT does so.
                _ if self.chain.woken.is_some() => {}
                // By the run's owner.
                _ => self.chain.woken = time,
            },
            // After the wait it is a thread that was preempted, and goes on.
            "sched_switch" if mine("next_pid") && self.chain.returned.is_none() => {
                self.chain.running = time;
            }
            "sys_poll" | "sys_ppoll" if i64::from(event.pid) == self.thread => {
                self.chain.returned = time;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMMY: &str = "\
          <idle>-0       [001] d.h1.    10.000010: local_timer_entry: vector=236
          <idle>-0       [001] ..s1.    10.000012: hrtimer_expire_entry: hrtimer=0000000012345678 function=fire [uio_dummy] now=10000009000
          <idle>-0       [001] d.s2.    10.000014: sched_waking: comm=strobe-run pid=77 prio=39 target_cpu=001
          <idle>-0       [001] d..2.    10.000016: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=strobe-run next_pid=77 next_prio=39
      strobe-run-77      [001] .....    10.000019: sys_ppoll -> 0x1
          <idle>-0       [000] d.h1.    10.000500: local_timer_entry: vector=236
          <idle>-0       [000] d.h1.    10.000501: hrtimer_expire_entry: hrtimer=00000000aaaaaaaa function=tick_nohz_handler now=10000500000
          <idle>-0       [001] d.h1.    10.001010: local_timer_entry: vector=236
          <idle>-0       [001] ..s1.    10.001013: hrtimer_expire_entry: hrtimer=0000000012345678 function=fire [uio_dummy] now=10001009000
          <idle>-0       [001] d.s2.    10.001014: sched_waking: comm=strobe-run pid=77 prio=39 target_cpu=001
          <idle>-0       [001] d..2.    10.001017: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=strobe-run next_pid=77 next_prio=39
      strobe-run-77      [001] .....    10.001020: sys_ppoll -> 0x1
";

    fn us(us: u64) -> Option<u64> {
        Some(us * 1000)
    }

    #[test]
    fn each_row_has_the_events_between_the_row_before_and_its_stamp() {
        let trace = Trace::parse(DUMMY);
        let chains = chains(
            &trace,
            "uio_dummy",
            77,
            0,
            &[10_000_018_600, 10_001_021_000],
        );
        let first = Chain {
            interrupt: us(10_000_010),
            handler: us(10_000_012),
            woken: us(10_000_014),
            running: us(10_000_016),
            returned: us(10_000_019),
        };
        assert_eq!(chains[0], first);
        assert_eq!(chains[1].handler, us(10_001_013));
        assert_eq!(chains[1].returned, us(10_001_020));
        assert!(chains.iter().all(Chain::is_whole));
    }

    #[test]
    fn what_was_before_the_run_is_not_of_its_first_row() {
        let trace = Trace::parse(DUMMY);
        let chains = chains(&trace, "uio_dummy", 77, 10_000_017_000, &[10_000_021_000]);
        assert_eq!(chains[0].woken, None);
        assert_eq!(chains[0].returned, us(10_000_019));
    }

    #[test]
    fn a_thread_that_is_woken_once_more_for_a_lock_was_woken_by_the_device() {
        let again = "          <idle>-0       [001] d.s2.    10.000017: sched_waking: comm=strobe-run pid=77 prio=39 target_cpu=001\n";
        let lines: Vec<&str> = DUMMY.split_inclusive('\n').collect();
        let text = [&lines[..4], &[again], &lines[4..]].concat().concat();
        let trace = Trace::parse(&text);
        let chains = chains(&trace, "uio_dummy", 77, 0, &[10_000_021_000]);
        assert!(chains[0].is_whole());
        assert_eq!(chains[0].woken, us(10_000_014));
    }

    #[test]
    fn a_thread_that_is_preempted_after_its_wait_was_switched_to_before() {
        let again = "           other-99      [001] d..2.    10.000021: sched_switch: prev_comm=other prev_pid=99 prev_prio=9 prev_state=S ==> next_comm=strobe-run next_pid=77 next_prio=39\n";
        let lines: Vec<&str> = DUMMY.split_inclusive('\n').collect();
        let text = [&lines[..5], &[again], &lines[5..]].concat().concat();
        let trace = Trace::parse(&text);
        let chains = chains(&trace, "uio_dummy", 77, 0, &[10_000_023_000]);
        assert!(chains[0].is_whole());
        assert_eq!(chains[0].running, us(10_000_016));
        assert_eq!(chains[0].returned, us(10_000_019));
    }

    #[test]
    fn a_row_begins_when_the_device_wakes_its_thread_whatever_the_thread_did_before() {
        // It was preempted behind its stamp, before it slept; and what it was given meanwhile it took without a sleep.
        let before = "\
           other-99      [001] d..2.    10.000002: sched_switch: prev_comm=other prev_pid=99 prev_prio=9 prev_state=S ==> next_comm=strobe-run next_pid=77 next_prio=39
      strobe-run-77      [001] .....    10.000004: sys_ppoll -> 0x1
";
        let text = [before, DUMMY].concat();
        let trace = Trace::parse(&text);
        let chains = chains(&trace, "uio_dummy", 77, 0, &[10_000_021_000]);
        let expected = Chain {
            interrupt: us(10_000_010),
            handler: us(10_000_012),
            woken: us(10_000_014),
            running: us(10_000_016),
            returned: us(10_000_019),
        };
        assert_eq!(chains[0], expected);
        // Nothing of the way before is left, if the row is stamped before the thread has run.
        let text: String = text.split_inclusive('\n').take(5).collect();
        let trace = Trace::parse(&text);
        let chains = super::chains(&trace, "uio_dummy", 77, 0, &[10_000_021_000]);
        assert_eq!(
            (chains[0].woken, chains[0].running, chains[0].returned),
            (us(10_000_014), None, None)
        );
    }

    #[test]
    fn a_row_whose_thread_did_not_sleep_has_no_way() {
        let trace = Trace::parse(DUMMY);
        let chains = chains(
            &trace,
            "uio_dummy",
            77,
            0,
            &[10_000_021_000, 10_000_023_000, 10_001_021_000],
        );
        assert_eq!(chains[1], Chain::default());
        assert!(chains[0].is_whole() && chains[2].is_whole());
    }

    #[test]
    fn a_device_with_an_interrupt_is_woken_by_the_thread_of_its_handler() {
        let text = "\
          <idle>-0       [000] d.h1.     5.000100: irq_handler_entry: irq=11 name=uio_pci_generic
          <idle>-0       [000] d.h1.     5.000100: irq_handler_entry: irq=12 name=other
   irq/11-uio_pci-66     [000] d..2.     5.000110: sched_waking: comm=strobe-run pid=77 prio=39 target_cpu=000
   irq/11-uio_pci-66     [000] d..2.     5.000112: sched_switch: prev_comm=irq/11-uio_pci prev_pid=66 prev_prio=49 prev_state=S ==> next_comm=strobe-run next_pid=77 next_prio=39
      strobe-run-77      [000] .....     5.000115: sys_poll -> 0x1
";
        let chains = chains(
            &Trace::parse(text),
            "uio_pci_generic",
            77,
            0,
            &[5_000_116_000],
        );
        assert!(chains[0].is_whole(), "{chains:?}");
        assert_eq!(chains[0].interrupt, us(5_000_100));
        assert_eq!(chains[0].handler, chains[0].interrupt);
    }
}
