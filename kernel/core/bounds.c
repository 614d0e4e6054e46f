// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a run may cost others, beside its memory (ring/user.c) and its time
 * (row/budget.c): how long its row keeps interrupts off, how many timers a CPU
 * has. See docs/decisions/0021-bounds-of-a-user.md.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>

#include "core/internal.h"
#include "ring/user.h"
#include "row/budget.h"

/* No step is cheaper, whatever its provider says. */
#define STEP_NS			20

static unsigned int cpu_timers_max = 128;
module_param(cpu_timers_max, uint, 0644);
MODULE_PARM_DESC(cpu_timers_max,
		 "timers that may run on one CPU; a user without CAP_SYS_RESOURCE may have half of them (default 128)");

/* The step is done by the run's thread. */
static bool is_sleeping(const struct strobe_target *target)
{
	return strobe_target_class(target) == STROBE_CLASS_SLEEP;
}

/**
 * strobe_check_cost() - may a row take so long?
 * @run: the run, with its steps compiled.
 * @count: its steps.
 * @program: rough time of its program, ns.
 *
 * What a thread does others can interrupt: then nothing is said.
 *
 * Context: process, under strobe_registry.
 * Return: 0, or -EPERM beyond STROBE_COST_MAX without CAP_SYS_NICE.
 */
int strobe_check_cost(struct strobe_run *run, u32 count, u64 program)
{
	u64 cost = program;

	for (u32 i = 0; i < count; i++) {
		const struct strobe_channel *channel = run->targets[i].channel;
		const struct strobe_output *output = run->targets[i].output;
		u32 ns = channel ? channel->cost_ns : output->cost_ns;

		if (is_sleeping(&run->targets[i]))
			return 0;
		/* The time of an async channel is that until its value arrives. */
		if (channel && channel->cost_class == STROBE_CLASS_ASYNC)
			ns = STEP_NS;
		cost += max(ns, STEP_NS);
	}
	run->row_ticks = strobe_budget_ticks(cost);
	return cost > STROBE_COST_MAX && !capable(CAP_SYS_NICE) ? -EPERM : 0;
}

/**
 * strobe_take_timer() - a timer more on this CPU?
 * @run: the run, which is about to start or to resume its timer.
 * @cpu: this CPU.
 *
 * All that expire together are served in one interrupt, and each costs, even if
 * it makes no row.
 *
 * Context: process, under strobe_registry.
 * Return: 0, or -EUSERS if there are too many.
 */
int strobe_take_timer(struct strobe_run *run, int cpu)
{
	unsigned int most = READ_ONCE(cpu_timers_max), all = 0, mine = 0;
	const struct strobe_run *other;

	lockdep_assert_held(&strobe_registry);
	list_for_each_entry(other, &strobe_runs, entry) {
		if (other->timer_cpu != cpu)
			continue;
		all++;
		mine += uid_eq(other->uid, run->uid);
	}
	if ((all >= most || mine >= most / 2) && !capable(CAP_SYS_RESOURCE))
		return -EUSERS;
	run->timer_cpu = cpu;
	return 0;
}

/**
 * strobe_take_thread() - count the thread that a run is about to get, if it is.
 * @run: the run, with its steps compiled.
 *
 * Context: process.
 * Return: 0, or -EAGAIN: the user has too many processes.
 */
int strobe_take_thread(struct strobe_run *run)
{
	bool sleeps = false;
	int ret;

	for (u32 i = 0; i < run->step_count; i++)
		sleeps |= is_sleeping(&run->targets[i]);
	if (!sleeps)
		return 0;
	ret = strobe_user_add_thread(run->ring.owner);
	run->has_thread = !ret;
	return ret;
}

/**
 * strobe_give_thread() - undo that: the thread is gone, or there was none.
 * @run: the run.
 *
 * Context: process, under run->lock, or nobody else has the run.
 */
void strobe_give_thread(struct strobe_run *run)
{
	if (run->has_thread)
		strobe_user_drop_thread(run->ring.owner);
	run->has_thread = false;
}
