// SPDX-License-Identifier: GPL-2.0-only
/*
 * An endpoint: messages arrive, and it ends.
 *
 * The end. Who destroys the endpoint (the call, close(), the channel's removal)
 * first keeps new users away and waits for those that are at it (@using), then
 * destroys it, after which no callback runs, and only then says @gone: so the
 * messages that are queued by then are all there will ever be, and stay readable.
 * Nobody waits for messages in @using, or for room to send but as glink does.
 *
 * Waking. The callback may be in hard interrupt context, where PREEMPT_RT can
 * take no lock of a wait queue: then an irq_work wakes.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "rpmsg.h"

/*
 * 32 KiB: 256 messages of 120 bytes, or 64 of virtio's 496. Taken with each
 * endpoint, since where messages arrive no memory can be had.
 */
static unsigned int queue_kib = 32;
module_param(queue_kib, uint, 0444);
MODULE_PARM_DESC(queue_kib, "memory of an endpoint, most of it for messages that wait, 4 to 1024 KiB, a power of two (default 32)");

/* The memory of endpoints and their queues. */
static struct kmem_cache *cache;

/* Less the pointer that the cache puts behind; with it the cache would take twice as much. */
static u32 memory_size(void)
{
	return queue_kib * SZ_1K - sizeof(void *);
}

/*
 * Memory of the cache is clear whenever it is nobody's: it comes so from here,
 * and who frees an endpoint clears what has been written to. A kernel that
 * clears all memory as it is taken, or given back, does not do so with memory
 * that has a constructor; else it would clear all of a queue for each endpoint,
 * of which most messages never come, and that costs more than all the rest of
 * making one.
 */
static void construct(void *memory)
{
	memset(memory, 0, memory_size());
}

/**
 * strobe_rpmsg_endpoint_setup() - as the module is loaded.
 *
 * Return: 0, -EINVAL for a parameter that is wrong, or -ENOMEM.
 */
int __init strobe_rpmsg_endpoint_setup(void)
{
	const u32 front = sizeof(struct strobe_rpmsg_endpoint);

	/* Messages have most of the least memory. */
	BUILD_BUG_ON(sizeof(struct strobe_rpmsg_endpoint) >
		     SZ_1K - sizeof(void *) - sizeof(u32));
	if (queue_kib < 4 || queue_kib > 1024 || !is_power_of_2(queue_kib)) {
		pr_err("strobe_rpmsg: queue_kib=%u: it must be a power of two from 4 to 1024\n",
		       queue_kib);
		return -EINVAL;
	}
	/* Messages may be copied to user space, and nothing else. */
	cache = kmem_cache_create_usercopy("strobe_rpmsg_endpoint", memory_size(),
					   __alignof__(struct strobe_rpmsg_endpoint), SLAB_ACCOUNT,
					   front, memory_size() - front, construct);
	return cache ? 0 : -ENOMEM;
}

/**
 * strobe_rpmsg_endpoint_cleanup() - as it is unloaded: no endpoint is there any more.
 */
void strobe_rpmsg_endpoint_cleanup(void)
{
	kmem_cache_destroy(cache);
}

static void wake_now(struct irq_work *work)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(work, struct strobe_rpmsg_endpoint, wake);

	wake_up_interruptible_poll(&endpoint->wait, EPOLLIN | EPOLLRDNORM | EPOLLPRI);
}

static void news(struct strobe_rpmsg_endpoint *endpoint)
{
	/*
	 * Its barrier G pairs with the one that a task has between joining the
	 * queue and looking (H in file_poll()): either it sees the news, or
	 * is seen here.
	 */
	if (!wq_has_sleeper(&endpoint->wait))
		return;
	if (irqs_disabled()) {
		WRITE_ONCE(endpoint->has_woken, true);
		irq_work_queue(&endpoint->wake);
	} else {
		wake_now(&endpoint->wake);
	}
}

/* A message has come: in any context, one at a time. */
static int on_message(struct rpmsg_device *rpdev, void *data, int length, void *priv, u32 src)
{
	struct strobe_rpmsg_endpoint *endpoint = priv;

	if (!strobe_rpmsg_queue_put(&endpoint->queue, data, length)) {
		atomic64_inc(&endpoint->dropped);
		return 0;
	}
	atomic64_inc(&endpoint->received);
	news(endpoint);
	return 0;
}

/**
 * strobe_rpmsg_endpoint_on_default() - a message has come for the channel's own
 * endpoint.
 * @rpdev: the channel of the bus.
 * @data: its bytes.
 * @length: how many.
 * @priv: what strobe_rpmsg_endpoint_adopt() has set; NULL before.
 * @src: who has sent it.
 *
 * Context: any, one at a time.
 * Return: 0.
 */
