// SPDX-License-Identifier: GPL-2.0-only
/* Steps by name become the steps of a run. */
#include <linux/slab.h>

#include "core/internal.h"
#include "row/access.h"
#include "row/row.h"

static int fail_step(struct strobe_created *answer, u32 step, enum strobe_why why, int error)
{
	answer->fault_step = step;
	answer->why = why;
	return error;
}

/*
 * Whether one of the first @count steps reads @channel: a run uses it but once.
 * Of class ASYNC each step does, for all of a row may be under way at once.
 */
static bool is_used(const struct strobe_run *run, u32 count, const struct strobe_channel *channel)
{
	while (count--)
		if (run->targets[count].channel == channel)
			return true;
	return false;
}

static int compile_read(struct strobe_run *run, struct strobe_created *answer, u32 i,
			const struct strobe_step *step)
{
	struct strobe_channel *channel = strobe_find_channel(step->name);
	struct strobe_action *action = &run->actions[i];

	if (!channel)
		return fail_step(answer, i, STROBE_WHY_NAME, -ENOENT);
	if (step->value)
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	if ((unsigned int)channel->reg.access == STROBE_BUILTIN_LATE &&
	    run->source != STROBE_SOURCE_TIMER && !(run->event && run->event->has_due))
		return fail_step(answer, i, STROBE_WHY_DUE, -EOPNOTSUPP);
	if (channel->reg.access == STROBE_ACCESS_CALL)
		action->channel = channel;
	else
		strobe_register_compile(action, &channel->reg);
	if (channel->cost_class != STROBE_CLASS_HARD) {
		action->access = channel->cost_class == STROBE_CLASS_SLEEP ?
			STROBE_BUILTIN_SLEEP : STROBE_BUILTIN_ASYNC;
		run->is_slow = true;
	}
	action->plain = action->access == STROBE_ACCESS_MMIO32 && !action->field;
	action->column = run->channels;
	run->targets[i].is_used = channel->cost_class != STROBE_CLASS_ASYNC &&
				  is_used(run, i, channel);
	run->targets[i].channel = channel;
	strobe_describe_channel(&run->steps[i], channel);
	run->steps[i].flags = 0;
	run->channels++;
	answer->cost_ns += channel->cost_ns;
	return 0;
}

static int compile_write(struct strobe_run *run, struct strobe_created *answer, u32 i,
			 const struct strobe_step *step)
{
	struct strobe_output *output = strobe_find_output(step->name);
	struct strobe_action *action = &run->actions[i];

	if (!output)
		return fail_step(answer, i, STROBE_WHY_NAME, -ENOENT);
	if (output->bits < 64 && step->value >> output->bits)
		return fail_step(answer, i, STROBE_WHY_VALUE, -ERANGE);
	if (output->reg.access == STROBE_ACCESS_CALL)
		action->output = output;
	else
		strobe_register_compile(action, &output->reg);
	action->write = true;
	action->value = step->value;
	/* Behind the channels; number_outputs() adds them. */
	action->column = run->outputs++;
	run->targets[i].output = output;
	strobe_describe_output(&run->steps[i], output);
	run->steps[i].flags = 0;
	answer->cost_ns += output->cost_ns;
	return 0;
}

static int compile_step(struct strobe_run *run, struct strobe_created *answer, u32 i,
			const struct strobe_step *step)
{
	if (step->flags || strnlen(step->name, sizeof(step->name)) == sizeof(step->name))
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	switch (step->op) {
	case STROBE_OP_READ:
		return compile_read(run, answer, i, step);
	case STROBE_OP_WRITE:
		return compile_write(run, answer, i, step);
	default:
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	}
}

/* Whether a step after @i reads a register of the same device. */
static bool is_read_later(const struct strobe_run *run, u32 i, u32 count)
{
	const struct strobe_device *device = run->targets[i].channel->device;

	while (--count > i) {
		const struct strobe_channel *other = run->targets[count].channel;

		if (other && other->device == device &&
		    strobe_is_on_bus(run->actions[count].access))
			return true;
	}
	return false;
}

/* Which registers tell whether their device is still there; see struct strobe_action. */
static void mark_last(struct strobe_run *run, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		struct strobe_channel *channel = run->targets[i].channel;
		struct strobe_action *action = &run->actions[i];

		if (!channel || !channel->device->is_there || !strobe_is_on_bus(action->access))
			continue;
		action->last = run->is_slow || !is_read_later(run, i, count);
		action->plain_last = action->last && action->plain;
		action->plain &= !action->last;
	}
}

/* In the fault bits of a row the outputs come behind the channels. */
static void number_outputs(struct strobe_run *run, u32 count)
{
	for (u32 i = 0; i < count; i++)
		if (run->actions[i].write)
			run->actions[i].column += run->channels;
}

/**
 * strobe_compile() - steps by name become steps of a run.
 * @run: the run, its event chosen.
 * @steps: the steps.
 * @count: how many.
 * @answer: is told which step is wrong, and why, and what a row costs.
 *
 * Context: process, under strobe_registry.
 * Return: 0 or an errno.
 */
int strobe_compile(struct strobe_run *run, const struct strobe_step *steps, u32 count,
		   struct strobe_created *answer)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;
	int ret;

	run->actions = kvcalloc(count + 1, sizeof(*run->actions), gfp);
	run->steps = kvcalloc(count, sizeof(*run->steps), gfp);
	run->targets = kvcalloc(count, sizeof(*run->targets), gfp);
	if (!run->actions || !run->steps || !run->targets)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++) {
		ret = compile_step(run, answer, i, &steps[i]);
		if (ret)
			return ret;
	}
	number_outputs(run, count);
	mark_last(run, count);
	run->actions[count].access = STROBE_BUILTIN_END;
	run->step_count = count;
	return 0;
}
