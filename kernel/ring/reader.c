// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring fds: mmap, poll, read, STROBE_ARM. Each reader has a cursor, a threshold
 * and a wait queue of its own; readers never wait for each other, and the
 * producer does not know how many there are. How they are woken is in wake.c.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ring/ring.h"
#include "ring/user.h"
#include "uabi.h"

/**
 * struct strobe_reader_file - one ring fd.
 * @ring: its ring; a reference.
 * @sleeper: how it is woken.
 * @armed: by STROBE_ARM; 0 if not. Written by the ioctl, read by poll.
 * @next: cursor of read().
 * @lock: serialises read() on one fd.
 */
struct strobe_reader_file {
	struct strobe_ring	*ring;
	struct strobe_sleeper	sleeper;
	u64			armed;
	u64			next;
	struct mutex		lock;	/* see above */
};

static bool reached_or_want(struct strobe_reader_file *reader, u64 row)
{
	return strobe_wake_reached_or_want(reader->ring, &reader->sleeper, row);
}

static __poll_t reader_poll(struct file *file, poll_table *wait)
{
	struct strobe_reader_file *reader = file->private_data;
	u64 row;

	poll_wait(file, &reader->sleeper.queue, wait);
	row = READ_ONCE(reader->armed) ?: READ_ONCE(reader->next) + 1;
	if (!reached_or_want(reader, row))
		return 0;
	if (strobe_ring_is_final(reader->ring))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	return EPOLLIN | EPOLLRDNORM;
}

/*
 * Copy rows [first, first + count) as they are now; user space gets them without
 * the padding. Rows may be overwritten meanwhile, which the caller finds out.
 */
static int copy_rows(const struct strobe_ring *ring, u64 first, u64 count, size_t size,
		     char __user *to)
{
	for (u64 i = first; i < first + count; i++, to += size) {
		const void *row = ring->slots + (i & ring->mask) * ring->stride;

		/* Overwritten meanwhile, it is dropped: KCSAN is to leave that alone. */
		if (data_race(copy_to_user(to, row, size)))
			return -EFAULT;
	}
	return 0;
}

/*
 * What is there from the cursor on, at most @room rows, after dropping what was
 * overwritten: the same algorithm as in strobe-ring's reader, but for a copy
 * whose front was overwritten meanwhile, which is made anew, and shorter.
 * Returns rows stored, 0 if there are none yet, or an errno.
 */
static ssize_t take_rows(struct strobe_reader_file *reader, char __user *to, u64 room, size_t size)
{
	struct strobe_ring *ring = reader->ring;
	u64 capacity = ring->mask + 1;

	for (;;) {
		u64 head = strobe_ring_head(ring);
		u64 oldest = strobe_ring_oldest(head, capacity, ring->limit);
		u64 first = max(reader->next, oldest);
		u64 count;

		if (first >= head) {
			WRITE_ONCE(reader->next, first);
			return 0;
		}
		count = min(room, head - first);
		if (copy_rows(ring, first, count, size, to))
			return -EFAULT;
		/* D, pairs with A in strobe_take_row(): what was overwritten shows. */
		smp_rmb();
		head = READ_ONCE(ring->header->head);
		oldest = strobe_ring_oldest(head, capacity, ring->limit);
		if (oldest <= first) {
			WRITE_ONCE(reader->next, first + count);
			return count;
		}
		if (signal_pending(current))
			return -ERESTARTSYS;
		/* Lapped altogether: leave the edge, where it would happen again. */
		if (oldest >= first + count)
			oldest = max(oldest, head - capacity / 2);
		WRITE_ONCE(reader->next, oldest);
		room = max(room / 2, 1);
	}
}

