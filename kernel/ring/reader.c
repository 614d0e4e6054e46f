// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring fds: mmap, poll, read, STROBE_ARM. Each reader has a cursor, a threshold
 * and a wait queue of its own; readers never wait for each other, and the
 * producer does not know how many there are.
 *
 * Waking. A reader that is about to sleep says at which row it wants to be
 * woken; the least of these is run->wake_at. The producer compares it with head
 * after every row and queues an irq_work if it is reached, so that a row nobody
 * waits for costs one barrier and one load. The irq_work wakes whoever is due
 * and computes wake_at anew; on PREEMPT_RT it runs in a thread, where the
 * locks of wait queues may sleep.
 *
 * No wake-up is lost: barriers E (row.c) and F (below). Either the producer
 * sees the new wake_at, or the reader sees the new head. litmus/WAKE.litmus.
 */
#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/internal.h"

#define NOT_WAITING	U64_MAX
/* Ring fds of one run: the irq_work may have to wake all of them. */
#define READERS_MAX	256

/**
 * struct strobe_reader_file - one ring fd.
 * @run: its run; a reference.
 * @entry: in run->readers, under run->wake_lock.
 * @waiting: in run->waiting, under run->wake_lock.
 * @wanted: least head at which to wake somebody; under run->wake_lock.
 * @armed: by STROBE_ARM; 0 if not. Written by the ioctl, read by poll.
 * @next: cursor of read().
 * @lock: serialises read() on one fd.
 * @queue: who sleeps here.
 */
struct strobe_reader_file {
	struct strobe_run	*run;
	struct list_head	entry;
	struct list_head	waiting;
	u64			wanted;
	u64			armed;
	u64			next;
	struct mutex		lock;	/* see above */
	wait_queue_head_t	queue;
};

static bool is_final(const struct strobe_run *run)
{
	/* G: before head is looked at, or the last row is overlooked. */
	return smp_load_acquire(&run->header->state) >= STROBE_DONE;
}

static u64 load_head(const struct strobe_run *run)
{
	/* C, pairs with B in strobe_row(): the rows counted are whole. */
	return smp_load_acquire(&run->header->head);
}

/**
 * strobe_wake_waiting() - wake those whose rows are there.
 * @work: run->wake.
 *
 * Who does not wait costs nothing here, and there are READERS_MAX at most.
 *
 * Context: hard interrupt, or a thread on PREEMPT_RT.
 */
void strobe_wake_waiting(struct irq_work *work)
{
	struct strobe_run *run = container_of(work, struct strobe_run, wake);
	struct strobe_reader_file *reader, *next;
	u64 least = NOT_WAITING;
	u64 head;

	/* The producer has ended the run: the rest is for a process. */
	if (is_final(run))
		schedule_work(&run->done);
	scoped_guard(spinlock_irqsave, &run->wake_lock) {
		head = load_head(run);
		list_for_each_entry_safe(reader, next, &run->waiting, waiting) {
			if (head < reader->wanted) {
				least = min(least, reader->wanted);
				continue;
			}
			reader->wanted = NOT_WAITING;
			list_del_init(&reader->waiting);
			wake_up_interruptible_poll(&reader->queue, EPOLLIN | EPOLLRDNORM);
		}
		WRITE_ONCE(run->wake_at, least);
	}
}

/**
 * strobe_wake_all() - the run has ended: news for every reader, also for those
 * that wait for no row.
 * @run: the run; final.
 *
 * Context: process.
 */
void strobe_wake_all(struct strobe_run *run)
{
	struct strobe_reader_file *reader;

	scoped_guard(spinlock_irqsave, &run->wake_lock)
		list_for_each_entry(reader, &run->readers, entry)
			wake_up_interruptible_poll(&reader->queue,
						   EPOLLIN | EPOLLRDNORM | EPOLLHUP);
}