int strobe_rpmsg_endpoint_on_default(struct rpmsg_device *rpdev, void *data, int length,
				     void *priv, u32 src)
{
	struct strobe_rpmsg_endpoint *endpoint = priv;

	if (!endpoint || READ_ONCE(endpoint->gone))
		return 0;
	return on_message(rpdev, data, length, priv, src);
}

/* The remote wants no more messages, or wants them again: in any context. */
static int on_pause(struct rpmsg_device *rpdev, void *priv, bool pause)
{
	struct strobe_rpmsg_endpoint *endpoint = priv;

	WRITE_ONCE(endpoint->is_paused, pause);
	/* J, pairs with I in get_pause(): see there. */
	smp_mb();
	WRITE_ONCE(endpoint->pause_is_new, true);
	news(endpoint);
	return 0;
}

/* The transport has room again. */
static int on_room(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(entry, struct strobe_rpmsg_endpoint, forward);

	wake_up_interruptible_poll(&endpoint->wait, EPOLLOUT | EPOLLWRNORM);
	return 0;
}

struct forward_table {
	poll_table			table;
	struct strobe_rpmsg_endpoint	*endpoint;
};

static void forward(struct file *file, wait_queue_head_t *from, poll_table *table)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(table, struct forward_table, table)->endpoint;

	if (endpoint->forward_from)
		return;
	endpoint->forward_from = from;
	add_wait_queue(from, &endpoint->forward);
}

/**
 * strobe_rpmsg_endpoint_poll() - what the transport says of itself.
 * @endpoint: attached.
 * @file: its file.
 *
 * Pollers wait in a queue of the endpoint, never in one of the transport, which
 * would go with the channel while they are in it: one entry there, put there by
 * the first of them, wakes them.
 *
 * Context: process; endpoint->using is held.
 * Return: EPOLLOUT if it has room and says so.
 */
__poll_t strobe_rpmsg_endpoint_poll(struct strobe_rpmsg_endpoint *endpoint, struct file *file)
{
	struct forward_table forwarding = { .endpoint = endpoint };
	__poll_t mask;

	/* Looked at first, for that writes to what the callback uses, too. */
	if (test_bit(0, &endpoint->forwarding) || test_and_set_bit(0, &endpoint->forwarding))
		return rpmsg_poll(endpoint->ept, file, NULL);
	init_waitqueue_func_entry(&endpoint->forward, on_room);
	init_poll_funcptr(&forwarding.table, forward);
	rpmsg_poll(endpoint->ept, file, &forwarding.table);
	/* Room that came before the entry was there has woken nobody, other pollers neither. */
	mask = rpmsg_poll(endpoint->ept, file, NULL);
	if (mask)
		wake_up_interruptible_poll(&endpoint->wait, mask);
	return mask;
}

static void end_forwarding(struct strobe_rpmsg_endpoint *endpoint)
{
	if (endpoint->forward_from)
		remove_wait_queue(endpoint->forward_from, &endpoint->forward);
	endpoint->forward_from = NULL;
}

/**
 * strobe_rpmsg_endpoint_new() - an endpoint that is not there yet.
 * @channel: its channel; a reference is taken.
 * @info: what is wanted; the name ends in a NUL.
 *
 * Context: process.
 * Return: the endpoint, with a reference, or NULL without memory.
 */
struct strobe_rpmsg_endpoint *
strobe_rpmsg_endpoint_new(struct strobe_rpmsg_channel *channel,
			  const struct rpmsg_channel_info *info)
{
	struct strobe_rpmsg_endpoint *endpoint =
		kmem_cache_alloc(cache, GFP_KERNEL | __GFP_NOWARN);

	if (!endpoint)
		return NULL;
	refcount_set(&endpoint->references, 1);
	strobe_rpmsg_queue_init(&endpoint->queue, endpoint + 1, memory_size() - sizeof(*endpoint));
	refcount_inc(&channel->references);
	endpoint->channel = channel;
	INIT_LIST_HEAD(&endpoint->entry);
	init_rwsem(&endpoint->using);
	init_waitqueue_head(&endpoint->wait);
	init_waitqueue_head(&endpoint->room);
	init_irq_work(&endpoint->wake, wake_now);
	endpoint->info = *info;
	return endpoint;
}

/**
 * strobe_rpmsg_endpoint_put() - give a reference back; the last one frees it.
 * @endpoint: is detached if it is the last one.
 *
 * Context: process.
 */
