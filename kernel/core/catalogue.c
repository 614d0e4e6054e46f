// SPDX-License-Identifier: GPL-2.0-only
/* The catalogue that STROBE_LIST gives out: devices, and what they have, and runs. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/internal.h"
#include "ring/user.h"
#include "uabi.h"

static void describe(struct strobe_entry *entry, enum strobe_kind kind, u32 id,
		     const struct strobe_device *device, const char *part, const char *text,
		     u32 users)
{
	entry->kind = kind;
	entry->id = id;
	entry->flags = users ? STROBE_ENTRY_IN_USE : 0;
	if (part) {
		entry->parent = device->id;
		snprintf(entry->name, sizeof(entry->name), "%s.%s", device->full_name, part);
	} else {
		strscpy(entry->name, device->full_name);
	}
	strscpy(entry->text, text ?: "");
}

static void describe_value(struct strobe_value *value, u32 type, u32 cost_class,
			   const char *unit, u64 scale, u64 offset, u32 bits, u32 cost_ns)
{
	value->type = type;
	value->cost_class = cost_class;
	strscpy(value->unit, unit ?: "");
	value->scale = scale ?: STROBE_F64_ONE;
	value->offset = offset;
	value->bits = bits ?: 64;
	value->cost_ns = cost_ns;
}

/**
 * strobe_describe_channel() - its entry in the catalogue.
 * @entry: zeroed; filled in.
 * @channel: the channel.
 *
 * Context: process, under strobe_registry.
 */
void strobe_describe_channel(struct strobe_entry *entry, const struct strobe_channel *channel)
{
	describe(entry, STROBE_KIND_CHANNEL, channel->id, channel->device, channel->name,
		 channel->text, channel->users);
	describe_value(&entry->value, channel->type, channel->cost_class, channel->unit,
		       channel->scale, channel->offset, channel->bits, channel->cost_ns);
}

/**
 * strobe_accounting_flags() - what is known of what an event's source drops.
 * @event: the event; NULL: a built-in one.
 *
 * Context: process, under strobe_registry.
 * Return: one of STROBE_ENTRY_EXACT and STROBE_ENTRY_BY_TIME, or 0.
 */
u32 strobe_accounting_flags(struct strobe_event *event)
{
	enum strobe_accounting accounting = STROBE_ACCOUNTING_EXACT;

	if (event)
		accounting = event->ops && event->ops->accounting ?
			     event->ops->accounting(event) : event->accounting;
	switch (accounting) {
	case STROBE_ACCOUNTING_EXACT:
		return STROBE_ENTRY_EXACT;
	case STROBE_ACCOUNTING_BY_TIME:
		return STROBE_ENTRY_BY_TIME;
	default:
		return 0;
	}
}

/**
 * strobe_describe_output() - its entry in the catalogue.
 * @entry: zeroed; filled in.
 * @output: the output.
 *
 * Context: process, under strobe_registry.
 */
void strobe_describe_output(struct strobe_entry *entry, const struct strobe_output *output)
{
	describe(entry, STROBE_KIND_OUTPUT, output->id, output->device, output->name,
		 output->text, output->users);
	describe_value(&entry->value, output->type, output->cost_class, output->unit,
		       output->scale, output->offset, output->bits, output->cost_ns);
}

/**
 * struct catalogue - entries on their way to user space.
 * @entries: room for them.
 * @room: how many fit.
 * @count: how many there are.
 */
struct catalogue {
	struct strobe_entry	*entries;
	u32			room;
	u32			count;
};

/* The next entry, zeroed; NULL where it only counts. */
static struct strobe_entry *next_entry(struct catalogue *catalogue)
{
	u32 i = catalogue->count++;

	return i < catalogue->room ? &catalogue->entries[i] : NULL;
}

static void list_device(struct catalogue *catalogue, const struct strobe_device *device)
{
	struct strobe_entry *entry = next_entry(catalogue);

	if (entry)
		describe(entry, STROBE_KIND_DEVICE, device->id, device, NULL, device->text,
			 device->users);
	for (u32 i = 0; i < device->channel_count; i++) {
		entry = next_entry(catalogue);
		if (entry)
			strobe_describe_channel(entry, &device->channels[i]);
	}
	for (u32 i = 0; i < device->output_count; i++) {
		entry = next_entry(catalogue);
		if (entry)
			strobe_describe_output(entry, &device->outputs[i]);
	}
	for (u32 i = 0; i < device->event_count; i++) {
		struct strobe_event *event = &device->events[i];

		entry = next_entry(catalogue);
		if (!entry)
			continue;
		describe(entry, STROBE_KIND_EVENT, event->id, device, event->name,
			 event->text, event->users);
		entry->flags |= strobe_accounting_flags(event);
	}
}

