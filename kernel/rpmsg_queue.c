// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages that wait for an endpoint's reader: a ring of bytes. The
 * transport's callback puts them in, in any context, hard interrupts of
 * PREEMPT_RT among them: so it takes no lock and no memory. A transport calls
 * it for one message of an endpoint at a time. read() takes them out, one
 * reader at a time.
 *
 * Two positions are shared, and each has one writer:
 *
 *	callback				reader
 *
 *	load tail	(D)			load head	(B)
 *	store bytes				load bytes
 *	store head	(A)			store tail	(C)
 *
 * A pairs with B: without them the reader could see a head whose bytes are not
 * there yet. C pairs with D: without them the callback could overwrite bytes
 * that the reader still copies.
 */
#include <linux/moduleparam.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "rpmsg.h"

/* Of a message: its length in front of it, and where the next one can begin. */
#define LENGTH	sizeof(u32)

/*
 * 256 messages of 124 bytes, or 65 of virtio's 496: taken with each endpoint,
 * since where messages arrive no memory can be had.
 */
static unsigned int queue_kib = 32;
module_param(queue_kib, uint, 0444);
MODULE_PARM_DESC(queue_kib, "memory for the messages that wait in an endpoint, 4 to 1024 KiB, a power of two (default 32)");

/* The memory of queues. */
static struct kmem_cache *cache;

/*
 * Memory that has a constructor is cleared when it comes from the page
 * allocator only, not for each endpoint anew, which would cost more than all
 * the rest of making one. Nobody gets to see a byte that no message has had.
 */
static void construct(void *bytes)
{
}

/**
 * strobe_rpmsg_queue_setup() - as the module is loaded.
 *
 * Return: 0, -EINVAL for a parameter that is wrong, or -ENOMEM.
 */
int __init strobe_rpmsg_queue_setup(void)
{
	if (queue_kib < 4 || queue_kib > 1024 || !is_power_of_2(queue_kib)) {
		pr_err("strobe_rpmsg: queue_kib=%u: it must be a power of two from 4 to 1024\n",
		       queue_kib);
		return -EINVAL;
	}
	/* All of it may be copied to user space. */
	cache = kmem_cache_create_usercopy("strobe_rpmsg_queue", queue_kib * 1024, LENGTH,
					   SLAB_ACCOUNT, 0, queue_kib * 1024, construct);
	return cache ? 0 : -ENOMEM;
}

/**
 * strobe_rpmsg_queue_cleanup() - as it is unloaded: no queue is there any more.
 */
void strobe_rpmsg_queue_cleanup(void)
{
	kmem_cache_destroy(cache);
}

/**
 * strobe_rpmsg_queue_init() - an empty queue.
 * @queue: to be set up.
 *
 * Return: 0 or -ENOMEM.
 */
int strobe_rpmsg_queue_init(struct strobe_rpmsg_queue *queue)
{
	mutex_init(&queue->reading);
	queue->size = queue_kib * 1024;
	queue->bytes = kmem_cache_alloc(cache, GFP_KERNEL | __GFP_NOWARN);
	return queue->bytes ? 0 : -ENOMEM;
}

/**
 * strobe_rpmsg_queue_free() - give the memory back.
 * @queue: nobody puts or takes any more.
 */
void strobe_rpmsg_queue_free(struct strobe_rpmsg_queue *queue)
{
	kmem_cache_free(cache, queue->bytes);
	mutex_destroy(&queue->reading);
}

/**
 * strobe_rpmsg_queue_put() - a message has come.
 * @queue: its queue.
 * @data: its bytes.
 * @length: how many.
 *
 * Context: any; serialised by the caller.
 * Return: whether there was room for it.
 */
