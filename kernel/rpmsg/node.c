// SPDX-License-Identifier: GPL-2.0-only
/*
 * An endpoint as a node, for programs that know only the stock driver:
 * RPMSG_CREATE_EPT_IOCTL makes a node, open() of it the endpoint, close() ends
 * that, and RPMSG_DESTROY_EPT_IOCTL takes the node away. One open at a time.
 * What is opened is a file as rpmsg_file.c has it.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include "rpmsg.h"

/**
 * struct strobe_rpmsg_node - a node, of an endpoint that is there while it is
 * open.
 * @dev: the node; its references are those of this.
 * @cdev: of the node.
 * @control: its channel; a reference.
 * @entry: in control->nodes, until it is removed; under control->making.
 * @opened: bit 0: it is open.
 * @info: what was asked for; the name ends in a NUL.
 */
struct strobe_rpmsg_node {
	struct device			dev;
	struct cdev			cdev;
	struct strobe_rpmsg_control	*control;
	struct list_head		entry;
	unsigned long			opened;
	struct rpmsg_channel_info	info;
};

static DEFINE_IDA(numbers);

static struct strobe_rpmsg_node *to_node(struct device *dev)
{
	return container_of(dev, struct strobe_rpmsg_node, dev);
}

static ssize_t name_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%s\n", to_node(dev)->info.name);
}
static DEVICE_ATTR_RO(name);

static ssize_t src_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "0x%x\n", to_node(dev)->info.src);
}
static DEVICE_ATTR_RO(src);

static ssize_t dst_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "0x%x\n", to_node(dev)->info.dst);
}
static DEVICE_ATTR_RO(dst);

static struct attribute *node_attrs[] = {
	&dev_attr_name.attr, &dev_attr_src.attr, &dev_attr_dst.attr, NULL
};
ATTRIBUTE_GROUPS(node);

/* control->present is held. */
static int open_endpoint(struct strobe_rpmsg_node *node, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint;
	int ret;

	if (!node->control->rpdev)
		return -ENETRESET;
	endpoint = strobe_rpmsg_endpoint_new(node->control, &node->info);
	if (!endpoint)
		return -ENOMEM;
	ret = strobe_rpmsg_endpoint_attach(endpoint);
	if (ret) {
		strobe_rpmsg_endpoint_free(endpoint);
		return ret;
	}
	endpoint->node = node;
	get_device(&node->dev);
	file->private_data = endpoint;
	replace_fops(file, fops_get(&strobe_rpmsg_file_fops));
	return 0;
}

static int node_open(struct inode *inode, struct file *file)
{
	struct strobe_rpmsg_node *node =
		container_of(inode->i_cdev, struct strobe_rpmsg_node, cdev);
	int ret;

	if (test_and_set_bit_lock(0, &node->opened))
		return -EBUSY;
	stream_open(inode, file);
	scoped_guard(rwsem_read, &node->control->present)
		ret = open_endpoint(node, file);
	if (ret)
		clear_bit_unlock(0, &node->opened);
	return ret;
}

/**
 * strobe_rpmsg_node_close() - the file of a node is closed.
 * @node: may be opened again; a reference is given back.
 *
 * Context: process; the endpoint is detached.
 */
void strobe_rpmsg_node_close(struct strobe_rpmsg_node *node)
{
	clear_bit_unlock(0, &node->opened);
	put_device(&node->dev);
}

/* The file gets the operations of an endpoint when it is open. */
static const struct file_operations node_fops = {
	.owner	= THIS_MODULE,
	.open	= node_open,
};

static void node_release(struct device *dev)
{
	struct strobe_rpmsg_node *node = to_node(dev);

	put_device(&node->control->dev);
	kfree(node);
}

/* control->present is held. */
static int add_node(struct strobe_rpmsg_control *control, const struct rpmsg_channel_info *info)
{
	struct strobe_rpmsg_node *node;
	int ret;

	if (!control->rpdev)
		return -ENETRESET;
	node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);
	if (!node)
		return -ENOMEM;
	node->control = control;
	node->info = *info;
	INIT_LIST_HEAD(&node->entry);
	get_device(&control->dev);
	device_initialize(&node->dev);
	node->dev.parent = &control->dev;
	node->dev.release = node_release;
	node->dev.groups = node_groups;
	cdev_init(&node->cdev, &node_fops);
	node->cdev.owner = THIS_MODULE;
	/* Who opens it at once and has it taken away finds it whole. */
	guard(mutex)(&control->making);
	ret = strobe_rpmsg_add_node(&node->dev, &node->cdev, &numbers,
				    strobe_rpmsg_stock_names ? "rpmsg" : "strobe_rpmsg_ept");
	if (ret)
		put_device(&node->dev);
	else
		list_add_tail(&node->entry, &control->nodes);
	return ret;
}

/**
 * strobe_rpmsg_create_node() - RPMSG_CREATE_EPT_IOCTL.
 * @control: the channel.
 * @arg: struct rpmsg_endpoint_info.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_rpmsg_create_node(struct strobe_rpmsg_control *control, void __user *arg)
{
	struct rpmsg_endpoint_info info;
	struct rpmsg_channel_info wanted;
	int ret;

	if (copy_from_user(&info, arg, sizeof(info)))
		return -EFAULT;
	ret = strobe_rpmsg_check_name(info.name);
	if (ret)
		return ret;
	wanted = (struct rpmsg_channel_info){ .src = info.src, .dst = info.dst };
	memcpy(wanted.name, info.name, sizeof(wanted.name));
	guard(rwsem_read)(&control->present);
	return add_node(control, &wanted);
}

/**
 * strobe_rpmsg_node_remove() - take a node away.
 * @node: the node; the second time nothing happens. Its file stays.
 *
 * Context: process; control->present is held.
 */
void strobe_rpmsg_node_remove(struct strobe_rpmsg_node *node)
{
	guard(mutex)(&node->control->making);
	if (list_empty(&node->entry))
		return;
	list_del_init(&node->entry);
	strobe_rpmsg_remove_node(&node->dev, &node->cdev, &numbers);
	put_device(&node->dev);
}

/**
 * strobe_rpmsg_node_remove_all() - take all nodes of a channel away.
 * @control: the channel.
 *
 * Context: process; control->present is held for writing.
 */
void strobe_rpmsg_node_remove_all(struct strobe_rpmsg_control *control)
{
	struct strobe_rpmsg_node *node, *next;

	list_for_each_entry_safe(node, next, &control->nodes, entry)
		strobe_rpmsg_node_remove(node);
}
