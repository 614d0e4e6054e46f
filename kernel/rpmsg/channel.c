// SPDX-License-Identifier: GPL-2.0-only
/*
 * A channel as its endpoints know it: it outlives the channel of the bus as long
 * as somebody holds it, and then says that there is none.
 */
#include <linux/slab.h>

#include "rpmsg.h"

/* Whether a message without a destination goes nowhere: virtio's have it in their head. */
static bool is_addressed(const struct rpmsg_device *rpdev)
{
	const struct device *parent = rpdev->dev.parent;

	return parent && parent->bus && !strcmp(parent->bus->name, "virtio");
}

/**
 * strobe_rpmsg_channel_new() - a channel that a driver is bound to.
 * @rpdev: the channel of the bus.
 *
 * Context: process.
 * Return: the channel, with a reference, or NULL without memory.
 */
struct strobe_rpmsg_channel *strobe_rpmsg_channel_new(struct rpmsg_device *rpdev)
{
	struct strobe_rpmsg_channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL);

	if (!channel)
		return NULL;
	refcount_set(&channel->references, 1);
	init_rwsem(&channel->present);
	channel->rpdev = rpdev;
	channel->is_addressed = is_addressed(rpdev);
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->endpoints);
	return channel;
}

/**
 * strobe_rpmsg_channel_put() - give a reference back; the last one frees it.
 * @channel: the channel.
 *
 * Context: process.
 */
void strobe_rpmsg_channel_put(struct strobe_rpmsg_channel *channel)
{
	if (refcount_dec_and_test(&channel->references))
		kfree(channel);
}
