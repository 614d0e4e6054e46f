// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budget of the hard path.
 *
 * Nothing runs on a CPU while it serves interrupts, and a period can be asked
 * for that no machine can serve: without a bound, one ioctl would end all
 * other work. So every CPU has a leaky bucket. A trigger pays for the time its
 * steps took and for the overhead around them, by a factor that leaves the rest
 * of the CPU to others; what would go deeper into debt than a short burst makes
 * no row and is counted as missed, STROBE_MISSED_THROTTLED.
 *
 * Every row begins with a debt that is within the burst, whoever makes it: so
 * hard work goes beyond the budget by one row at most. A run whose trigger is
 * refused may begin with somewhat more debt the next time, the more often it
 * was refused: so an overloaded CPU is shared by all runs, none goes without.
 * A timer that is refused sleeps for a while, since its interrupts cost even
 * when they make no rows. Times to come again are laid out one after the other,
 * so that not all come at once; they are no promise.
 *
 * Threads of slow runs have an account of their own on each CPU, which pays for
 * the hard work there as well: both together leave some of the CPU to others. A
 * run whose thread has taken too much opens no row until that is paid.
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

#include "row/budget.h"
#include "compat.h"

/* Hard work that may come at once, and of runs that have waited: together 1 ms. */
#define BURST_NS	(800 * NSEC_PER_USEC)
#define PATIENCE_NS	(200 * NSEC_PER_USEC)
/* Debt of threads with which a row may begin. */
#define THREADS_NS	(5 * NSEC_PER_MSEC)
#define LONGEST_NS	(20 * NSEC_PER_MSEC)
/* Of the probe: its period, firings that are enough, and that are all. */
#define PROBE_NS	(100 * NSEC_PER_USEC)
#define PROBES_GOOD	16
#define PROBES		64
/* Where nothing could be measured; and more than any machine takes. */
#define OVERHEAD_NS	(3 * NSEC_PER_USEC)
#define OVERHEAD_MAX_NS	(50 * NSEC_PER_USEC)

static unsigned int budget = 80;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "percent of a CPU that hard interrupts of strobe may take, 10..95 (default 80)");

struct strobe_budget_rates strobe_rates;
DEFINE_PER_CPU(struct strobe_budget, strobe_budget);

/**
 * strobe_budget_ns() - ticks as nanoseconds.
 * @ticks: of the budget's clock.
 *
 * Context: any.
 */
u64 strobe_budget_ns(u64 ticks)
{
	return mul_u64_u64_div_u64(ticks, 1024 * NSEC_PER_USEC, strobe_rates.ticks_per_us);
}

/**
 * strobe_budget_ticks() - nanoseconds as ticks.
 * @ns: nanoseconds.
 *
 * Context: any.
 */
u64 strobe_budget_ticks(u64 ns)
{
	return mul_u64_u64_div_u64(ns, strobe_rates.ticks_per_us, 1024 * NSEC_PER_USEC);
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
	spent = min(spent, strobe_rates.longest) + strobe_rates.overhead;
	return strobe_budget_ns((spent * strobe_rates.factor) >> 8);
}

/**
 * strobe_budget_slack() - what the steps of a timer's row may take.
 * @period: of the timer, ns.
 *
 * Return: ticks; steps that take more come too near to the next grid point.
 */
u64 strobe_budget_slack(u64 period)
{
	u64 room = div64_u64(strobe_budget_ticks(period) << 8, strobe_rates.factor);

	return room > strobe_rates.overhead ? room - strobe_rates.overhead : 0;
}

static u64 price(u64 ticks)
{
	return (ticks * strobe_rates.factor) >> 8;
}

/**
 * strobe_budget_admits_late() - is there room for a row of a run that waits?
 * @budget: of this CPU.
 * @start: now.
 * @waits: how often it was refused since its last row, STROBE_WAITS at most.
 *
 * Context: hard.
 */
bool strobe_budget_admits_late(struct strobe_budget *budget, u64 start, u32 waits)
{
	u64 allowed = strobe_rates.burst + ((strobe_rates.patience * waits) >> STROBE_WAITS_SHIFT);

	/* The clock has gone back, or interrupts came that nobody could refuse. */
	if ((s64)(budget->busy - start) > (s64)strobe_rates.deepest)
		budget->busy = start + strobe_rates.deepest;
	return (s64)(budget->busy - start) <= (s64)allowed;
}

