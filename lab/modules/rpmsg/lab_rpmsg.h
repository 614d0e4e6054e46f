/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lab_rpmsg.ko, of three files, each of which calls those above it:
 *
 *   endpoint.c	endpoints of the host, their addresses, and how messages arrive
 *   remote.c	the program that is the remote processor, and how much it takes
 *   bus.c	the transport: what the host's drivers call, and its channels
 */
#ifndef _LAB_RPMSG_H
#define _LAB_RPMSG_H

#include <linux/irq_work.h>
#include <linux/llist.h>
#include <linux/rpmsg.h>
#include <linux/wait.h>

#define MTU		496
#define REMOTE_FIRST	0x400

struct message {
	struct llist_node	node;	/* under way to an endpoint */
	struct list_head	entry;	/* under way to the remote */
	u32			src;
	u32			dst;
	u32			length;
	u8			data[];
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

static inline struct lab_endpoint *to_lab(struct rpmsg_endpoint *ept)
{
	return container_of(ept, struct lab_endpoint, ept);
}

/* endpoint.c */
struct message *lab_message_new(u32 src, u32 dst, const void *data, size_t length);
struct lab_endpoint *lab_endpoint_new(struct rpmsg_device *rpdev, rpmsg_rx_cb_t cb, void *priv,
				      u32 wanted);
void lab_endpoint_end(struct lab_endpoint *lab);
void lab_endpoint_put(struct lab_endpoint *lab);
struct lab_endpoint *lab_endpoint_find(u32 address, struct rpmsg_endpoint *otherwise);
int lab_endpoint_deliver(struct lab_endpoint *lab, u32 src, const void *data, size_t length);
void lab_endpoint_exit(void);

/* remote.c */
extern bool lab_remote_plugged, lab_remote_stalled;
/* Senders that wait for room, pollers that want to send, and makers of endpoints. */
extern wait_queue_head_t lab_remote_room;
bool lab_remote_is_at(u32 dst);
bool lab_remote_has_room(void);
int lab_remote_take(u32 src, u32 dst, const void *data, size_t length);
int lab_remote_init(void);
void lab_remote_exit(void);

#endif /* _LAB_RPMSG_H */
