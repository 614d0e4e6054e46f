// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices with their channels, outputs and events. All of it under one mutex,
 * strobe_registry: nothing here is in anybody's hard path.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "core/internal.h"
#include "row/row.h"

/* Devices, runs, use counts, changes of state: see row/run.h. */
DEFINE_MUTEX(strobe_registry);
LIST_HEAD(strobe_devices);
LIST_HEAD(strobe_runs);
u64 strobe_generation;
/* Who waits for another generation: on the control device. */
DECLARE_WAIT_QUEUE_HEAD(strobe_catalogue_queue);

/**
 * strobe_catalogue_changed() - something has come or gone.
 *
 * Context: process, under strobe_registry.
 */
void strobe_catalogue_changed(void)
{
	lockdep_assert_held(&strobe_registry);
	WRITE_ONCE(strobe_generation, strobe_generation + 1);
	wake_up_interruptible_poll(&strobe_catalogue_queue, EPOLLIN | EPOLLRDNORM);
}

/* An id that was not used before. */
static u32 next_id(void)
{
	static u32 last;

	lockdep_assert_held(&strobe_registry);
	return ++last;
}

/* ---- look-up by full name ---- */

static struct strobe_device *find_device(const char *name, size_t length)
{
	struct strobe_device *device;

	lockdep_assert_held(&strobe_registry);
	list_for_each_entry(device, &strobe_devices, entry)
		if (strlen(device->full_name) == length &&
		    !strncmp(device->full_name, name, length))
			return device;
	return NULL;
}

/* Split "device.part" at its dot. */
static struct strobe_device *find_owner(const char *name, const char **part)
{
	const char *dot = strchr(name, '.');

	if (!dot)
		return NULL;
	*part = dot + 1;
	return find_device(name, dot - name);
}

/**
 * strobe_find_channel() - by its full name.
 * @name: "device.channel".
 *
 * Context: process, under strobe_registry.
 */
struct strobe_channel *strobe_find_channel(const char *name)
{
	const char *part;
	struct strobe_device *device = find_owner(name, &part);

	if (device && !device->gone)
		for (u32 i = 0; i < device->channel_count; i++)
			if (!strcmp(device->channels[i].name, part))
				return &device->channels[i];
	return NULL;
}

/**
 * strobe_find_output() - by its full name.
 * @name: "device.output".
 *
 * Context: process, under strobe_registry.
 */
struct strobe_output *strobe_find_output(const char *name)
{
	const char *part;
	struct strobe_device *device = find_owner(name, &part);

	if (device && !device->gone)
		for (u32 i = 0; i < device->output_count; i++)
			if (!strcmp(device->outputs[i].name, part))
				return &device->outputs[i];
	return NULL;
}

/**
 * strobe_find_event() - by its full name.
 * @name: "device.event"; not "timer" or "soft".
 *
 * Context: process, under strobe_registry.
 */
struct strobe_event *strobe_find_event(const char *name)
{
	const char *part;
	struct strobe_device *device = find_owner(name, &part);

	if (device && !device->gone)
		for (u32 i = 0; i < device->event_count; i++)
			if (!strcmp(device->events[i].name, part))
				return &device->events[i];
	return NULL;
}

/**
 * strobe_find_run() - by its id.
 * @id: from the catalogue.
 *
 * Context: process, under strobe_registry.
 */
struct strobe_run *strobe_find_run(u32 id)
{
	struct strobe_run *run;

	lockdep_assert_held(&strobe_registry);
	list_for_each_entry(run, &strobe_runs, entry)
		if (run->id == id)
			return run;
	return NULL;
}

/* ---- registration ---- */

/* The kernel's isalpha() knows the letters of Latin-1, too: names are ASCII. */
static bool is_letter(char c)
{
	return isascii(c) && isalpha(c);
}

