// SPDX-License-Identifier: GPL-2.0-only
/* The event "soft": triggered by the owner of the run. */
#include <linux/cleanup.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>

#include "events/events.h"
#include "row/row.h"
#include "row/slow.h"

/* How long a batch of software triggers may keep others from the run. */
#define TRIGGERS_NS		(200 * NSEC_PER_USEC)

/*
 * One trigger, interrupts off, under run->lock. Outside any interrupt, so that no
 * budget is needed: others can run between.
 */
static void trigger(struct strobe_run *run)
{
	u64 now = ktime_get_ns();

	trace_strobe_trigger(run, now);
	strobe_special_row(run, now, now);
}

/*
 * Who is killed while the thread does the steps has given its row up, but not the
 * run, which others may have, too.
 */
static void after_kill(struct strobe_run *run)
{
	if (!fatal_signal_pending(current) || !READ_ONCE(run->quit))
		return;
	strobe_slow_settle(run);
	WRITE_ONCE(run->quit, false);
}

/*
 * Some software triggers: interrupts are off for one row, the lock is held for all.
 * @rest: ns to wait before more.
 */
static int trigger_some(struct strobe_run *run, u32 *count, u64 *rest)
{
	u64 end = ktime_get_ns() + TRIGGERS_NS;

	guard(mutex)(&run->lock);
	if (run->source != STROBE_SOURCE_SOFT)
		return -EOPNOTSUPP;
	while (*count && ktime_get_ns() < end) {
		if (run->state != STROBE_RUNNING)
			return run->state >= STROBE_DONE ? -ESHUTDOWN : -EBUSY;
		if (run->suspended) {
			/* Values that are awaited might never come. */
			strobe_miss(run, STROBE_MISSED_SUSPENDED, *count);
			*count = 0;
			break;
		}
		*rest = strobe_slow_rest(run);
		if (*rest)
			break;
		scoped_guard(irqsave)
			trigger(run);
		strobe_slow_flush(run);
		after_kill(run);
		--*count;
	}
	return 0;
}

/**
 * strobe_soft_triggers() - software triggers.
 * @run: the run.
 * @count: how many.
 *
 * A signal ends it early.
 *
 * Context: process.
 * Return: 0; -EOPNOTSUPP if the run has another event; -EBUSY or -ESHUTDOWN if
 * it does not run.
 */
int strobe_soft_triggers(struct strobe_run *run, u32 count)
{
	u32 left = count;
	int ret;

	while (left) {
		u64 rest = 0;

		ret = trigger_some(run, &left, &rest);
		/* What was triggered is not undone: only a first one can fail. */
		if (ret)
			return left == count ? ret : 0;
		if (signal_pending(current))
			return 0;
		if (rest) {
			ktime_t wait = ns_to_ktime(rest);

			set_current_state(TASK_INTERRUPTIBLE);
			schedule_hrtimeout(&wait, HRTIMER_MODE_REL);
		}
		cond_resched();
	}
	return 0;
}
