// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels and outputs of a run become what a row does, in that order.
 *
 * Channels that are fields of one register are cut from one access, which is that
 * of the first of them: they are of one instant, and cost one access to the bus.
 * A register is read again after a write, since that may have changed it; for a
 * channel that a row has twice; and where its provider wants that (reread).
 */
#include <linux/cleanup.h>
#include <linux/slab.h>

#include "core/internal.h"
#include "row/access.h"

/**
 * struct making - actions that are being made.
 * @run: whose.
 * @count: how many there are so far.
 * @fresh: the first of those that no write has followed.
 * @action_of: by step: its action; of an output that the program has written none,
 *	U32_MAX, for that is in no row of its own accord.
 */
struct making {
	struct strobe_run	*run;
	u32			count;
	u32			fresh;
	u32			*action_of;
};

/*
 * The first action that can take the channel of this step. All that read its
 * register up to the last one that has it have it, too: each step takes the first
 * that does not. So it is enough to look behind that one; this is done for each
 * step, while others wait.
 */
static u32 first_without(const struct making *making, u32 step)
{
	const struct strobe_target *targets = making->run->targets;
	u32 first = making->fresh;

	for (u32 i = 0; i < step; i++)
		if (targets[i].channel == targets[step].channel)
			first = max(first, making->action_of[i] + 1);
	return first;
}

/* The action that reads the register of this step already; or the next one. */
static u32 find_action(const struct making *making, u32 step)
{
	const struct strobe_register *reg = &making->run->targets[step].channel->reg;

	if (!strobe_is_on_bus(reg->access) || reg->reread)
		return making->count;
	for (u32 n = first_without(making, step); n < making->count; n++) {
		const struct strobe_action *action = &making->run->actions[n];

		if (action->access == reg->access && action->io == reg->io)
			return n;
	}
	return making->count;
}

static u8 access_of(const struct strobe_channel *channel)
{
	switch (channel->cost_class) {
	case STROBE_CLASS_SLEEP:
		return STROBE_BUILTIN_SLEEP;
	case STROBE_CLASS_ASYNC:
		return STROBE_BUILTIN_ASYNC;
	default:
		return channel->reg.access;
	}
}

static void make_read(struct making *making, u32 step)
{
	const struct strobe_target *target = &making->run->targets[step];
	struct strobe_channel *channel = target->channel;
	u32 n = find_action(making, step);
	struct strobe_action *action = &making->run->actions[n];

	making->action_of[step] = n;
	if (n < making->count)
		return;
	making->count++;
	action->access = access_of(channel);
	action->column = target->column;
	action->device = channel->device;
	if (channel->reg.access == STROBE_ACCESS_CALL)
		action->channel = channel;
	else
		action->io = channel->reg.io;
	if (action->access == STROBE_ACCESS_CALL)
		action->read = channel->ops->read;
}

static void describe_write(struct strobe_action *action, const struct strobe_target *target)
{
	action->write = true;
	action->access = target->output->cost_class == STROBE_CLASS_SLEEP ?
			 STROBE_BUILTIN_SLEEP : target->output->reg.access;
	action->column = target->column;
	action->device = target->output->device;
	action->value = target->value;
	action->act = target->act;
	if (target->output->reg.access == STROBE_ACCESS_CALL)
		action->output = target->output;
	else
		action->io = target->output->reg.io;
}

static void make_write(struct making *making, u32 step)
{
	const struct strobe_target *target = &making->run->targets[step];

	if (target->act) {
		making->action_of[step] = U32_MAX;
		return;
	}
	describe_write(&making->run->actions[making->count], target);
	making->action_of[step] = making->count++;
	making->fresh = making->count;
}

/* What the program has done: behind the end of the others, with an end of its own. */
static void make_acts(struct making *making)
{
	struct strobe_run *run = making->run;
	struct strobe_action *action = &run->actions[making->count + 1];

	for (u32 i = 0; i < run->step_count; i++) {
		if (!run->targets[i].act)
			continue;
		if (!run->acts)
			run->acts = action;
		describe_write(action, &run->targets[i]);
		action++->todo = STROBE_DO_OTHER;
	}
	action->todo = STROBE_DO_END;
}

