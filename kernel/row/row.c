// SPDX-License-Identifier: GPL-2.0-only
/* The hard path's less common ways; row.h has the common one, and the rules. */
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/smp.h>

#include "row/access.h"
#include "row/row.h"

static struct strobe_device *device_of(const struct strobe_run *run,
				       const struct strobe_action *action)
{
	return run->targets[action - run->actions].channel->device;
}

/*
 * Registers that the row has read before the one by which its device was found
 * gone may have gone with it. A slow run has asked at each of them.
 */
static void fail_before(struct strobe_run *run, const struct strobe_action *last)
{
	u64 *row = run->slots + (run->head & run->mask) * run->stride;
	const struct strobe_action *action;

	for (action = run->actions; action < last; action++) {
		u64 *value = &row[4 + action->column];

		if (action->write || !strobe_is_on_bus(action->access) ||
		    device_of(run, action) != device_of(run, last) ||
		    READ_ONCE(*value) != strobe_cut_field(action, action->value))
			continue;
		WRITE_ONCE(*value, 0);
		run->status = strobe_with_fault(run->status, action->column);
	}
}

/*
 * The last register of a device reads as all ones: that is its value, or what
 * the bus answers where no card is. Then the row is the run's last, and its owner
 * learns why.
 */
static int check_presence(struct strobe_run *run, const struct strobe_action *last)
{
	struct strobe_device *device = device_of(run, last);

	if (device->is_there(device))
		return 0;
	if (!run->is_slow)
		fail_before(run, last);
	run->last = run->head + 1;
	run->error = -ENODEV;
	return -ENODEV;
}

/**
 * strobe_last_gone() - the last register of a device, a plain one, has read as
 * all ones.
 * @run: the run.
 * @action: the step.
 * @value: where that was stored; 0 if the card is gone.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_last_gone(struct strobe_run *run, const struct strobe_action *action, u64 *value)
{
	if (!check_presence(run, action))
		return;
	run->status = strobe_with_fault(run->status, action->column);
	WRITE_ONCE(*value, 0);
}

/**
 * strobe_read_step() - read a channel that is ready at once.
 * @run: the run.
 * @action: the step.
 * @now: the row's stamp.
 * @due: when the trigger was due.
 * @value: the word.
 *
 * Context: interrupts off.
 * Return: 0 or the provider's errno; -ENODEV if the card of a register is gone.
 */
int strobe_read_step(struct strobe_run *run, const struct strobe_action *action,
		     u64 now, u64 due, u64 *value)
{
	switch (action->access) {
	case STROBE_ACCESS_CALL:
		return action->channel->ops->read(action->channel, value);
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
	case STROBE_BUILTIN_WAITED:
		*value = 0;
		return 0;
	case STROBE_BUILTIN_CPU:
		*value = smp_processor_id();
		return 0;
	case STROBE_BUILTIN_CYCLES:
		*value = get_cycles();
		return 0;
	default:
		*value = strobe_access_read(action->access, action->io);
		if (unlikely(action->last && *value == action->value) &&
		    check_presence(run, action))
			return -ENODEV;
		*value = strobe_cut_field(action, *value);
		return 0;
	}
}

/**
 * strobe_write_step() - write an output.
 * @action: the step.
 *
 * Context: interrupts off.
 */
void strobe_write_step(const struct strobe_action *action)
{
	if (action->access == STROBE_ACCESS_CALL)
		action->output->write(action->output, action->value);
	else
		strobe_access_write(action->access, action->io, action->value);
}

/*
 * One step that is not just a 32-bit register. A channel that fails leaves 0,
 * and its mark in the row's status. Returns words stored: 0 for an output.
 */
static u32 other_step(struct strobe_run *run, const struct strobe_action *action, u64 *value,
		      u64 now, u64 due)
{
	u64 word = 0;

	if (action->write) {
		strobe_write_step(action);
		return 0;
	}
	if (unlikely(strobe_read_step(run, action, now, due, &word))) {
		word = 0;
		run->status = strobe_with_fault(run->status, action->column);
	}
	WRITE_ONCE(*value, word);
	return 1;
}

/**
 * strobe_other_steps() - the rest of a row's steps, from the first that is not
 * just a 32-bit register.
 * @run: the run.
 * @action: that step.
 * @value: where the word of the next channel goes.
 * @now: the row's stamp.
 * @due: when the trigger was due.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_other_steps(struct strobe_run *run, const struct strobe_action *action, u64 *value,
			u64 now, u64 due)
{
	for (; action->access != STROBE_BUILTIN_END; action++) {
		if (action->plain)
			WRITE_ONCE(*value++, readl(action->io));
		else
			value += other_step(run, action, value, now, due);
	}
}

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
	WRITE_ONCE(run->header->error, run->error);
	WRITE_ONCE(run->header->end_time, time);
	/* G: after the last head. */
	smp_store_release(&run->header->state, state);
	irq_work_queue(&run->wake);
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
	struct strobe_ring_header *header = run->header;

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

/**
 * strobe_soft_trigger() - one software trigger.
 * @run: the run; RUNNING.
 *
 * Outside any interrupt, so that no budget is needed: others can run between.
 *
 * Context: process, interrupts off, under run->lock.
 */
void strobe_soft_trigger(struct strobe_run *run)
{
	u64 now = ktime_get_ns();

	trace_strobe_trigger(run, now);
	strobe_special_row(run, now, now);
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
	u64 overhead = strobe_rates.overhead;

	/* Interrupts are off: an RCU read side, which stopping waits for. */
	list_for_each_entry_rcu(run, &event->listeners, listener, irqs_disabled()) {
		if (READ_ONCE(run->state) != STROBE_RUNNING)
			continue;
		if (unlikely(missed))
			strobe_miss(run, STROBE_MISSED_SOURCE, missed);
		strobe_trigger(run, now, due ?: now, overhead);
		/* One interrupt: the first run pays for it. */
		overhead = 0;
	}
}
EXPORT_SYMBOL_GPL(strobe_event_trigger);
