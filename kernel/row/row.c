// SPDX-License-Identifier: GPL-2.0-only
/* The hard path's less common ways; row.h has the common one, and the rules. */
#include "row/row.h"
#include "row/slow.h"

/**
 * strobe_finish() - the row that reaches the limit, or that has found a device
 * gone, ends the run.
 * @run: the run.
 * @time: of that row.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_finish(struct strobe_run *run, u64 time)
{
	u32 state = run->error ? STROBE_FAILED : STROBE_DONE;

	WRITE_ONCE(run->state, state);
	WRITE_ONCE(run->ring.header->error, run->error);
	WRITE_ONCE(run->ring.header->end_time, time);
	/* G: after the last head. */
	smp_store_release(&run->ring.header->state, state);
	irq_work_queue(&run->ring.wake);
}

/**
 * strobe_count_missed() - as strobe_miss(), with no row open.
 * @run: the run.
 * @cause: why.
 * @count: how many.
 *
 * Context: hard, or with the producer silent; the caller is the only producer.
 */
void strobe_count_missed(struct strobe_run *run, enum strobe_missed cause, u64 count)
{
	struct strobe_ring_header *header = run->ring.header;

	run->triggers += count;
	WRITE_ONCE(header->missed[cause], header->missed[cause] + count);
	WRITE_ONCE(header->triggers, run->triggers);
	trace_strobe_missed(run->id, cause, count);
}

/**
 * strobe_miss() - count triggers that make no row.
 * @run: the run.
 * @cause: why.
 * @count: how many.
 *
 * Context: hard, or with triggers silent; the caller is their only source.
 */
void strobe_miss(struct strobe_run *run, enum strobe_missed cause, u64 count)
{
	if (run->slow)
		strobe_slow_miss(run, cause, count);
	else
		strobe_count_missed(run, cause, count);
}

/**
 * strobe_special_row() - make a row of any run.
 * @run: the run; RUNNING.
 * @now: as for strobe_row().
 * @due: as for strobe_row().
 *
 * One test on the common way, for all that is not common.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_special_row(struct strobe_run *run, u64 now, u64 due)
{
	if (run->slow)
		strobe_slow_row(run, now, due);
	else
		strobe_row(run, now, due,
			   run->is_tai ? ktime_mono_to_any(now, TK_OFFS_TAI) : now);
}

/**
 * strobe_refused() - a trigger for which this CPU's budget has no room now.
 * @run: the run; RUNNING.
 * @now: as for strobe_trigger().
 * @due: as for strobe_trigger().
 * @overhead: as for strobe_trigger().
 *
 * It makes a row all the same if that was booked by an earlier refusal and its
 * time has come. Else it is missed, and the next row is booked: it is paid for
 * now, and its time comes when all that was booked before is over.
 *
 * Context: hard; the caller is the only producer.
 * Return: as of strobe_trigger().
 */
u64 strobe_refused(struct strobe_run *run, u64 now, u64 due, u64 overhead)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	u64 start = strobe_budget_clock(), spent;
	u64 ahead = budget->busy - start;

	/* More than anybody can have booked: the clock has gone back. */
	if (unlikely(ahead > 1000 * strobe_rates.longest)) {
		budget->busy = start + strobe_rates.burst;
		run->booked = false;
	}
	if (run->booked && (s64)(start - run->slot) >= 0) {
		run->booked = false;
		strobe_special_row(run, now, due);
		spent = min(strobe_budget_clock() - start, strobe_rates.longest);
		if (spent > run->row_ticks)
			strobe_budget_charge(budget, start, spent - run->row_ticks);
		run->row_ticks = spent;
		return spent > run->slack ? strobe_budget_hold(spent) : 0;
	}
	strobe_miss(run, STROBE_MISSED_THROTTLED, 1);
	run->status &= ~STROBE_ROW_LATE;
	if (!run->booked) {
		run->booked = true;
		run->slot = budget->busy - strobe_rates.burst;
		/* This interrupt, and the one that is to come. */
		strobe_budget_charge(budget, start, 2 * overhead + run->row_ticks);
	}
	ahead = run->slot - start;
	return (s64)ahead > 0 ? strobe_budget_ns(ahead) : 0;
}
