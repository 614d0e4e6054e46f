// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device files of strobe_rpmsg.ko: their class, names and numbers.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/moduleparam.h>

#include "rpmsg.h"

/* Nodes are called as those of the stock driver. Written as the module is loaded. */
bool strobe_rpmsg_stock_names;
module_param_named(stock_names, strobe_rpmsg_stock_names, bool, 0444);
MODULE_PARM_DESC(stock_names, "nodes have the names of the stock drivers (/dev/rpmsg_ctrlN, /dev/rpmsgN), which must then not be loaded; channels rpmsg-raw are bound, too (default no)");

/* /sys/class/strobe_rpmsg. */
static const struct class class = {
	.name = "strobe_rpmsg",
};

/* What there is of each kind: in front of its number, and the numbers in use. */
static struct {
	const char	*own;
	const char	*stock;
	struct ida	numbers;
} kinds[] = {
	[STROBE_RPMSG_NODE_CONTROL] = {
		"strobe_rpmsg", "rpmsg_ctrl", IDA_INIT(kinds[STROBE_RPMSG_NODE_CONTROL].numbers),
	},
	[STROBE_RPMSG_NODE_ENDPOINT] = {
		"strobe_rpmsg_ept", "rpmsg", IDA_INIT(kinds[STROBE_RPMSG_NODE_ENDPOINT].numbers),
	},
};

static dev_t first;
static DEFINE_IDA(minors);

/**
 * strobe_rpmsg_nodes_setup() - as the module is loaded.
 *
 * Return: 0 or an errno.
 */
int __init strobe_rpmsg_nodes_setup(void)
{
	int ret = alloc_chrdev_region(&first, 0, MINORMASK + 1, "strobe_rpmsg");

	if (ret)
		return ret;
	ret = class_register(&class);
	if (ret)
		unregister_chrdev_region(first, MINORMASK + 1);
	return ret;
}

/**
 * strobe_rpmsg_nodes_cleanup() - as it is unloaded: no node is there any more.
 */
void strobe_rpmsg_nodes_cleanup(void)
{
	class_unregister(&class);
	unregister_chrdev_region(first, MINORMASK + 1);
}

/**
 * strobe_rpmsg_nodes_add() - make a device file.
 * @dev: its device; initialized, nothing but the parent and the release set.
 * @cdev: its character device; initialized.
 * @kind: says how it is called.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
int strobe_rpmsg_nodes_add(struct device *dev, struct cdev *cdev, enum strobe_rpmsg_node_kind kind)
{
	const char *name = strobe_rpmsg_stock_names ? kinds[kind].stock : kinds[kind].own;
	int minor, number, ret;

	minor = ida_alloc_max(&minors, MINORMASK, GFP_KERNEL);
	if (minor < 0)
		return minor;
	number = ida_alloc(&kinds[kind].numbers, GFP_KERNEL);
	if (number < 0) {
		ret = number;
		goto free_minor;
	}
	dev->devt = first + minor;
	dev->id = number;
	dev->class = &class;
	ret = dev_set_name(dev, "%s%d", name, number);
	if (!ret)
		ret = cdev_device_add(cdev, dev);
	if (!ret)
		return 0;
	ida_free(&kinds[kind].numbers, number);
free_minor:
	ida_free(&minors, minor);
	return ret;
}

/**
 * strobe_rpmsg_nodes_remove() - take a device file away.
 * @dev: its device. Files of it may stay open; its name is free for the next.
 * @cdev: its character device.
 * @kind: as it was added.
 *
 * Context: process.
 */
void strobe_rpmsg_nodes_remove(struct device *dev, struct cdev *cdev,
			       enum strobe_rpmsg_node_kind kind)
{
	cdev_device_del(cdev, dev);
	ida_free(&kinds[kind].numbers, dev->id);
	ida_free(&minors, dev->devt - first);
}