static void want(struct strobe_reader_file *reader, u64 row)
{
	struct strobe_run *run = reader->run;

	scoped_guard(spinlock_irqsave, &run->wake_lock) {
		/* Others may sleep on the same fd; who is woken early looks again. */
		reader->wanted = min(reader->wanted, row);
		if (list_empty(&reader->waiting))
			list_add_tail(&reader->waiting, &run->waiting);
		if (row < run->wake_at)
			WRITE_ONCE(run->wake_at, row);
	}
	/*
	 * F, pairs with E in strobe_row(): the caller looks at head again after
	 * this. Without it, it could miss a row whose producer missed wake_at.
	 */
	smp_mb();
}

static bool reached(struct strobe_reader_file *reader, u64 row)
{
	return is_final(reader->run) || load_head(reader->run) >= row;
}

/* Is @row there, or will this reader be woken when it is? */
static bool reached_or_want(struct strobe_reader_file *reader, u64 row)
{
	if (reached(reader, row))
		return true;
	want(reader, row);
	return reached(reader, row);
}

static __poll_t reader_poll(struct file *file, poll_table *wait)
{
	struct strobe_reader_file *reader = file->private_data;
	u64 row;

	poll_wait(file, &reader->queue, wait);
	row = READ_ONCE(reader->armed) ?: READ_ONCE(reader->next) + 1;
	if (!reached_or_want(reader, row))
		return 0;
	if (is_final(reader->run))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	return EPOLLIN | EPOLLRDNORM;
}

/*
 * Copy rows [first, first + count) as they are now; user space gets them without
 * the padding. Rows may be overwritten meanwhile, which the caller finds out.
 */
