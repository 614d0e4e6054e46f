/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * strobe_rpmsg.ko: rpmsg endpoints as files, on the public API of
 * <linux/rpmsg.h> alone. What its files know of each other:
 *
 *   rpmsg.c		the module, the driver, a channel's control node
 *   rpmsg_endpoint.c	an endpoint: how messages arrive, and how it ends
 *   rpmsg_file.c	the file of an endpoint
 *   rpmsg_queue.c	the messages that wait for its reader
 *   rpmsg_node.c	an endpoint as a node, the way of the stock driver
 *
 * Who owns what: a file owns its endpoint, and holds its control. A control
 * outlives its channel as long as a file holds it; then there is no channel any
 * more, and each of its endpoints says so.
 *
 * Locks, outer first: control->present, control->making, endpoint->using,
 * control->lock.
 *
 * Barriers have letters, A to J, M and N; litmus/RPMSG-* has them for the kernel's
 * memory model.
 */
#ifndef _STROBE_RPMSG_H
#define _STROBE_RPMSG_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rpmsg.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <uapi/strobe_rpmsg.h>

struct ida;
struct iov_iter;
struct strobe_rpmsg_node;

/**
 * struct strobe_rpmsg_control - a channel, and its control node.
 * @dev: the node; its references are those of this.
 * @cdev: of the node.
 * @present: held for reading by who uses @rpdev, so that the channel stays
 *	meanwhile; for writing by who takes it away.
 * @rpdev: the channel; NULL once it has gone. Written by remove under @present.
 * @lock: guards @endpoints.
 * @endpoints: those that the channel must not outlive.
 * @making: held while a node is made or taken away; guards @nodes.
 * @nodes: the nodes of endpoints.
 */
struct strobe_rpmsg_control {
	struct device		dev;
	struct cdev		cdev;
	struct rw_semaphore	present;
	struct rpmsg_device	*rpdev;
	spinlock_t		lock;	/* see above */
	struct list_head	endpoints;
	struct mutex		making;	/* see above */
	struct list_head	nodes;
};

/**
 * struct strobe_rpmsg_queue - messages from one writer, which may be in hard
 * interrupt context, to one reader at a time.
 * @bytes: of the messages, each a u32 length and its bytes, padded to 4.
 * @size: of @bytes.
 * @head: where the next message is put. Written by the writer.
 * @put: messages ever put. Written by the writer, before @head.
 * @reading: held by the reader.
 * @tail: where the next one is taken from; equal to @head if there is none.
 *	Written under @reading.
 * @taken: messages ever taken. Written under @reading, before @tail.
 */
struct strobe_rpmsg_queue {
	u8		*bytes;
	u32		size;
	u32		head;
	u32		put;
	struct mutex	reading;	/* see above */
	u32		tail;
	u32		taken;
};

/**
 * struct strobe_rpmsg_endpoint - an endpoint as a file.
 * @control: its channel; a reference.
 * @node: the node that was opened; a reference. NULL if there is none.
 * @entry: in control->endpoints.
 * @using: held for reading by who uses @ept, for writing by who takes it away.
 * @ept: what rpmsg knows of it; NULL before it is there, and when it has gone.
 * @info: name of the service, local address, where messages go. Written before
 *	the file is anyone's.
 * @mtu: the most bytes of a message; 0: the transport does not say.
 * @gone: it has been destroyed, nothing will come any more. Written by
 *	strobe_rpmsg_endpoint_detach().
 * @is_paused: the remote wants no messages. Written by the callback.
 * @pause_is_new: @is_paused was written and not asked for since. Set by the
 *	callback, cleared by the ioctl.
 * @queue: messages that have come; put by the callback, taken by read().
 * @received: messages put into @queue; by the callback.
 * @dropped: messages that found no room there; by the callback.
 * @sent: messages that the transport has taken; by write().
 * @wait: who waits for a message or for news; pollers.
 * @room: writers that wait for room.
 * @wake: wakes them, when the callback cannot.
 * @has_woken: @wake was queued. Written by the callback.
 * @forwarding: bit 0: @forward is there, or just put there. Set by the first
 *	poll().
 * @forward: in the transport's queue of those who wait to send, wakes @wait.
 * @forward_from: that queue; NULL: it has none. Written by the first poll(), and
 *	by who has taken @ept away.
 */