static bool is_name(const char *name, size_t room)
{
	size_t length;

	if (!name || !is_letter(name[0]))
		return false;
	length = strlen(name);
	if (length >= room)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_letter(name[i]) && !isdigit(name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	return true;
}

static bool fits(const char *text, size_t room)
{
	return !text || strlen(text) < room;
}

static bool is_channel(const struct strobe_channel *channel)
{
	if (!is_name(channel->name, STROBE_PART_SIZE) ||
	    !fits(channel->unit, STROBE_UNIT_SIZE) || !fits(channel->text, STROBE_TEXT_SIZE) ||
	    channel->type > STROBE_TYPE_F64 || channel->bits > 64 ||
	    channel->cost_class > STROBE_CLASS_ASYNC)
		return false;
	if (channel->reg.access == STROBE_ACCESS_CALL)
		return channel->ops && (channel->cost_class == STROBE_CLASS_ASYNC ?
					(bool)channel->ops->begin : (bool)channel->ops->read);
	return channel->cost_class == STROBE_CLASS_HARD && !strobe_register_check(&channel->reg);
}

static bool is_output(const struct strobe_output *output)
{
	if (!is_name(output->name, STROBE_PART_SIZE) ||
	    !fits(output->unit, STROBE_UNIT_SIZE) || !fits(output->text, STROBE_TEXT_SIZE) ||
	    output->type > STROBE_TYPE_F64 || output->bits > 64 ||
	    output->cost_class > STROBE_CLASS_SLEEP)
		return false;
	if (output->reg.access == STROBE_ACCESS_CALL)
		return output->write;
	if (output->cost_class != STROBE_CLASS_HARD)
		return false;
	return (unsigned int)output->reg.access < STROBE_BUILTIN_TIME &&
	       !output->reg.shift && !strobe_register_check(&output->reg) &&
	       output->bits <= strobe_register_bits(output->reg.access);
}

static bool is_event(const struct strobe_event *event)
{
	return is_name(event->name, STROBE_PART_SIZE) && fits(event->text, STROBE_TEXT_SIZE);
}

static bool are_channels(const struct strobe_channel *channels, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		if (!is_channel(&channels[i]))
			return false;
		for (u32 j = 0; j < i; j++)
			if (!strcmp(channels[i].name, channels[j].name))
				return false;
	}
	return true;
}

static bool are_outputs(const struct strobe_output *outputs, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		if (!is_output(&outputs[i]))
			return false;
		for (u32 j = 0; j < i; j++)
			if (!strcmp(outputs[i].name, outputs[j].name))
				return false;
	}
	return true;
}

static bool are_events(const struct strobe_event *events, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		if (!is_event(&events[i]))
			return false;
		for (u32 j = 0; j < i; j++)
			if (!strcmp(events[i].name, events[j].name))
				return false;
	}
	return true;
}

/* Names of runs in sysfs. */
static bool is_run_name(const char *name)
{
	return !strncmp(name, "run", 3) && strspn(name + 3, "0123456789") == strlen(name + 3);
}

static int check_device(const struct strobe_device *device)
{
	if (!is_name(device->name, STROBE_PART_SIZE - 4) || is_run_name(device->name) ||
	    !fits(device->text, STROBE_TEXT_SIZE) ||
	    !are_channels(device->channels, device->channel_count) ||
	    !are_outputs(device->outputs, device->output_count) ||
	    !are_events(device->events, device->event_count))
		return -EINVAL;
	return 0;
}

/* "edu", or "edu2", "edu3", ... for more of them. */
static int choose_name(struct strobe_device *device)
{
	strscpy(device->full_name, device->name);
	for (unsigned int n = 2; find_device(device->full_name, strlen(device->full_name)); n++) {
		if (n > 999)
			return -EEXIST;
		snprintf(device->full_name, sizeof(device->full_name), "%s%u", device->name, n);
	}
	return 0;
}

