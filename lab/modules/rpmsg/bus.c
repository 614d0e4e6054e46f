// SPDX-License-Identifier: GPL-2.0-only
/*
 * An rpmsg transport whose remote processor is a program in the guest, or
 * nobody: then every message comes back to who has sent it.
 *
 * Addresses are flat. A message to address D goes to the endpoint that has D;
 * if none has, and D is REMOTE_FIRST or above, and a program has
 * /dev/lab_remote open, to that program; else back to its sender.
 *
 * /dev/lab_remote takes and gives one message a call: struct remote_head, then
 * the bytes. A message written is from the remote's address src to the host's
 * dst; one read is what the host has sent.
 *
 * Parameters, in /sys/module/lab_rpmsg/parameters:
 *
 *   hard     0: callbacks run in process context, under a mutex, as those of
 *            virtio. 1: in hard interrupt context, on PREEMPT_RT too
 *   channels what there is on the bus: "rpmsg_ctrl" and "strobe_rpmsg" are bound
 *            to the drivers of these names, any other name is a service that
 *            the remote announces, at address REMOTE_FIRST + its index; so is
 *            one of these two with an '@' in front
 *   plugged  0 pulls the remote, 1 plugs it in
 *   stalled  1: the remote takes no message: who sends waits
 *   asks     1: who may not wait is told -EBUSY, since the remote has to be asked
 *            for a buffer; 2: and it gives none to who may wait, either (-EAGAIN),
 *            as with glink
 *   shut     1: the remote agrees to no endpoint: who makes one waits
 *   drop     every so manieth message to the host is lost; 0: none
 *   dropped  how many were, and
 *   dropped_bytes  how long they were together
 *   look     so many bytes of what an endpoint's maker has given it, behind the
 *            first 1024, are looked at as it is made; 0: none. For a maker that
 *            is known to have so many
 *   unclean  how many of those were not zero, so far
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "lab_rpmsg.h"
#include "rpmsg_internal.h"

/* What a transport is given to send: const in the headers of 7.2, not yet in those of 6.12. */
#if KERNEL_VERSION(7, 2, 0) > LINUX_VERSION_CODE
#define SENT void
#else
#define SENT const void
#endif

#define CHANNELS_MAX	8

static struct platform_device *processor;
/* Written by plug() and pull(), which parameters serialise. */
static struct rpmsg_device *devices[CHANNELS_MAX];

static char *channels = "rpmsg_ctrl,strobe_rpmsg";
module_param(channels, charp, 0444);
MODULE_PARM_DESC(channels, "drivers to bind, and services that the remote announces");

static bool shut;

static uint asks;
module_param(asks, uint, 0644);
MODULE_PARM_DESC(asks, "the remote is asked for a buffer: 1, and gives one; 2, and does not");

static int try_send(struct rpmsg_endpoint *ept, const void *data, int length, u32 dst)
{
	struct lab_endpoint *lab;
	int ret;

	if (length > MTU)
		return -EMSGSIZE;
	if (!READ_ONCE(lab_remote_plugged))
		return -EPIPE;
	if (READ_ONCE(lab_remote_stalled))
		return -EAGAIN;
	lab = lab_endpoint_find(dst, NULL);
	if (!lab && lab_remote_is_at(dst)) {
		ret = lab_remote_take(ept->addr, dst, data, length);
		if (ret != -ENXIO)
			return ret;
	}
	if (!lab) {
		kref_get(&ept->refcount);
		lab = to_lab(ept);
	}
	return lab_endpoint_deliver(lab, ept->addr, data, length);
}

static int lab_trysendto(struct rpmsg_endpoint *ept, SENT *data, int length, u32 dst)
{
	if (READ_ONCE(asks))
		return -EBUSY;
	return try_send(ept, data, length, dst);
}

/* As virtio's, which does not let go of who has got a signal. */
static int lab_sendto(struct rpmsg_endpoint *ept, SENT *data, int length, u32 dst)
{
	int ret;

	if (READ_ONCE(asks) > 1)
		return -EAGAIN;
	while ((ret = try_send(ept, data, length, dst)) == -EAGAIN)
		wait_event(lab_remote_room,
			   lab_remote_has_room() || !READ_ONCE(lab_remote_plugged));
	return ret;
}

static int lab_trysend(struct rpmsg_endpoint *ept, SENT *data, int length)
{
	return lab_trysendto(ept, data, length, ept->rpdev->dst);
}

static int lab_send(struct rpmsg_endpoint *ept, SENT *data, int length)
{
	return lab_sendto(ept, data, length, ept->rpdev->dst);
}

static __poll_t lab_poll(struct rpmsg_endpoint *ept, struct file *file, poll_table *wait)
{
	poll_wait(file, &lab_remote_room, wait);
	return lab_remote_has_room() ? EPOLLOUT | EPOLLWRNORM : 0;
}

/* The other end is told, as if it were the remote's word: an endpoint, or the sender itself. */
static int lab_set_flow_control(struct rpmsg_endpoint *ept, bool pause, u32 dst)
{
	struct lab_endpoint *lab = lab_endpoint_find(dst, ept);

	scoped_guard(mutex, &lab->ept.cb_lock)
		if (lab->ept.flow_cb)
			lab->ept.flow_cb(lab->ept.rpdev, lab->ept.priv, pause);
	lab_endpoint_put(lab);
	return 0;
}

static ssize_t lab_get_mtu(struct rpmsg_endpoint *ept)
{
	return MTU;
}

