// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking the readers of a ring.
 *
 * A reader that is about to sleep says at which row it wants to be woken; the
 * least of these is ring->wake_at. The producer compares it with head after
 * every row and queues an irq_work if it is reached, so that a row nobody waits
 * for costs one barrier and one load. The irq_work wakes whoever is due and
 * computes wake_at anew; on PREEMPT_RT it runs in a thread, where the locks of
 * wait queues may sleep.
 *
 * No wake-up is lost: barriers E (row/row.h) and F (below). Either the producer
 * sees the new wake_at, or the reader sees the new head. litmus/WAKE.litmus.
 */
#include <linux/cleanup.h>
#include <linux/poll.h>

#include "ring/ring.h"
#include "ring/user.h"

#define NOT_WAITING	U64_MAX
/* Ring fds of one ring: the irq_work may have to wake all of them. */
#define READERS_MAX	256
/* Of these, of a user who is not the owner of the run, and of all such users. */
#define OTHER_MAX	16
#define OTHERS_MAX	192

/**
 * strobe_wake_waiting() - wake those whose rows are there.
 * @work: ring->wake.
 *
 * Who does not wait costs nothing here, and there are READERS_MAX at most.
 *
 * Context: hard interrupt, or a thread on PREEMPT_RT.
 */
void strobe_wake_waiting(struct irq_work *work)
{
	struct strobe_ring *ring = container_of(work, struct strobe_ring, wake);
	struct strobe_sleeper *sleeper, *next;
	u64 least = NOT_WAITING;
	u64 head;

	if (strobe_ring_is_final(ring))
		ring->ops->ended(ring);
	scoped_guard(spinlock_irqsave, &ring->lock) {
		head = strobe_ring_head(ring);
		list_for_each_entry_safe(sleeper, next, &ring->waiting, waiting) {
			if (head < sleeper->wanted) {
				least = min(least, sleeper->wanted);
				continue;
			}
			if (sleeper->woken) {
				sleeper->wanted = sleeper->woken(sleeper, head);
				least = min(least, sleeper->wanted);
				continue;
			}
			sleeper->wanted = NOT_WAITING;
			list_del_init(&sleeper->waiting);
			wake_up_interruptible_poll(&sleeper->queue, EPOLLIN | EPOLLRDNORM);
		}
		WRITE_ONCE(ring->wake_at, least);
	}
}

/**
 * strobe_wake_all() - the run has ended: news for every reader, also for those
 * that wait for no row.
 * @ring: the ring; its state is final.
 *
 * Context: process.
 */
void strobe_wake_all(struct strobe_ring *ring)
{
	struct strobe_sleeper *sleeper;

	scoped_guard(spinlock_irqsave, &ring->lock) {
		list_for_each_entry(sleeper, &ring->readers, entry) {
			if (sleeper->woken)
				sleeper->woken(sleeper, strobe_ring_head(ring));
			else
				wake_up_interruptible_poll(&sleeper->queue,
							   EPOLLIN | EPOLLRDNORM | EPOLLHUP);
		}
	}
}

static void want(struct strobe_ring *ring, struct strobe_sleeper *sleeper, u64 row)
{
	scoped_guard(spinlock_irqsave, &ring->lock) {
		/* Others may sleep on the same fd; who is woken early looks again. */
		sleeper->wanted = min(sleeper->wanted, row);
		if (list_empty(&sleeper->waiting))
			list_add_tail(&sleeper->waiting, &ring->waiting);
		if (row < ring->wake_at)
			WRITE_ONCE(ring->wake_at, row);
	}
	/*
	 * F, pairs with E in strobe_publish(): the caller looks at head again
	 * after this. Without it, it could miss a row whose producer missed wake_at.
	 */
	smp_mb();
}

static bool reached(struct strobe_ring *ring, u64 row)
{
	return strobe_ring_is_final(ring) || strobe_ring_head(ring) >= row;
}

/**
 * strobe_wake_want() - a reader wants to be woken, at once if its row is there.
 * @ring: the ring.
 * @sleeper: the reader.
 * @row: rows that must be there.
 *
 * Context: process, or an irq_work that is not hard.
 * Return: whether they are there, or the run has ended. Also then the reader is
 * woken, with the next row.
 */
