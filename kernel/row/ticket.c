// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets: how the value of an async channel finds its row.
 *
 * Every async channel of a run has a place here, and every value that is
 * awaited a number of its own. A number is used once: one that is unknown, used
 * up or given up is refused, so that a completion may come twice, late, after
 * the end of the run, or from a driver that has gone mad.
 *
 * Lock: ticket->lock, before that of the run (slow.c); raw, for hard interrupt
 * context. Who holds it with a number that is awaited keeps the run.
 */
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "row/slow.h"

/* Async channels in use by all runs together. A power of two. */
#define TICKETS		1024

/**
 * struct ticket - where the value of an async channel of a run goes.
 * @lock: protects the others.
 * @number: of the value that is awaited; 0: none is.
 * @serial: of the last one.
 * @slow: the run; NULL while nobody has this place.
 * @column: of the channel.
 */
static struct ticket {
	raw_spinlock_t		lock;	/* see above */
	u64			number;
	u64			serial;
	struct strobe_slow	*slow;
	u16			column;
} tickets[TICKETS];
static DEFINE_IDA(places);

/* Completions that were refused. */
static atomic_t strays = ATOMIC_INIT(0);

static int strays_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%u\n", atomic_read(&strays));
}

static const struct kernel_param_ops strays_ops = { .get = strays_get };
module_param_cb(strays, &strays_ops, NULL, 0444);
MODULE_PARM_DESC(strays, "values of async channels that came when no row awaited them (read only)");

/**
 * strobe_ticket_new() - a value is going to be awaited.
 * @place: of the channel, where none is awaited.
 *
 * Context: process or hard; the caller does the steps of the run.
 * Return: its number, never 0.
 */
u64 strobe_ticket_new(u32 place)
{
	struct ticket *ticket = &tickets[place];
	u64 number;

	scoped_guard(raw_spinlock_irqsave, &ticket->lock) {
		strobe_slow_await(ticket->slow);
		number = ++ticket->serial * TICKETS + place;
		ticket->number = number;
	}
	return number;
}

/**
 * strobe_ticket_use() - a value is there, or will never be.
 * @number: of the value.
 * @value: the value.
 * @error: 0 or an errno.
 *
 * Context: any but NMI.
 * Return: whether it was awaited.
 */
bool strobe_ticket_use(u64 number, u64 value, int error)
{
	struct ticket *ticket = &tickets[number % TICKETS];

	bool awaited;

	scoped_guard(raw_spinlock_irqsave, &ticket->lock) {
		awaited = number && ticket->number == number;
		if (awaited) {
			ticket->number = 0;
			strobe_slow_arrive(ticket->slow, ticket->column, value, error);
		}
	}
	return awaited;
}

/**
 * strobe_ticket_give_up() - the value is not awaited any more.
 * @place: of its channel.
 *
 * Context: process.
 */
void strobe_ticket_give_up(u32 place)
{
	scoped_guard(raw_spinlock_irqsave, &tickets[place].lock)
		tickets[place].number = 0;
}

/**
 * strobe_complete() - the value of an async channel is there.
 * @ticket: which value: as the channel's begin() was told.
 * @value: the value.
 * @error: 0; or an errno, which makes the word 0 and sets the row's fault.
 *
 * The row is published if this was the last value it waited for. May be called
 * from within begin(), and at any time later; a ticket that is used up, or was
 * given up because the run went on without it, does nothing and is counted in
 * the module parameter "strays".
 *
 * Context: any, hard interrupts included; not NMI.
 * Return: whether the value was awaited.
 */
bool strobe_complete(u64 ticket, u64 value, int error)
{
	bool awaited = strobe_ticket_use(ticket, value, error);

	if (!awaited)
		atomic_inc(&strays);
	return awaited;
}
EXPORT_SYMBOL_GPL(strobe_complete);

/**
 * strobe_ticket_take_place() - a run has an async channel.
 * @slow: the run.
 * @column: of the channel.
 *
 * Context: process.
 * Return: its place; or -EUSERS: no more than TICKETS; or another errno.
 */
int strobe_ticket_take_place(struct strobe_slow *slow, u16 column)
{
	int place = ida_alloc_max(&places, TICKETS - 1, GFP_KERNEL);

	if (place < 0)
		return place == -ENOSPC ? -EUSERS : place;
	scoped_guard(raw_spinlock_irqsave, &tickets[place].lock) {
		tickets[place].slow = slow;
		tickets[place].column = column;
	}
	return place;
}

/**
 * strobe_ticket_free_place() - the run has gone.
 * @place: of its channel.
 *
 * Context: process.
 */
void strobe_ticket_free_place(u32 place)
{
	scoped_guard(raw_spinlock_irqsave, &tickets[place].lock) {
		tickets[place].number = 0;
		tickets[place].slow = NULL;
	}
	ida_free(&places, place);
}

/**
 * strobe_ticket_init() - once, when the module is loaded.
 */
void strobe_ticket_init(void)
{
	for (int i = 0; i < TICKETS; i++)
		raw_spin_lock_init(&tickets[i].lock);
}
