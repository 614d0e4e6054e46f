/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * strobe_rpmsg.ko: rpmsg endpoints as files. What its files know of each other;
 * each calls only those above it:
 *
 *   nodes.c	device files: their names and numbers
 *   queue.c	the messages that wait for an endpoint's reader
 *   channel.c	a channel, as long as an endpoint of it is there
 *   endpoint.c	an endpoint: how messages arrive, and how it ends
 *   file.c	what a file of an endpoint does
 *   create.c	an endpoint as a file without a node
 *   node.c	an endpoint as a node, the way of the stock driver
 *   raw.c	a channel's own endpoint as a node, as that driver has it
 *   control.c	the control node of a channel
 *   module.c	the module
 *
 * It uses the public API of <linux/rpmsg.h>, and three functions that the core
 * exports to the stock driver: see the end.
 *
 * Who owns what: a file owns its endpoint, that its channel; the channel of the
 * bus may go before, and then each of its endpoints says so.
 *
 * Locks, outer first: channel->present, that of nodes, endpoint->using,
 * channel->lock.
 *
 * Barriers have letters, A to J, M to O; litmus/RPMSG-* has them for the kernel's
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
#include <linux/refcount.h>
#include <linux/rpmsg.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <uapi/strobe_rpmsg.h>

struct iov_iter;
struct kiocb;
struct seq_file;

/* What a device file is for. */
enum strobe_rpmsg_node_kind {
	STROBE_RPMSG_NODE_CONTROL,
	STROBE_RPMSG_NODE_ENDPOINT,
};

/**
 * struct strobe_rpmsg_channel - a channel.
 * @references: of its driver, its endpoints and its nodes.
 * @present: held for reading by who uses @rpdev, so that the channel stays
 *	meanwhile; for writing by who takes it away.
 * @rpdev: that of the bus; NULL once it has gone. Written by the driver's remove
 *	under @present.
 * @is_addressed: its messages carry the address that they go to. Constant.
 * @lock: guards @endpoints.
 * @endpoints: those that the channel must not outlive.
 */
struct strobe_rpmsg_channel {
	refcount_t		references;
	struct rw_semaphore	present;
	struct rpmsg_device	*rpdev;
	bool			is_addressed;
	spinlock_t		lock;	/* see above */
	struct list_head	endpoints;
};

/**
 * struct strobe_rpmsg_queue - messages from one writer, which may be in hard
 * interrupt context, to one reader at a time.
 * @bytes: of the messages, each a u32 length and its bytes, padded to 4.
 * @size: of @bytes.
 * @head: where the next message is put. Written by the writer.
 * @put: messages ever put. Written by the writer, before @head.
 * @reached: of @bytes, how many from the first on have been written to. Written
 *	by the writer.
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
	u32		reached;
	struct mutex	reading;	/* see above */
	u32		tail;
	u32		taken;
};

/**
 * struct strobe_rpmsg_endpoint - an endpoint as a file.
 * @channel: its channel; a reference.
 * @references: of its file; of a channel's own, also of the driver and the node.
 * @entry: in channel->endpoints.
 * @using: held for reading by who uses @ept, for writing by who takes it away.
 * @ept: what rpmsg knows of it; NULL before it is there, and when it has gone.
 * @info: name of the service, local address, where messages go. Written before
 *	the file is anyone's.
 * @mtu: the most bytes of a message; 0: the transport does not say.
 * @is_default: it is the channel's own. Written before it is attached.
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
	struct strobe_rpmsg_channel	*channel;
	refcount_t			references;
	struct list_head		entry;
	struct rw_semaphore		using;
	struct rpmsg_endpoint		*ept;
	struct rpmsg_channel_info	info;
	u32				mtu;
	bool				is_default;
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

/* nodes.c */
extern bool strobe_rpmsg_stock_names;
int strobe_rpmsg_nodes_setup(void);
void strobe_rpmsg_nodes_cleanup(void);
int strobe_rpmsg_nodes_add(struct device *dev, struct cdev *cdev, enum strobe_rpmsg_node_kind kind);
void strobe_rpmsg_nodes_remove(struct device *dev, struct cdev *cdev,
			       enum strobe_rpmsg_node_kind kind);

