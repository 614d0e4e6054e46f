// SPDX-License-Identifier: GPL-2.0-only
/* The event "soft": triggered by the owner of the run. */
#include <linux/cleanup.h>
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

/* Some software triggers: interrupts are off for one row, the lock is held for all. */
static int trigger_some(struct strobe_run *run, u32 *count)
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
		scoped_guard(irqsave)
			trigger(run);
		strobe_slow_flush(run);
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
		ret = trigger_some(run, &left);
		/* What was triggered is not undone: only a first one can fail. */
		if (ret)
			return left == count ? ret : 0;
		if (signal_pending(current))
			return 0;
		cond_resched();
	}
	return 0;
}
