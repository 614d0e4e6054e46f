// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control node that a channel gets: who may open it may have endpoints.
 *
 * A channel is bound by the name of its service, "strobe_rpmsg", or by writing
 * this driver's name into the channel's driver_override.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/rpmsg.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <compat/linux/rpmsg.h>

#include "rpmsg.h"

/**
 * struct control - a control node.
 * @dev: the node; its references are those of this.
 * @cdev: of the node.
 * @channel: its channel; a reference.
 */
struct control {
	struct device			dev;
	struct cdev			cdev;
	struct strobe_rpmsg_channel	*channel;
};

static struct control *to_control(struct device *dev)
{
	return container_of(dev, struct control, dev);
}

/* The channel that such a call is about. */
static int get_info(struct rpmsg_channel_info *info, const void __user *arg)
{
	struct rpmsg_endpoint_info wanted;

	if (copy_from_user(&wanted, arg, sizeof(wanted)))
		return -EFAULT;
	if (strnlen(wanted.name, sizeof(wanted.name)) == sizeof(wanted.name))
		return -EINVAL;
	*info = (struct rpmsg_channel_info){ .src = wanted.src, .dst = wanted.dst };
	memcpy(info->name, wanted.name, sizeof(info->name));
	return 0;
}

static long create_node(struct control *control, const void __user *arg)
{
	struct rpmsg_channel_info info;
	int ret = get_info(&info, arg);

	return ret ?: strobe_rpmsg_node_create(control->channel, &control->dev, &info);
}

/*
 * A channel of the host's own. Any driver of the kernel may bind to it, by its
 * name: so that is not for everybody who may have endpoints.
 */
static long create_channel(struct control *control, const void __user *arg)
{
	struct rpmsg_channel_info info;
	int ret = get_info(&info, arg);

	if (ret)
		return ret;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	guard(rwsem_read)(&control->channel->present);
	if (!control->channel->rpdev)
		return -ENETRESET;
	return rpmsg_create_channel(control->channel->rpdev, &info) ? 0 : -ENXIO;
}

static long release_channel(struct control *control, const void __user *arg)
{
	struct rpmsg_channel_info info;
	struct rpmsg_device *rpdev;
	struct device *found;
	bool is_control;
	int ret = get_info(&info, arg);

	if (ret)
		return ret;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	guard(rwsem_read)(&control->channel->present);
	rpdev = control->channel->rpdev;
	if (!rpdev)
		return -ENETRESET;
	found = rpmsg_find_device(rpdev->dev.parent, &info);
	if (!found)
		return -EINVAL;
	/* That would wait for this call, which would wait for that. */
	is_control = found->driver == &strobe_rpmsg_control_driver.drv;
	put_device(found);
	return is_control ? -EBUSY : rpmsg_release_channel(rpdev, &info);
}

static int control_open(struct inode *inode, struct file *file)
{
	/* The file holds the cdev, and that the control. */
	file->private_data = container_of(inode->i_cdev, struct control, cdev);
	return nonseekable_open(inode, file);
}

/* By itself, so that making a file does not set up what these have on the stack. */
static noinline_for_stack long stock_ioctl(struct control *control, unsigned int cmd,
					   const void __user *arg)
{
	switch (cmd) {
	case RPMSG_CREATE_EPT_IOCTL:
		return create_node(control, arg);
	case RPMSG_CREATE_DEV_IOCTL:
		return create_channel(control, arg);
	case RPMSG_RELEASE_DEV_IOCTL:
		return release_channel(control, arg);
	default:
		return -ENOTTY;
	}
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct control *control = file->private_data;
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case STROBE_RPMSG_CREATE:
		return strobe_rpmsg_create(control->channel, p);
	case RPMSG_CREATE_EPT_FD_IOCTL:
		return strobe_rpmsg_create_of_series(control->channel, p);
	default:
		return stock_ioctl(control, cmd, p);
	}
}

static const struct file_operations control_fops = {
	.owner		= THIS_MODULE,
	.open		= control_open,
	.unlocked_ioctl	= control_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static void control_release(struct device *dev)
{
	struct control *control = to_control(dev);

	strobe_rpmsg_channel_put(control->channel);
	kfree(control);
}

static int control_probe(struct rpmsg_device *rpdev)
{
	struct control *control = kzalloc(sizeof(*control), GFP_KERNEL);
	int ret;

	if (!control)
		return -ENOMEM;
	control->channel = strobe_rpmsg_channel_new(rpdev);
	if (!control->channel) {
		kfree(control);
		return -ENOMEM;
	}
	device_initialize(&control->dev);
	control->dev.parent = &rpdev->dev;
	control->dev.release = control_release;
	cdev_init(&control->cdev, &control_fops);
	control->cdev.owner = THIS_MODULE;
	/* remove looks for it; it can be opened from here on. */
	dev_set_drvdata(&rpdev->dev, control);
	ret = strobe_rpmsg_nodes_add(&control->dev, &control->cdev, STROBE_RPMSG_NODE_CONTROL);
	if (ret)
		put_device(&control->dev);
	return ret;
}

/* The channel goes. After this nothing of the transport is used any more. */
static void control_remove(struct rpmsg_device *rpdev)
{
	struct control *control = dev_get_drvdata(&rpdev->dev);

	scoped_guard(rwsem_write, &control->channel->present) {
		control->channel->rpdev = NULL;
		strobe_rpmsg_endpoint_detach_all(control->channel);
		strobe_rpmsg_node_remove_all(control->channel);
	}
	strobe_rpmsg_nodes_remove(&control->dev, &control->cdev, STROBE_RPMSG_NODE_CONTROL);
	put_device(&control->dev);
}

static const struct rpmsg_device_id control_ids[] = {
	{ .name = "strobe_rpmsg" },
	{ }
};
MODULE_DEVICE_TABLE(rpmsg, control_ids);

struct rpmsg_driver strobe_rpmsg_control_driver = {
	.drv.name	= "strobe_rpmsg",
	.id_table	= control_ids,
	.probe		= control_probe,
	.remove		= control_remove,
};
