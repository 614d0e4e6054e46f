// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs with channels that are not ready at once: their values come from a
 * thread that may sleep (class "sleep"), or later, from wherever the provider
 * has them (class "async").
 *
 * Such a run has one open row at most: the trigger is stamped and numbered in
 * hard interrupt context as always, the row takes its place in the ring, and it
 * is published when its last value is there. Rows so stay whole and in order. A
 * trigger that finds a row open is missed, as busy, and is counted when that
 * row is published or given up: at any time triggers = rows + missed.
 *
 *	trigger --open--> steps --> [values arrive] --> [fetch] --> published
 *	                  by the thread, if a channel needs one;
 *	                  else by the trigger itself
 *
 * A channel with a function to fetch has its value fetched just before the next
 * row begins, or when the run pauses or ends. What has not arrived by then is
 * given up with the row, whose trigger is missed as busy.
 *
 * Locks: that of a ticket (see ticket.c), then slow->lock; both raw, for hard
 * interrupt context.
 */
#include <linux/cleanup.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "row/access.h"
#include "row/row.h"
#include "row/slow.h"

/* ---- the open row; under slow->lock ---- */

static void store(struct strobe_slow *slow, u16 column, u64 value, int error)
{
	if (error)
		strobe_mark_fault(&slow->status, slow->faults, column);
	WRITE_ONCE(slow->row[4 + column], error ? 0 : value);
}

/**
 * strobe_slow_count() - count the triggers that came while a row was open.
 * @slow: whose; no row is open any more.
 *
 * Context: any, under slow->lock.
 */
void strobe_slow_count(struct strobe_slow *slow)
{
	for (int cause = 0; cause < STROBE_MISSED_CAUSES; cause++) {
		if (slow->missed[cause])
			strobe_count_missed(slow->run, cause, slow->missed[cause]);
		slow->missed[cause] = 0;
	}
	if (slow->skipped)
		strobe_count_skipped(slow->run, slow->skipped);
	slow->skipped = 0;
}

static void publish(struct strobe_slow *slow)
{
	struct strobe_run *run = slow->run;

	slow->open = false;
	strobe_store_tail(run, slow->row, slow->status, slow->faults);
	strobe_publish(run, slow->row, run->head, run->triggers, slow->time, slow->status);
	/* After the last row's trigger there are no more. */
	if (run->head != run->last)
		strobe_slow_count(slow);
}

/**
 * strobe_slow_fail() - a step has failed.
 * @slow: whose.
 * @column: of the step.
 *
 * Context: who does the steps; without slow->lock.
 */
void strobe_slow_fail(struct strobe_slow *slow, u16 column)
{
	scoped_guard(raw_spinlock_irqsave, &slow->lock)
		strobe_mark_fault(&slow->status, slow->faults, column);
}

static bool is_complete(const struct strobe_slow *slow)
{
	return slow->open && !slow->stepping && !slow->cut && !slow->awaited;
}

/* The steps are done, or a value has arrived. */
static void look(struct strobe_slow *slow)
{
	if (is_complete(slow) && !slow->fetches)
		publish(slow);
}

/**
 * strobe_slow_await() - one more value is under way.
 * @slow: whose.
 *
 * Context: hard, under the ticket's lock.
 */
void strobe_slow_await(struct strobe_slow *slow)
{
	scoped_guard(raw_spinlock, &slow->lock)
		slow->awaited++;
}

/**
 * strobe_slow_arrive() - a value that was awaited is there.
 * @slow: whose.
 * @column: of the channel.
 * @value: the value.
 * @error: 0 or an errno.
 *
 * Context: hard, under the ticket's lock.
 */
void strobe_slow_arrive(struct strobe_slow *slow, u16 column, u64 value, int error)
{
	scoped_guard(raw_spinlock, &slow->lock) {
		store(slow, column, value, error);
		slow->awaited--;
		look(slow);
	}
}

/* ---- steps; without slow->lock, by one context at a time ---- */

static void begin(const struct strobe_action *action)
{
	struct strobe_channel *channel = action->channel;
	u64 ticket = channel->ops->fetch ? 0 : strobe_ticket_new(action->value);
	int error;

	scoped_guard(irqsave)
		error = channel->ops->begin(channel, ticket);
	if (error && ticket)
		strobe_ticket_use(ticket, 0, error);
}

static int read_now(struct strobe_slow *slow, const struct strobe_action *action, u64 *value)
{
	struct strobe_run *run = slow->run;
	int error;

	if (action->access == STROBE_BUILTIN_SLEEP)
		return action->channel->ops->read(action->channel, value);
	if (action->access == STROBE_BUILTIN_WAITED) {
		*value = slow->began - slow->now;
		return 0;
	}
	/* Without a thread interrupts are off. */
	if (!slow->thread)
		return strobe_read_step(run, action, slow->now, slow->due, value);
	scoped_guard(irqsave)
		error = strobe_read_step(run, action, slow->now, slow->due, value);
	return error;
}

static int write_now(const struct strobe_action *action)
{
	int error;

	if (action->access == STROBE_BUILTIN_SLEEP)
		return action->output->write(action->output, action->value);
	scoped_guard(irqsave)
		error = strobe_write_step(action);
	return error;
}

