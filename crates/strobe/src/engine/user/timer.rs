// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timer of the user engine: an absolute grid. Who comes late to a point of it still makes its row; points
//! that have passed by then are missed, and counted.

use std::io;

use strobe_hw::wakeup::Wakeup;
use strobe_ring::Missed;

use super::settings::WaitMode;
use super::trigger::{EventSource, Trigger, WaitOutcome};
use crate::clock::RunClock;

mod budget;

use budget::{Budget, cpu_time};

/// The part of a period that `hybrid` may spin at most, in percent.
const SPIN_SHARE: u64 = 50;
/// `hybrid` spins at least so long.
const LEAD_MIN_NS: u64 = 500;

/// Triggers at the points of a grid.
pub struct Timer {
    period: u64,
    wait: WaitMode,
    /// The next point; `None` before the first begin.
    next: Option<u64>,
    /// The point that was served last lies before `next`: points after it may have passed.
    served: bool,
    /// Points that had passed when the wait for `next` began.
    passed: u64,
    /// Until when the run has to rest before `next`, if the budget is used up.
    rest: Option<u64>,
    lead: Lead,
    budget: Budget,
}

impl Timer {
    /// A grid with this distance, waited for in this way.
    pub fn new(period_ns: u64, wait: WaitMode) -> Self {
        Timer {
            period: period_ns,
            wait,
            next: None,
            served: false,
            passed: 0,
            rest: None,
            lead: Lead::new(period_ns),
            budget: Budget::default(),
        }
    }

    /// Why points have passed.
    fn cause(&self) -> Missed {
        match self.rest {
            Some(_) => Missed::Throttled,
            None => Missed::Overrun,
        }
    }

