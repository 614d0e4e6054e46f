// SPDX-License-Identifier: GPL-2.0-only
/* The devices of a run: taken when it is made, given back when it has ended. */
#include <linux/module.h>

#include "core/internal.h"

static void unuse_channel(struct strobe_channel *channel)
{
	struct strobe_device *device = channel->device;

	if (channel->ops && channel->ops->unlock)
		channel->ops->unlock(channel);
	if (channel->ops && channel->ops->unprepare)
		channel->ops->unprepare(channel);
	channel->users--;
	device->users--;
	module_put(device->owner);
}

static int use_channel(struct strobe_channel *channel, u32 *why)
{
	struct strobe_device *device = channel->device;
	int ret = 0;

	if (!try_module_get(device->owner))
		return -ENODEV;
	if (channel->ops && channel->ops->prepare)
		ret = channel->ops->prepare(channel);
	if (!ret && channel->ops && channel->ops->lock) {
		ret = channel->ops->lock(channel);
		if (ret && channel->ops->unprepare)
			channel->ops->unprepare(channel);
	}
	if (ret) {
		*why = ret == -EBUSY ? STROBE_WHY_BUSY : STROBE_WHY_PROVIDER;
		module_put(device->owner);
		return ret;
	}
	channel->users++;
	device->users++;
	return 0;
}

static void unuse_output(struct strobe_output *output)
{
	if (output->ops && output->ops->unprepare)
		output->ops->unprepare(output);
	output->users--;
	output->device->users--;
	module_put(output->device->owner);
}

static int use_output(struct strobe_output *output, u32 *why)
{
	struct strobe_device *device = output->device;
	int ret = 0;

	if (!try_module_get(device->owner))
		return -ENODEV;
	if (output->ops && output->ops->prepare)
		ret = output->ops->prepare(output);
	if (ret) {
		*why = ret == -EBUSY ? STROBE_WHY_BUSY : STROBE_WHY_PROVIDER;
		module_put(device->owner);
		return ret;
	}
	output->users++;
	device->users++;
	return 0;
}

static void unuse_target(const struct strobe_target *target)
{
	if (target->channel && !target->is_used)
		unuse_channel(target->channel);
	if (target->output)
		unuse_output(target->output);
}

static int use_target(const struct strobe_target *target, u32 *why)
{
	if (target->channel)
		return target->is_used ? 0 : use_channel(target->channel, why);
	return use_output(target->output, why);
}

static void unuse_event(struct strobe_event *event)
{
	event->users--;
	event->device->users--;
	module_put(event->device->owner);
}

/**
 * strobe_run_unuse() - give all devices back.
 * @run: the run; its producer is silent.
 *
 * Context: process, under strobe_registry.
 */
void strobe_run_unuse(struct strobe_run *run)
{
	lockdep_assert_held(&strobe_registry);
	if (run->released)
		return;
	for (u32 i = run->step_count; i--;)
		unuse_target(&run->targets[i]);
	if (run->event)
		unuse_event(run->event);
	run->event = NULL;
	WRITE_ONCE(run->released, true);
}

/**
 * strobe_run_use() - take the devices of a run's event and steps.
 * @run: the run.
 * @answer: is told which step is refused, and why.
 *
 * Context: process, under strobe_registry.
 * Return: 0, or an errno and nothing taken.
 */
int strobe_run_use(struct strobe_run *run, struct strobe_created *answer)
{
	int ret;
	u32 i;

	if (run->event) {
		if (!try_module_get(run->event->device->owner))
			return -ENODEV;
		run->event->users++;
		run->event->device->users++;
	}
	for (i = 0; i < run->step_count; i++) {
		ret = use_target(&run->targets[i], &answer->why);
		if (ret) {
			answer->fault_step = i;
			goto undo;
		}
		/* What it is may depend on how it is set up now. */
		if (run->targets[i].channel)
			strobe_describe_channel(&run->steps[i], run->targets[i].channel);
		else
			strobe_describe_output(&run->steps[i], run->targets[i].output);
		run->steps[i].flags = 0;
	}
	return 0;

undo:
	while (i--)
		unuse_target(&run->targets[i]);
	if (run->event)
		unuse_event(run->event);
	return ret;
}
