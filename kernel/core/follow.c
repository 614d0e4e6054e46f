// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs that follow other runs: "run:ID.row" is an event, at each row or with ":N"
 * at every Nth, and "run:ID.row", "run:ID.time" and "run:ID.CHANNEL" are channels.
 *
 * Who follows is a reader of the other run's ring, as a file is: who makes the rows
 * does not know of it. How a row triggers is in follow_rows.c. Values are those of
 * the row that has triggered; of a run that is not the event, of its newest row, the
 * same for all channels of a row.
 */
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/follow.h"
#include "ring/user.h"

#define PREFIX		"run:"
#define DIGITS		"0123456789"
/* Rough time of a value: taken from the other row, up to three times, and read. */
#define VALUE_NS	50

/* ---- channels ---- */

/* Hard: in the producer of the run that follows, so that only one looks. */
static int value_read(struct strobe_channel *channel, u64 *word)
{
	struct strobe_follow *follow = container_of(channel->device, struct strobe_follow, device);
	const struct strobe_follow_value *value =
		container_of(channel, struct strobe_follow_value, channel);

	if (!follow->triggers && follow->seen != follow->run->triggers) {
		follow->seen = follow->run->triggers;
		strobe_follow_look(follow);
	}
	if (follow->error)
		return follow->error;
	if (value->has_failed)
		return -EIO;
	*word = value->now;
	return 0;
}

static const struct strobe_channel_ops value_ops = {
	.read	= value_read,
};

/* What a part of a row is called; NULL: it has no such part. Its place to @value. */
static const struct strobe_entry *find_part(const struct strobe_run *run, const char *part,
					    struct strobe_follow_value *value)
{
	u32 column = 0;

	for (u32 i = 0; i < run->step_count + run->derived; i++) {
		const struct strobe_entry *entry = &run->steps[i];

		if (entry->kind != STROBE_KIND_CHANNEL)
			continue;
		if (!strcmp(entry->name, part)) {
			value->word = 4 + column;
			value->column = column;
			return entry;
		}
		column++;
	}
	return NULL;
}

static int describe_part(struct strobe_follow_value *value, const struct strobe_run *run,
			 const char *part)
{
	struct strobe_channel *channel = &value->channel;
	const struct strobe_entry *entry;

	value->column = -1;
	if (!strcmp(part, "row")) {
		channel->name = "row";
		channel->text = "number of the row of that run";
		value->word = 0;
		return 0;
	}
	if (!strcmp(part, "time")) {
		channel->name = "time";
		channel->unit = "ns";
		channel->text = "its stamp, on the clock of that run";
		value->word = 2;
		return 0;
	}
	entry = find_part(run, part, value);
	if (!entry)
		return -ENOENT;
	/* They stay as long as the other run does. */
	channel->name = entry->name;
	channel->unit = entry->value.unit;
	channel->text = entry->text;
	channel->type = entry->value.type;
	channel->bits = entry->value.bits;
	channel->scale = entry->value.scale;
	channel->offset = entry->value.offset;
	return 0;
}

/* ---- life ---- */

static void free_follow(struct strobe_follow *follow)
{
	struct strobe_follow_value *value, *next;

	list_for_each_entry_safe(value, next, &follow->values, entry)
		kfree(value);
	if (follow->sleeper.user) {
		strobe_wake_leave(&follow->followed->ring, &follow->sleeper);
		strobe_follow_quiet(follow);
		strobe_user_put(follow->sleeper.user);
	}
	strobe_run_put(follow->followed);
	kfree_rcu(follow, rcu);
}

/**
 * strobe_follow_free() - a run follows no others any more.
 * @run: the run; silent, and its devices are given back.
 *
 * Context: process, not under strobe_registry: this may free other runs.
 */
void strobe_follow_free(struct strobe_run *run)
{
	struct strobe_follow *follow, *next;

	list_for_each_entry_safe(follow, next, &run->follows, entry) {
		list_del(&follow->entry);
		free_follow(follow);
	}
}

