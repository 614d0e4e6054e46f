// SPDX-License-Identifier: GPL-2.0-only
/*
 * An endpoint as a node, for programs that know only the stock driver:
 * RPMSG_CREATE_EPT_IOCTL makes a node, open() of it the endpoint, close() ends
 * that, and RPMSG_DESTROY_EPT_IOCTL takes the node away. One open at a time.
 * The node of a default endpoint comes and goes with its channel.
 *
 * A node stays when its maker has gone. So who is not root has so many and no
 * more, over all channels.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uidgid.h>

#include "rpmsg.h"

static unsigned int nodes_max = 64;
module_param(nodes_max, uint, 0644);
MODULE_PARM_DESC(nodes_max, "nodes of endpoints that a user without CAP_SYS_ADMIN may have (default 64)");

/**
 * struct node - a node, of an endpoint that is there while it is open, or of the
 * channel's own.
 * @dev: the node; its references are those of this.
 * @cdev: of the node.
 * @channel: its channel; a reference.
 * @entry: in nodes, until it is removed; under making.
 * @user: whom it is charged to; INVALID_UID: nobody.
 * @opened: bit 0: it is open.
 * @info: what was asked for; the name ends in a NUL.
 * @endpoint: the channel's own, a reference; else NULL.
 */
struct node {
	struct device			dev;
	struct cdev			cdev;
	struct strobe_rpmsg_channel	*channel;
	struct list_head		entry;
	kuid_t				user;
	unsigned long			opened;
	struct rpmsg_channel_info	info;
	struct strobe_rpmsg_endpoint	*endpoint;
};

/* Held while a node is made or taken away; guards nodes. */
static DEFINE_MUTEX(making);
/* Those of all channels. */
static LIST_HEAD(nodes);

static struct node *to_node(struct device *dev)
{
	return container_of(dev, struct node, dev);
}

/* The file holds the cdev, and that the node. */
static struct node *of_file(struct file *file)
{
	return container_of(file_inode(file)->i_cdev, struct node, cdev);
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

/* node->channel->present is held. */
static int open_endpoint(struct node *node, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint = node->endpoint;
	int ret;

	if (!node->channel->rpdev)
		return -ENETRESET;
	if (endpoint) {
		refcount_inc(&endpoint->references);
		file->private_data = endpoint;
		return 0;
	}
	endpoint = strobe_rpmsg_endpoint_new(node->channel, &node->info);
	if (!endpoint)
		return -ENOMEM;
	ret = strobe_rpmsg_endpoint_attach(endpoint);
	if (ret)
		strobe_rpmsg_endpoint_put(endpoint);
	else
		file->private_data = endpoint;
	return ret;
}

static int node_open(struct inode *inode, struct file *file)
{
	struct node *node = of_file(file);
	int ret;

	if (test_and_set_bit_lock(0, &node->opened))
		return -EBUSY;
	stream_open(inode, file);
	scoped_guard(rwsem_read, &node->channel->present)
		ret = open_endpoint(node, file);
	if (ret)
		clear_bit_unlock(0, &node->opened);
	return ret;
}

static int node_close(struct inode *inode, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;
	struct node *node = of_file(file);

	/* Nobody uses it any more. Who takes the channel away may be about to wake it. */
	scoped_guard(rwsem_read, &node->channel->present)
		if (endpoint->ept && !node->endpoint)
			strobe_rpmsg_endpoint_detach(endpoint);
	/* Who opens it next does not read what was for this one. */
	if (node->endpoint)
		strobe_rpmsg_queue_forget(&endpoint->queue);
	strobe_rpmsg_endpoint_put(endpoint);
	clear_bit_unlock(0, &node->opened);
	return 0;
}

/* node->channel->present is held. The second time nothing happens; its file stays. */
static void remove_node(struct node *node)
{
	guard(mutex)(&making);
	if (list_empty(&node->entry))
		return;
	list_del_init(&node->entry);
	strobe_rpmsg_nodes_remove(&node->dev, &node->cdev, STROBE_RPMSG_NODE_ENDPOINT);
	put_device(&node->dev);
}

static long destroy(struct node *node, struct strobe_rpmsg_endpoint *endpoint)
{
	if (node->endpoint)
		return -EINVAL;
	guard(rwsem_read)(&node->channel->present);
	strobe_rpmsg_endpoint_detach(endpoint);
	remove_node(node);
	return 0;
}

static long node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (cmd == RPMSG_DESTROY_EPT_IOCTL)
		return destroy(of_file(file), file->private_data);
	return strobe_rpmsg_file_ioctl(file, cmd, arg);
}

