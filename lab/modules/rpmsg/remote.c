// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab_rpmsg.ko: /dev/lab_remote, by which a program in the guest is the remote
 * processor, and how many messages wait for it.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "lab_rpmsg.h"

/* Messages that a program has not read yet: as many buffers as virtio has. */
#define REMOTE_QUEUE	256

/* What a program sees in front of each message. */
struct remote_head {
	__le32	src;
	__le32	dst;
};

/* To the program: entries and count under remote_lock. */
static DEFINE_MUTEX(remote_lock);
static LIST_HEAD(remote_queue);
static unsigned int remote_count;
static bool remote_open;
static DECLARE_WAIT_QUEUE_HEAD(remote_wait);

/* Written by the bus. */
bool lab_remote_plugged = true, lab_remote_stalled;
DECLARE_WAIT_QUEUE_HEAD(lab_remote_room);

bool lab_remote_is_at(u32 dst)
{
	return dst >= REMOTE_FIRST && dst != RPMSG_ADDR_ANY && READ_ONCE(remote_open);
}

/* -EAGAIN if there is no room for it now, -ENXIO if the program has just gone. */
int lab_remote_take(u32 src, u32 dst, const void *data, size_t length)
{
	struct message *message;

	guard(mutex)(&remote_lock);
	if (!remote_open)
		return -ENXIO;
	if (remote_count >= REMOTE_QUEUE)
		return -EAGAIN;
	message = lab_message_new(src, dst, data, length);
	if (!message)
		return -ENOMEM;
	list_add_tail(&message->entry, &remote_queue);
	WRITE_ONCE(remote_count, remote_count + 1);
	wake_up_interruptible(&remote_wait);
	return 0;
}

bool lab_remote_has_room(void)
{
	return !READ_ONCE(lab_remote_stalled) && READ_ONCE(remote_count) < REMOTE_QUEUE;
}

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
	wake_up_all(&lab_remote_room);
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
	wake_up_all(&lab_remote_room);
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
	if (!READ_ONCE(lab_remote_plugged))
		return -ENOTCONN;
	lab = lab_endpoint_find(le32_to_cpu(head.dst), NULL);
	/* Nobody has this address. */
	if (!lab)
		return -ENXIO;
	ret = lab_endpoint_deliver(lab, le32_to_cpu(head.src), data, length - sizeof(head));
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

int __init lab_remote_init(void)
{
	return misc_register(&remote);
}

void lab_remote_exit(void)
{
	misc_deregister(&remote);
}
