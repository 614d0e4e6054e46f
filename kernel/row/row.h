/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hard path: one trigger becomes one row.
 *
 * Everything here runs in hard interrupt context (or, for software triggers,
 * with interrupts off): no lock, no allocation, no wake-up, no printing, no
 * loop over readers. Whoever calls is the run's only producer at that time. Runs
 * with slow channels leave this way for open_row.c: a raw lock there makes its
 * callers, and those who complete rows, one producer; and it wakes a thread.
 *
 *	producer (here)				reader (ring/reader.c, strobe-ring)
 *
 *	head = i		(earlier)	load head
 *	write barrier	  (A)			acquire fence	  (C)
 *	store row i				load rows
 *	store-release	  (B)			acquire fence	  (D)
 *	  head = i + 1				load head, validate
 *
 * B pairs with C: a row that is counted is whole. Without B a reader could
 * count a row whose words are not there yet.
 * A pairs with D: whoever has seen a word of row i sees head >= i afterwards.
 * Without A a reader could take a row that is being overwritten for whole.
 *
 *	full barrier	  (E)			store wake_at
 *	load wake_at				full barrier	  (F)
 *	  queue wake if reached			load head, sleep if not reached
 *
 * E pairs with F: the producer sees that somebody wants to be woken, or he sees
 * the row. Without E or F both could miss the other, and the reader would sleep
 * until the next row, or for ever.
 *
 *	store head				load-acquire state
 *	store-release	  (G)			load head
 *	  state
 *
 * G: who sees a final state sees the last head. See docs/design/ring.md and
 * litmus/.
 */
#ifndef _STROBE_ROW_H
#define _STROBE_ROW_H

#include <linux/io.h>
#include <linux/irq_work.h>
#include <linux/timekeeping.h>

#include "computer/computer.h"
#include "row/budget.h"
#include "row/marks.h"
#include "row/run.h"
#include "row/trace.h"

/* steps.c */
void strobe_other_steps(struct strobe_run *run, const struct strobe_action *action, u64 *values,
			u64 now, u64 due);
void strobe_last_gone(struct strobe_run *run, const struct strobe_action *action);
int strobe_read_step(struct strobe_run *run, const struct strobe_action *action,
		     u64 now, u64 due, u64 *value);
int strobe_write_step(const struct strobe_action *action);
bool strobe_act(struct strobe_run *run, u32 answer);
void strobe_fail_step(struct strobe_run *run, const struct strobe_action *action);

/* row.c: what is not on the common way */
void strobe_finish(struct strobe_run *run, u64 time);
void strobe_special_row(struct strobe_run *run, u64 now, u64 due);
u64 strobe_refused(struct strobe_run *run, u64 now, u64 due, u64 overhead);
void strobe_count_missed(struct strobe_run *run, enum strobe_missed cause, u64 count);
void strobe_miss(struct strobe_run *run, enum strobe_missed cause, u64 count);
void strobe_count_skipped(struct strobe_run *run, u64 count);
void strobe_skip(struct strobe_run *run, u64 count);
void strobe_store_tail(struct strobe_run *run, u64 *row, u64 status, u64 *faults);
void strobe_leave_out(struct strobe_run *run);
void strobe_complete_row(struct strobe_run *run, u64 *row, u64 time);

/* register.c */
unsigned int strobe_register_bits(enum strobe_access access);
int strobe_register_check(const struct strobe_register *reg);
bool strobe_register_is_whole(const struct strobe_register *reg);
struct strobe_cut strobe_register_cut(const struct strobe_register *reg, u16 column);

/* Mark what has failed in a row: in its status, or in the fault words behind its values. */
static inline void strobe_mark_fault(u64 *status, u64 *faults, u16 column)
{
	if (column < 32)
		*status |= 1ULL << (32 + column);
	else
		faults[(column - 32) / 64] |= 1ULL << ((column - 32) % 64);
}

static __always_inline u64 strobe_cut_unsigned(const struct strobe_cut *cut, u64 raw)
{
	return (raw >> cut->right) & cut->mask;
}

static __always_inline u64 strobe_cut_signed(const struct strobe_cut *cut, u64 raw)
{
	return (u64)((s64)(raw << cut->left) >> cut->right);
}