struct strobe_rpmsg_endpoint {
	struct strobe_rpmsg_control	*control;
	struct strobe_rpmsg_node	*node;
	struct list_head		entry;
	struct rw_semaphore		using;
	struct rpmsg_endpoint		*ept;
	struct rpmsg_channel_info	info;
	u32				mtu;
	bool				gone;
	bool				is_paused;
	bool				pause_is_new;
	bool				has_woken;
	struct strobe_rpmsg_queue	queue;
	atomic64_t			received;
	atomic64_t			dropped;
	atomic64_t			sent;
	wait_queue_head_t		wait;
	wait_queue_head_t		room;
	struct irq_work			wake;
	unsigned long			forwarding;
	wait_queue_entry_t		forward;
	wait_queue_head_t		*forward_from;
};

/* rpmsg.c */
extern const struct class strobe_rpmsg_class;
extern bool strobe_rpmsg_stock_names;
int strobe_rpmsg_add_node(struct device *dev, struct cdev *cdev, struct ida *numbers,
			  const char *name);
void strobe_rpmsg_remove_node(struct device *dev, struct cdev *cdev, struct ida *numbers);

/* rpmsg_queue.c */
void strobe_rpmsg_queue_init(struct strobe_rpmsg_queue *queue, void *bytes, u32 size);
bool strobe_rpmsg_queue_put(struct strobe_rpmsg_queue *queue, const void *data, u32 length);
ssize_t strobe_rpmsg_queue_take(struct strobe_rpmsg_queue *queue, struct iov_iter *to,
				bool may_wait);
bool strobe_rpmsg_queue_is_empty(const struct strobe_rpmsg_queue *queue);
u32 strobe_rpmsg_queue_count(const struct strobe_rpmsg_queue *queue);

/* rpmsg_endpoint.c */
int strobe_rpmsg_endpoint_setup(void);
void strobe_rpmsg_endpoint_cleanup(void);
struct strobe_rpmsg_endpoint *
strobe_rpmsg_endpoint_new(struct strobe_rpmsg_control *control,
			  const struct rpmsg_channel_info *info);
int strobe_rpmsg_endpoint_attach(struct strobe_rpmsg_endpoint *endpoint);
__poll_t strobe_rpmsg_endpoint_poll(struct strobe_rpmsg_endpoint *endpoint, struct file *file);
void strobe_rpmsg_endpoint_detach(struct strobe_rpmsg_endpoint *endpoint);
void strobe_rpmsg_endpoint_free(struct strobe_rpmsg_endpoint *endpoint);

/**
 * strobe_rpmsg_endpoint_is_gone() - whether it has been destroyed.
 * @endpoint: the endpoint.
 *
 * Context: any.
 * Return: true if so: the messages that are queued are all there will ever be.
 */
static inline bool strobe_rpmsg_endpoint_is_gone(const struct strobe_rpmsg_endpoint *endpoint)
{
	/* F, pairs with E in strobe_rpmsg_endpoint_detach(): the queue is complete. */
	return smp_load_acquire(&endpoint->gone);
}

/* rpmsg_file.c */
extern const struct file_operations strobe_rpmsg_file_fops;
int strobe_rpmsg_check_name(const char *name);
long strobe_rpmsg_create_fd(struct strobe_rpmsg_control *control, void __user *arg);

/* rpmsg_node.c */
long strobe_rpmsg_create_node(struct strobe_rpmsg_control *control, void __user *arg);
void strobe_rpmsg_node_remove(struct strobe_rpmsg_node *node);
void strobe_rpmsg_node_remove_all(struct strobe_rpmsg_control *control);
void strobe_rpmsg_node_close(struct strobe_rpmsg_node *node);

#endif /* _STROBE_RPMSG_H */
