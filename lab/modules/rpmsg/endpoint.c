// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab_rpmsg.ko: endpoints of the host, who has which address, and how a message
 * arrives: in process context or in a hard interrupt, unless it is lost.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "lab_rpmsg.h"
#include "rpmsg_internal.h"

/*
 * Of endpoints that do not care: between what a test chooses and the remote's,
 * so low that they cost what virtio's cost, which begin with 1024; then any.
 */
#define HOST_FIRST	0x300
#define HOST_MORE	0x10000

/* Who has which address. */
static DEFINE_MUTEX(bus);
static DEFINE_IDR(addresses);

static bool hard;
module_param(hard, bool, 0644);
MODULE_PARM_DESC(hard, "callbacks run in hard interrupt context");

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

/* Bytes that the maker of an endpoint has for sure, and where they are looked at. */
static unsigned int look;
module_param(look, uint, 0644);
MODULE_PARM_DESC(look, "bytes behind the first 1024 of an endpoint's maker that should be zero");
#define LOOK_BEHIND	1024

static unsigned long unclean;
module_param(unclean, ulong, 0444);
MODULE_PARM_DESC(unclean, "bytes of these that were not");

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

/* Of who has got it from lab_endpoint_find(), or has made it. */
void lab_endpoint_put(struct lab_endpoint *lab)
{
	kref_put(&lab->ept.refcount, free_endpoint);
}

/* Consumed by who takes it; NULL without memory. */
struct message *lab_message_new(u32 src, u32 dst, const void *data, size_t length)
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

/* Under bus. */
static int any_address(struct rpmsg_endpoint *ept)
{
	int address = idr_alloc(&addresses, ept, HOST_FIRST, REMOTE_FIRST, GFP_KERNEL);

	return address == -ENOSPC ? idr_alloc(&addresses, ept, HOST_MORE, 0, GFP_KERNEL) : address;
}

/* One test at a time wants to know. */
static void look_at(const u8 *maker)
{
	for (unsigned int i = 0; maker && i < READ_ONCE(look); i++)
		if (maker[LOOK_BEHIND + i])
			WRITE_ONCE(unclean, unclean + 1);
}

/* NULL if the address is taken or cannot be one, or without memory. */
struct lab_endpoint *lab_endpoint_new(struct rpmsg_device *rpdev, rpmsg_rx_cb_t cb, void *priv,
				      u32 wanted)
{
	struct lab_endpoint *lab = kzalloc(sizeof(*lab), GFP_KERNEL);
	int address = -EINVAL;

	if (!lab)
		return NULL;
	kref_init(&lab->ept.refcount);
	mutex_init(&lab->ept.cb_lock);
	raw_spin_lock_init(&lab->calling);
	lab->interrupt = IRQ_WORK_INIT_HARD(interrupt);
	lab->ept.rpdev = rpdev;
	lab->ept.cb = cb;
	lab->ept.priv = priv;
	if (READ_ONCE(look))
		look_at(priv);
	scoped_guard(mutex, &bus) {
		if (wanted == RPMSG_ADDR_ANY)
			address = any_address(&lab->ept);
		else if (wanted < INT_MAX)
			address = idr_alloc(&addresses, &lab->ept, wanted, wanted + 1, GFP_KERNEL);
		lab->ept.addr = address;
	}
	if (address >= 0)
		return lab;
	kfree(lab);
	return NULL;
}

/* After this no callback runs, and none will start. */
void lab_endpoint_end(struct lab_endpoint *lab)
{
	scoped_guard(mutex, &bus)
		idr_remove(&addresses, lab->ept.addr);
	scoped_guard(mutex, &lab->ept.cb_lock) {
		scoped_guard(raw_spinlock_irqsave, &lab->calling) {
			lab->ept.cb = NULL;
			lab->ept.flow_cb = NULL;
		}
	}
	irq_work_sync(&lab->interrupt);
	lab_endpoint_put(lab);
}

/* The endpoint with that address, with a reference; else @otherwise, which may be NULL. */
struct lab_endpoint *lab_endpoint_find(u32 address, struct rpmsg_endpoint *otherwise)
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
int lab_endpoint_deliver(struct lab_endpoint *lab, u32 src, const void *data, size_t length)
{
	struct message *message;
	int ret = 0;

	if (is_lost(length))
		goto put;
	if (!READ_ONCE(hard)) {
		scoped_guard(mutex, &lab->ept.cb_lock)
			if (lab->ept.cb)
				lab->ept.cb(lab->ept.rpdev, (void *)data, length,
					    lab->ept.priv, src);
		goto put;
	}
	free_all(llist_del_all(&lab->done));
	message = lab_message_new(src, lab->ept.addr, data, length);
	if (message) {
		llist_add(&message->node, &lab->under_way);
		irq_work_queue(&lab->interrupt);
	} else {
		ret = -ENOMEM;
	}
put:
	lab_endpoint_put(lab);
	return ret;
}

void lab_endpoint_exit(void)
{
	idr_destroy(&addresses);
}
