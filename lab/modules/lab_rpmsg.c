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
 */
#include <linux/idr.h>
#include <linux/irq_work.h>
#include <linux/llist.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/poll.h>
#include <linux/rpmsg.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "rpmsg_internal.h"

#define MTU		496
#define REMOTE_FIRST	0x400
/*
 * Of endpoints that do not care: between what a test chooses and the remote's,
 * so low that they cost what virtio's cost, which begin with 1024; then any.
 */
#define HOST_FIRST	0x300
#define HOST_MORE	0x10000
#define CHANNELS_MAX	8
/* Messages that a program has not read yet: as many buffers as virtio has. */
#define REMOTE_QUEUE	256

struct message {
	struct llist_node	node;	/* under way to an endpoint */
	struct list_head	entry;	/* under way to the remote */
	u32			src;
	u32			dst;
	u32			length;
	u8			data[];
};

/* What a program sees in front of each message. */
struct remote_head {
	__le32	src;
	__le32	dst;
};

/**
 * struct lab_endpoint - an endpoint, and what is under way to it.
 * @ept: what rpmsg knows of it; ept.cb is under ept.cb_lock and @calling.
 * @under_way: messages for the interrupt; added by senders, taken by it.
 * @done: messages that it has delivered. It cannot free them on PREEMPT_RT, so
 *	the next sender does.
 * @interrupt: calls ept.cb.
 * @calling: held around ept.cb in the interrupt.
 */
struct lab_endpoint {
	struct rpmsg_endpoint	ept;
	struct llist_head	under_way;
	struct llist_head	done;
	struct irq_work		interrupt;
	raw_spinlock_t		calling;	/* see above */
};

/* Who has which address. */
static DEFINE_MUTEX(bus);
static DEFINE_IDR(addresses);

static struct platform_device *processor;
/* Written by plug() and pull(), which parameters serialise. */
static struct rpmsg_device *devices[CHANNELS_MAX];

/* To the program: entries and count under remote_lock. */
static DEFINE_MUTEX(remote_lock);
static LIST_HEAD(remote_queue);
static unsigned int remote_count;
static bool remote_open;
static DECLARE_WAIT_QUEUE_HEAD(remote_wait);

/* Senders that wait for room, pollers that want to send, and makers of endpoints. */
static DECLARE_WAIT_QUEUE_HEAD(room);

static bool hard;
module_param(hard, bool, 0644);
MODULE_PARM_DESC(hard, "callbacks run in hard interrupt context");

static char *channels = "rpmsg_ctrl,strobe_rpmsg";
module_param(channels, charp, 0444);
MODULE_PARM_DESC(channels, "drivers to bind, and services that the remote announces");

static bool plugged = true;
static bool stalled, shut;

static uint asks;
module_param(asks, uint, 0644);
MODULE_PARM_DESC(asks, "the remote is asked for a buffer: 1, and gives one; 2, and does not");

static unsigned int drop;
module_param(drop, uint, 0644);
MODULE_PARM_DESC(drop, "every so manieth message to the host is lost");

/* Messages to the host since drop was last not 0, and those lost of them; under bus. */
static unsigned int offered, dropped;
module_param(dropped, uint, 0444);
MODULE_PARM_DESC(dropped, "messages that were lost");
static unsigned long dropped_bytes;
module_param(dropped_bytes, ulong, 0444);
MODULE_PARM_DESC(dropped_bytes, "bytes of these");

static struct lab_endpoint *to_lab(struct rpmsg_endpoint *ept)
{
	return container_of(ept, struct lab_endpoint, ept);
}

static void free_all(struct llist_node *node)
{
	struct message *message, *next;

	llist_for_each_entry_safe(message, next, node, node)
		kfree(message);
}

static void free_endpoint(struct kref *ref)
{
	struct lab_endpoint *lab = container_of(ref, struct lab_endpoint, ept.refcount);

	free_all(llist_del_all(&lab->under_way));
	free_all(llist_del_all(&lab->done));
	kfree(lab);
}

static void interrupt(struct irq_work *work)
{
	struct lab_endpoint *lab = container_of(work, struct lab_endpoint, interrupt);
	struct llist_node *list = llist_reverse_order(llist_del_all(&lab->under_way));
	struct message *message, *next;
	unsigned long flags;

	llist_for_each_entry_safe(message, next, list, node) {
		raw_spin_lock_irqsave(&lab->calling, flags);
		if (lab->ept.cb)
			lab->ept.cb(lab->ept.rpdev, message->data, message->length, lab->ept.priv,
				    message->src);
		raw_spin_unlock_irqrestore(&lab->calling, flags);
		llist_add(&message->node, &lab->done);
	}
}