static ssize_t reader_read(struct file *file, char __user *to, size_t length, loff_t *pos)
{
	struct strobe_reader_file *reader = file->private_data;
	struct strobe_ring *ring = reader->ring;
	size_t size = ring->row_size;
	ssize_t count;

	if (length < size)
		return -EINVAL;
	if (mutex_lock_interruptible(&reader->lock))
		return -ERESTARTSYS;
	for (;;) {
		/* Final state before the rows: what is not there now never comes. */
		bool final = strobe_ring_is_final(ring);

		count = take_rows(reader, to, length / size, size);
		if (count || final)
			break;
		if (reached_or_want(reader, reader->next + 1))
			continue;
		count = -EAGAIN;
		if (file->f_flags & O_NONBLOCK)
			break;
		mutex_unlock(&reader->lock);
		if (wait_event_interruptible(reader->sleeper.queue,
					     reached_or_want(reader, READ_ONCE(reader->next) + 1)))
			return -ERESTARTSYS;
		if (mutex_lock_interruptible(&reader->lock))
			return -ERESTARTSYS;
	}
	mutex_unlock(&reader->lock);
	return count > 0 ? count * (ssize_t)size : count;
}

static int reader_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct strobe_reader_file *reader = file->private_data;

	return strobe_ring_mmap(reader->ring, vma);
}

static long reader_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_reader_file *reader = file->private_data;
	struct strobe_arm arm;
	int ret;

	if (cmd != STROBE_ARM)
		return -ENOTTY;
	ret = strobe_copy_struct(&arm, sizeof(arm), (void __user *)arg, sizeof(arm));
	if (ret)
		return ret;
	if (arm.flags)
		return -EINVAL;
	WRITE_ONCE(reader->armed, arm.rows);
	/* Edge-triggered pollers do not ask again: register it now. */
	if (reached_or_want(reader, arm.rows ?: READ_ONCE(reader->next) + 1))
		wake_up_interruptible_poll(&reader->sleeper.queue, EPOLLIN | EPOLLRDNORM);
	return 0;
}

static void reader_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct strobe_reader_file *reader = file->private_data;

	reader->ring->ops->show(m, reader->ring);
	seq_printf(m, "strobe-next:\t%llu\n", READ_ONCE(reader->next));
	seq_printf(m, "strobe-armed:\t%llu\n", READ_ONCE(reader->armed));
}

static int reader_release(struct inode *inode, struct file *file)
{
	struct strobe_reader_file *reader = file->private_data;
	struct strobe_ring *ring = reader->ring;

	strobe_wake_leave(ring, &reader->sleeper);
	strobe_user_put(reader->sleeper.user);
	mutex_destroy(&reader->lock);
	kfree(reader);
	strobe_ring_put(ring);
	return 0;
}

static const struct file_operations reader_fops = {
	.owner		= THIS_MODULE,
	.read		= reader_read,
	.poll		= reader_poll,
	.mmap		= reader_mmap,
	.unlocked_ioctl	= reader_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= reader_show_fdinfo,
	.release	= reader_release,
	.llseek		= noop_llseek,
};

/**
 * strobe_reader_open() - make a ring fd.
 * @ring: the ring; the caller has a reference.
 * @user: whose it will be; the caller has a reference.
 * @first: row with which read() starts, or STROBE_FROM_NOW.
 * @nonblock: read() does not wait.
 *
 * Context: process.
 * Return: the file, which has a reference of its own, or an ERR_PTR().
 */
struct file *strobe_reader_open(struct strobe_ring *ring, struct strobe_user *user, u64 first,
				bool nonblock)
{
	struct strobe_reader_file *reader = kzalloc(sizeof(*reader), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int ret;

	if (!reader)
		return ERR_PTR(-ENOMEM);
	reader->ring = ring;
	reader->sleeper.user = strobe_user_hold(user);
	reader->next = first == STROBE_FROM_NOW ? strobe_ring_head(ring) : first;
	mutex_init(&reader->lock);
	ret = strobe_wake_join(ring, &reader->sleeper);
	if (ret)
		goto free;
	file = anon_inode_getfile("[strobe-ring]", &reader_fops, reader,
				  O_RDONLY | (nonblock ? O_NONBLOCK : 0));
	if (!IS_ERR(file)) {
		strobe_ring_get(ring);
		return file;
	}
	ret = PTR_ERR(file);
	strobe_wake_leave(ring, &reader->sleeper);
free:
	strobe_user_put(reader->sleeper.user);
	mutex_destroy(&reader->lock);
	kfree(reader);
	return ERR_PTR(ret);
}