/* The fields of a register, each to its column. */
static __always_inline void strobe_cut_fields(const struct strobe_action *action, u64 raw,
					      u64 *values)
{
	const struct strobe_cut *cut = action->cut, *end = cut + action->cuts;

	for (; cut != end; cut++)
		WRITE_ONCE(values[cut->column], strobe_cut_unsigned(cut, raw));
	for (end += action->signed_cuts; cut != end; cut++)
		WRITE_ONCE(values[cut->column], strobe_cut_signed(cut, raw));
}

/* What a step has read, to its columns. */
static __always_inline void strobe_store_step(const struct strobe_action *action, u64 word,
					      u64 *values)
{
	if (action->cuts + action->signed_cuts)
		strobe_cut_fields(action, word, values);
	else
		WRITE_ONCE(values[action->column], word);
}

/*
 * J, whose partners are the devices: registers that follow each other in a row have
 * been read before the row writes an output, and before its interrupt is silenced.
 * They are read relaxed, so that a machine which reorders accesses (arm64) waits
 * once for all of them and not at each. Without J such a machine could silence a
 * card before it has read the last register. Of rows with a thread only the hard
 * part is meant: what the thread reads, it reads after the interrupt was silenced.
 * Readers of the ring need no J: a word is stored after it has been read, for it
 * depends on it. x86 and arm64 order by this what is said here; on another machine,
 * look at its dma_rmb() first.
 */
static __always_inline void strobe_reads_done(void)
{
	dma_rmb();
}

/*
 * Registers of 32 bits that are signed, or of which fields are cut, from @action
 * on, and J. Returns the first step that is neither.
 */
static __always_inline const struct strobe_action *
strobe_cut_steps(struct strobe_run *run, const struct strobe_action *action, u64 *values)
{
	for (; action->todo == STROBE_DO_SIGNED; action++) {
		s32 word = readl_relaxed(action->io);

		WRITE_ONCE(values[action->column], (u64)(s64)word);
		if (unlikely(word == -1) && action->last)
			strobe_last_gone(run, action);
	}
	for (; action->todo == STROBE_DO_FIELDS; action++) {
		u32 word = readl_relaxed(action->io);

		strobe_cut_fields(action, word, values);
		if (unlikely(word == U32_MAX) && action->last)
			strobe_last_gone(run, action);
	}
	strobe_reads_done();
	return action;
}

/*
 * Do the steps; the words of the channels go to @values. WRITE_ONCE for each:
 * readers look on, and a plain store may be torn, repeated or moved. The list
 * ends with a mark, which is not plain: one test fewer on the common way.
 */
static __always_inline void strobe_steps(struct strobe_run *run, u64 *values, u64 now, u64 due)
{
	const struct strobe_action *action = run->actions;
	u64 *value = values;

	for (; likely(action->pair); action += 2, value += 2) {
		WRITE_ONCE(value[0], readl_relaxed(action[0].io));
		WRITE_ONCE(value[1], readl_relaxed(action[1].io));
	}
	for (; action->plain; action++, value++)
		WRITE_ONCE(*value, readl_relaxed(action->io));
	if (likely(action->plain_last)) {
		u32 word = readl_relaxed(action->io);

		WRITE_ONCE(*value, word);
		if (unlikely(word == U32_MAX))
			strobe_last_gone(run, action);
		action++;
	}
	if (likely(action->todo == STROBE_DO_END)) {
		strobe_reads_done();
		return;
	}
	action = strobe_cut_steps(run, action, values);
	/* Out of line and for the rest: a call within a loop would cost registers. */
	if (action->todo != STROBE_DO_END)
		strobe_other_steps(run, action, values, now, due);
}

/**
 * strobe_take_row() - the place of the next row in the ring.
 * @run: the run; RUNNING.
 * @i: its number: run->head.
 * @trigger: the trigger's: run->triggers.
 * @time: its stamp, on the run's clock.
 *
 * Context: hard; the caller is the only producer.
 * Return: the row; it exists when it is published.
 */
static __always_inline u64 *strobe_take_row(struct strobe_run *run, u64 i, u64 trigger, u64 time)
{
	u64 *row = run->ring.slots + (i & run->ring.mask) * run->ring.stride;

	/* A, pairs with D: whoever sees a word of row i sees head >= i. */
	smp_wmb();
	WRITE_ONCE(row[0], i);
	WRITE_ONCE(row[1], trigger);
	WRITE_ONCE(row[2], time);
	return row;
}

