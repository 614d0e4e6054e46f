// SPDX-License-Identifier: GPL-2.0-only
/* Steps by name become channels and outputs, which a run will use. */
#include <linux/slab.h>

#include "computer/computer.h"
#include "core/internal.h"

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
	struct strobe_channel *channel;

	channel = strobe_is_follow(step->name) ? strobe_follow_channel(run, step->name) :
						 strobe_find_channel(step->name);
	if (IS_ERR(channel))
		return fail_step(answer, i, STROBE_WHY_NAME, PTR_ERR(channel));
	if (!channel)
		return fail_step(answer, i, STROBE_WHY_NAME, -ENOENT);
	if (step->value)
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	if ((unsigned int)channel->reg.access == STROBE_BUILTIN_LATE &&
	    run->source != STROBE_SOURCE_TIMER && !(run->event && run->event->has_due))
		return fail_step(answer, i, STROBE_WHY_DUE, -EOPNOTSUPP);
	run->is_slow |= channel->cost_class != STROBE_CLASS_HARD;
	run->targets[i].is_used = channel->cost_class != STROBE_CLASS_ASYNC &&
				  is_used(run, i, channel);
	run->targets[i].channel = channel;
	strobe_describe_channel(&run->steps[i], channel);
	run->steps[i].flags = 0;
	run->channels++;
	answer->cost_ns += channel->cost_ns;
	return 0;
}

/* Of a signed output the bits above its own are as the highest of those. */
static bool fits(const struct strobe_output *output, u64 value)
{
	if (output->bits >= 64 || output->type == STROBE_TYPE_F64)
		return true;
	if (output->type == STROBE_TYPE_S64)
		return sign_extend64(value, output->bits - 1) == (s64)value;
	return !(value >> output->bits);
}

static int compile_write(struct strobe_run *run, struct strobe_created *answer, u32 i,
			 const struct strobe_step *step)
{
	struct strobe_output *output = strobe_find_output(step->name);

	if (!output)
		return fail_step(answer, i, STROBE_WHY_NAME, -ENOENT);
	if (!fits(output, step->value))
		return fail_step(answer, i, STROBE_WHY_VALUE, -ERANGE);
	run->is_slow |= output->cost_class != STROBE_CLASS_HARD;
	run->targets[i].output = output;
	run->targets[i].value = step->value;
	strobe_describe_output(&run->steps[i], output);
	run->steps[i].flags = 0;
	run->outputs++;
	answer->cost_ns += output->cost_ns;
	return 0;
}

/* An output that the program has written: its answer has bit 0 for something else. */
static int compile_act(struct strobe_run *run, struct strobe_created *answer, u32 i,
		       const struct strobe_step *step, bool has_program)
{
	if (!has_program || !step->flags || step->flags > 31)
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	run->targets[i].act = step->flags;
	return compile_write(run, answer, i, step);
}

static int compile_step(struct strobe_run *run, struct strobe_created *answer, u32 i,
			const struct strobe_step *step, bool has_program)
{
	bool is_act = step->op == STROBE_OP_ACT;

	if ((step->flags && !is_act) || (i && run->targets[i - 1].act && !is_act) ||
	    strnlen(step->name, sizeof(step->name)) == sizeof(step->name))
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	switch (step->op) {
	case STROBE_OP_READ:
		return compile_read(run, answer, i, step);
	case STROBE_OP_WRITE:
		return compile_write(run, answer, i, step);
	case STROBE_OP_ACT:
		return compile_act(run, answer, i, step, has_program);
	default:
		return fail_step(answer, i, STROBE_WHY_STEP, -EINVAL);
	}
}

static void describe_derived(struct strobe_entry *entry, const struct strobe_derived *derived,
			     bool is_tunable)
{
	entry->flags = is_tunable ? STROBE_ENTRY_TUNABLE : 0;
	entry->kind = STROBE_KIND_CHANNEL;
	entry->value = derived->value;
	strscpy(entry->name, derived->name);
	strscpy(entry->text, "computed from the other values of the row");
}

/**
 * strobe_compile() - steps by name become steps of a run.
 * @run: the run, its event chosen.
 * @steps: the steps.
 * @count: how many.
 * @given: the program, which may be empty.
 * @answer: is told which step is wrong, and why, and what a row costs.
 *
 * Context: process, under strobe_registry.
 * Return: 0 or an errno.
 */
int strobe_compile(struct strobe_run *run, const struct strobe_step *steps, u32 count,
		   const struct strobe_given *given, struct strobe_created *answer)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;
	int ret;

	run->steps = kvcalloc(count + run->derived, sizeof(*run->steps), gfp);
	run->targets = kvcalloc(count, sizeof(*run->targets), gfp);
	if (!run->steps || !run->targets)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++) {
		ret = compile_step(run, answer, i, &steps[i], given->about.size);
		if (ret)
			return ret;
	}
	for (u32 i = 0; i < run->derived; i++)
		describe_derived(&run->steps[count + i], &given->derived[i],
				 i < given->about.tunables);
	run->channels += run->derived;
	run->step_count = count;
	return strobe_actions_make(run);
}
