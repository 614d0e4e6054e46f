// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hard path: one trigger becomes one row.
 *
 * Everything here runs in hard interrupt context (or, for software triggers,
 * with interrupts off): no lock, no allocation, no wake-up, no printing, no
 * loop over readers. Whoever calls is the run's only producer at that time.
 *
 *	producer (here)				reader (reader.c, strobe-ring)
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
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/smp.h>

#include "access.h"
#include "budget.h"
#include "trace.h"

/* Everything but the most common accesses; out of line to keep the loop small. */
static noinline int read_other(struct strobe_run *run, const struct strobe_action *op,
			       u64 now, u64 due, u64 *value)
{
	switch (op->access) {
	case STROBE_ACCESS_CALL:
		return op->channel->ops->read(op->channel, value);
	case STROBE_BUILTIN_TIME:
		*value = ktime_get_ns();
		if (run->is_tai)
			*value = ktime_mono_to_any(*value, TK_OFFS_TAI);
		return 0;
	case STROBE_BUILTIN_ELAPSED:
		*value = now - run->started;
		return 0;
	case STROBE_BUILTIN_LATE:
		*value = now - due;
		return 0;
	case STROBE_BUILTIN_CPU:
		*value = smp_processor_id();
		return 0;
	case STROBE_BUILTIN_CYCLES:
		*value = get_cycles();
		return 0;
	default:
		*value = strobe_cut_field(op, strobe_access_read(op));
		return 0;
	}
}

static noinline void write_op(const struct strobe_action *op)
{
	if (op->access == STROBE_ACCESS_CALL)
		op->output->write(op->output, op->value);
	else
		strobe_access_write(op);
}

/*
 * Do the steps; the words of the channels go to @value. WRITE_ONCE for each:
 * readers look on, and a plain store may be torn, repeated or moved.
 * Returns 1 + index of the first channel that failed, or 0.
 */
static __always_inline u32 do_steps(struct strobe_run *run, u64 *value, u64 now, u64 due)
{
	const struct strobe_action *op = run->ops, *end = op + run->op_count;
	u64 *first = value;
	u32 fault = 0;

	for (; op < end; op++) {
		u64 word = 0;

		if (unlikely(op->write)) {
			write_op(op);
			continue;
		}
		if (likely(op->access == STROBE_ACCESS_MMIO32)) {
			word = strobe_cut_field(op, readl(op->io));
		} else if (unlikely(read_other(run, op, now, due, &word))) {
			word = 0;
			if (!fault)
				fault = value - first + 1;
		}
		WRITE_ONCE(*value, word);
		value++;
	}
	return fault;
}

/* The row that reaches the limit ends the run. */
static noinline void finish(struct strobe_run *run, u64 time)
{
	WRITE_ONCE(run->state, STROBE_DONE);
	WRITE_ONCE(run->header->end_time, time);
	/* G: after the last head. */
	smp_store_release(&run->header->state, STROBE_DONE);
	irq_work_queue(&run->wake);
}

/**
 * strobe_row() - make a row.
 * @run: the run; RUNNING.
 * @now: stamp, CLOCK_MONOTONIC, taken first thing in the handler.
 * @due: when the trigger was due, CLOCK_MONOTONIC; @now if unknown.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_row(struct strobe_run *run, u64 now, u64 due)
{
	struct strobe_ring_header *header = run->header;
	u64 i = run->head;
	u64 *row = run->slots + (i & run->mask) * run->stride;
	u64 time = now, status = run->flags;
	u32 fault;

	if (unlikely(run->is_tai))
		time = ktime_mono_to_any(now, TK_OFFS_TAI);
	run->flags = 0;

	/* A, pairs with D: whoever sees a word of row i sees head >= i. */
	smp_wmb();
	WRITE_ONCE(row[0], i);
	WRITE_ONCE(row[1], run->triggers);
	WRITE_ONCE(row[2], time);
	fault = do_steps(run, row + 4, now, due);
	if (unlikely(fault)) {
		status |= (u64)fault << 32;
		WRITE_ONCE(header->errors, header->errors + 1);
	}
	WRITE_ONCE(row[3], status);
	run->triggers++;
	WRITE_ONCE(header->triggers, run->triggers);
	run->head = ++i;
	/* B, pairs with C: a row that is counted is whole. */
	smp_store_release(&header->head, i);
	trace_strobe_row(run->id, i - 1, run->triggers - 1, time, status);

	/* E, pairs with F: we see wake_at, or who has set it sees this row. */
	smp_mb();
	if (unlikely(i >= READ_ONCE(run->wake_at)))
		irq_work_queue(&run->wake);
	if (unlikely(i == run->limit))
		finish(run, time);
}

/**
 * strobe_miss() - count triggers that make no row.
 * @run: the run; RUNNING.
 * @cause: why.
 * @count: how many.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_miss(struct strobe_run *run, enum strobe_missed cause, u64 count)
{
	struct strobe_ring_header *header = run->header;

	run->triggers += count;
	WRITE_ONCE(header->missed[cause], header->missed[cause] + count);
	WRITE_ONCE(header->triggers, run->triggers);
	trace_strobe_missed(run->id, cause, count);
}

/**
 * strobe_trigger() - one trigger, within the budget of this CPU.
 * @run: the run; RUNNING.
 * @now: stamp, CLOCK_MONOTONIC, taken first thing in the handler.
 * @due: when it was due, CLOCK_MONOTONIC; @now if unknown.
 *
 * Context: hard; the caller is the only producer.
 * Return: ns after @now for which a timer has to keep quiet; 0: as it likes.
 */
u64 strobe_trigger(struct strobe_run *run, u64 now, u64 due)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	u64 start = strobe_budget_clock(), spent;

	trace_strobe_trigger(run->id, run->triggers, now);
	if (unlikely(!strobe_budget_admits(budget, start))) {
		strobe_miss(run, STROBE_MISSED_THROTTLED, 1);
		return strobe_budget_refuse(budget, start);
	}
	strobe_row(run, now, due);
	spent = strobe_budget_clock() - start;
	strobe_budget_charge(budget, start, spent);
	return unlikely(spent > run->slack) ? strobe_budget_hold(spent) : 0;
}

/**
 * strobe_event_trigger() - an event of a device has happened.
 * @event: which.
 * @now: ktime_get_ns(), taken first thing in the handler.
 * @due: when it was due, CLOCK_MONOTONIC; for events with has_due, else 0.
 * @missed: triggers that the source could not deliver since the last call.
 *
 * Every run that listens gets its trigger.
 *
 * Context: hard, interrupts off; never twice at once for one event.
 */
void strobe_event_trigger(struct strobe_event *event, u64 now, u64 due, u64 missed)
{
	struct strobe_run *run;

	/* Interrupts are off: an RCU read side, which stopping waits for. */
	list_for_each_entry_rcu(run, &event->listeners, listener, irqs_disabled()) {
		if (READ_ONCE(run->state) != STROBE_RUNNING)
			continue;
		if (unlikely(missed))
			strobe_miss(run, STROBE_MISSED_SOURCE, missed);
		strobe_trigger(run, now, due ?: now);
	}
}
EXPORT_SYMBOL_GPL(strobe_event_trigger);