/* queue.c */
void strobe_rpmsg_queue_init(struct strobe_rpmsg_queue *queue, void *bytes, u32 size);
bool strobe_rpmsg_queue_put(struct strobe_rpmsg_queue *queue, const void *data, u32 length);
ssize_t strobe_rpmsg_queue_take(struct strobe_rpmsg_queue *queue, struct iov_iter *to,
				bool may_wait);
bool strobe_rpmsg_queue_is_empty(const struct strobe_rpmsg_queue *queue);
u32 strobe_rpmsg_queue_count(const struct strobe_rpmsg_queue *queue);
void strobe_rpmsg_queue_forget(struct strobe_rpmsg_queue *queue);
void strobe_rpmsg_queue_cleanup(struct strobe_rpmsg_queue *queue);

/* channel.c */
struct strobe_rpmsg_channel *strobe_rpmsg_channel_new(struct rpmsg_device *rpdev);
void strobe_rpmsg_channel_put(struct strobe_rpmsg_channel *channel);

/* endpoint.c */
int strobe_rpmsg_endpoint_setup(void);
void strobe_rpmsg_endpoint_cleanup(void);
struct strobe_rpmsg_endpoint *
strobe_rpmsg_endpoint_new(struct strobe_rpmsg_channel *channel,
			  const struct rpmsg_channel_info *info);
int strobe_rpmsg_endpoint_attach(struct strobe_rpmsg_endpoint *endpoint);
__poll_t strobe_rpmsg_endpoint_poll(struct strobe_rpmsg_endpoint *endpoint, struct file *file);
void strobe_rpmsg_endpoint_detach(struct strobe_rpmsg_endpoint *endpoint);
void strobe_rpmsg_endpoint_adopt(struct strobe_rpmsg_endpoint *endpoint,
				 struct rpmsg_endpoint *ept);
int strobe_rpmsg_endpoint_on_default(struct rpmsg_device *rpdev, void *data, int length,
				     void *priv, u32 src);
void strobe_rpmsg_endpoint_detach_all(struct strobe_rpmsg_channel *channel);
void strobe_rpmsg_endpoint_put(struct strobe_rpmsg_endpoint *endpoint);

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

/* file.c */
int strobe_rpmsg_file_copy_in(void *to, size_t room, size_t least, const void __user *arg);
ssize_t strobe_rpmsg_file_read(struct kiocb *io, struct iov_iter *to);
ssize_t strobe_rpmsg_file_write(struct kiocb *io, struct iov_iter *from);
__poll_t strobe_rpmsg_file_poll(struct file *file, poll_table *wait);
long strobe_rpmsg_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
void strobe_rpmsg_file_show_fdinfo(struct seq_file *m, struct file *file);

/* create.c */
long strobe_rpmsg_create(struct strobe_rpmsg_channel *channel, void __user *arg);
long strobe_rpmsg_create_of_series(struct strobe_rpmsg_channel *channel, void __user *arg);

/* node.c */
int strobe_rpmsg_node_create(struct strobe_rpmsg_channel *channel, struct device *parent,
			     const struct rpmsg_channel_info *info);
int strobe_rpmsg_node_create_default(struct strobe_rpmsg_channel *channel, struct device *parent,
				     struct strobe_rpmsg_endpoint *endpoint);
void strobe_rpmsg_node_remove_all(struct strobe_rpmsg_channel *channel);

/* raw.c */
extern struct rpmsg_driver strobe_rpmsg_raw_driver;
void strobe_rpmsg_raw_setup(void);

/* control.c */
extern struct rpmsg_driver strobe_rpmsg_control_driver;

/* The core exports these to the stock driver, and declares them in a header that no package has. */
struct device *rpmsg_find_device(struct device *parent, struct rpmsg_channel_info *info);
struct rpmsg_device *rpmsg_create_channel(struct rpmsg_device *rpdev,
					  struct rpmsg_channel_info *info);
int rpmsg_release_channel(struct rpmsg_device *rpdev, struct rpmsg_channel_info *info);

#endif /* _STROBE_RPMSG_H */
