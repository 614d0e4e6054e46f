// SPDX-License-Identifier: GPL-2.0-only
/* The producer of a run: let it begin, make it silent. */
#include <linux/rcupdate.h>
#include <linux/smp.h>

#include "computer/computer.h"
#include "core/internal.h"
#include "events/events.h"
#include "row/slow.h"

static int start_timer(struct strobe_run *run, bool resume)
{
	int ret;

	/* Where it is counted it begins. */
	migrate_disable();
	scoped_guard(mutex, &strobe_registry)
		ret = strobe_take_timer(run, raw_smp_processor_id());
	if (!ret) {
		if (resume)
			strobe_timer_resume(run);
		else
			strobe_timer_start(run);
	}
	migrate_enable();
	return ret;
}

/* Its files say already what is known of what the source drops: it must be so. */
static bool is_as_created(struct strobe_run *run)
{
	if (strobe_accounting_flags(run->event) == run->accounting)
		return true;
	pr_notice_ratelimited("strobe: %s was set up anew after run %u was created, which must be created anew, too\n",
			      run->event_name, run->id);
	return false;
}

static int start_event(struct strobe_run *run)
{
	int ret;

	scoped_guard(mutex, &strobe_registry)
		ret = is_as_created(run) ? strobe_event_listen(run) : -ESTALE;
	if (ret) {
		/* It may have happened all the same. */
		synchronize_rcu();
		strobe_slow_settle(run);
	}
	return ret;
}

/**
 * strobe_producer_attach() - let triggers come.
 * @run: the run; RUNNING, its producer silent.
 * @resume: the grid of its timer goes on; else it begins.
 * @cause: what the provider says of an event that cannot be enabled; 0 before.
 *
 * Context: process, under run->lock.
 * Return: 0; -ENODEV with @cause; -EUSERS: this CPU has too many timers.
 */
int strobe_producer_attach(struct strobe_run *run, bool resume, s32 *cause)
{
	int ret = 0;

	WRITE_ONCE(run->quit, false);
	strobe_computer_settle(run->computer);
	if (run->source == STROBE_SOURCE_TIMER)
		ret = start_timer(run, resume);
	else if (run->source == STROBE_SOURCE_EVENT)
		*cause = start_event(run);
	/* Whatever it is, it must not be taken for one of STROBE_CONTROL. */
	if (*cause)
		ret = -ENODEV;
	run->attached = !ret;
	return ret;
}

/**
 * strobe_producer_slept() - what passed while the machine was suspended is known now.
 * @run: the run; suspended.
 *
 * Context: process, under run->lock.
 */
void strobe_producer_slept(struct strobe_run *run)
{
	run->suspended = false;
	run->status |= STROBE_ROW_RESUMED;
	if (run->source == STROBE_SOURCE_TIMER)
		strobe_timer_slept(run);
}

/**
 * strobe_producer_detach() - after it nothing of the hard path is in this run.
 * @run: any run.
 *
 * Context: process, under run->lock.
 */
void strobe_producer_detach(struct strobe_run *run)
{
	bool wait = false;

	if (run->suspended)
		strobe_producer_slept(run);
	else if (!run->attached)
		return;
	if (run->source == STROBE_SOURCE_TIMER && run->attached)
		strobe_timer_stop(run);
	scoped_guard(mutex, &strobe_registry) {
		run->timer_cpu = -1;
		if (run->source == STROBE_SOURCE_EVENT && run->attached)
			wait = strobe_event_unlisten(run);
	}
	run->attached = false;
	if (wait)
		synchronize_rcu();
	strobe_slow_settle(run);
}