static struct message *new_message(u32 src, u32 dst, const void *data, size_t length)
{
	struct message *message = kmalloc(struct_size(message, data, length), GFP_KERNEL);

	if (!message)
		return NULL;
	message->src = src;
	message->dst = dst;
	message->length = length;
	memcpy(message->data, data, length);
	return message;
}

/* The endpoint with that address, with a reference; else @otherwise, which may be NULL. */
static struct lab_endpoint *find(u32 address, struct rpmsg_endpoint *otherwise)
{
	struct rpmsg_endpoint *ept;

	guard(mutex)(&bus);
	ept = address > INT_MAX ? NULL : idr_find(&addresses, address);
	if (!ept)
		ept = otherwise;
	if (!ept)
		return NULL;
	kref_get(&ept->refcount);
	return to_lab(ept);
}

static bool is_lost(size_t length)
{
	unsigned int every = READ_ONCE(drop);

	guard(mutex)(&bus);
	if (!every) {
		offered = 0;
		return false;
	}
	if (++offered % every)
		return false;
	WRITE_ONCE(dropped, dropped + 1);
	WRITE_ONCE(dropped_bytes, dropped_bytes + length);
	return true;
}

/* A message arrives at the host; consumes the reference to @lab. */
static int deliver(struct lab_endpoint *lab, u32 src, void *data, size_t length)
{
	struct message *message;
	int ret = 0;

	if (is_lost(length))
		goto put;
	if (!READ_ONCE(hard)) {
		scoped_guard(mutex, &lab->ept.cb_lock)
			if (lab->ept.cb)
				lab->ept.cb(lab->ept.rpdev, data, length, lab->ept.priv, src);
		goto put;
	}
	free_all(llist_del_all(&lab->done));
	message = new_message(src, lab->ept.addr, data, length);
	if (message) {
		llist_add(&message->node, &lab->under_way);
		irq_work_queue(&lab->interrupt);
	} else {
		ret = -ENOMEM;
	}
put:
	kref_put(&lab->ept.refcount, free_endpoint);
	return ret;
}

static bool is_for_remote(u32 dst)
{
	return dst >= REMOTE_FIRST && dst != RPMSG_ADDR_ANY && READ_ONCE(remote_open);
}

/* -EAGAIN if there is no room for it now, -ENXIO if the program has just gone. */
static int to_remote(u32 src, u32 dst, const void *data, size_t length)
{
	struct message *message;

	guard(mutex)(&remote_lock);
	if (!remote_open)
		return -ENXIO;
	if (remote_count >= REMOTE_QUEUE)
		return -EAGAIN;
	message = new_message(src, dst, data, length);
	if (!message)
		return -ENOMEM;
	list_add_tail(&message->entry, &remote_queue);
	WRITE_ONCE(remote_count, remote_count + 1);
	wake_up_interruptible(&remote_wait);
	return 0;
}

static bool has_room(void)
{
	return !READ_ONCE(stalled) && READ_ONCE(remote_count) < REMOTE_QUEUE;
}

static int try_send(struct rpmsg_endpoint *ept, void *data, int length, u32 dst)
{
	struct lab_endpoint *lab;
	int ret;

	if (length > MTU)
		return -EMSGSIZE;
	if (!READ_ONCE(plugged))
		return -EPIPE;
	if (READ_ONCE(stalled))
		return -EAGAIN;
	lab = find(dst, NULL);
	if (!lab && is_for_remote(dst)) {
		ret = to_remote(ept->addr, dst, data, length);
		if (ret != -ENXIO)
			return ret;
	}
	if (!lab) {
		kref_get(&ept->refcount);
		lab = to_lab(ept);
	}
	return deliver(lab, ept->addr, data, length);
}

static int lab_trysendto(struct rpmsg_endpoint *ept, void *data, int length, u32 dst)
{
	if (READ_ONCE(asks))
		return -EBUSY;
	return try_send(ept, data, length, dst);
}

