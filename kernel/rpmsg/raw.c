// SPDX-License-Identifier: GPL-2.0-only
/*
 * The default endpoint of a channel as a node, as the stock driver has it: the
 * endpoint is there as long as the channel, with the channel's own address, and
 * nobody can destroy it.
 *
 * With stock_names a channel is bound by the name of its service, "rpmsg-raw" or
 * "rpmsg_chrdev"; else, so that the stock driver may be there too, by writing
 * this driver's name into its driver_override.
 */
#include <linux/lockdep.h>
#include <linux/module.h>

#include "rpmsg.h"

/*
 * That of a control node's channel is held while that call, on it, takes such a
 * channel away: to lockdep they are two things.
 */
static struct lock_class_key present_key;

/* The core has destroyed its endpoint. */
static void put_endpoint(void *endpoint)
{
	strobe_rpmsg_endpoint_put(endpoint);
}

static void raw_remove(struct rpmsg_device *rpdev)
{
	struct strobe_rpmsg_channel *channel = dev_get_drvdata(&rpdev->dev);

	scoped_guard(rwsem_write, &channel->present) {
		channel->rpdev = NULL;
		strobe_rpmsg_endpoint_detach_all(channel);
		strobe_rpmsg_node_remove_all(channel);
	}
	strobe_rpmsg_channel_put(channel);
}

static int add_node(struct strobe_rpmsg_channel *channel)
{
	struct rpmsg_device *rpdev = channel->rpdev;
	struct rpmsg_channel_info info = { .src = rpdev->src, .dst = rpdev->dst };
	struct strobe_rpmsg_endpoint *endpoint;
	int ret;

	strscpy(info.name, rpdev->id.name, sizeof(info.name));
	endpoint = strobe_rpmsg_endpoint_new(channel, &info);
	if (!endpoint)
		return -ENOMEM;
	/* Runs when the driver has let go of the channel, and the core of its endpoint. */
	ret = devm_add_action_or_reset(&rpdev->dev, put_endpoint, endpoint);
	if (ret)
		return ret;
	strobe_rpmsg_endpoint_adopt(endpoint, rpdev->ept);
	return strobe_rpmsg_node_create_default(channel, &rpdev->dev, endpoint);
}

static int raw_probe(struct rpmsg_device *rpdev)
{
	struct strobe_rpmsg_channel *channel = strobe_rpmsg_channel_new(rpdev);
	int ret;

	if (!channel)
		return -ENOMEM;
	lockdep_set_class(&channel->present, &present_key);
	dev_set_drvdata(&rpdev->dev, channel);
	ret = add_node(channel);
	if (ret)
		raw_remove(rpdev);
	return ret;
}

static const struct rpmsg_device_id raw_ids[] = {
	{ .name = "rpmsg-raw" },
	{ .name = "rpmsg_chrdev" },
	{ }
};

struct rpmsg_driver strobe_rpmsg_raw_driver = {
	.drv.name	= "strobe_rpmsg_raw",
	.probe		= raw_probe,
	.remove		= raw_remove,
	.callback	= strobe_rpmsg_endpoint_on_default,
};

/**
 * strobe_rpmsg_raw_setup() - as the module is loaded, before its drivers.
 */
void __init strobe_rpmsg_raw_setup(void)
{
	if (strobe_rpmsg_stock_names)
		strobe_rpmsg_raw_driver.id_table = raw_ids;
}
