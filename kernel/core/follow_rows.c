// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rows of a run that is followed, and what they trigger.
 *
 * Who follows is told of a row where files are woken (ring/wake.c). It queues an
 * irq_work, which triggers in hard interrupt context also on PREEMPT_RT. So chains
 * of runs need no stack, and each pays its own budget.
 *
 * The newest row that counts is the trigger. If several have come since the last
 * one, the others are missed.
 */
#include <linux/cleanup.h>
#include <linux/math.h>

#include "compat.h"
#include "core/follow.h"
#include "row/row.h"
#include "row/slow.h"

/* Of a trigger that the budget has no room for; as of boards. */
#define HOLD_MIN_NS	(100 * NSEC_PER_USEC)
#define HOLD_MAX_NS	(100 * NSEC_PER_MSEC)
/* How often a row is copied that the other run overwrites meanwhile. */
#define TRIES		3

/* ---- rows ---- */

/* Rows there must be for the first that counts from @row on to be one of them. */
static u64 until_counted(const struct strobe_follow *follow, u64 row)
{
	return DIV_ROUND_UP_ULL(row, follow->every) * follow->every + 1;
}

/* How many of the rows from @first on and before @end count. */
static u64 counted(const struct strobe_follow *follow, u64 first, u64 end)
{
	return DIV_ROUND_UP_ULL(end, follow->every) - DIV_ROUND_UP_ULL(first, follow->every);
}

static bool is_there(const struct strobe_ring *ring, u64 head, u64 row)
{
	return row < head && row >= strobe_ring_oldest(head, ring->mask + 1, ring->limit);
}

/* Copy a row, as a reader does: see row/row.h. Whether it was there all the time. */
static bool take_row(struct strobe_follow *follow, u64 number)
{
	const struct strobe_ring *ring = &follow->followed->ring;
	const u64 *slot = ring->slots + (number & ring->mask) * ring->stride;

	follow->has_row = false;
	if (!is_there(ring, strobe_ring_head(ring), number))
		return false;
	for (u32 i = 0; i < ring->row_size / 8; i++)
		follow->row[i] = READ_ONCE(slot[i]);
	/* D, pairs with A in strobe_take_row(): what was overwritten shows. */
	smp_rmb();
	follow->has_row = is_there(ring, READ_ONCE(ring->header->head), number);
	return follow->has_row;
}

/**
 * strobe_follow_look() - take the newest row, for channels of a run with another event.
 * @follow: the follow; it does not trigger.
 *
 * Context: hard; the caller is the producer of the run that follows.
 */
void strobe_follow_look(struct strobe_follow *follow)
{
	for (int i = 0; i < TRIES; i++) {
		u64 head = strobe_ring_head(&follow->followed->ring);

		if (!head || take_row(follow, head - 1))
			return;
	}
}

/* ---- triggers ---- */

/* What has come triggers nothing. The caller is the only source of triggers. */
static void miss_rest(struct strobe_follow *follow, enum strobe_missed cause)
{
	if (follow->come && READ_ONCE(follow->run->state) == STROBE_RUNNING)
		strobe_miss(follow->run, cause, follow->come);
	follow->come = 0;
}

/* The other run has no more rows. Nothing triggers any more. */
static void end_with(struct strobe_follow *follow)
{
	const struct strobe_ring_header *header = follow->followed->ring.header;
	bool failed = READ_ONCE(header->state) == STROBE_FAILED;

	follow->listening = false;
	miss_rest(follow, STROBE_MISSED_SOURCE);
	follow->run->over = failed ? READ_ONCE(header->error) ?: -EPIPE : 0;
	/* Rarely: this may wake a worker. */
	follow->run->ring.ops->ended(&follow->run->ring);
}

/* Trigger, if a row that counts has come. Returns ns to keep quiet for. */
static u64 tell(struct strobe_follow *follow, u64 head)
{
	struct strobe_run *run = follow->run;
	u64 missed;

	follow->come += counted(follow, follow->next, head);
	WRITE_ONCE(follow->next, head);
	if (!follow->come)
		return 0;
	/* The row that is open has the values of the one that has opened it. */
	if (READ_ONCE(run->state) != STROBE_RUNNING || strobe_slow_is_open(run)) {
		miss_rest(follow, STROBE_MISSED_BUSY);
		return 0;
	}
	/* Of one that was overwritten before it was here the next one says it. */
	if (!take_row(follow, (head - 1) / follow->every * follow->every))
		return 0;
	missed = follow->come - 1;
	follow->come = 0;
	return strobe_event_trigger(&follow->event, ktime_get_ns(), 0, missed);
}

