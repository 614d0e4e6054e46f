// SPDX-License-Identifier: GPL-2.0-only
/* Events of devices: runs listen, and each gets its trigger. */
#include <linux/module.h>
#include <linux/rculist.h>

#include "events/events.h"
#include "row/row.h"
#include "row/slow.h"

/**
 * strobe_event_listen() - triggers of its event make rows from now on.
 * @run: the run; RUNNING.
 *
 * Context: process, under strobe_registry.
 * Return: 0, or the provider's errno if the event cannot be enabled: then it may
 * have triggered, and the caller waits for that by synchronize_rcu().
 */
int strobe_event_listen(struct strobe_run *run)
{
	struct strobe_event *event = run->event;
	int ret;

	if (event->device->gone)
		return -ENODEV;
	/* What was lost before it came is not this run's loss. */
	run->joined = event->listening ? run->triggers : U64_MAX;
	list_add_tail_rcu(&run->listener, &event->listeners);
	if (event->listening++ || !event->ops || !event->ops->enable)
		return 0;
	ret = event->ops->enable(event);
	if (!ret)
		return 0;
	event->listening--;
	list_del_rcu(&run->listener);
	return ret;
}

/**
 * strobe_event_unlisten() - no trigger of its event comes to the run any more.
 * @run: the run; it listens.
 *
 * Context: process, under strobe_registry.
 * Return: whether one may still be at it: then the caller waits by
 * synchronize_rcu(), not under that lock.
 */
bool strobe_event_unlisten(struct strobe_run *run)
{
	struct strobe_event *event = run->event;

	list_del_rcu(&run->listener);
	if (event->silent)
		return false;
	if (--event->listening || !event->ops || !event->ops->disable)
		return true;
	event->ops->disable(event);	/* waits for its handler, too */
	return false;
}

/*
 * The source counts what it lost since its last call. Nobody knows what of that
 * came after a run that has joined since: so it begins with that call.
 */
static void miss_lost(struct strobe_run *run, u64 missed)
{
	if (run->triggers != run->joined || strobe_slow_is_open(run))
		strobe_miss(run, STROBE_MISSED_SOURCE, missed);
}

/**
 * strobe_event_skip() - an event has happened, but is to make no row.
 * @event: which; one that may skip.
 * @count: how often.
 *
 * Every run that listens counts it as left out on purpose.
 *
 * Context: as of strobe_event_trigger().
 */
void strobe_event_skip(struct strobe_event *event, u64 count)
{
	struct strobe_run *run;

	/* Interrupts are off: an RCU read side, which stopping waits for. */
	list_for_each_entry_rcu(run, &event->listeners, listener, irqs_disabled())
		if (READ_ONCE(run->state) == STROBE_RUNNING)
			strobe_skip(run, count);
}
EXPORT_SYMBOL_GPL(strobe_event_skip);

/**
 * strobe_event_trigger() - an event of a device has happened.
 * @event: which.
 * @now: ktime_get_ns(), taken first thing in the handler.
 * @due: when it was due, CLOCK_MONOTONIC; for events with has_due, else 0.
 * @missed: triggers that the source could not deliver since the last call.
 *
 * Every run that listens gets its trigger. If the budget of this CPU has room
 * for none of them, a source that goes on is asked to keep quiet: what it raises
 * is missed, but costs an interrupt all the same.
 *
 * Context: hard, interrupts off; never twice at once for one event.
 * Return: ns from @now for which the source should keep quiet; 0: as it likes.
 */
u64 strobe_event_trigger(struct strobe_event *event, u64 now, u64 due, u64 missed)
{
	struct strobe_run *run;
	u64 overhead = strobe_rates.overhead;
	u64 quiet = U64_MAX;

	/* Interrupts are off: an RCU read side, which stopping waits for. */
	list_for_each_entry_rcu(run, &event->listeners, listener, irqs_disabled()) {
		if (READ_ONCE(run->state) != STROBE_RUNNING)
			continue;
		if (unlikely(missed))
			miss_lost(run, missed);
		quiet = min(quiet, strobe_trigger(run, now, due ?: now, overhead));
		/* One interrupt: the first run pays for it. */
		overhead = 0;
	}
	return quiet == U64_MAX ? 0 : quiet;
}
EXPORT_SYMBOL_GPL(strobe_event_trigger);