static int copy_rows(struct strobe_run *run, u64 first, u64 count, size_t size, char __user *to)
{
	for (u64 i = first; i < first + count; i++, to += size)
		if (copy_to_user(to, run->slots + (i & run->mask) * run->stride, size))
			return -EFAULT;
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
	struct strobe_run *run = reader->run;
	u64 capacity = run->mask + 1;

	for (;;) {
		u64 head = load_head(run);
		u64 oldest = strobe_ring_oldest(head, capacity, run->limit);
		u64 first = max(reader->next, oldest);
		u64 count;

		if (first >= head) {
			WRITE_ONCE(reader->next, first);
			return 0;
		}
		count = min(room, head - first);
		if (copy_rows(run, first, count, size, to))
			return -EFAULT;
		/* D, pairs with A in strobe_row(): what was overwritten shows. */
		smp_rmb();
		head = READ_ONCE(run->header->head);
		oldest = strobe_ring_oldest(head, capacity, run->limit);
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
	struct strobe_run *run = reader->run;
	size_t size = sizeof(struct strobe_row) + 8 * run->channels;
	ssize_t count;

	if (length < size)
		return -EINVAL;
	if (mutex_lock_interruptible(&reader->lock))
		return -ERESTARTSYS;
	for (;;) {
		/* Final state before the rows: what is not there now never comes. */
		bool final = is_final(run);

		count = take_rows(reader, to, length / size, size);
		if (count || final)
			break;
		if (reached_or_want(reader, reader->next + 1))
			continue;
		count = -EAGAIN;
		if (file->f_flags & O_NONBLOCK)
			break;
		mutex_unlock(&reader->lock);
		if (wait_event_interruptible(reader->queue,
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

	return strobe_ring_mmap(&reader->run->ring, vma);
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
	WRITE_ONCE(reader->armed, arm.row);
	/* Edge-triggered pollers do not ask again: register it now. */
	if (reached_or_want(reader, arm.row ?: READ_ONCE(reader->next) + 1))
		wake_up_interruptible_poll(&reader->queue, EPOLLIN | EPOLLRDNORM);
	return 0;
}

static void reader_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct strobe_reader_file *reader = file->private_data;

	strobe_run_fdinfo(m, reader->run);
	seq_printf(m, "strobe-next:\t%llu\n", READ_ONCE(reader->next));
	seq_printf(m, "strobe-armed:\t%llu\n", READ_ONCE(reader->armed));
}

/* Make the reader one of its run's; there is a bound to how many wait. */
static int join(struct strobe_reader_file *reader)
{
	struct strobe_run *run = reader->run;
	int ret = 0;

	scoped_guard(spinlock_irqsave, &run->wake_lock) {
		if (run->reader_count < READERS_MAX) {
			list_add_tail(&reader->entry, &run->readers);
			WRITE_ONCE(run->reader_count, run->reader_count + 1);
		} else {
			ret = -EUSERS;
		}
	}
	return ret;
}

static void leave(struct strobe_reader_file *reader)
{
	struct strobe_run *run = reader->run;

	scoped_guard(spinlock_irqsave, &run->wake_lock) {
		list_del(&reader->entry);
		list_del(&reader->waiting);
		WRITE_ONCE(run->reader_count, run->reader_count - 1);
	}
}

static int reader_release(struct inode *inode, struct file *file)
{
	struct strobe_reader_file *reader = file->private_data;
	struct strobe_run *run = reader->run;

	leave(reader);
	mutex_destroy(&reader->lock);
	kfree(reader);
	strobe_run_put(run);
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

static bool may_read(const struct strobe_run *run)
{
	return run->is_shared || uid_eq(current_fsuid(), run->uid) || capable(CAP_SYS_ADMIN);
}

/* A run by its id, with a reference, if the caller may read it. */
static struct strobe_run *run_by_id(u32 id)
{
	struct strobe_run *run;

	guard(mutex)(&strobe_registry);
	run = strobe_find_run(id);
	if (!run)
		return ERR_PTR(-ENOENT);
	if (!may_read(run))
		return ERR_PTR(-EACCES);
	strobe_run_get(run);
	return run;
}

/* A ring fd's file; consumes the reference to @run, whatever happens. */
static struct file *open_reader(struct strobe_run *run, const struct strobe_reader *r)
{
	struct strobe_reader_file *reader = kzalloc(sizeof(*reader), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int ret = -ENOMEM;

	if (!reader)
		goto put;
	reader->run = run;
	reader->wanted = NOT_WAITING;
	reader->next = r->first == STROBE_FROM_NOW ? load_head(run) : r->first;
	INIT_LIST_HEAD(&reader->waiting);
	mutex_init(&reader->lock);
	init_waitqueue_head(&reader->queue);
	ret = join(reader);
	if (ret)
		goto free;
	file = anon_inode_getfile("[strobe-ring]", &reader_fops, reader,
				  O_RDONLY | (r->flags & STROBE_NONBLOCK ? O_NONBLOCK : 0));
	if (!IS_ERR(file))
		return file;
	ret = PTR_ERR(file);
	leave(reader);
free:
	kfree(reader);
put:
	strobe_run_put(run);
	return ERR_PTR(ret);
}

/**
 * strobe_ioctl_reader() - STROBE_READER.
 * @owned: the run, on an owner fd; NULL on the control device.
 * @arg: struct strobe_reader.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_ioctl_reader(struct strobe_run *owned, void __user *arg)
{
	struct strobe_reader r;
	struct strobe_run *run;
	struct file *file;
	int ret;

	ret = strobe_copy_struct(&r, sizeof(r), arg, sizeof(r));
	if (ret)
		return ret;
	if (r.flags & ~STROBE_NONBLOCK || (owned && r.run))
		return -EINVAL;
	if (owned) {
		run = owned;
		strobe_run_get(run);
	} else {
		run = run_by_id(r.run);
		if (IS_ERR(run))
			return PTR_ERR(run);
	}
	r.ring_bytes = run->ring.bytes;
	r.fd = get_unused_fd_flags(O_CLOEXEC);
	if (r.fd < 0) {
		strobe_run_put(run);
		return r.fd;
	}
	file = open_reader(run, &r);
	if (IS_ERR(file)) {
		put_unused_fd(r.fd);
		return PTR_ERR(file);
	}
	return strobe_fd_publish(r.fd, file, arg, &r, sizeof(r));
}
