// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/strobe: what is here, for people. Read-only; programs use
 * STROBE_LIST.
 *
 *	DEVICE/description	one line
 *	DEVICE/channels/NAME	one line each: type, class, unit, description
 *	DEVICE/outputs/NAME
 *	DEVICE/events/NAME
 *	runN/{event,channels,outputs,capacity,limit,filling,head,readable,
 *	      triggers,missed,skipped,errors,elapsed_ns,state,owner}
 *	runN/columns		names of its channels, in the order of a row
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "core/internal.h"

/* ---- devices ---- */

/**
 * struct object_attr - a file for a channel, an output or an event.
 * @attr: of sysfs.
 * @channel: one of the three.
 * @output: one of the three.
 * @event: one of the three.
 */
struct object_attr {
	struct device_attribute		attr;
	const struct strobe_channel	*channel;
	const struct strobe_output	*output;
	const struct strobe_event	*event;
};

/**
 * struct device_dir - a device's directory.
 * @dev: of the driver core; its release frees all of this.
 * @groups: channels, outputs, events.
 * @group_list: those that are not empty, NULL-terminated.
 * @lists: attributes of each group, NULL-terminated.
 * @attrs: all files.
 */
struct device_dir {
	struct device			dev;
	struct attribute_group		groups[3];
	const struct attribute_group	*group_list[5];
	struct attribute		**lists;
	struct object_attr		attrs[];
};

static ssize_t object_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const char * const types[] = { "u64", "s64", "f64" };
	static const char * const classes[] = { "hard", "sleep", "async" };
	const struct object_attr *object = container_of(attr, struct object_attr, attr);
	const struct strobe_channel *channel = object->channel;
	const struct strobe_output *output = object->output;

	if (channel)
		return sysfs_emit(buf, "%s %s %s: %s\n", types[channel->type],
				  classes[channel->cost_class], channel->unit ?: "-",
				  channel->text ?: "");
	if (output)
		return sysfs_emit(buf, "%c%u %s %s: %s\n", types[output->type][0],
				  output->bits ?: 64, classes[output->cost_class],
				  output->unit ?: "-", output->text ?: "");
	return sysfs_emit(buf, "%s\n", object->event->text ?: "");
}

static ssize_t description_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct strobe_device *device = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", device->text ?: "");
}
static DEVICE_ATTR_RO(description);

static struct attribute *device_attrs[] = {
	&dev_attr_description.attr,
	NULL,
};

static const struct attribute_group device_group = { .attrs = device_attrs };

static void device_dir_release(struct device *dev)
{
	struct device_dir *dir = container_of(dev, struct device_dir, dev);

	kfree(dir->lists);
	kfree(dir);
}

/* ---- runs ---- */

#define RUN_ATTR(name_, format, value)						\
static ssize_t name_##_show(struct device *dev, struct device_attribute *attr,	\
			    char *buf)						\
{										\
	const struct strobe_run *run = dev_get_drvdata(dev);			\
										\
	return sysfs_emit(buf, format "\n", value);				\
}										\
static DEVICE_ATTR_RO(name_)

/* Rows that a reader who comes now can still read. */
static u64 rows_to_read(const struct strobe_run *run)
{
	u64 head = strobe_ring_head(&run->ring);

	return head - strobe_ring_oldest(head, run->ring.mask + 1, run->ring.limit);
}

RUN_ATTR(event, "%s", run->event_name);
RUN_ATTR(channels, "%u", run->channels);
RUN_ATTR(outputs, "%u", run->outputs);
RUN_ATTR(filling, "%s", run->ring.limit > run->ring.mask + 1 ? "circular" : "linear");
RUN_ATTR(readable, "%llu", rows_to_read(run));
RUN_ATTR(skipped, "%llu", READ_ONCE(run->ring.header->skipped));
RUN_ATTR(capacity, "%llu", run->ring.mask + 1);
RUN_ATTR(limit, "%llu", run->ring.limit);
RUN_ATTR(head, "%llu", READ_ONCE(run->ring.header->head));
RUN_ATTR(triggers, "%llu", READ_ONCE(run->ring.header->triggers));
RUN_ATTR(errors, "%llu", READ_ONCE(run->ring.header->errors));
RUN_ATTR(elapsed_ns, "%llu", strobe_run_elapsed(run));
RUN_ATTR(state, "%s", strobe_state_name(READ_ONCE(run->ring.header->state)));
RUN_ATTR(owner, "%s", run->comm);

static ssize_t missed_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct strobe_run *run = dev_get_drvdata(dev);
	struct strobe_look look = strobe_look_at(run);

	return sysfs_emit(buf, "%llu\n", strobe_look_missed(&look));
}
static DEVICE_ATTR_RO(missed);

/* A file of sysfs is a page at most; STROBE_LIST has no such bound. */
static ssize_t columns_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct strobe_run *run = dev_get_drvdata(dev);
	const size_t room = PAGE_SIZE - sizeof("and 1024 more\n");
	u32 shown = 0;
	ssize_t at = 0;

	for (u32 i = 0; i < run->step_count + run->derived; i++) {
		const struct strobe_entry *step = &run->steps[i];

		if (step->kind != STROBE_KIND_CHANNEL)
			continue;
		if (at + strlen(step->name) + 1 > room)
			return at + sysfs_emit_at(buf, at, "and %u more\n", run->channels - shown);
		at += sysfs_emit_at(buf, at, "%s\n", step->name);
		shown++;
	}
	return at;
}
static DEVICE_ATTR_RO(columns);