/* As virtio's, which does not let go of who has got a signal. */
static int lab_sendto(struct rpmsg_endpoint *ept, void *data, int length, u32 dst)
{
	int ret;

	if (READ_ONCE(asks) > 1)
		return -EAGAIN;
	while ((ret = try_send(ept, data, length, dst)) == -EAGAIN)
		wait_event(room, has_room() || !READ_ONCE(plugged));
	return ret;
}

static int lab_trysend(struct rpmsg_endpoint *ept, void *data, int length)
{
	return lab_trysendto(ept, data, length, ept->rpdev->dst);
}

static int lab_send(struct rpmsg_endpoint *ept, void *data, int length)
{
	return lab_sendto(ept, data, length, ept->rpdev->dst);
}

static __poll_t lab_poll(struct rpmsg_endpoint *ept, struct file *file, poll_table *wait)
{
	poll_wait(file, &room, wait);
	return has_room() ? EPOLLOUT | EPOLLWRNORM : 0;
}

/* The other end is told, as if it were the remote's word: an endpoint, or the sender itself. */
static int lab_set_flow_control(struct rpmsg_endpoint *ept, bool pause, u32 dst)
{
	struct lab_endpoint *lab = find(dst, ept);

	scoped_guard(mutex, &lab->ept.cb_lock)
		if (lab->ept.flow_cb)
			lab->ept.flow_cb(lab->ept.rpdev, lab->ept.priv, pause);
	kref_put(&lab->ept.refcount, free_endpoint);
	return 0;
}

static ssize_t lab_get_mtu(struct rpmsg_endpoint *ept)
{
	return MTU;
}

/* After this no callback runs, and none will start. */
static void lab_destroy_ept(struct rpmsg_endpoint *ept)
{
	struct lab_endpoint *lab = to_lab(ept);

	scoped_guard(mutex, &bus)
		idr_remove(&addresses, ept->addr);
	scoped_guard(mutex, &ept->cb_lock) {
		scoped_guard(raw_spinlock_irqsave, &lab->calling) {
			ept->cb = NULL;
			ept->flow_cb = NULL;
		}
	}
	irq_work_sync(&lab->interrupt);
	kref_put(&ept->refcount, free_endpoint);
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

/* Under bus. */
static int any_address(struct rpmsg_endpoint *ept)
{
	int address = idr_alloc(&addresses, ept, HOST_FIRST, REMOTE_FIRST, GFP_KERNEL);

	return address == -ENOSPC ? idr_alloc(&addresses, ept, HOST_MORE, 0, GFP_KERNEL) : address;
}

static struct rpmsg_endpoint *lab_create_ept(struct rpmsg_device *rpdev, rpmsg_rx_cb_t cb,
					     void *priv, struct rpmsg_channel_info info)
{
	struct lab_endpoint *lab;
	int address = -EINVAL;

	if (wait_event_interruptible(room, !READ_ONCE(shut) || !READ_ONCE(plugged)) ||
	    !READ_ONCE(plugged))
		return NULL;
	lab = kzalloc(sizeof(*lab), GFP_KERNEL);
	if (!lab)
		return NULL;
	kref_init(&lab->ept.refcount);
	mutex_init(&lab->ept.cb_lock);
	raw_spin_lock_init(&lab->calling);
	lab->interrupt = IRQ_WORK_INIT_HARD(interrupt);
	lab->ept.rpdev = rpdev;
	lab->ept.cb = cb;
	lab->ept.priv = priv;
	lab->ept.ops = &endpoint_ops;
	scoped_guard(mutex, &bus) {
		if (info.src == RPMSG_ADDR_ANY)
			address = any_address(&lab->ept);
		else if (info.src < INT_MAX)
			address = idr_alloc(&addresses, &lab->ept, info.src, info.src + 1,
					    GFP_KERNEL);
		lab->ept.addr = address;
	}
	if (address >= 0)
		return &lab->ept;
	kfree(lab);
	return NULL;
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
	WRITE_ONCE(plugged, false);
	/* Who waits to send learns that it is in vain: drivers wait for them. */
	wake_up_all(&room);
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
	WRITE_ONCE(plugged, true);
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
		plugged = on;
		return 0;
	}
	if (on == plugged)
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
module_param_cb(plugged, &plugged_ops, &plugged, 0644);
MODULE_PARM_DESC(plugged, "the remote is there");

/* Who waits looks again. */
static int set_and_wake(const char *text, const struct kernel_param *param)
{
	int ret = param_set_bool(text, param);

	wake_up_all(&room);
	return ret;
}

static const struct kernel_param_ops waking_ops = {
	.set = set_and_wake,
	.get = param_get_bool,
};
module_param_cb(stalled, &waking_ops, &stalled, 0644);
MODULE_PARM_DESC(stalled, "the remote takes no messages");
module_param_cb(shut, &waking_ops, &shut, 0644);
MODULE_PARM_DESC(shut, "the remote agrees to no endpoint");

static int remote_start(struct inode *inode, struct file *file)
{
	guard(mutex)(&remote_lock);
	if (remote_open)
		return -EBUSY;
	WRITE_ONCE(remote_open, true);
	return stream_open(inode, file);
}

static int remote_stop(struct inode *inode, struct file *file)
{
	struct message *message, *next;

	scoped_guard(mutex, &remote_lock) {
		WRITE_ONCE(remote_open, false);
		list_for_each_entry_safe(message, next, &remote_queue, entry)
			kfree(message);
		INIT_LIST_HEAD(&remote_queue);
		WRITE_ONCE(remote_count, 0);
	}
	wake_up_all(&room);
	return 0;
}

static struct message *take_from_host(void)
{
	struct message *message;

	guard(mutex)(&remote_lock);
	message = list_first_entry_or_null(&remote_queue, struct message, entry);
	if (message) {
		list_del(&message->entry);
		WRITE_ONCE(remote_count, remote_count - 1);
	}
	return message;
}

static ssize_t remote_read(struct file *file, char __user *to, size_t length, loff_t *pos)
{
	struct message *message;
	struct remote_head head;

	while (!(message = take_from_host())) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(remote_wait, READ_ONCE(remote_count)))
			return -ERESTARTSYS;
	}
	wake_up_all(&room);
	head = (struct remote_head){ cpu_to_le32(message->src), cpu_to_le32(message->dst) };
	if (length < sizeof(head) + message->length)
		length = -EMSGSIZE;
	else if (copy_to_user(to, &head, sizeof(head)) ||
		 copy_to_user(to + sizeof(head), message->data, message->length))
		length = -EFAULT;
	else
		length = sizeof(head) + message->length;
	kfree(message);
	return length;
}