/* The events that belong to no device. */
static void list_builtin_events(struct catalogue *catalogue)
{
	static const struct {
		const char	*name;
		const char	*text;
		u32		flags;
	} events[] = {
		{ "timer", "absolute grid with a period of its own for each run",
		  STROBE_ENTRY_PERIODIC },
		{ "soft", "triggered by the owner of the run" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct strobe_entry *entry = next_entry(catalogue);

		if (!entry)
			continue;
		entry->kind = STROBE_KIND_EVENT;
		entry->flags = events[i].flags | strobe_accounting_flags(NULL);
		strscpy(entry->name, events[i].name);
		strscpy(entry->text, events[i].text);
	}
}

static void list_run(struct catalogue *catalogue, const struct strobe_run *run)
{
	struct strobe_entry *entry = next_entry(catalogue);

	if (entry)
		strobe_describe_run(entry, run);
}

static int fill(struct catalogue *catalogue, u32 run_id)
{
	struct strobe_device *device;
	struct strobe_run *run;

	if (run_id) {
		run = strobe_find_run(run_id);
		if (!run)
			return -ENOENT;
		list_run(catalogue, run);
		for (u32 i = 0; i < run->step_count + run->derived; i++) {
			struct strobe_entry *entry = next_entry(catalogue);

			if (entry)
				*entry = run->steps[i];
		}
		return 0;
	}
	list_builtin_events(catalogue);
	list_for_each_entry(device, &strobe_devices, entry)
		if (!device->gone)
			list_device(catalogue, device);
	list_for_each_entry(run, &strobe_runs, entry)
		list_run(catalogue, run);
	return 0;
}

static int copy_entries(const struct strobe_list *l, const struct catalogue *catalogue)
{
	void __user *to = u64_to_user_ptr(l->buffer);
	u32 count = min(catalogue->count, catalogue->room);

	for (u32 i = 0; i < count; i++, to += l->entry_size) {
		if (copy_to_user(to, &catalogue->entries[i], sizeof(struct strobe_entry)) ||
		    clear_user(to + sizeof(struct strobe_entry),
			       l->entry_size - sizeof(struct strobe_entry)))
			return -EFAULT;
	}
	return 0;
}

/**
 * strobe_ioctl_list() - STROBE_LIST.
 * @arg: struct strobe_list.
 * @seen: generation of the whole catalogue that this file got last; see poll.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_ioctl_list(void __user *arg, u64 *seen)
{
	struct strobe_user *user __free(strobe_user) = strobe_user_get();
	struct strobe_entry *entries __free(kvfree) = NULL;
	struct catalogue catalogue = { };
	struct strobe_list l;
	u32 room;
	int ret;

	if (!user)
		return -ENOMEM;
	ret = strobe_copy_struct(&l, sizeof(l), arg, sizeof(l));
	if (ret)
		return ret;
	if (l.flags || l.entry_size < sizeof(struct strobe_entry) ||
	    l.entry_size > STROBE_SIZE_MAX || l.entry_size % 8)
		return -EINVAL;

	/* Begun anew if the catalogue has grown between the count and the copy. */
	do {
		kvfree(entries);
		entries = NULL;
		room = min(l.room, catalogue.count);
		if (room) {
			entries = kvcalloc(room, sizeof(*entries), GFP_KERNEL_ACCOUNT);
			if (!entries)
				return -ENOMEM;
		}
		catalogue = (struct catalogue){ .entries = entries, .room = room };
		guard(mutex)(&user->turn);
		scoped_guard(mutex, &strobe_registry) {
			ret = fill(&catalogue, l.run);
			l.generation = strobe_generation;
		}
		if (ret)
			return ret;
	} while (room < min(l.room, catalogue.count));
	ret = copy_entries(&l, &catalogue);
	if (ret)
		return ret;
	l.count = catalogue.count;
	ret = strobe_copy_back(arg, &l, sizeof(l));
	if (!ret && !l.run)
		WRITE_ONCE(*seen, l.generation);
	return ret;
}