/* The fields of one kind that an action cuts; returns how many. */
static u32 add_cuts(const struct making *making, u32 n, bool is_signed, struct strobe_cut *cut)
{
	const struct strobe_run *run = making->run;
	u32 count = 0;

	for (u32 i = 0; i < run->step_count; i++) {
		const struct strobe_target *target = &run->targets[i];

		if (making->action_of[i] == n && target->channel->reg.is_signed == is_signed)
			cut[count++] = strobe_register_cut(&target->channel->reg, target->column);
	}
	return count;
}

/* Whether what an action reads is all that its one channel shows. */
static bool is_whole(const struct making *making, u32 n)
{
	const struct strobe_run *run = making->run;
	bool whole = false;
	u32 count = 0;

	for (u32 i = 0; i < run->step_count; i++) {
		if (making->action_of[i] != n)
			continue;
		whole = strobe_register_is_whole(&run->targets[i].channel->reg);
		count++;
	}
	return whole && count == 1;
}

static bool is_register(const struct strobe_action *action)
{
	return !action->write && strobe_register_bits(action->access);
}

static void make_cuts(struct making *making)
{
	struct strobe_cut *cut = making->run->cuts;

	for (u32 n = 0; n < making->count; n++) {
		struct strobe_action *action = &making->run->actions[n];

		if (!is_register(action) || is_whole(making, n))
			continue;
		action->cut = cut;
		action->cuts = add_cuts(making, n, false, cut);
		cut += action->cuts;
		action->signed_cuts = add_cuts(making, n, true, cut);
		cut += action->signed_cuts;
	}
}

/* Whether an action after @n reads a register of the same device. */
static bool is_read_later(const struct making *making, u32 n)
{
	const struct strobe_action *actions = making->run->actions;

	for (u32 later = making->count; --later > n;)
		if (!actions[later].write && actions[later].device == actions[n].device &&
		    strobe_is_on_bus(actions[later].access))
			return true;
	return false;
}

static enum strobe_do kind_of(const struct strobe_action *action)
{
	u32 cuts = action->cuts + action->signed_cuts;

	if (action->write)
		return STROBE_DO_OTHER;
	if (action->access == STROBE_ACCESS_CALL)
		return STROBE_DO_CALL;
	if (action->access != STROBE_ACCESS_MMIO32)
		return STROBE_DO_OTHER;
	/* All of its 32 bits, of 64. */
	if (cuts == 1 && action->signed_cuts && action->cut->left == 32 && action->cut->right == 32)
		return STROBE_DO_SIGNED;
	if (cuts)
		return STROBE_DO_FIELDS;
	return STROBE_DO_PLAIN;
}

static void finish(struct making *making)
{
	struct strobe_run *run = making->run;

	for (u32 n = 0; n < making->count; n++) {
		struct strobe_action *action = &run->actions[n];

		action->last = !action->write && strobe_is_on_bus(action->access) &&
			       action->device->is_there &&
			       (run->is_slow || !is_read_later(making, n));
		action->todo = kind_of(action);
		action->plain = action->todo == STROBE_DO_PLAIN && !action->last;
		action->plain_last = action->todo == STROBE_DO_PLAIN && action->last;
	}
	run->actions[making->count].todo = STROBE_DO_END;
	for (u32 n = 0; n + 1 < making->count; n++)
		run->actions[n].pair = run->actions[n].plain && run->actions[n + 1].plain;
}

/**
 * strobe_actions_make() - what a row of a run does.
 * @run: the run, with its targets and their number.
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int strobe_actions_make(struct strobe_run *run)
{
	u32 *action_of __free(kvfree) = kvcalloc(run->step_count, sizeof(*action_of), GFP_KERNEL);
	struct making making = { .run = run, .action_of = action_of };
	u16 channel = 0, output = run->channels;

	run->actions = kvcalloc(run->step_count + 2, sizeof(*run->actions), GFP_KERNEL_ACCOUNT);
	run->cuts = kvcalloc(run->channels, sizeof(*run->cuts), GFP_KERNEL_ACCOUNT);
	if (!action_of || !run->actions || !run->cuts)
		return -ENOMEM;
	for (u32 i = 0; i < run->step_count; i++) {
		struct strobe_target *target = &run->targets[i];

		/* In the fault bits of a row the outputs come behind the channels. */
		target->column = target->channel ? channel++ : output++;
		if (target->channel)
			make_read(&making, i);
		else
			make_write(&making, i);
	}
	make_cuts(&making);
	finish(&making);
	make_acts(&making);
	return 0;
}