/**
 * strobe_publish() - readers may have the row now.
 * @run: the run.
 * @row: from strobe_take_row(), with all its values.
 * @i: as given there.
 * @trigger: as given there.
 * @time: as given there.
 * @status: its status.
 *
 * Context: interrupts off; the caller is the only producer.
 */
static __always_inline void strobe_publish(struct strobe_run *run, u64 *row, u64 i, u64 trigger,
					   u64 time, u64 status)
{
	struct strobe_ring_header *header = run->ring.header;

	WRITE_ONCE(row[3], status);
	if (unlikely(status & STROBE_ROW_FAULTS))
		WRITE_ONCE(header->errors, header->errors + 1);
	run->triggers = trigger + 1;
	run->head = i + 1;
	WRITE_ONCE(header->triggers, trigger + 1);
	/* B, pairs with C: a row that is counted is whole. */
	smp_store_release(&header->head, i + 1);
	strobe_mark(0x13);
	trace_strobe_row(run, i, trigger, time, status);

	/* E, pairs with F: we see wake_at, or who has set it sees this row. */
	smp_mb();
	if (unlikely(i + 1 >= READ_ONCE(run->ring.wake_at)))
		irq_work_queue(&run->ring.wake);
	if (unlikely(i + 1 == run->last))
		strobe_finish(run, time);
}

/**
 * strobe_row() - make a row.
 * @run: the run; RUNNING, its channels ready at once.
 * @now: stamp, CLOCK_MONOTONIC, taken first thing in the handler.
 * @due: when the trigger was due, CLOCK_MONOTONIC; @now if unknown.
 * @time: the stamp on the run's clock.
 *
 * Context: hard; the caller is the only producer.
 */
static __always_inline void strobe_row(struct strobe_run *run, u64 now, u64 due, u64 time)
{
	u64 i = run->head, trigger = run->triggers, status;
	u64 *row;

	row = strobe_take_row(run, i, trigger, time);
	strobe_steps(run, row + 4, now, due);
	status = run->status;
	if (unlikely(status))
		run->status = 0;
	strobe_publish(run, row, i, trigger, time, status);
}

/*
 * As strobe_row(), with a program. In line as well: around a program of few
 * instructions, calling this function would cost more than the program. run->head and
 * run->triggers are read again after the program: kept over it, they would be saved.
 */
static __always_inline void strobe_computed_row(struct strobe_run *run, u64 now, u64 due)
{
	u64 *row = strobe_take_row(run, run->head, run->triggers, now);
	u32 answer;

	strobe_steps(run, row + 4, now, due);
	if (unlikely(run->status)) {
		strobe_complete_row(run, row, now);
		return;
	}
	answer = strobe_compute(run->computer, row + 4);
	/* Only a run that may skip has a program that may. */
	if (run->may_skip) {
		if (unlikely(answer & run->computer->skip)) {
			strobe_leave_out(run);
			return;
		}
		WRITE_ONCE(row[4 + run->channels], run->skipped);
	}
	strobe_publish(run, row, run->head, run->triggers, now, 0);
}

/**
 * strobe_trigger() - one trigger, within the budget of this CPU.
 * @run: the run; RUNNING.
 * @now: stamp, CLOCK_MONOTONIC, taken first thing in the handler.
 * @due: when it was due, CLOCK_MONOTONIC; @now if unknown.
 * @overhead: ticks to pay besides the steps: of an interrupt that is for this
 *	run alone.
 *
 * Context: hard; the caller is the only producer.
 * Return: ns after @now for which a timer has to keep quiet; 0: as it likes.
 */
static __always_inline u64 strobe_trigger(struct strobe_run *run, u64 now, u64 due, u64 overhead)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	u64 start = strobe_budget_clock(), spent;

	trace_strobe_trigger(run, now);
	if (unlikely(!strobe_budget_admits(budget, start)))
		return strobe_refused(run, now, due, overhead);
	if (likely(!run->is_special))
		strobe_row(run, now, due, now);
	else if (run->is_computed)
		strobe_computed_row(run, now, due);
	else
		strobe_special_row(run, now, due);
	spent = strobe_budget_clock() - start;
	strobe_budget_charge(budget, start, min(spent, strobe_rates.longest) + overhead);
	return unlikely(spent > run->slack) ? strobe_budget_hold(spent) : 0;
}

#endif /* _STROBE_ROW_H */
