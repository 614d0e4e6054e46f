// SPDX-License-Identifier: GPL-2.0-only
/* The hard path's less common ways; row.h has the common one, and the rules. */
#include "computer/computer.h"
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
 * strobe_count_skipped() - as strobe_skip(), with no row open.
 * @run: the run.
 * @count: how many.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_count_skipped(struct strobe_run *run, u64 count)
{
	struct strobe_ring_header *header = run->ring.header;

	run->triggers += count;
	run->skipped += count;
	WRITE_ONCE(header->triggers, run->triggers);
	/* Who sees that many skipped sees their triggers: see strobe_look_at(). */
	smp_store_release(&header->skipped, run->skipped);
	trace_strobe_skipped(run->id, count);
}

/**
 * strobe_skip() - count triggers that are left out on purpose.
 * @run: the run; RUNNING, and it may skip.
 * @count: how many.
 *
 * Context: hard; the caller is the only source of triggers.
 */
void strobe_skip(struct strobe_run *run, u64 count)
{
	if (run->slow)
		strobe_slow_skip(run, count);
	else
		strobe_count_skipped(run, count);
}

/**
 * strobe_store_tail() - the words behind a row's values.
 * @run: the run.
 * @row: the row.
 * @status: its status.
 * @faults: its faults beyond the first 32; cleared for the next row.
 *
 * Context: interrupts off; the caller is the only producer.
 */
void strobe_store_tail(struct strobe_run *run, u64 *row, u64 status, u64 *faults)
{
	struct strobe_ring_header *header = run->ring.header;
	u64 *word = row + 4 + run->channels;
	u64 any = 0;

	for (u32 i = 0; i < run->fault_words; i++) {
		any |= faults[i];
		WRITE_ONCE(*word++, faults[i]);
		faults[i] = 0;
	}
	if (run->may_skip)
		WRITE_ONCE(*word, run->skipped);
	/* Else strobe_publish() counts it. */
	if (unlikely(any) && !(status & STROBE_ROW_FAULTS))
		WRITE_ONCE(header->errors, header->errors + 1);
}

/* Whether something has failed in the row that is being made. */
static bool has_faults(const struct strobe_run *run)
{
	u64 any = run->status & STROBE_ROW_FAULTS;

	for (u32 i = 0; i < run->fault_words; i++)
		any |= run->faults[i];
	return any;
}

static void fail_derived(struct strobe_run *run, u64 *values)
{
	for (u32 i = run->channels - run->derived; i < run->channels; i++) {
		WRITE_ONCE(values[i], 0);
		strobe_mark_fault(&run->status, run->faults, i);
	}
}

/**
 * strobe_leave_out() - the program does not keep the row that is being made.
 * @run: the run.
 *
 * The next row has its place, and follows on a pause if it did.
 *
 * Context: interrupts off; the caller is the only producer.
 */
void strobe_leave_out(struct strobe_run *run)
{
	run->status &= STROBE_ROW_RESUMED;
	strobe_count_skipped(run, 1);
}

/**
 * strobe_complete_row() - what comes after the steps, of any run that is not slow.
 * @run: the run.
 * @row: from strobe_take_row(); its steps are done.
 * @time: its stamp, on the run's clock.
 *
 * Context: interrupts off; the caller is the only producer.
 */
void strobe_complete_row(struct strobe_run *run, u64 *row, u64 time)
{
	u64 status;

	/* What has failed it does not see: no word that means nothing comes into a mean. */
	if (run->computer && unlikely(has_faults(run))) {
		fail_derived(run, row + 4);
	} else if (run->computer) {
		u32 answer = strobe_compute(run->computer, row + 4);

		/* A row is not left out if an output of it has failed; the program had left it. */
		if (run->acts && strobe_act(run, answer)) {
			fail_derived(run, row + 4);
		} else if (answer & run->computer->skip) {
			strobe_leave_out(run);
			return;
		}
	}
	status = run->status;
	run->status = 0;
	if (run->fault_words || run->may_skip)
		strobe_store_tail(run, row, status, run->faults);
	strobe_publish(run, row, run->head, run->triggers, time, status);
}

/* A row with words behind its values, or with a program, that is not made in line. */
static void tailed_row(struct strobe_run *run, u64 now, u64 due, u64 time)
{
	u64 *row = strobe_take_row(run, run->head, run->triggers, time);

	strobe_steps(run, row + 4, now, due);
	strobe_complete_row(run, row, time);
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
	u64 time;

	if (run->slow) {
		strobe_slow_row(run, now, due);
		return;
	}
	time = run->is_tai ? ktime_mono_to_any(now, TK_OFFS_TAI) : now;
	if (run->fault_words || run->may_skip || run->computer)
		tailed_row(run, now, due, time);
	else
		strobe_row(run, now, due, time);
}

/**
 * strobe_refused() - a trigger for which this CPU's budget has no room now.
 * @run: the run; RUNNING.
 * @now: as for strobe_trigger().
 * @due: as for strobe_trigger().
 * @overhead: as for strobe_trigger().
 *
 * It makes a row all the same if it was refused before, and the debt is not too
 * deep for a run that has waited so long. Else it is missed.
 *
 * Context: hard; the caller is the only producer.
 * Return: as of strobe_trigger().
 */
u64 strobe_refused(struct strobe_run *run, u64 now, u64 due, u64 overhead)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	u64 start = strobe_budget_clock(), spent;

	if (strobe_budget_admits_late(budget, start, run->waits)) {
		run->waits = 0;
		strobe_special_row(run, now, due);
		spent = min(strobe_budget_clock() - start, strobe_rates.longest);
		run->row_ticks = spent;
		strobe_budget_charge(budget, start, spent + overhead);
		return spent > run->slack ? strobe_budget_hold(spent) : 0;
	}
	run->waits = min(run->waits + 1, STROBE_WAITS);
	strobe_miss(run, STROBE_MISSED_THROTTLED, 1);
	run->status &= ~STROBE_ROW_LATE;
	return strobe_budget_ns(strobe_budget_turn_away(budget, start, overhead, run->row_ticks));
}