void strobe_rpmsg_endpoint_put(struct strobe_rpmsg_endpoint *endpoint)
{
	if (!refcount_dec_and_test(&endpoint->references))
		return;
	/* On PREEMPT_RT that takes a grace period: only if there may be something to wait for. */
	if (endpoint->has_woken)
		irq_work_sync(&endpoint->wake);
	strobe_rpmsg_channel_put(endpoint->channel);
	strobe_rpmsg_queue_cleanup(&endpoint->queue);
	/* As construct() has it. */
	memset(endpoint, 0, sizeof(*endpoint));
	kmem_cache_free(cache, endpoint);
}

/* The transport knows of it. */
static inline void join(struct strobe_rpmsg_endpoint *endpoint, struct rpmsg_endpoint *ept)
{
	ept->flow_cb = on_pause;
	endpoint->ept = ept;
	endpoint->info.src = ept->addr;
	endpoint->mtu = max(rpmsg_get_mtu(ept), 0);
	scoped_guard(spinlock, &endpoint->channel->lock)
		list_add_tail(&endpoint->entry, &endpoint->channel->endpoints);
}

/**
 * strobe_rpmsg_endpoint_attach() - make it known to the transport.
 * @endpoint: the endpoint.
 *
 * Context: process; channel->present is held.
 * Return: 0; -ENETRESET if the channel has gone; if the transport makes none, of
 * which it does not say why, -EADDRINUSE for a chosen address, else -ENOMEM.
 */
int strobe_rpmsg_endpoint_attach(struct strobe_rpmsg_endpoint *endpoint)
{
	struct rpmsg_device *rpdev = endpoint->channel->rpdev;
	struct rpmsg_endpoint *ept;

	if (!rpdev)
		return -ENETRESET;
	/* Messages may come before this has returned. */
	ept = rpmsg_create_ept(rpdev, on_message, endpoint, endpoint->info);
	if (!ept)
		return endpoint->info.src == RPMSG_ADDR_ANY ? -ENOMEM : -EADDRINUSE;
	join(endpoint, ept);
	return 0;
}

/**
 * strobe_rpmsg_endpoint_adopt() - it is the channel's own, which is there already.
 * @endpoint: the endpoint; not attached. Stays until the core has destroyed its
 *	own.
 * @ept: that of the channel, with strobe_rpmsg_endpoint_on_default().
 *
 * Context: process, in the driver's probe.
 */
void strobe_rpmsg_endpoint_adopt(struct strobe_rpmsg_endpoint *endpoint, struct rpmsg_endpoint *ept)
{
	endpoint->is_default = true;
	join(endpoint, ept);
	/*
	 * O, pairs with the address dependency of the callback, which is called
	 * with it: without it a message could be put into a queue that is not set
	 * up yet.
	 */
	smp_store_release(&ept->priv, endpoint);
}

/**
 * strobe_rpmsg_endpoint_detach() - the endpoint ends, its file stays.
 * @endpoint: attached or not any more; the second time nothing happens.
 *
 * Context: process; channel->present is held, so that the transport stays.
 */
void strobe_rpmsg_endpoint_detach(struct strobe_rpmsg_endpoint *endpoint)
{
	struct rpmsg_endpoint *ept;

	scoped_guard(rwsem_write, &endpoint->using) {
		ept = endpoint->ept;
		endpoint->ept = NULL;
	}
	if (!ept)
		return;
	scoped_guard(spinlock, &endpoint->channel->lock)
		list_del_init(&endpoint->entry);
	end_forwarding(endpoint);
	/* Not every transport takes that of pauses back; one that is just at it does not look. */
	WRITE_ONCE(ept->flow_cb, NULL);
	/*
	 * No other callback runs after this. The channel's own is the core's,
	 * which destroys it when its driver has let go; what comes until then is
	 * the last that will.
	 */
	if (!endpoint->is_default)
		rpmsg_destroy_ept(ept);
	/*
	 * E, pairs with F in strobe_rpmsg_endpoint_is_gone(): without them a
	 * reader could believe that the last message is not there, and that
	 * none will come.
	 */
	smp_store_release(&endpoint->gone, true);
	/* G again: see news(). */
	if (wq_has_sleeper(&endpoint->wait))
		wake_up_all(&endpoint->wait);
	if (wq_has_sleeper(&endpoint->room))
		wake_up_all(&endpoint->room);
}

/**
 * strobe_rpmsg_endpoint_detach_all() - all endpoints of a channel end.
 * @channel: the channel.
 *
 * Context: process; channel->present is held for writing.
 */
void strobe_rpmsg_endpoint_detach_all(struct strobe_rpmsg_channel *channel)
{
	struct strobe_rpmsg_endpoint *endpoint, *next;

	list_for_each_entry_safe(endpoint, next, &channel->endpoints, entry)
		strobe_rpmsg_endpoint_detach(endpoint);
}