static void adopt(struct strobe_device *device)
{
	device->id = next_id();
	for (u32 i = 0; i < device->channel_count; i++) {
		device->channels[i].device = device;
		device->channels[i].id = next_id();
		device->channels[i].users = 0;
		if (!device->channels[i].bits)
			device->channels[i].bits = device->channels[i].reg.bits ?:
				strobe_register_bits(device->channels[i].reg.access);
	}
	for (u32 i = 0; i < device->output_count; i++) {
		device->outputs[i].device = device;
		device->outputs[i].id = next_id();
		device->outputs[i].users = 0;
		if (!device->outputs[i].bits)
			device->outputs[i].bits =
				strobe_register_bits(device->outputs[i].reg.access) ?: 64;
	}
	for (u32 i = 0; i < device->event_count; i++) {
		device->events[i].device = device;
		device->events[i].id = next_id();
		device->events[i].users = 0;
		device->events[i].listening = 0;
		device->events[i].silent = false;
		INIT_LIST_HEAD(&device->events[i].listeners);
	}
}

/**
 * __strobe_device_register() - make a device known.
 * @device: filled in by the provider; see strobe.h.
 * @owner: module that is pinned while a run uses the device.
 *
 * Context: process.
 * Return: 0, -EINVAL for a name, a register or a text that is against the
 * rules, or another errno.
 */
int __strobe_device_register(struct strobe_device *device, struct module *owner)
{
	int ret;

	ret = check_device(device);
	if (ret)
		return ret;
	guard(mutex)(&strobe_registry);
	device->owner = owner;
	device->users = 0;
	device->gone = false;
	ret = choose_name(device);
	if (ret)
		return ret;
	adopt(device);
	device->sysfs = strobe_sysfs_add_device(device);
	if (IS_ERR(device->sysfs))
		return PTR_ERR(device->sysfs);
	list_add_tail(&device->entry, &strobe_devices);
	strobe_catalogue_changed();
	return 0;
}
EXPORT_SYMBOL_GPL(__strobe_device_register);

static bool run_uses(const struct strobe_run *run, const struct strobe_device *device)
{
	if (run->released)
		return false;
	if (run->event && run->event->device == device)
		return true;
	for (u32 i = 0; i < run->step_count; i++) {
		const struct strobe_target *target = &run->targets[i];

		if ((target->channel && target->channel->device == device) ||
		    (target->output && target->output->device == device))
			return true;
	}
	return false;
}

/* A run that uses it, with a reference. */
static struct strobe_run *a_user(const struct strobe_device *device)
{
	struct strobe_run *run;

	guard(mutex)(&strobe_registry);
	list_for_each_entry(run, &strobe_runs, entry) {
		if (run_uses(run, device)) {
			strobe_run_get(run);
			return run;
		}
	}
	return NULL;
}

/* Disable its events at once, so that no run has to be waited for alone. */
static void silence(struct strobe_device *device)
{
	for (u32 i = 0; i < device->event_count; i++) {
		struct strobe_event *event = &device->events[i];

		if (!event->listening || !event->ops || !event->ops->disable)
			continue;
		event->ops->disable(event);
		event->silent = true;
	}
}

/**
 * strobe_device_unregister() - a device goes away.
 * @device: from strobe_device_register().
 *
 * Every run that uses it ends as STROBE_FAILED with -ENODEV; its readers keep
 * the rows. After the return strobe does not touch the device any more: neither
 * its registers nor its memory.
 *
 * Context: process.
 */
void strobe_device_unregister(struct strobe_device *device)
{
	struct strobe_run *run;

	scoped_guard(mutex, &strobe_registry) {
		device->gone = true;
		silence(device);
		list_for_each_entry(run, &strobe_runs, entry)
			if (run_uses(run, device))
				WRITE_ONCE(run->quit, true);
		strobe_catalogue_changed();
	}
	while ((run = a_user(device))) {
		strobe_run_abort(run, -ENODEV);
		strobe_run_put(run);
	}
	strobe_sysfs_remove(device->sysfs);
	/* Only now its name is free: sysfs knows it until then. */
	scoped_guard(mutex, &strobe_registry)
		list_del(&device->entry);
}
EXPORT_SYMBOL_GPL(strobe_device_unregister);