static const struct file_operations node_fops = {
	.owner		= THIS_MODULE,
	.open		= node_open,
	.release	= node_close,
	.read_iter	= strobe_rpmsg_file_read,
	.write_iter	= strobe_rpmsg_file_write,
	.poll		= strobe_rpmsg_file_poll,
	.unlocked_ioctl	= node_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= strobe_rpmsg_file_show_fdinfo,
};

static void node_release(struct device *dev)
{
	struct node *node = to_node(dev);

	if (node->endpoint)
		strobe_rpmsg_endpoint_put(node->endpoint);
	strobe_rpmsg_channel_put(node->channel);
	kfree(node);
}

/* Under making. */
static bool may_have_one_more(kuid_t user)
{
	unsigned int count = 0;
	struct node *node;

	list_for_each_entry(node, &nodes, entry)
		count += uid_eq(node->user, user);
	return count < READ_ONCE(nodes_max) || capable(CAP_SYS_ADMIN);
}

/* Takes a reference to the endpoint, if there is one: then it is charged to nobody. */
static int add_node(struct strobe_rpmsg_channel *channel, struct device *parent,
		    const struct rpmsg_channel_info *info, struct strobe_rpmsg_endpoint *endpoint)
{
	struct node *node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!node)
		return -ENOMEM;
	refcount_inc(&channel->references);
	node->channel = channel;
	if (endpoint)
		refcount_inc(&endpoint->references);
	node->endpoint = endpoint;
	node->user = endpoint ? INVALID_UID : current_uid();
	node->info = *info;
	INIT_LIST_HEAD(&node->entry);
	device_initialize(&node->dev);
	node->dev.parent = parent;
	node->dev.release = node_release;
	node->dev.groups = node_groups;
	cdev_init(&node->cdev, &node_fops);
	node->cdev.owner = THIS_MODULE;
	/* Who opens it at once and has it taken away finds it whole. */
	guard(mutex)(&making);
	ret = endpoint || may_have_one_more(node->user) ? 0 : -EUSERS;
	if (!ret)
		ret = strobe_rpmsg_nodes_add(&node->dev, &node->cdev, STROBE_RPMSG_NODE_ENDPOINT);
	if (ret)
		put_device(&node->dev);
	else
		list_add_tail(&node->entry, &nodes);
	return ret;
}

/**
 * strobe_rpmsg_node_create() - RPMSG_CREATE_EPT_IOCTL.
 * @channel: the channel.
 * @parent: the device of its control node.
 * @info: what is wanted; the name ends in a NUL.
 *
 * Context: process.
 * Return: 0; -EUSERS if the user has as many as he may; another errno.
 */
int strobe_rpmsg_node_create(struct strobe_rpmsg_channel *channel, struct device *parent,
			     const struct rpmsg_channel_info *info)
{
	guard(rwsem_read)(&channel->present);
	return channel->rpdev ? add_node(channel, parent, info, NULL) : -ENETRESET;
}

/**
 * strobe_rpmsg_node_create_default() - a node of the channel's own endpoint.
 * @channel: the channel.
 * @parent: the device of the channel.
 * @endpoint: its own; a reference is taken.
 *
 * Context: process, in the driver's probe.
 * Return: 0 or an errno.
 */
int strobe_rpmsg_node_create_default(struct strobe_rpmsg_channel *channel, struct device *parent,
				     struct strobe_rpmsg_endpoint *endpoint)
{
	return add_node(channel, parent, &endpoint->info, endpoint);
}

/**
 * strobe_rpmsg_node_remove_all() - take all nodes of a channel away.
 * @channel: the channel.
 *
 * Context: process; channel->present is held for writing.
 */
void strobe_rpmsg_node_remove_all(struct strobe_rpmsg_channel *channel)
{
	struct node *node, *next;
	LIST_HEAD(gone);

	scoped_guard(mutex, &making)
		list_for_each_entry_safe(node, next, &nodes, entry)
			if (node->channel == channel)
				list_move(&node->entry, &gone);
	list_for_each_entry_safe(node, next, &gone, entry)
		remove_node(node);
}