static void do_step(struct strobe_slow *slow, const struct strobe_action *action)
{
	u64 value = 0;
	int error;

	if (action->write) {
		if (write_now(action))
			strobe_fail_step(slow->run, action);
		return;
	}
	if (action->access == STROBE_BUILTIN_ASYNC) {
		begin(action);
		return;
	}
	error = read_now(slow, action, &value);
	if (error)
		strobe_fail_step(slow->run, action);
	/*
	 * Without slow->lock: nobody else has this column. The row was opened under it,
	 * after the last head was stored (A); and it is published under it, when the
	 * steps are done, by strobe_slow_steps() or by who takes the lock later (B).
	 */
	strobe_store_step(action, error ? 0 : value, slow->row + 4);
}

/**
 * strobe_slow_steps() - do the steps of the open row.
 * @slow: whose.
 *
 * Context: the run's thread; without one, hard.
 */
void strobe_slow_steps(struct strobe_slow *slow)
{
	const struct strobe_action *action = slow->run->actions;

	slow->began = ktime_get_ns();
	for (; action->todo != STROBE_DO_END && !READ_ONCE(slow->run->quit); action++)
		do_step(slow, action);
	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		slow->stepping = false;
		slow->cut = action->todo != STROBE_DO_END;
		look(slow);
	}
}

static void fetch(struct strobe_slow *slow)
{
	const struct strobe_action *action = slow->run->actions;

	for (; action->todo != STROBE_DO_END; action++) {
		struct strobe_channel *channel = action->channel;
		u64 value = 0;
		int error;

		if (action->write || action->access != STROBE_BUILTIN_ASYNC ||
		    !channel->ops->fetch)
			continue;
		scoped_guard(irqsave)
			error = channel->ops->fetch(channel, &value);
		scoped_guard(raw_spinlock_irqsave, &slow->lock)
			store(slow, action->column, value, error);
	}
}

/**
 * strobe_slow_complete() - before the next row, or instead of it: what is only
 * fetched now completes the open one.
 * @slow: whose.
 *
 * Context: who triggers, or process with triggers silent.
 */
void strobe_slow_complete(struct strobe_slow *slow)
{
	bool complete;

	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		complete = is_complete(slow);
		if (complete)
			slow->stepping = true;
	}
	if (!complete)
		return;
	fetch(slow);
	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		slow->stepping = false;
		publish(slow);
	}
}

/* ---- triggers ---- */

/* Under slow->lock. */
static bool may_open(struct strobe_slow *slow, u64 now)
{
	struct strobe_run *run = slow->run;
	/* Who triggers by software has waited for it. */
	bool rests = slow->thread && run->source != STROBE_SOURCE_SOFT &&
		     strobe_thread_rest(slow, now);

	if (READ_ONCE(run->state) != STROBE_RUNNING)
		return false;
	if (slow->open)
		slow->missed[STROBE_MISSED_BUSY]++;
	else if (rests)
		strobe_count_missed(run, STROBE_MISSED_THROTTLED, 1);
	else
		return true;
	run->status &= ~STROBE_ROW_LATE;
	return false;
}

/* Under slow->lock. */
static void open_row(struct strobe_slow *slow, u64 now, u64 due)
{
	struct strobe_run *run = slow->run;

	slow->status = run->status;
	run->status = 0;
	memset(slow->faults, 0, sizeof(slow->faults));
	slow->open = true;
	slow->stepping = true;
	slow->cut = false;
	slow->wanted = true;
	slow->now = now;
	slow->time = run->is_tai ? ktime_mono_to_any(now, TK_OFFS_TAI) : now;
	slow->due = due;
	slow->row = strobe_take_row(run, run->head, run->triggers, slow->time);
}

/**
 * strobe_slow_row() - a trigger of a run with slow channels.
 * @run: the run; RUNNING.
 * @now: as for strobe_row().
 * @due: as for strobe_row().
 *
 * Context: hard; the caller is the only source of triggers.
 */
void strobe_slow_row(struct strobe_run *run, u64 now, u64 due)
{
	struct strobe_slow *slow = run->slow;
	bool opened;

	if (slow->fetches)
		strobe_slow_complete(slow);
	scoped_guard(raw_spinlock, &slow->lock) {
		opened = may_open(slow, now);
		if (opened)
			open_row(slow, now, due);
	}
	if (!opened)
		return;
	if (slow->thread)
		wake_up_process(slow->thread);
	else
		strobe_slow_steps(slow);
}

/**
 * strobe_slow_miss() - strobe_miss(), of such a run.
 * @run: the run.
 * @cause: why.
 * @count: how many.
 *
 * A value that has just arrived may have ended the run: then nothing is missed.
 *
 * Context: any; the caller is the only source of triggers.
 */
void strobe_slow_miss(struct strobe_run *run, enum strobe_missed cause, u64 count)
{
	struct strobe_slow *slow = run->slow;

	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		if (slow->open)
			slow->missed[cause] += count;
		else if (READ_ONCE(run->state) == STROBE_RUNNING)
			strobe_count_missed(run, cause, count);
	}
}

/**
 * strobe_slow_is_open() - does the last trigger of a run wait for its row?
 * @run: any run.
 *
 * Context: any; the caller is the only source of triggers.
 */
bool strobe_slow_is_open(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;
	bool open;

	if (!slow)
		return false;
	scoped_guard(raw_spinlock_irqsave, &slow->lock)
		open = slow->open;
	return open;
}

/**
 * strobe_slow_skip() - strobe_skip(), of such a run.
 * @run: the run.
 * @count: how many.
 *
 * Context: hard; the caller is the only source of triggers.
 */
void strobe_slow_skip(struct strobe_run *run, u64 count)
{
	struct strobe_slow *slow = run->slow;

	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		if (slow->open)
			slow->skipped += count;
		else if (READ_ONCE(run->state) == STROBE_RUNNING)
			strobe_count_skipped(run, count);
	}
}