    /// Sleeps or spins until `due`; false if the thread was woken.
    fn until(&mut self, due: u64, clock: &RunClock, wakeup: &Wakeup) -> io::Result<bool> {
        let asleep_until = match self.wait {
            WaitMode::Block => due,
            WaitMode::Hybrid => due.saturating_sub(self.lead.ns),
            WaitMode::Spin => 0,
        };
        loop {
            if wakeup.is_pending() {
                return Ok(false);
            }
            let now = clock.now();
            if now >= due {
                return Ok(true);
            }
            if now < asleep_until {
                wakeup.sleep_until(Some(clock.monotonic(asleep_until)))?;
                if self.wait == WaitMode::Hybrid && !wakeup.is_pending() {
                    self.lead.learn(clock.now().saturating_sub(asleep_until));
                }
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl EventSource for Timer {
    fn begin(&mut self, _: &RunClock, now: u64) -> io::Result<Option<u64>> {
        // The grid keeps its phase over a pause.
        let next = match self.next {
            None => now.saturating_add(self.period),
            Some(next) if next > now => next,
            Some(next) => next + ((now - next) / self.period + 1) * self.period,
        };
        self.next = Some(next);
        self.served = false;
        (self.passed, self.rest) = (0, None);
        self.budget = Budget::new(now);
        Ok(Some(next))
    }

    fn wait(&mut self, clock: &RunClock, wakeup: &mut Wakeup) -> io::Result<WaitOutcome> {
        let mut next = self.next.unwrap_or_else(|| clock.now());
        let mut trigger = Trigger::PLAIN;
        if self.served {
            next = next.saturating_add(self.period);
            let mut now = clock.now();
            if next <= now && self.wait != WaitMode::Spin && self.rest.is_none() {
                self.rest = self.budget.rest(now, cpu_time);
            }
            if let Some(rest) = self.rest {
                while clock.now() < rest && !wakeup.is_pending() {
                    wakeup.sleep_until(Some(clock.monotonic(rest)))?;
                }
                now = clock.now();
            }
            self.passed = match next <= now {
                true => (now - next) / self.period + 1,
                false => 0,
            };
            next += self.passed * self.period;
            trigger.missed = self.passed;
            trigger.cause = self.cause();
        }
        // What was missed is reported with the row of this point; if the thread is woken, it is seen again.
        if !self.until(next, clock, wakeup)? {
            return Ok(WaitOutcome::Wakeup);
        }
        self.next = Some(next);
        self.served = true;
        (self.passed, self.rest) = (0, None);
        trigger.due = Some(next);
        Ok(WaitOutcome::Trigger(trigger))
    }

    fn unserved(&mut self) -> (Missed, u64) {
        (self.cause(), self.passed)
    }
}

/// How long before the point `hybrid` wakes up: as long as nine of ten wake-ups take, but never so long that
/// it spins for more than its share of the time.
struct Lead {
    ns: u64,
    max: u64,
}

impl Lead {
    fn new(period: u64) -> Self {
        let max = (period / 100 * SPIN_SHARE).max(LEAD_MIN_NS);
        let ns = max.min(50_000);
        Lead { ns, max }
    }

    /// After a wake-up that took so long: up by nine steps, down by one, so that it comes to rest where nine
    /// of ten are shorter.
    fn learn(&mut self, latency: u64) {
        let step = self.ns / 64 + 10;
        self.ns = match latency > self.ns {
            true => self.ns + 9 * step,
            false => self.ns.saturating_sub(step),
        };
        self.ns = self.ns.clamp(LEAD_MIN_NS, self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::budget::WINDOW_NS;
    use super::*;
    use crate::info::Clock;
    use strobe_hw::rt::Usage;
    use strobe_hw::wakeup::wakeup;

    fn due(woken: WaitOutcome) -> Trigger {
        match woken {
            WaitOutcome::Trigger(trigger) => trigger,
            other => panic!("nobody rang: {other:?}"),
        }
    }

    #[test]
    fn every_trigger_lies_on_the_grid_and_what_has_passed_is_missed() {
        for wait in [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin] {
            let clock = RunClock::new(Clock::Monotonic);
            let (_waker, mut wakeup) = wakeup().expect("a wake-up");
            let mut timer = Timer::new(1_000_000, wait);
            let start = clock.now();
            let first = timer.begin(&clock, start).expect("to begin");
            assert_eq!(first, Some(start + 1_000_000));
            let mut points = 0;
            for turn in 0..20 {
                let trigger = due(timer.wait(&clock, &mut wakeup).expect("to wait"));
                points += trigger.missed;
                assert_eq!(
                    trigger.due,
                    Some(start + (points + 1) * 1_000_000),
                    "{wait}"
                );
                assert!(clock.now() >= start + (points + 1) * 1_000_000);
                points += 1;
                if turn == 10 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            assert!(
                points >= 24,
                "{points} points: what was slept over is counted"
            );
        }
    }

    #[test]
    fn the_grid_keeps_its_phase_over_a_pause() {
        let clock = RunClock::new(Clock::Monotonic);
        let mut timer = Timer::new(1000, WaitMode::Block);
        assert_eq!(timer.begin(&clock, 500).ok(), Some(Some(1500)));
        for (now, next) in [(600, 1500), (1500, 2500), (7499, 7500), (7500, 8500)] {
            assert_eq!(timer.begin(&clock, now).ok(), Some(Some(next)), "at {now}");
            assert_eq!(timer.budget.window, now, "its share is counted from there");
        }
    }

    #[test]
    fn points_that_pass_during_a_row_are_known_when_the_bell_ends_the_run() {
        for wait in [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin] {
            let clock = RunClock::new(Clock::Monotonic);
            let (waker, mut wakeup) = wakeup().expect("a wake-up");
            let mut timer = Timer::new(1_000_000, wait);
            // No more than have passed, of a thread that was held up: else none.
            let since = |time| (clock.now() - time) / 1_000_000;
            let begun = clock.now();
            timer.begin(&clock, begun).expect("to begin");
            let passed = timer.unserved().1;
            assert!(passed <= since(begun), "{passed} have passed");
            let first = due(timer.wait(&clock, &mut wakeup).expect("to wait"));
            let passed = timer.unserved().1;
            let made = first.due.expect("a grid");
            assert!(passed <= since(made), "{passed}, but its row is made");
            waker.wake();
            std::thread::sleep(std::time::Duration::from_millis(5));
            for _ in 0..2 {
                let woken = timer.wait(&clock, &mut wakeup).expect("to wait");
                assert_eq!(woken, WaitOutcome::Wakeup, "{wait}");
            }
            let (cause, passed) = timer.unserved();
            assert!(cause == Missed::Overrun && passed >= 5, "{passed}");
            // If the run goes on, they are counted once.
            wakeup.acknowledge();
            let next = due(timer.wait(&clock, &mut wakeup).expect("to wait"));
            assert!(next.missed >= passed);
            let made = made + (next.missed + 1) * 1_000_000;
            assert_eq!(next.due, Some(made));
            assert!(timer.unserved().1 <= since(made));
        }
    }

    /// Why points were missed of a run that has used all of a window; asked again if this thread was held up.
    fn cause_of_a_busy_run(wait: WaitMode) -> Missed {
        while cpu_time() < WINDOW_NS {
            std::hint::spin_loop();
        }
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut cause = Missed::Overrun;
        for _ in 0..20 {
            let mut timer = Timer::new(1_000, wait);
            timer.begin(&clock, clock.now()).expect("to begin");
            due(timer.wait(&clock, &mut wakeup).expect("to wait"));
            let window = clock.now() - WINDOW_NS;
            timer.budget = Budget { window, cpu: 0 };
            std::thread::sleep(std::time::Duration::from_micros(50));
            cause = due(timer.wait(&clock, &mut wakeup).expect("to wait")).cause;
            if cause == Missed::Throttled {
                break;
            }
        }
        cause
    }

    #[test]
    fn a_run_that_misses_points_and_takes_its_cpu_is_throttled_unless_it_spins() {
        for (wait, cause) in [
            (WaitMode::Block, Missed::Throttled),
            (WaitMode::Hybrid, Missed::Throttled),
            (WaitMode::Spin, Missed::Overrun),
        ] {
            assert_eq!(cause_of_a_busy_run(wait), cause, "{wait}");
        }
    }

    #[test]
    fn a_run_that_goes_on_serves_the_next_point_and_has_missed_nothing() {
        let clock = RunClock::new(Clock::Monotonic);
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut timer = Timer::new(1_000_000, WaitMode::Block);
        timer.begin(&clock, clock.now()).expect("to begin");
        due(timer.wait(&clock, &mut wakeup).expect("to wait"));
        waker.wake();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(
            timer.wait(&clock, &mut wakeup).ok(),
            Some(WaitOutcome::Wakeup)
        );
        assert!(timer.unserved().1 > 0);
        timer.rest = Some(clock.now() + 3_600_000_000_000);
        wakeup.acknowledge();
        let next = timer.begin(&clock, clock.now()).expect("to begin");
        let next = next.expect("a grid");
        // Of a thread that is held up here, points pass after that one: those alone.
        let passed = timer.unserved().1;
        assert!(passed == 0 || clock.now() >= next + (passed - 1) * 1_000_000);
        let trigger = due(timer.wait(&clock, &mut wakeup).expect("to wait"));
        let served = next + trigger.missed * 1_000_000;
        assert_eq!(trigger.due, Some(served));
        assert!(served <= clock.now());
    }

    #[test]
    fn hybrid_learns_once_from_each_sleep_and_only_spin_never_sleeps() {
        let clock = RunClock::new(Clock::Monotonic);
        let (_waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut wait_once = |wait| {
            let mut timer = Timer::new(20_000_000, wait);
            // Enough of it is left to spin after the latest of wake-ups.
            timer.lead.ns = 5_000_000;
            timer.begin(&clock, clock.now()).expect("to begin");
            let (lead, sleeps) = (timer.lead.ns, || Usage::of_this_thread().voluntary_switches);
            let before = sleeps();
            due(timer.wait(&clock, &mut wakeup).expect("to wait"));
            (lead, timer.lead.ns, sleeps() - before)
        };
        // A thread that was held up at the beginning finds the point passed; not each time.
        let mut slept = |wait| (0..50).map(|_| wait_once(wait)).find(|one| one.2 > 0);
        assert!(slept(WaitMode::Block).is_some());
        let (lead, learnt, _) = slept(WaitMode::Hybrid).expect("to sleep");
        let step = lead / 64 + 10;
        assert!(
            learnt == lead - step || learnt == lead + 9 * step,
            "{lead} {learnt}"
        );
        assert_eq!((0..3).map(|_| wait_once(WaitMode::Spin).2).sum::<u64>(), 0);
    }

    #[test]
    fn a_bell_does_not_end_a_rest() {
        let clock = RunClock::new(Clock::Monotonic);
        let (waker, mut wakeup) = wakeup().expect("a wake-up");
        let mut timer = Timer::new(1_000_000, WaitMode::Block);
        timer.begin(&clock, clock.now()).expect("to begin");
        due(timer.wait(&clock, &mut wakeup).expect("to wait"));
        // As if all of a window had been used.
        let now = clock.now();
        timer.next = Some(now - 2_000_000);
        timer.rest = Some(now + 3_600_000_000_000);
        waker.wake();
        assert_eq!(
            timer.wait(&clock, &mut wakeup).ok(),
            Some(WaitOutcome::Wakeup)
        );
        assert_eq!(timer.unserved().0, Missed::Throttled);
        let rest = now + 50_000_000;
        timer.rest = Some(rest);
        wakeup.acknowledge();
        let next = due(timer.wait(&clock, &mut wakeup).expect("to wait"));
        assert!(clock.now() >= rest && next.missed >= 50, "{next:?}");
        assert_eq!(next.cause, Missed::Throttled);
        assert_eq!(timer.rest, None);
    }

    #[test]
    fn the_bell_ends_a_wait_of_any_kind() {
        for wait in [WaitMode::Block, WaitMode::Hybrid, WaitMode::Spin] {
            let clock = RunClock::new(Clock::Tai);
            let (waker, mut wakeup) = wakeup().expect("a wake-up");
            let mut timer = Timer::new(3_600_000_000_000, wait);
            timer.begin(&clock, clock.now()).expect("to begin");
            let ringer = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                waker.wake();
            });
            assert_eq!(
                timer.wait(&clock, &mut wakeup).ok(),
                Some(WaitOutcome::Wakeup),
                "{wait}"
            );
            ringer.join().expect("it rang");
        }
    }

    #[test]
    fn the_lead_comes_to_rest_where_nine_of_ten_wake_ups_are_shorter() {
        let mut lead = Lead::new(1_000_000);
        for turn in 0..10_000_u64 {
            lead.learn(if turn % 20 == 0 { 90_000 } else { 5_000 });
        }
        assert!((3_000..20_000).contains(&lead.ns), "{}", lead.ns);
        for _ in 0..10_000 {
            lead.learn(10_000_000);
        }
        assert_eq!(lead.ns, 500_000, "half of the period, and no more");
    }
}
