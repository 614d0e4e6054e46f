// SPDX-License-Identifier: GPL-2.0-only
/* Steps that are not just a 32-bit register, and what a card leaves that has gone. */
#include <linux/smp.h>

#include "row/access.h"
#include "row/row.h"
#include "row/slow.h"

/* What has failed in the row that is being made. */
static void fail(struct strobe_run *run, u16 column)
{
	if (run->slow)
		strobe_slow_fail(run->slow, column);
	else
		strobe_mark_fault(&run->status, run->faults, column);
}

/**
 * strobe_fail_step() - all columns of a step have failed.
 * @run: the run.
 * @action: the step.
 *
 * Context: who does the steps of the run.
 */
void strobe_fail_step(struct strobe_run *run, const struct strobe_action *action)
{
	u32 cuts = action->cuts + action->signed_cuts;

	if (!cuts)
		fail(run, action->column);
	for (u32 i = 0; i < cuts; i++)
		fail(run, action->cut[i].column);
}

/* What was written to a device that has gone has not arrived, or may not have. */
static void fail_outputs(struct strobe_run *run, const struct strobe_device *device)
{
	const struct strobe_action *action;

	for (action = run->actions; action->todo != STROBE_DO_END; action++)
		if (action->write && action->device == device)
			fail(run, action->column);
}

/* Of the row that is being made. */
static u64 *row_values(const struct strobe_run *run)
{
	return run->ring.slots + (run->head & run->ring.mask) * run->ring.stride + 4;
}

/* Where a column is what it would be if all of the register were ones, there was no card. */
static void fail_if_ones(struct strobe_run *run, u64 *value, u16 column, u64 ones)
{
	if (READ_ONCE(*value) != ones)
		return;
	WRITE_ONCE(*value, 0);
	fail(run, column);
}

/*
 * Registers that the row has read before the one by which its device was found
 * gone may have gone with it. A slow run has asked at each of them.
 */
static void fail_before(struct strobe_run *run, const struct strobe_action *last)
{
	u64 *values = row_values(run);
	const struct strobe_action *action;

	for (action = run->actions; action < last; action++) {
		u32 cuts = action->cuts + action->signed_cuts;
		u64 ones;

		if (action->write || !strobe_is_on_bus(action->access) ||
		    action->device != last->device)
			continue;
		ones = strobe_all_ones(action->access);
		if (!cuts)
			fail_if_ones(run, &values[action->column], action->column, ones);
		for (u32 i = 0; i < cuts; i++) {
			const struct strobe_cut *cut = &action->cut[i];

			fail_if_ones(run, &values[cut->column], cut->column,
				     i < action->cuts ? strobe_cut_unsigned(cut, ones) :
							strobe_cut_signed(cut, ones));
		}
	}
}

/*
 * The last register of a device reads as all ones: that is its value, or what
 * the bus answers where no card is. Then the row is the run's last, and its owner
 * learns why.
 */
static bool is_gone(struct strobe_run *run, const struct strobe_action *last)
{
	struct strobe_device *device = last->device;

	if (device->is_there(device))
		return false;
	if (!run->slow)
		fail_before(run, last);
	fail_outputs(run, device);
	run->last = run->head + 1;
	run->error = -ENODEV;
	return true;
}

/**
 * strobe_last_gone() - the last register of a device, a plain one, has read as
 * all ones.
 * @run: the run.
 * @action: the step.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_last_gone(struct strobe_run *run, const struct strobe_action *action)
{
	if (!is_gone(run, action))
		return;
	strobe_fail_step(run, action);
	strobe_store_step(action, 0, row_values(run));
}

/**
 * strobe_read_step() - read what is ready at once.
 * @run: the run.
 * @action: the step.
 * @now: the row's stamp.
 * @due: when the trigger was due.
 * @value: the word; of a register as it was read, nothing cut yet.
 *
 * Context: interrupts off.
 * Return: 0 or the provider's errno; -ENODEV if the card of a register is gone.
 */
int strobe_read_step(struct strobe_run *run, const struct strobe_action *action,
		     u64 now, u64 due, u64 *value)
{
	switch (action->access) {
	case STROBE_ACCESS_CALL:
		return action->read(action->channel, value);
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
		if (unlikely(action->last && *value == strobe_all_ones(action->access)) &&
		    is_gone(run, action))
			return -ENODEV;
		return 0;
	}
}

/**
 * strobe_write_step() - write an output.
 * @action: the step.
 *
 * Context: interrupts off.
 * Return: 0 or the provider's errno.
 */
int strobe_write_step(const struct strobe_action *action)
{
	if (action->access == STROBE_ACCESS_CALL)
		return action->output->write(action->output, action->value);
	strobe_access_write(action->access, action->io, action->value);
	return 0;
}

/**
 * strobe_act() - write the outputs that the program wants written.
 * @run: the run; it has such outputs.
 * @answer: the program's.
 *
 * What fails leaves its mark in the row.
 *
 * Context: interrupts off; the caller is the only producer.
 * Return: whether something has failed.
 */
bool strobe_act(struct strobe_run *run, u32 answer)
{
	const struct strobe_action *action = run->acts;
	bool failed = false;

	for (; action->todo != STROBE_DO_END; action++) {
		if (!(answer & BIT(action->act)) || !strobe_write_step(action))
			continue;
		strobe_fail_step(run, action);
		failed = true;
	}
	return failed;
}

/* A provider reads a channel of class hard. */
static __always_inline void call_step(struct strobe_run *run, const struct strobe_action *action,
				      u64 *values)
{
	u64 value = 0;

	if (unlikely(action->read(action->channel, &value))) {
		value = 0;
		fail(run, action->column);
	}
	WRITE_ONCE(values[action->column], value);
}

/* A step of the less common kinds. What fails leaves its mark in the row, a channel 0. */
static void other_step(struct strobe_run *run, const struct strobe_action *action, u64 *values,
		       u64 now, u64 due)
{
	u64 word = 0;
	int error;

	if (action->write)
		error = strobe_write_step(action);
	else
		error = strobe_read_step(run, action, now, due, &word);
	if (unlikely(error)) {
		strobe_fail_step(run, action);
		word = 0;
	}
	if (!action->write)
		strobe_store_step(action, word, values);
}

/**
 * strobe_other_steps() - the rest of a row's steps, from the first that is not
 * just a 32-bit register.
 * @run: the run.
 * @action: that step.
 * @values: the row's first value.
 * @now: the row's stamp.
 * @due: when the trigger was due.
 *
 * What providers read is common, and comes in groups: a loop of its own.
 *
 * Context: hard; the caller is the only producer.
 */
void strobe_other_steps(struct strobe_run *run, const struct strobe_action *action, u64 *values,
			u64 now, u64 due)
{
	for (;;) {
		for (; action->todo == STROBE_DO_CALL; action++)
			call_step(run, action, values);
		if (action->todo == STROBE_DO_END)
			return;
		if (action->todo == STROBE_DO_SIGNED || action->todo == STROBE_DO_FIELDS)
			action = strobe_cut_steps(run, action, values);
		else
			other_step(run, action++, values, now, due);
	}
}