bool strobe_rpmsg_queue_put(struct strobe_rpmsg_queue *queue, const void *data, u32 length)
{
	/* D, pairs with C in strobe_rpmsg_queue_take(): see above. */
	u32 tail = smp_load_acquire(&queue->tail);
	u32 head = queue->head;
	u32 room = queue->size - (head - tail);
	u32 at, front;

	if (length > queue->size - LENGTH || ALIGN(LENGTH + length, LENGTH) > room)
		return false;
	if (queue->put - READ_ONCE(queue->taken) >= RPMSG_EPT_QUEUE_MAX)
		return false;
	at = head & (queue->size - 1);
	/* Not divided: all messages begin at multiples of its size. */
	*(u32 *)(queue->bytes + at) = length;
	at = (at + LENGTH) & (queue->size - 1);
	front = min(length, queue->size - at);
	memcpy(queue->bytes + at, data, front);
	memcpy(queue->bytes, data + front, length - front);
	WRITE_ONCE(queue->put, queue->put + 1);
	/* A, pairs with B in load_head(): see above. */
	smp_store_release(&queue->head, head + ALIGN(LENGTH + length, LENGTH));
	return true;
}

static u32 load_head(const struct strobe_rpmsg_queue *queue)
{
	/* B, pairs with A in strobe_rpmsg_queue_put(): see above. */
	return smp_load_acquire(&queue->head);
}

/**
 * strobe_rpmsg_queue_is_empty() - whether no message waits.
 * @queue: the queue.
 *
 * Context: any.
 * Return: whether none did when it was looked at.
 */
bool strobe_rpmsg_queue_is_empty(const struct strobe_rpmsg_queue *queue)
{
	return load_head(queue) == READ_ONCE(queue->tail);
}

/**
 * strobe_rpmsg_queue_count() - messages that wait.
 * @queue: the queue.
 *
 * Context: any.
 * Return: how many did when it was looked at.
 */
u32 strobe_rpmsg_queue_count(const struct strobe_rpmsg_queue *queue)
{
	/* First what was taken, so that the difference is never below 0. */
	u32 taken = READ_ONCE(queue->taken);

	return min(READ_ONCE(queue->put) - taken, (u32)RPMSG_EPT_QUEUE_MAX);
}

static bool copy(const struct strobe_rpmsg_queue *queue, u32 from, u32 length, struct iov_iter *to)
{
	u32 at = from & (queue->size - 1);
	u32 front = min(length, queue->size - at);

	return copy_to_iter(queue->bytes + at, front, to) == front &&
	       copy_to_iter(queue->bytes, length - front, to) == length - front;
}

/* Under queue->reading. */
static ssize_t take(struct strobe_rpmsg_queue *queue, struct iov_iter *to)
{
	u32 tail = queue->tail;
	u32 length, taken;

	if (load_head(queue) == tail)
		return -EAGAIN;
	length = *(u32 *)(queue->bytes + (tail & (queue->size - 1)));
	taken = min_t(size_t, length, iov_iter_count(to));
	/* A message that could not be copied stays the next one. */
	if (!copy(queue, tail + LENGTH, taken, to))
		return -EFAULT;
	WRITE_ONCE(queue->taken, queue->taken + 1);
	/* C, pairs with D in strobe_rpmsg_queue_put(): see above. */
	smp_store_release(&queue->tail, tail + ALIGN(LENGTH + length, LENGTH));
	return taken;
}

/**
 * strobe_rpmsg_queue_take() - the next message.
 * @queue: its queue.
 * @to: where to; the tail of a longer message is lost.
 * @may_wait: for another reader that is at it.
 *
 * Context: process.
 * Return: bytes of the message, -EAGAIN if there is none, -EFAULT, which leaves
 * it there, or -ERESTARTSYS.
 */
ssize_t strobe_rpmsg_queue_take(struct strobe_rpmsg_queue *queue, struct iov_iter *to,
				bool may_wait)
{
	ssize_t ret;

	if (may_wait) {
		if (mutex_lock_interruptible(&queue->reading))
			return -ERESTARTSYS;
	} else if (!mutex_trylock(&queue->reading)) {
		return -EAGAIN;
	}
	ret = take(queue, to);
	mutex_unlock(&queue->reading);
	return ret;
}
