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
#include <linux/minmax.h>
#include <linux/uio.h>

#include "rpmsg.h"

/* Of a message: its length in front of it, and where the next one can begin. */
#define LENGTH	sizeof(u32)

/**
 * strobe_rpmsg_queue_init() - an empty queue.
 * @queue: to be set up; zero.
 * @bytes: memory for its messages.
 * @size: how much of it; a multiple of LENGTH.
 */
void strobe_rpmsg_queue_init(struct strobe_rpmsg_queue *queue, void *bytes, u32 size)
{
	mutex_init(&queue->reading);
	queue->bytes = bytes;
	queue->size = size;
}

/**
 * strobe_rpmsg_queue_cleanup() - the end of a queue, which clears its memory.
 * @queue: nobody puts or takes any more.
 *
 * Context: process.
 */
void strobe_rpmsg_queue_cleanup(struct strobe_rpmsg_queue *queue)
{
	mutex_destroy(&queue->reading);
	if (queue->reached)
		memset(queue->bytes, 0, queue->reached);
}

/* What is so far behind @at, which is below the size. */
static u32 after(const struct strobe_rpmsg_queue *queue, u32 at, u32 length)
{
	at += length;
	return at < queue->size ? at : at - queue->size;
}

/* What a message takes. */
static u32 taken_by(u32 length)
{
	return ALIGN(LENGTH + length, LENGTH);
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
	/* D, pairs with C in drop_first(): see above. */
	u32 tail = smp_load_acquire(&queue->tail);
	u32 head = queue->head;
	u32 used = head >= tail ? head - tail : head + queue->size - tail;
	u32 at, front;

	/* One word stays free: a queue whose positions are equal is empty, not full. */
	if (length > queue->size - 2 * LENGTH || taken_by(length) > queue->size - used - LENGTH)
		return false;
	if (queue->put - READ_ONCE(queue->taken) >= STROBE_RPMSG_QUEUE_MAX)
		return false;
	/* Not divided: all messages begin at multiples of its size. */
	*(u32 *)(queue->bytes + head) = length;
	at = after(queue, head, LENGTH);
	front = min(length, queue->size - at);
	memcpy(queue->bytes + at, data, front);
	memcpy(queue->bytes, data + front, length - front);
	queue->reached = max(queue->reached, min(head + taken_by(length), queue->size));
	WRITE_ONCE(queue->put, queue->put + 1);
	/* A, pairs with B in load_head(): see above. */
	smp_store_release(&queue->head, after(queue, head, taken_by(length)));
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
	/*
	 * N, pairs with M in drop_first(): what was taken had been put. Without them
	 * more could have been taken than put.
	 */
	u32 taken = smp_load_acquire(&queue->taken);

	return min(READ_ONCE(queue->put) - taken, (u32)STROBE_RPMSG_QUEUE_MAX);
}

static bool copy(const struct strobe_rpmsg_queue *queue, u32 from, u32 length, struct iov_iter *to)
{
	u32 front = min(length, queue->size - from);

	return copy_to_iter(queue->bytes + from, front, to) == front &&
	       copy_to_iter(queue->bytes, length - front, to) == length - front;
}

/* Under queue->reading; there is one. */
static void drop_first(struct strobe_rpmsg_queue *queue)
{
	u32 length = *(u32 *)(queue->bytes + queue->tail);

	/* M, pairs with N in strobe_rpmsg_queue_count(): see there. */
	smp_store_release(&queue->taken, queue->taken + 1);
	/* C, pairs with D in strobe_rpmsg_queue_put(): see above. */
	smp_store_release(&queue->tail, after(queue, queue->tail, taken_by(length)));
}

/* Under queue->reading. */
static ssize_t take(struct strobe_rpmsg_queue *queue, struct iov_iter *to)
{
	u32 tail = queue->tail;
	u32 length, taken;

	if (load_head(queue) == tail)
		return -EAGAIN;
	length = *(u32 *)(queue->bytes + tail);
	taken = min_t(size_t, length, iov_iter_count(to));
	/* A message that could not be copied stays the next one. */
	if (!copy(queue, after(queue, tail, LENGTH), taken, to))
		return -EFAULT;
	drop_first(queue);
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

/**
 * strobe_rpmsg_queue_forget() - whoever reads next sees none of the messages
 * that wait now.
 * @queue: the queue; nobody reads.
 *
 * Context: process.
 */
void strobe_rpmsg_queue_forget(struct strobe_rpmsg_queue *queue)
{
	u32 head = load_head(queue);

	guard(mutex)(&queue->reading);
	while (queue->tail != head)
		drop_first(queue);
}