static struct strobe_follow *new_follow(struct strobe_run *run, struct strobe_run *followed)
{
	struct strobe_follow *follow = kzalloc(sizeof(*follow), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!follow)
		return ERR_PTR(-ENOMEM);
	strobe_run_get(followed);
	follow->run = run;
	follow->followed = followed;
	follow->every = 1;
	follow->seen = U64_MAX;
	follow->error = -ENODATA;
	strobe_follow_init(follow);
	INIT_LIST_HEAD(&follow->values);
	snprintf(follow->device.full_name, sizeof(follow->device.full_name), PREFIX "%u",
		 followed->id);
	follow->device.owner = THIS_MODULE;
	follow->event.device = &follow->device;
	follow->event.name = "row";
	follow->event.accounting = STROBE_ACCOUNTING_EXACT;
	INIT_LIST_HEAD(&follow->event.listeners);
	follow->sleeper.user = run->ring.owner;
	ret = strobe_wake_join(&followed->ring, &follow->sleeper);
	follow->sleeper.user = ret ? NULL : strobe_user_hold(run->ring.owner);
	if (ret) {
		free_follow(follow);
		return ERR_PTR(ret);
	}
	list_add_tail(&follow->entry, &run->follows);
	return follow;
}

/* The follow of the run that this name has, and what is behind its dot. */
static struct strobe_follow *find_follow(struct strobe_run *run, const char *name,
					 const char **part)
{
	const char *digits = name + strlen(PREFIX);
	size_t length = strspn(digits, DIGITS);
	struct strobe_follow *follow;
	struct strobe_run *followed;
	char number[11];
	u32 id;

	if (!length || length >= sizeof(number) || digits[length] != '.')
		return ERR_PTR(-ENOENT);
	memcpy(number, digits, length);
	number[length] = '\0';
	if (kstrtou32(number, 10, &id))
		return ERR_PTR(-ENOENT);
	*part = digits + length + 1;
	followed = strobe_find_run(id);
	if (!followed)
		return ERR_PTR(-ENOENT);
	list_for_each_entry(follow, &run->follows, entry)
		if (follow->followed == followed)
			return follow;
	if (!strobe_run_allows(followed, true))
		return ERR_PTR(-EACCES);
	return new_follow(run, followed);
}

/**
 * strobe_is_follow() - is it a name of something of another run?
 * @name: of an event or a channel.
 */
bool strobe_is_follow(const char *name)
{
	return !strncmp(name, PREFIX, strlen(PREFIX));
}

/**
 * strobe_follow_bytes() - memory that so many names of other runs can take.
 * @names: how many.
 */
u64 strobe_follow_bytes(u32 names)
{
	return names * (sizeof(struct strobe_follow) + sizeof(struct strobe_follow_value));
}

/**
 * strobe_follow_event() - rows of another run as the event of a run.
 * @run: the run, which has nothing of others yet.
 * @name: "run:ID.row" or "run:ID.row:N".
 *
 * Context: process, under strobe_registry.
 * Return: the event, which stays until strobe_follow_free(); -ENOENT; -EACCES if
 * the caller may not read that run; -EUSERS if it has too many readers; -ENOMEM.
 */
struct strobe_event *strobe_follow_event(struct strobe_run *run, const char *name)
{
	struct strobe_follow *follow;
	const char *part;

	follow = find_follow(run, name, &part);
	if (IS_ERR(follow))
		return ERR_CAST(follow);
	if (!strncmp(part, "row:", 4) && isdigit(part[4])) {
		if (part[4 + strspn(part + 4, DIGITS)] ||
		    kstrtou32(part + 4, 10, &follow->every) || !follow->every)
			return ERR_PTR(-ENOENT);
	} else if (strcmp(part, "row")) {
		return ERR_PTR(-ENOENT);
	}
	follow->triggers = true;
	return &follow->event;
}

/**
 * strobe_follow_channel() - a value of another run as a channel of a run.
 * @run: the run, its event chosen.
 * @name: "run:ID.row", "run:ID.time" or "run:ID.CHANNEL".
 *
 * Context: process, under strobe_registry.
 * Return: as of strobe_follow_event().
 */
struct strobe_channel *strobe_follow_channel(struct strobe_run *run, const char *name)
{
	struct strobe_follow_value *value;
	struct strobe_follow *follow;
	const char *part;
	int ret;

	follow = find_follow(run, name, &part);
	if (IS_ERR(follow))
		return ERR_CAST(follow);
	list_for_each_entry(value, &follow->values, entry)
		if (!strcmp(value->channel.name, part))
			return &value->channel;
	value = kzalloc(sizeof(*value), GFP_KERNEL_ACCOUNT);
	if (!value)
		return ERR_PTR(-ENOMEM);
	ret = describe_part(value, follow->followed, part);
	if (ret) {
		kfree(value);
		return ERR_PTR(ret);
	}
	value->channel.cost_class = STROBE_CLASS_HARD;
	value->channel.cost_ns = VALUE_NS;
	value->channel.ops = &value_ops;
	value->channel.device = &follow->device;
	list_add_tail(&value->entry, &follow->values);
	return &value->channel;
}