static struct attribute *run_attrs[] = {
	&dev_attr_event.attr,
	&dev_attr_channels.attr,
	&dev_attr_outputs.attr,
	&dev_attr_columns.attr,
	&dev_attr_filling.attr,
	&dev_attr_readable.attr,
	&dev_attr_skipped.attr,
	&dev_attr_capacity.attr,
	&dev_attr_limit.attr,
	&dev_attr_head.attr,
	&dev_attr_triggers.attr,
	&dev_attr_missed.attr,
	&dev_attr_errors.attr,
	&dev_attr_elapsed_ns.attr,
	&dev_attr_state.attr,
	&dev_attr_owner.attr,
	NULL,
};
ATTRIBUTE_GROUPS(run);

static void run_dir_release(struct device *dev)
{
	kfree(dev);
}

/* ---- the class ---- */

static const struct class strobe_class = { .name = "strobe" };

static void add_common(struct device *dev, struct device *parent, void *data,
		       const struct attribute_group **groups, void (*release)(struct device *))
{
	device_initialize(dev);
	dev->class = &strobe_class;
	dev->parent = parent;
	dev->groups = groups;
	dev->release = release;
	dev_set_drvdata(dev, data);
}

static struct object_attr *add_file(struct object_attr *object, const char *name,
				    struct attribute **list)
{
	sysfs_attr_init(&object->attr.attr);
	object->attr.attr.name = name;
	object->attr.attr.mode = 0444;
	object->attr.show = object_show;
	*list = &object->attr.attr;
	return object + 1;
}

static void fill_dir(struct device_dir *dir, struct strobe_device *device)
{
	static const char * const names[] = { "channels", "outputs", "events" };
	const u32 counts[] = { device->channel_count, device->output_count, device->event_count };
	struct object_attr *object = dir->attrs;
	struct attribute **list = dir->lists;
	unsigned int shown = 0;

	dir->group_list[shown++] = &device_group;
	for (unsigned int kind = 0; kind < ARRAY_SIZE(names); kind++) {
		if (!counts[kind])
			continue;
		dir->groups[kind].name = names[kind];
		dir->groups[kind].attrs = list;
		dir->group_list[shown++] = &dir->groups[kind];
		for (u32 i = 0; i < counts[kind]; i++) {
			const char *name;

			if (kind == 0) {
				object->channel = &device->channels[i];
				name = object->channel->name;
			} else if (kind == 1) {
				object->output = &device->outputs[i];
				name = object->output->name;
			} else {
				object->event = &device->events[i];
				name = object->event->name;
			}
			object = add_file(object, name, list++);
		}
		list++;		/* the terminating NULL */
	}
}

/**
 * strobe_sysfs_add_device() - make a device's directory.
 * @device: with its full name.
 *
 * Context: process.
 * Return: for strobe_sysfs_remove(), or an ERR_PTR().
 */
struct device *strobe_sysfs_add_device(struct strobe_device *device)
{
	size_t count = (size_t)device->channel_count + device->output_count + device->event_count;
	struct device_dir *dir;
	int ret;

	dir = kzalloc(struct_size(dir, attrs, count), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	dir->lists = kcalloc(count + ARRAY_SIZE(dir->groups), sizeof(*dir->lists), GFP_KERNEL);
	if (!dir->lists) {
		kfree(dir);
		return ERR_PTR(-ENOMEM);
	}
	fill_dir(dir, device);
	add_common(&dir->dev, device->parent, device, dir->group_list, device_dir_release);
	ret = dev_set_name(&dir->dev, "%s", device->full_name);
	if (!ret)
		ret = device_add(&dir->dev);
	if (ret) {
		put_device(&dir->dev);
		return ERR_PTR(ret);
	}
	return &dir->dev;
}

/**
 * strobe_sysfs_add_run() - make a run's directory.
 * @run: with its id and its ring.
 *
 * No uevent: runs come and go by the thousand, and nobody has to make a node.
 *
 * Context: process.
 * Return: for strobe_sysfs_remove(), or an ERR_PTR().
 */
struct device *strobe_sysfs_add_run(struct strobe_run *run)
{
	struct device *dev = kzalloc(sizeof(*dev), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	add_common(dev, NULL, run, run_groups, run_dir_release);
	dev_set_uevent_suppress(dev, true);
	ret = dev_set_name(dev, "run%u", run->id);
	if (!ret)
		ret = device_add(dev);
	if (ret) {
		put_device(dev);
		return ERR_PTR(ret);
	}
	return dev;
}

/**
 * strobe_sysfs_remove() - remove a directory.
 * @sysfs: from one of the above.
 *
 * Readers of its files are through when this returns.
 *
 * Context: process.
 */
void strobe_sysfs_remove(struct device *sysfs)
{
	device_unregister(sysfs);
}

/**
 * strobe_sysfs_init() - make the class.
 */
int strobe_sysfs_init(void)
{
	return class_register(&strobe_class);
}

/**
 * strobe_sysfs_exit() - remove the class.
 */
void strobe_sysfs_exit(void)
{
	class_unregister(&strobe_class);
}