static void lab_destroy_ept(struct rpmsg_endpoint *ept)
{
	lab_endpoint_end(to_lab(ept));
}

static const struct rpmsg_endpoint_ops endpoint_ops = {
	.destroy_ept		= lab_destroy_ept,
	.send			= lab_send,
	.sendto			= lab_sendto,
	.trysend		= lab_trysend,
	.trysendto		= lab_trysendto,
	.poll			= lab_poll,
	.set_flow_control	= lab_set_flow_control,
	.get_mtu		= lab_get_mtu,
};

static struct rpmsg_endpoint *lab_create_ept(struct rpmsg_device *rpdev, rpmsg_rx_cb_t cb,
					     void *priv, struct rpmsg_channel_info info)
{
	struct lab_endpoint *lab;

	if (wait_event_interruptible(lab_remote_room,
				     !READ_ONCE(shut) || !READ_ONCE(lab_remote_plugged)) ||
	    !READ_ONCE(lab_remote_plugged))
		return NULL;
	lab = lab_endpoint_new(rpdev, cb, priv, info.src);
	if (!lab)
		return NULL;
	lab->ept.ops = &endpoint_ops;
	return &lab->ept;
}

static const struct rpmsg_device_ops device_ops = {
	.create_ept = lab_create_ept,
};

static void device_release(struct device *dev)
{
	kfree(container_of(dev, struct rpmsg_device, dev));
}

static bool is_driver(const char *name)
{
	return !strcmp(name, "rpmsg_ctrl") || !strcmp(name, "strobe_rpmsg");
}

static int add_channel(unsigned int index, const char *name)
{
	struct rpmsg_device *device = kzalloc(sizeof(*device), GFP_KERNEL);
	int ret;

	if (!device)
		return -ENOMEM;
	device->ops = &device_ops;
	device->little_endian = true;
	device->dev.parent = &processor->dev;
	device->dev.release = device_release;
	if (is_driver(name)) {
		device->src = index;
		device->dst = RPMSG_ADDR_ANY;
		ret = rpmsg_register_device_override(device, name);
	} else {
		device->src = RPMSG_ADDR_ANY;
		device->dst = REMOTE_FIRST + index;
		strscpy(device->id.name, name + (*name == '@'), sizeof(device->id.name));
		ret = rpmsg_register_device(device);
	}
	/* What was registered in vain is given back there. */
	if (!ret)
		devices[index] = device;
	return ret;
}

static void pull(void)
{
	WRITE_ONCE(lab_remote_plugged, false);
	/* Who waits to send learns that it is in vain: drivers wait for them. */
	wake_up_all(&lab_remote_room);
	for (unsigned int i = 0; i < CHANNELS_MAX; i++) {
		if (devices[i])
			device_unregister(&devices[i]->dev);
		devices[i] = NULL;
	}
}

static int plug(void)
{
	char *names __free(kfree) = kstrdup(channels, GFP_KERNEL);
	char *rest = names, *name;
	unsigned int index = 0;
	int ret = 0;

	if (!names)
		return -ENOMEM;
	WRITE_ONCE(lab_remote_plugged, true);
	while (!ret && (name = strsep(&rest, ",")) && *name)
		ret = index < CHANNELS_MAX ? add_channel(index++, name) : -E2BIG;
	if (ret)
		pull();
	return ret;
}

static int plugged_set(const char *text, const struct kernel_param *param)
{
	bool on;
	int ret = kstrtobool(text, &on);

	if (ret)
		return ret;
	/* As the module is loaded: lab_rpmsg_init() looks at it. */
	if (!processor) {
		lab_remote_plugged = on;
		return 0;
	}
	if (on == lab_remote_plugged)
		return 0;
	if (on)
		return plug();
	pull();
	return 0;
}

static const struct kernel_param_ops plugged_ops = {
	.set = plugged_set,
	.get = param_get_bool,
};
module_param_cb(plugged, &plugged_ops, &lab_remote_plugged, 0644);
MODULE_PARM_DESC(plugged, "the remote is there");

/* Who waits looks again. */
static int set_and_wake(const char *text, const struct kernel_param *param)
{
	int ret = param_set_bool(text, param);

	wake_up_all(&lab_remote_room);
	return ret;
}

static const struct kernel_param_ops waking_ops = {
	.set = set_and_wake,
	.get = param_get_bool,
};
module_param_cb(stalled, &waking_ops, &lab_remote_stalled, 0644);
MODULE_PARM_DESC(stalled, "the remote takes no messages");
module_param_cb(shut, &waking_ops, &shut, 0644);
MODULE_PARM_DESC(shut, "the remote agrees to no endpoint");

static int __init lab_rpmsg_init(void)
{
	int ret;

	processor = platform_device_register_simple("lab_rpmsg", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(processor))
		return PTR_ERR(processor);
	ret = lab_remote_init();
	if (ret)
		goto unregister;
	ret = lab_remote_plugged ? plug() : 0;
	if (!ret)
		return 0;
	lab_remote_exit();
unregister:
	platform_device_unregister(processor);
	return ret;
}

static void __exit lab_rpmsg_exit(void)
{
	pull();
	lab_remote_exit();
	platform_device_unregister(processor);
	lab_endpoint_exit();
}

module_init(lab_rpmsg_init);
module_exit(lab_rpmsg_exit);
MODULE_DESCRIPTION("An rpmsg transport with a program for a remote processor");
MODULE_LICENSE("GPL");
