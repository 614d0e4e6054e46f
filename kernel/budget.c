// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budget of the hard path.
 *
 * Nothing runs on a CPU while it serves interrupts, and a period can be asked
 * for that no machine can serve: without a bound, one ioctl would end all
 * other work. So every CPU has a leaky bucket. A trigger pays for the time its
 * steps took and for the overhead around them, by a factor that leaves the rest
 * of the CPU to others; what would go deeper into debt than a short burst makes
 * no row and is counted as missed, STROBE_MISSED_THROTTLED. A timer then also
 * sleeps until there is room again, since its interrupts cost even when they
 * make no rows.
 *
 * The overhead is measured when the module is loaded: a busy loop watches a
 * cheap clock, and a timer fires into it; the smallest step of the clock across
 * a firing is what the interrupt took from the loop.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>

#include "budget.h"
#include "compat.h"

#define BURST_NS	(500 * NSEC_PER_USEC)
#define OVERHEAD_MAX_NS	(50 * NSEC_PER_USEC)
#define PROBE_NS	(20 * NSEC_PER_USEC)
#define PROBES		64

static unsigned int budget = 80;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "percent of a CPU that hard interrupts of strobe may take, 10..95 (default 80)");

struct strobe_budget_rates strobe_rates;
DEFINE_PER_CPU(struct strobe_budget, strobe_budget);

static u64 to_ns(u64 ticks)
{
	return mul_u64_u64_div_u64(ticks, 1024 * NSEC_PER_USEC, strobe_rates.ticks_per_us);
}

static u64 to_ticks(u64 ns)
{
	return mul_u64_u64_div_u64(ns, strobe_rates.ticks_per_us, 1024 * NSEC_PER_USEC);
}

/**
 * strobe_budget_refuse() - a trigger was not admitted.
 * @budget: of this CPU.
 * @start: budget's clock when it came.
 *
 * The interrupt itself has to be paid for all the same.
 *
 * Context: hard.
 * Return: ns until there is room again.
 */
u64 strobe_budget_refuse(struct strobe_budget *budget, u64 start)
{
	/* More debt than charges can make: the clock has gone back. */
	if ((s64)(budget->busy - start) > (s64)(8 * strobe_rates.burst))
		budget->busy = start + strobe_rates.burst;
	strobe_budget_charge(budget, start, 0);
	return to_ns(budget->busy - start - strobe_rates.burst);
}

/**
 * strobe_budget_hold() - how far the next trigger of a timer must be away.
 * @spent: ticks that this row's steps took.
 *
 * Context: hard; only where the steps took more than the run's slack.
 * Return: ns from this trigger's entry to the next.
 */
u64 strobe_budget_hold(u64 spent)
{
	spent = min(spent, strobe_rates.burst) + strobe_rates.overhead;
	return to_ns((spent * strobe_rates.factor) >> 8);
}

/**
 * strobe_budget_slack() - what the steps of a timer's row may take.
 * @period: of the timer, ns.
 *
 * Return: ticks; steps that take more come too near to the next grid point.
 */
u64 strobe_budget_slack(u64 period)
{
	u64 room = div64_u64(to_ticks(period) << 8, strobe_rates.factor);

	return room > strobe_rates.overhead ? room - strobe_rates.overhead : 0;
}

/**
 * struct probe - a timer that fires into a busy loop.
 * @timer: the timer.
 * @fired: how often; written by the timer, read by the loop.
 */
struct probe {
	struct hrtimer		timer;
	unsigned int		fired;
};

static enum hrtimer_restart probe_fire(struct hrtimer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	WRITE_ONCE(probe->fired, probe->fired + 1);
	if (probe->fired >= PROBES)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, PROBE_NS);
	return HRTIMER_RESTART;
}

/**
 * strobe_budget_init() - measure this machine.
 *
 * Takes one to two milliseconds with preemption off.
 *
 * Context: process, module init.
 * Return: 0, or -EINVAL for a bad module parameter.
 */
int strobe_budget_init(void)
{
	struct probe probe = { };
	u64 before, least = U64_MAX, ticks;
	unsigned int seen = 0;
	ktime_t time;

	if (budget < 10 || budget > 95) {
		pr_err("parameter budget=%u: must be 10..95\n", budget);
		return -EINVAL;
	}
	hrtimer_setup_on_stack(&probe.timer, probe_fire, CLOCK_MONOTONIC,
			       HRTIMER_MODE_REL_PINNED_HARD);

	preempt_disable();
	time = ktime_get();
	ticks = strobe_budget_clock();
	hrtimer_start(&probe.timer, PROBE_NS, HRTIMER_MODE_REL_PINNED_HARD);
	before = ticks;
	while (seen < PROBES) {
		u64 clock = strobe_budget_clock();
		unsigned int fired = READ_ONCE(probe.fired);

		/*
		 * It fired between the look at "fired" before and this one, on
		 * a slow machine several times in a row; "before" was read
		 * ahead of the former look.
		 */
		if (fired != seen)
			least = min(least, (strobe_budget_clock() - before) / (fired - seen));
		seen = fired;
		before = clock;
	}
	ticks = strobe_budget_clock() - ticks;
	time = ktime_get() - time;
	preempt_enable();
	hrtimer_cancel(&probe.timer);
	destroy_hrtimer_on_stack(&probe.timer);

	strobe_rates.ticks_per_us = max(1ULL, div64_u64(ticks * 1024, ktime_to_us(time)));
	strobe_rates.burst = to_ticks(BURST_NS);
	/* A machine that is slower than that was stopped by its host meanwhile. */
	strobe_rates.overhead = min(least, to_ticks(OVERHEAD_MAX_NS));
	strobe_rates.factor = 256 * 100 / budget;
	pr_info("a trigger costs %llu ns around its steps; budget %u %%\n",
		to_ns(strobe_rates.overhead), budget);
	return 0;
}
