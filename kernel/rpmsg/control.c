// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe_rpmsg.ko: rpmsg endpoints as file descriptors. This file: the module,
 * the driver of channels, and the control node that each channel gets.
 *
 * A channel is bound by the name of its service, "strobe_rpmsg", or by writing
 * this driver's name into the channel's driver_override.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "rpmsg.h"

/* Nodes are called as those of the stock driver. Written as the module is loaded. */
bool strobe_rpmsg_stock_names;
module_param_named(stock_names, strobe_rpmsg_stock_names, bool, 0444);
MODULE_PARM_DESC(stock_names, "nodes are /dev/rpmsg_ctrlN and /dev/rpmsgN, as those of the stock driver, which must not be loaded then (default no)");

/* /sys/class/strobe_rpmsg. */
const struct class strobe_rpmsg_class = {
	.name = "strobe_rpmsg",
};

static dev_t first;
static DEFINE_IDA(minors);
static DEFINE_IDA(numbers);

/**
 * strobe_rpmsg_add_node() - make a device file.
 * @dev: its device; initialized, nothing but the parent and the release set.
 * @cdev: its character device; initialized.
 * @numbers: those of its kind.
 * @name: what its number is put behind.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
int strobe_rpmsg_add_node(struct device *dev, struct cdev *cdev, struct ida *numbers,
			  const char *name)
{
	int minor, number, ret;

	minor = ida_alloc_max(&minors, MINORMASK, GFP_KERNEL);
	if (minor < 0)
		return minor;
	number = ida_alloc(numbers, GFP_KERNEL);
	if (number < 0) {
		ret = number;
		goto free_minor;
	}
	dev->devt = first + minor;
	dev->id = number;
	dev->class = &strobe_rpmsg_class;
	ret = dev_set_name(dev, "%s%d", name, number);
	if (!ret)
		ret = cdev_device_add(cdev, dev);
	if (!ret)
		return 0;
	ida_free(numbers, number);
free_minor:
	ida_free(&minors, minor);
	return ret;
}

/**
 * strobe_rpmsg_remove_node() - take a device file away.
 * @dev: its device. Files of it may stay open; its name is free for the next.
 * @cdev: its character device.
 * @numbers: those of its kind.
 *
 * Context: process.
 */
void strobe_rpmsg_remove_node(struct device *dev, struct cdev *cdev, struct ida *numbers)
{
	cdev_device_del(cdev, dev);
	ida_free(numbers, dev->id);
	ida_free(&minors, dev->devt - first);
}

static int control_open(struct inode *inode, struct file *file)
{
	/* The file holds the cdev, and that the control. */
	file->private_data = container_of(inode->i_cdev, struct strobe_rpmsg_control, cdev);
	return nonseekable_open(inode, file);
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_rpmsg_control *control = file->private_data;
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case RPMSG_CREATE_EPT_FD_IOCTL:
		return strobe_rpmsg_create_fd(control, p);
	case RPMSG_CREATE_EPT_IOCTL:
		return strobe_rpmsg_create_node(control, p);
	default:
		return -ENOTTY;
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
	kfree(container_of(dev, struct strobe_rpmsg_control, dev));
}

static int control_probe(struct rpmsg_device *rpdev)
{
	struct strobe_rpmsg_control *control = kzalloc(sizeof(*control), GFP_KERNEL);
	int ret;

	if (!control)
		return -ENOMEM;
	init_rwsem(&control->present);
	spin_lock_init(&control->lock);
	INIT_LIST_HEAD(&control->endpoints);
	mutex_init(&control->making);
	INIT_LIST_HEAD(&control->nodes);
	control->rpdev = rpdev;
	device_initialize(&control->dev);
	control->dev.parent = &rpdev->dev;
	control->dev.release = control_release;
	cdev_init(&control->cdev, &control_fops);
	control->cdev.owner = THIS_MODULE;
	/* remove looks for it; it can be opened from here on. */
	dev_set_drvdata(&rpdev->dev, control);
	ret = strobe_rpmsg_add_node(&control->dev, &control->cdev, &numbers,
				    strobe_rpmsg_stock_names ? "rpmsg_ctrl" : "strobe_rpmsg");
	if (ret)
		put_device(&control->dev);
	return ret;
}

/* The channel goes. After this nothing of the transport is used any more. */
static void control_remove(struct rpmsg_device *rpdev)
{
	struct strobe_rpmsg_control *control = dev_get_drvdata(&rpdev->dev);
	struct strobe_rpmsg_endpoint *endpoint, *next;

	scoped_guard(rwsem_write, &control->present) {
		control->rpdev = NULL;
		list_for_each_entry_safe(endpoint, next, &control->endpoints, entry)
			strobe_rpmsg_endpoint_detach(endpoint);
		strobe_rpmsg_node_remove_all(control);
	}
	strobe_rpmsg_remove_node(&control->dev, &control->cdev, &numbers);
	put_device(&control->dev);
}

static const struct rpmsg_device_id control_ids[] = {
	{ .name = "strobe_rpmsg" },
	{ }
};
MODULE_DEVICE_TABLE(rpmsg, control_ids);

static struct rpmsg_driver control_driver = {
	.drv.name	= "strobe_rpmsg",
	.id_table	= control_ids,
	.probe		= control_probe,
	.remove		= control_remove,
};

/* All that this module binds, in order. */
static struct rpmsg_driver *const drivers[] = {
	&control_driver,
};

static void unregister_drivers(size_t count)
{
	while (count--)
		unregister_rpmsg_driver(drivers[count]);
}

static int register_drivers(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		int ret = register_rpmsg_driver(drivers[i]);

		if (ret) {
			unregister_drivers(i);
			return ret;
		}
	}
	return 0;
}

static int __init strobe_rpmsg_init(void)
{
	int ret;

	ret = strobe_rpmsg_endpoint_setup();
	if (ret)
		return ret;
	ret = alloc_chrdev_region(&first, 0, MINORMASK + 1, "strobe_rpmsg");
	if (ret)
		goto endpoint;
	ret = class_register(&strobe_rpmsg_class);
	if (ret)
		goto region;
	ret = register_drivers();
	if (ret)
		goto class;
	return 0;

class:
	class_unregister(&strobe_rpmsg_class);
region:
	unregister_chrdev_region(first, MINORMASK + 1);
endpoint:
	strobe_rpmsg_endpoint_cleanup();
	return ret;
}

static void __exit strobe_rpmsg_exit(void)
{
	unregister_drivers(ARRAY_SIZE(drivers));
	class_unregister(&strobe_rpmsg_class);
	unregister_chrdev_region(first, MINORMASK + 1);
	strobe_rpmsg_endpoint_cleanup();
}

module_init(strobe_rpmsg_init);
module_exit(strobe_rpmsg_exit);
MODULE_DESCRIPTION("rpmsg endpoints as file descriptors");
MODULE_LICENSE("GPL");
