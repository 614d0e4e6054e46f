// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event "timer": an absolute grid.
 *
 * Grid points are first_due + n * period on CLOCK_MONOTONIC; each one is a
 * trigger. A timer that is served late makes its row late, counts the grid
 * points that have passed meanwhile as missed, and goes on with the next one:
 * the grid never moves. Where the budget of the CPU forbids a grid point, it is
 * missed as throttled; see budget.c.
 *
 * The timer is pinned to the CPU on which the run is started.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/smp.h>

#include "compat.h"
#include "events/events.h"
#include "row/marks.h"
#include "row/row.h"

/* Grid points from @due on that lie before or at @now; usually none. */
static __always_inline u64 points_until(u64 due, u64 now, u64 period)
{
	if (likely((s64)(now - due) < 0))
		return 0;
	return div64_u64(now - due, period) + 1;
}

/*
 * Count the grid points from run->due until @now as missed: those that the
 * budget forbade as throttled, the others as overrun.
 */
static void miss_until(struct strobe_run *run, u64 now)
{
	u64 passed = points_until(run->due, now, run->period);
	u64 forbidden = 0;

	if (run->held > run->due)
		forbidden = min(passed, div64_u64(run->held - run->due, run->period));
	if (forbidden)
		strobe_miss(run, STROBE_MISSED_THROTTLED, forbidden);
	if (passed > forbidden)
		strobe_miss(run, STROBE_MISSED_OVERRUN, passed - forbidden);
	run->due += passed * run->period;
	run->held = 0;
}

/* The first grid point from run->due on that lies after @quiet. */
static u64 first_after(const struct strobe_run *run, u64 quiet)
{
	return run->due + points_until(run->due, quiet, run->period) * run->period;
}

static enum hrtimer_restart timer_fire(struct hrtimer *timer)
{
	struct strobe_run *run = container_of(timer, struct strobe_run, timer);
	u64 now, due, hold;
	bool late;

	strobe_mark(0x10);
	now = ktime_get_ns();
	if (unlikely(run->held))
		miss_until(run, run->held - 1);
	due = run->due;
	run->due = due + run->period;
	late = (s64)(now - run->due) >= 0;
	if (unlikely(late))
		run->status |= STROBE_ROW_LATE;
	hold = strobe_trigger(run, now, due, strobe_rates.overhead);
	if (unlikely(READ_ONCE(run->state) != STROBE_RUNNING))
		return HRTIMER_NORESTART;
	if (unlikely(late || hold)) {
		/* What passed while the steps were done is not the budget's doing. */
		miss_until(run, hold ? ktime_get_ns() : now);
		if (hold)
			run->held = first_after(run, now + hold);
	}
	hrtimer_set_expires(timer, ns_to_ktime(run->held ?: run->due));
	strobe_mark(0x11);
	return HRTIMER_RESTART;
}

/**
 * strobe_timer_init() - prepare a run's timer.
 * @run: the run.
 */
void strobe_timer_init(struct strobe_run *run)
{
	hrtimer_setup(&run->timer, timer_fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * strobe_timer_start() - let the grid begin, one period after run->started.
 * @run: the run; RUNNING, its producer silent.
 */
void strobe_timer_start(struct strobe_run *run)
{
	run->due = run->first_due;
	hrtimer_start(&run->timer, ns_to_ktime(run->due), HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * strobe_timer_resume() - go on with the next point of the grid.
 * @run: the run; RUNNING, its producer silent.
 */
void strobe_timer_resume(struct strobe_run *run)
{
	run->due = first_after(run, ktime_get_ns());
	hrtimer_start(&run->timer, ns_to_ktime(run->due), HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * strobe_timer_stop() - after it the timer is silent.
 * @run: the run; RUNNING.
 *
 * Grid points that were due by now and were not served are missed.
 *
 * Context: process.
 */
void strobe_timer_stop(struct strobe_run *run)
{
	hrtimer_cancel(&run->timer);
	if (READ_ONCE(run->state) == STROBE_RUNNING)
		miss_until(run, ktime_get_ns());
}

/**
 * strobe_timer_slept() - count what passed while the machine was suspended.
 * @run: the run; its timer was stopped before, and is silent.
 *
 * CLOCK_MONOTONIC stands still while the machine is asleep, and so does the grid:
 * what is counted passed on the way there and back.
 *
 * Context: process.
 */
void strobe_timer_slept(struct strobe_run *run)
{
	u64 passed = points_until(run->due, ktime_get_ns(), run->period);

	if (passed)
		strobe_miss(run, STROBE_MISSED_SUSPENDED, passed);
	run->due += passed * run->period;
}

static void go_on_here(void *data)
{
	struct strobe_run *run = data;

	hrtimer_start(&run->timer, ns_to_ktime(run->due), HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * strobe_timer_go_on() - go on with the grid where strobe_timer_slept() left it.
 * @run: the run; RUNNING, its producer silent.
 *
 * On the CPU that it was on, if that is there: whoever wakes the machine has
 * nothing to do with the run.
 *
 * Context: process, under run->lock.
 */
void strobe_timer_go_on(struct strobe_run *run)
{
	if (smp_call_function_single(run->timer_cpu, go_on_here, run, true))
		go_on_here(run);
}
