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
#include "row/budget.h"
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

static void take_value(struct strobe_follow_value *value, const u64 *row, const u64 *faults)
{
	u32 bit = 32 + value->column;
	u64 word;

	value->now = READ_ONCE(row[value->word]);
	if (value->column < 0)
		return;
	word = bit < 64 ? READ_ONCE(row[3]) : READ_ONCE(faults[bit / 64 - 1]);
	value->has_failed = word >> (bit % 64) & 1;
}

/*
 * Copy what is wanted of a row, as a reader does: see row/row.h. Whether the row was
 * there all the time.
 */
static bool take_row(struct strobe_follow *follow, u64 number)
{
	const struct strobe_ring *ring = &follow->followed->ring;
	const u64 *row = ring->slots + (number & ring->mask) * ring->stride;
	struct strobe_follow_value *value;

	follow->error = -ENODATA;
	if (!is_there(ring, strobe_ring_head(ring), number))
		return false;
	list_for_each_entry(value, &follow->values, entry)
		take_value(value, row, row + 4 + follow->followed->channels);
	/* D, pairs with A in strobe_take_row(): what was overwritten shows. */
	smp_rmb();
	if (!is_there(ring, READ_ONCE(ring->header->head), number))
		return false;
	follow->error = 0;
	return true;
}

/**
 * strobe_follow_look() - take the newest row, for channels of a run with another event.
 * @follow: the follow; it does not trigger.
 *
 * Context: hard; the caller is the producer of the run that follows.
 */
void strobe_follow_look(struct strobe_follow *follow)
{
	const struct strobe_ring *ring = &follow->followed->ring;

	/* Of what is over, the last row is no news. */
	if (strobe_ring_is_final(ring)) {
		follow->error = -ENODEV;
		return;
	}
	for (int i = 0; i < TRIES; i++) {
		u64 head = strobe_ring_head(ring);

		if (!head || take_row(follow, head - 1))
			return;
	}
}

/* ---- triggers ---- */

/*
 * So many of those that have come trigger nothing. The caller is the only source of
 * triggers.
 */
static void miss(struct strobe_follow *follow, enum strobe_missed cause, u64 count)
{
	if (count && READ_ONCE(follow->run->state) == STROBE_RUNNING)
		strobe_miss(follow->run, cause, count);
	follow->come -= count;
}

/* Why those before the newest trigger nothing. */
static enum strobe_missed why_missed(const struct strobe_follow *follow)
{
	return follow->late || follow->held ? STROBE_MISSED_THROTTLED : STROBE_MISSED_SOURCE;
}

/* The other run has no more rows. Nothing triggers any more. */
static void end_with(struct strobe_follow *follow)
{
	const struct strobe_ring_header *header = follow->followed->ring.header;
	bool failed = READ_ONCE(header->state) == STROBE_FAILED;

	follow->listening = false;
	miss(follow, why_missed(follow), follow->come);
	follow->run->over = failed ? READ_ONCE(header->error) ?: -EPIPE : 0;
	/* Rarely: this may wake a worker. */
	follow->run->ring.ops->ended(&follow->run->ring);
}

/* When the last interrupt of a follow was over: several may be served in one. */
static DEFINE_PER_CPU(u64, served);

/* What an interrupt has cost since @start, and what it cost to raise it. */
static u64 cost_since(u64 start)
{
	u64 overhead = min(strobe_rates.overhead, start - this_cpu_read(served));

	return overhead + min(strobe_budget_clock() - start, strobe_rates.longest);
}

static void charge_since(u64 start)
{
	strobe_budget_charge(this_cpu_ptr(&strobe_budget), start, cost_since(start));
}

/* Whether one of the rows that have come triggers: then its values are taken. */
static bool take_trigger(struct strobe_follow *follow, u64 head)
{
	struct strobe_run *run = follow->run;

	follow->come += counted(follow, follow->next, head);
	WRITE_ONCE(follow->next, head);
	if (!follow->come)
		return false;
	/* What is fetched only now completes the row before, as with every event. */
	if (run->slow && run->slow->fetches)
		strobe_slow_complete(run->slow);
	/* The row that is open has the values of the one that has opened it. */
	if (READ_ONCE(run->state) != STROBE_RUNNING || strobe_slow_is_open(run)) {
		miss(follow, STROBE_MISSED_BUSY, follow->come);
		return false;
	}
	/* Of one that was overwritten before it was here the next one says it. */
	if (!take_row(follow, (head - 1) / follow->every * follow->every))
		return false;
	miss(follow, why_missed(follow), follow->come - 1);
	follow->come = 0;
	follow->late = false;
	return true;
}

/* Trigger, if a row that counts has come. Returns ns to keep quiet for. */
static u64 tell(struct strobe_follow *follow, u64 head, u64 start)
{
	struct strobe_budget *budget = this_cpu_ptr(&strobe_budget);
	struct strobe_run *run = follow->run;
	u64 now;

	if (take_trigger(follow, head)) {
		now = ktime_get_ns();
		/* Nobody else listens to an event that is this run's own. */
		return strobe_trigger(run, now, now, cost_since(start));
	}
	/* An interrupt that triggers nothing costs as much. */
	if (unlikely(!strobe_budget_admits(budget, start)))
		return strobe_budget_ns(strobe_budget_turn_away(budget, start, cost_since(start),
								run->row_ticks));
	charge_since(start);
	return 0;
}

/* Trigger, or hold, or end. Under follow->lock. */
static void look_and_tell(struct strobe_follow *follow, u64 start)
{
	const struct strobe_ring *ring = &follow->followed->ring;
	/* Final state before the rows: what is not there now never comes. */
	bool final = strobe_ring_is_final(ring);
	u64 quiet = tell(follow, strobe_ring_head(ring), start);

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
	u64 start = strobe_budget_clock();

	scoped_guard(raw_spinlock_irqsave, &follow->lock) {
		if (follow->listening && !follow->held)
			look_and_tell(follow, start);
		else if (follow->listening)
			charge_since(start);
	}
	this_cpu_write(served, strobe_budget_clock());
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
	u64 start = strobe_budget_clock();

	scoped_guard(raw_spinlock_irqsave, &follow->lock) {
		WRITE_ONCE(follow->held, false);
		follow->late = true;
	}
	schedule_work(&follow->arm);
	charge_since(start);
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
		follow->late = false;
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
	miss(follow, why_missed(follow), follow->come);
	follow->held = false;
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