bool strobe_wake_want(struct strobe_ring *ring, struct strobe_sleeper *sleeper, u64 row)
{
	want(ring, sleeper, row);
	return reached(ring, row);
}

/**
 * strobe_wake_reached_or_want() - is a row there, or will its reader be woken?
 * @ring: the ring.
 * @sleeper: the reader.
 * @row: rows that must be there.
 *
 * Context: process.
 * Return: whether they are there, or the run has ended; if not, the reader's
 * queue is woken when that is so.
 */
bool strobe_wake_reached_or_want(struct strobe_ring *ring, struct strobe_sleeper *sleeper, u64 row)
{
	return reached(ring, row) || strobe_wake_want(ring, sleeper, row);
}

/**
 * strobe_wake_forget() - a reader wants no row any more.
 * @ring: the ring.
 * @sleeper: the reader.
 *
 * Context: process.
 */
void strobe_wake_forget(struct strobe_ring *ring, struct strobe_sleeper *sleeper)
{
	scoped_guard(spinlock_irqsave, &ring->lock) {
		sleeper->wanted = NOT_WAITING;
		list_del_init(&sleeper->waiting);
	}
}

/* Under ring->lock. Is there room for a reader of this user? */
static bool has_room(const struct strobe_ring *ring, const struct strobe_user *user)
{
	const struct strobe_sleeper *other;
	u32 mine = 0, others = 0;

	if (user == ring->owner)
		return ring->reader_count < READERS_MAX;
	list_for_each_entry(other, &ring->readers, entry) {
		mine += other->user == user;
		others += other->user != ring->owner;
	}
	return ring->reader_count < READERS_MAX && mine < OTHER_MAX && others < OTHERS_MAX;
}

/*
 * Under ring->lock. Who made the rows has left: those who still have them pay.
 * Returns a reference to give back, or NULL.
 */
static struct strobe_user *change_payer(struct strobe_ring *ring)
{
	struct strobe_user *before = ring->payer;
	struct strobe_sleeper *sleeper;

	if (!ring->is_left || list_empty(&ring->readers))
		return NULL;
	list_for_each_entry(sleeper, &ring->readers, entry)
		if (sleeper->user == before)
			return NULL;
	sleeper = list_first_entry(&ring->readers, struct strobe_sleeper, entry);
	strobe_user_move(before, sleeper->user, ring->charged);
	ring->payer = strobe_user_hold(sleeper->user);
	return before;
}

/**
 * strobe_ring_leave() - there will be no more rows: it is the readers' now.
 * @ring: the ring.
 *
 * Context: process.
 */
void strobe_ring_leave(struct strobe_ring *ring)
{
	struct strobe_user *before;

	scoped_guard(spinlock_irqsave, &ring->lock) {
		ring->is_left = true;
		before = change_payer(ring);
	}
	strobe_user_put(before);
}

/**
 * strobe_wake_join() - one reader more.
 * @ring: the ring.
 * @sleeper: the reader, with its user.
 *
 * Context: process.
 * Return: 0, or -EUSERS: there is a bound to how many wait.
 */
int strobe_wake_join(struct strobe_ring *ring, struct strobe_sleeper *sleeper)
{
	int ret = 0;

	sleeper->wanted = NOT_WAITING;
	INIT_LIST_HEAD(&sleeper->waiting);
	init_waitqueue_head(&sleeper->queue);
	scoped_guard(spinlock_irqsave, &ring->lock) {
		if (has_room(ring, sleeper->user)) {
			list_add_tail(&sleeper->entry, &ring->readers);
			WRITE_ONCE(ring->reader_count, ring->reader_count + 1);
		} else {
			ret = -EUSERS;
		}
	}
	return ret;
}

/**
 * strobe_wake_leave() - one reader less.
 * @ring: the ring.
 * @sleeper: the reader.
 *
 * Context: process.
 */
void strobe_wake_leave(struct strobe_ring *ring, struct strobe_sleeper *sleeper)
{
	struct strobe_user *before;

	scoped_guard(spinlock_irqsave, &ring->lock) {
		list_del(&sleeper->entry);
		list_del(&sleeper->waiting);
		WRITE_ONCE(ring->reader_count, ring->reader_count - 1);
		before = change_payer(ring);
	}
	strobe_user_put(before);
}
