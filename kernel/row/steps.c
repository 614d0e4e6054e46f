// SPDX-License-Identifier: GPL-2.0-only
/* Steps that are not just a 32-bit register, and what a card leaves that has gone. */
#include <linux/smp.h>

#include "row/access.h"
#include "row/row.h"
#include "row/slow.h"

static struct strobe_device *device_of(const struct strobe_run *run,
				       const struct strobe_action *action)
{
	const struct strobe_target *target = &run->targets[action - run->actions];

	return action->write ? target->output->device : target->channel->device;
}

/* What has failed in the row that is being made. */
static void fail(struct strobe_run *run, const struct strobe_action *action)
{
	if (run->slow)
		strobe_slow_fail(run->slow, action->column);
	else
		strobe_mark_fault(&run->status, run->faults, action->column);
}

/* What was written to a device that has gone has not arrived, or may not have. */
static void fail_outputs(struct strobe_run *run, const struct strobe_device *device)
{
	const struct strobe_action *action;

	for (action = run->actions; action->access != STROBE_BUILTIN_END; action++)
		if (action->write && device_of(run, action) == device)
			fail(run, action);
}

/*
 * Registers that the row has read before the one by which its device was found
 * gone may have gone with it. A slow run has asked at each of them.
 */
static void fail_before(struct strobe_run *run, const struct strobe_action *last)
{
	u64 *row = run->ring.slots + (run->head & run->ring.mask) * run->ring.stride;
	const struct strobe_action *action;

	for (action = run->actions; action < last; action++) {
		u64 *value = &row[4 + action->column];

		if (action->write || !strobe_is_on_bus(action->access) ||
		    device_of(run, action) != device_of(run, last) ||
		    READ_ONCE(*value) != strobe_cut_field(action, action->value))
			continue;
		WRITE_ONCE(*value, 0);
		fail(run, action);
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
	fail_outputs(run, device);
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
	fail(run, action);
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
 * Return: 0 or the provider's errno.
 */
int strobe_write_step(const struct strobe_action *action)
{
	if (action->access == STROBE_ACCESS_CALL)
		return action->output->write(action->output, action->value);
	strobe_access_write(action->access, action->io, action->value);
	return 0;
}

/*
 * One step that is not just a 32-bit register. What fails leaves its mark in the
 * row, and a channel 0. Returns words stored: 0 for an output.
 */
static u32 other_step(struct strobe_run *run, const struct strobe_action *action, u64 *value,
		      u64 now, u64 due)
{
	u64 word = 0;

	if (action->write) {
		if (unlikely(strobe_write_step(action)))
			fail(run, action);
		return 0;
	}
	if (unlikely(strobe_read_step(run, action, now, due, &word))) {
		word = 0;
		fail(run, action);
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