static ssize_t remote_write(struct file *file, const char __user *from, size_t length, loff_t *pos)
{
	struct remote_head head;
	struct lab_endpoint *lab;
	u8 data[MTU];
	int ret;

	if (length < sizeof(head) || length > sizeof(head) + MTU)
		return -EMSGSIZE;
	if (copy_from_user(&head, from, sizeof(head)) ||
	    copy_from_user(data, from + sizeof(head), length - sizeof(head)))
		return -EFAULT;
	if (!READ_ONCE(plugged))
		return -ENOTCONN;
	lab = find(le32_to_cpu(head.dst), NULL);
	/* Nobody has this address. */
	if (!lab)
		return -ENXIO;
	ret = deliver(lab, le32_to_cpu(head.src), data, length - sizeof(head));
	return ret ?: length;
}

static __poll_t remote_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &remote_wait, wait);
	return EPOLLOUT | EPOLLWRNORM |
		(READ_ONCE(remote_count) ? EPOLLIN | EPOLLRDNORM : 0);
}

static const struct file_operations remote_fops = {
	.owner		= THIS_MODULE,
	.open		= remote_start,
	.release	= remote_stop,
	.read		= remote_read,
	.write		= remote_write,
	.poll		= remote_poll,
};

static struct miscdevice remote = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "lab_remote",
	.fops	= &remote_fops,
	.mode	= 0600,
};

static int __init lab_rpmsg_init(void)
{
	int ret;

	processor = platform_device_register_simple("lab_rpmsg", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(processor))
		return PTR_ERR(processor);
	ret = misc_register(&remote);
	if (ret)
		goto unregister;
	ret = plugged ? plug() : 0;
	if (!ret)
		return 0;
	misc_deregister(&remote);
unregister:
	platform_device_unregister(processor);
	return ret;
}

static void __exit lab_rpmsg_exit(void)
{
	pull();
	misc_deregister(&remote);
	platform_device_unregister(processor);
	idr_destroy(&addresses);
}

module_init(lab_rpmsg_init);
module_exit(lab_rpmsg_exit);
MODULE_DESCRIPTION("An rpmsg transport with a program for a remote processor");
MODULE_LICENSE("GPL");
