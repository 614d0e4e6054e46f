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
 * @busy: the budget's clock up to which time is spent: a leaky bucket. Written
 *	and read in hard context on its CPU only.
 */
struct strobe_budget {
	u64	busy;
};

/**
 * struct strobe_budget_rates - constants; written when the module is loaded.
 * @overhead: ticks an interrupt costs around its steps: entry and exit, timer
 *	reprogramming.
 * @burst: ticks of hard work that may come at once.
 * @longest: ticks that one row is charged at most: a virtual CPU that was
 *	stopped by its host in mid-row has not used that time.
 * @factor: 256 * 100 / percent: ticks to pay for a tick of work.
 * @ticks_per_us: of the budget's clock, * 1024.
 */
struct strobe_budget_rates {
	u64	overhead;
	u64	burst;
	u64	longest;
	u64	factor;
	u64	ticks_per_us;
};

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

/* Pay for @spent ticks of work, from @start on, or from where it is booked. */
static inline void strobe_budget_charge(struct strobe_budget *budget, u64 start, u64 spent)
{
	u64 from = (s64)(budget->busy - start) > 0 ? budget->busy : start;

	budget->busy = from + ((spent * strobe_rates.factor) >> 8);
}

u64 strobe_budget_ns(u64 ticks);
u64 strobe_budget_hold(u64 spent);
u64 strobe_budget_slack(u64 period);
int strobe_budget_init(void);

#endif /* _STROBE_BUDGET_H */
