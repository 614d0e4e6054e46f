/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the hard path may take of a CPU: see budget.c. Inline, because every
 * trigger passes here.
 */
#ifndef _STROBE_BUDGET_H
#define _STROBE_BUDGET_H

#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>

/**
 * struct strobe_budget - account of one CPU.
 * @busy: the budget's clock up to which time is spent: a leaky bucket.
 * @tail: the budget's clock up to which those who were refused have a time to
 *	come again.
 * @refused: the budget's clock when a trigger was refused last.
 * @hard: ticks of work so far, for the account of threads.
 * @seen: those of them that @threads knows.
 * @threads: CLOCK_MONOTONIC up to which the time of threads is spent.
 *
 * Written and read in hard context, or with interrupts off, on its CPU only.
 */
struct strobe_budget {
	u64	busy;
	u64	tail;
	u64	refused;
	u64	hard;
	u64	seen;
	u64	threads;
};

/**
 * struct strobe_budget_rates - constants; written when the module is loaded.
 * @overhead: ticks an interrupt costs around its steps: entry and exit, timer
 *	reprogramming.
 * @burst: debt with which a row may begin.
 * @patience: debt that is added to it for a run which has been refused
 *	STROBE_WAITS times in a row; in between for others.
 * @deepest: more debt than that is not kept.
 * @longest: ticks that one row is charged at most: a virtual CPU that was
 *	stopped by its host in mid-row has not used that time.
 * @factor: 256 * 100 / percent: ticks to pay for a tick of work.
 * @ticks_per_us: of the budget's clock, * 1024.
 */
struct strobe_budget_rates {
	u64	overhead;
	u64	burst;
	u64	patience;
	u64	deepest;
	u64	longest;
	u64	factor;
	u64	ticks_per_us;
};

/* Refusals in a row that count; and as a power of 2. */
#define STROBE_WAITS_SHIFT	6
#define STROBE_WAITS		64U

extern struct strobe_budget_rates strobe_rates;
DECLARE_PER_CPU(struct strobe_budget, strobe_budget);

/* A clock that costs next to nothing; its unit is whatever it is. */
static inline u64 strobe_budget_clock(void)
{
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_RISCV)
	return get_cycles();
#else
	return ktime_get_mono_fast_ns();
#endif
}

/* Is there room for a row at @start? */
static inline bool strobe_budget_admits(const struct strobe_budget *budget, u64 start)
{
	return (s64)(budget->busy - start) <= (s64)strobe_rates.burst;
}

/* Pay for @spent ticks of work, from @start on, or after what is not paid for yet. */
static inline void strobe_budget_charge(struct strobe_budget *budget, u64 start, u64 spent)
{
	u64 from = (s64)(budget->busy - start) > 0 ? budget->busy : start;

	budget->busy = from + ((spent * strobe_rates.factor) >> 8);
	/* @budget is this CPU's; so it takes one instruction. */
	__this_cpu_add(strobe_budget.hard, spent);
}

u64 strobe_budget_ns(u64 ticks);
u64 strobe_budget_ticks(u64 ns);
bool strobe_budget_admits_late(struct strobe_budget *budget, u64 start, u32 waits);
u64 strobe_budget_turn_away(struct strobe_budget *budget, u64 start, u64 overhead, u64 row);
u64 strobe_budget_rest(u64 now);
void strobe_budget_charge_thread(u64 now, u64 ns);
u64 strobe_budget_hold(u64 spent);
u64 strobe_budget_slack(u64 period);
int strobe_budget_init(void);

#endif /* _STROBE_BUDGET_H */