/* Trigger, or hold, or end. Under follow->lock. */
static void look_and_tell(struct strobe_follow *follow)
{
	const struct strobe_ring *ring = &follow->followed->ring;
	/* Final state before the rows: what is not there now never comes. */
	bool final = strobe_ring_is_final(ring);
	u64 quiet = tell(follow, strobe_ring_head(ring));

	if (final) {
		end_with(follow);
	} else if (unlikely(quiet)) {
		WRITE_ONCE(follow->held, true);
		hrtimer_start(&follow->hold, ns_to_ktime(clamp(quiet, HOLD_MIN_NS, HOLD_MAX_NS)),
			      HRTIMER_MODE_REL_PINNED_HARD);
	}
}

static void work(struct irq_work *irq_work)
{
	struct strobe_follow *follow = container_of(irq_work, struct strobe_follow, work);

	scoped_guard(raw_spinlock_irqsave, &follow->lock)
		if (follow->listening && !follow->held)
			look_and_tell(follow);
}

/* Want the next row, and trigger at once if it is there: then woken() wants those after it. */
static void arm(struct strobe_follow *follow)
{
	u64 row = until_counted(follow, READ_ONCE(follow->next));

	if (strobe_wake_want(&follow->followed->ring, &follow->sleeper, row))
		irq_work_queue(&follow->work);
}

/* In a process: it takes a lock that files take. */
static void arm_work(struct work_struct *work)
{
	arm(container_of(work, struct strobe_follow, arm));
}

static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	struct strobe_follow *follow = container_of(timer, struct strobe_follow, hold);

	scoped_guard(raw_spinlock_irqsave, &follow->lock)
		WRITE_ONCE(follow->held, false);
	schedule_work(&follow->arm);
	return HRTIMER_NORESTART;
}

/* Rows it has wanted are there, or the run has ended. Under ring->lock. */
static u64 woken(struct strobe_sleeper *sleeper, u64 head)
{
	struct strobe_follow *follow = container_of(sleeper, struct strobe_follow, sleeper);

	irq_work_queue(&follow->work);
	/* Who is held would cost those who make the rows time for nothing. */
	return READ_ONCE(follow->held) ? U64_MAX : until_counted(follow, head);
}

static int rows_enable(struct strobe_event *event)
{
	struct strobe_follow *follow = container_of(event, struct strobe_follow, event);

	scoped_guard(raw_spinlock_irqsave, &follow->lock) {
		follow->listening = true;
		/* What was made before was of another time. */
		WRITE_ONCE(follow->next, strobe_ring_head(&follow->followed->ring));
		follow->come = 0;
	}
	arm(follow);
	return 0;
}

static void rows_disable(struct strobe_event *event)
{
	struct strobe_follow *follow = container_of(event, struct strobe_follow, event);
	u64 head;

	scoped_guard(raw_spinlock_irqsave, &follow->lock)
		follow->listening = false;
	/* In this order: who is gone is not begun again by those that come after it. */
	hrtimer_cancel(&follow->hold);
	cancel_work_sync(&follow->arm);
	strobe_wake_forget(&follow->followed->ring, &follow->sleeper);
	irq_work_sync(&follow->work);
	head = strobe_ring_head(&follow->followed->ring);
	follow->come += counted(follow, follow->next, head);
	follow->next = head;
	follow->held = false;
	miss_rest(follow, STROBE_MISSED_SOURCE);
}

static const struct strobe_event_ops rows_ops = {
	.enable		= rows_enable,
	.disable	= rows_disable,
};

/**
 * strobe_follow_init() - what triggers, in a new follow.
 * @follow: the follow, zeroed; it knows both runs.
 */
void strobe_follow_init(struct strobe_follow *follow)
{
	follow->work = IRQ_WORK_INIT_HARD(work);
	INIT_WORK(&follow->arm, arm_work);
	hrtimer_setup(&follow->hold, hold_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	raw_spin_lock_init(&follow->lock);
	follow->sleeper.woken = woken;
	follow->event.ops = &rows_ops;
}

/**
 * strobe_follow_quiet() - nothing of it runs any more.
 * @follow: the follow; disabled, and not among the readers of the other run.
 *
 * Context: process.
 */
void strobe_follow_quiet(struct strobe_follow *follow)
{
	/* The end of the other run may just have queued it. */
	irq_work_sync(&follow->work);
}