/**
 * strobe_budget_turn_away() - a trigger makes no row.
 * @budget: of this CPU, on which there is no room.
 * @start: now.
 * @overhead: ticks that its interrupt costs.
 * @row: ticks that its next row may take.
 *
 * Context: hard.
 * Return: ticks until it should come again.
 */
u64 strobe_budget_turn_away(struct strobe_budget *budget, u64 start, u64 overhead, u64 row)
{
	u64 room, slot, since = start - budget->refused;

	/* What comes faster than interrupts can is of one: it costs the time it takes. */
	budget->refused = start;
	strobe_budget_charge(budget, start, min(overhead, since));
	room = budget->busy - strobe_rates.burst;
	slot = budget->tail;
	/* Behind the others; but they may be gone, or the clock has gone back. */
	if ((s64)(slot - room) < 0 || (s64)(slot - room) > (s64)strobe_rates.deepest)
		slot = room;
	budget->tail = slot + price(row + overhead);
	return (s64)(slot - start) > 0 ? slot - start : 0;
}

/**
 * strobe_budget_rest() - for how long threads have taken too much of this CPU.
 * @now: CLOCK_MONOTONIC.
 *
 * Context: interrupts off.
 * Return: ns.
 */
u64 strobe_budget_rest(u64 now)
{
	s64 debt = this_cpu_read(strobe_budget.threads) - now;

	return debt > THREADS_NS ? debt - THREADS_NS : 0;
}

/**
 * strobe_budget_charge_thread() - a thread has worked for a run of this CPU.
 * @now: CLOCK_MONOTONIC.
 * @ns: how long.
 *
 * It pays for the hard work, too, but for an eighth, which is what is left to
 * threads where that takes all.
 *
 * Context: interrupts off.
 */
void strobe_budget_charge_thread(u64 now, u64 ns)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	u64 hard = budget->hard - budget->seen;

	if ((s64)(budget->threads - now) < 0) {
		/* Paid for long ago, and so is the hard work of that time. */
		budget->threads = now;
		hard = 0;
	}
	budget->seen = budget->hard;
	budget->threads += price(ns + strobe_budget_ns(hard - hard / 8));
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

/* The least that a firing took from a busy loop; 0 if it was never seen alone. */
static u64 probe_overhead(struct probe *probe)
{
	unsigned int seen = 0, good = 0;
	u64 before, least = 0;

	before = strobe_budget_clock();
	while (seen < PROBES && good < PROBES_GOOD) {
		u64 clock = strobe_budget_clock();
		unsigned int fired = READ_ONCE(probe->fired);

		/*
		 * It fired between the look at "fired" before and this one;
		 * "before" was read ahead of the former look. On a busy host
		 * several firings come in a row, which says nothing.
		 */
		if (fired - seen == 1) {
			u64 taken = strobe_budget_clock() - before;

			least = good++ ? min(least, taken) : taken;
		}
		seen = fired;
		before = clock;
	}
	return least;
}

/**
 * strobe_budget_init() - measure this machine.
 *
 * Takes some milliseconds with preemption off.
 *
 * Context: process, module init.
 * Return: 0, or -EINVAL for a bad module parameter.
 */
int strobe_budget_init(void)
{
	struct probe probe = { };
	u64 ticks, overhead;
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
	overhead = probe_overhead(&probe);
	hrtimer_cancel(&probe.timer);
	ticks = strobe_budget_clock() - ticks;
	time = ktime_get() - time;
	preempt_enable();
	destroy_hrtimer_on_stack(&probe.timer);

	strobe_rates.ticks_per_us = max(1ULL, div64_u64(ticks * 1024, ktime_to_us(time)));
	strobe_rates.longest = strobe_budget_ticks(LONGEST_NS);
	strobe_rates.overhead = min(overhead ?: strobe_budget_ticks(OVERHEAD_NS),
				    strobe_budget_ticks(OVERHEAD_MAX_NS));
	strobe_rates.factor = 256 * 100 / budget;
	/* While work goes on time goes by, too: what remains of so much is debt. */
	strobe_rates.burst = price(strobe_budget_ticks(BURST_NS)) - strobe_budget_ticks(BURST_NS);
	strobe_rates.patience = price(strobe_budget_ticks(PATIENCE_NS)) -
				strobe_budget_ticks(PATIENCE_NS);
	strobe_rates.deepest = strobe_rates.burst + price(strobe_rates.longest);
	pr_info("a trigger costs %llu ns around its steps; budget %u %%\n",
		strobe_budget_ns(strobe_rates.overhead), budget);
	return 0;
}
