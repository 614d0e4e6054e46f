// SPDX-License-Identifier: GPL-2.0-only
/* Life of what a run with slow channels has besides; open_row.c has what it does. */
#include <linux/cleanup.h>
#include <linux/slab.h>

#include "row/row.h"
#include "row/slow.h"

/* Nothing arrives any more. */
static void give_up(const struct strobe_run *run)
{
	const struct strobe_action *action = run->actions;

	for (; action->todo != STROBE_DO_END; action++)
		if (!action->write && action->access == STROBE_BUILTIN_ASYNC)
			strobe_ticket_give_up(action->value);
}

/**
 * strobe_slow_awaits() - does a row await values that have not arrived?
 * @run: any run; its triggers are over, and its steps done.
 *
 * Context: process, under run->lock.
 */
bool strobe_slow_awaits(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;
	bool awaits;

	if (!slow)
		return false;
	scoped_guard(raw_spinlock_irqsave, &slow->lock)
		awaits = slow->open && slow->awaited;
	return awaits;
}

/**
 * strobe_slow_settle() - no row is open any more.
 * @run: any run; its triggers are silent.
 *
 * Context: process.
 */
void strobe_slow_settle(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;

	if (!slow)
		return;
	strobe_slow_flush(run);
	strobe_slow_complete(slow);
	give_up(run);
	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		slow->awaited = 0;
		if (slow->open) {
			/* Its trigger, and those that were missed because of it. */
			slow->open = false;
			slow->missed[STROBE_MISSED_BUSY]++;
			strobe_slow_count(slow);
			/* What it found of a device goes with it. */
			run->last = run->ring.limit;
			run->error = 0;
		}
	}
}

/**
 * strobe_slow_init() - what a run needs besides, if it has slow channels.
 * @run: the run, with its steps compiled, its id known.
 * @priority: of its thread.
 *
 * Context: process.
 * Return: 0 or an errno; strobe_slow_free() is for the caller in both cases.
 */
int strobe_slow_init(struct strobe_run *run, u32 priority)
{
	struct strobe_slow *slow;
	bool sleeps = false;
	int ret;

	if (!run->is_slow)
		return 0;
	slow = kzalloc(sizeof(*slow), GFP_KERNEL_ACCOUNT);
	if (!slow)
		return -ENOMEM;
	run->slow = slow;
	slow->run = run;
	raw_spin_lock_init(&slow->lock);
	init_waitqueue_head(&slow->idle);
	for (struct strobe_action *action = run->actions; action->todo != STROBE_DO_END;
	     action++) {
		sleeps |= action->access == STROBE_BUILTIN_SLEEP;
		if (action->write || action->access != STROBE_BUILTIN_ASYNC)
			continue;
		ret = strobe_ticket_take_place(slow, action->column);
		if (ret < 0) {
			action->todo = STROBE_DO_END;
			return ret;
		}
		action->value = ret;
		slow->fetches += !!action->channel->ops->fetch;
	}
	return sleeps ? strobe_thread_make(slow, priority) : 0;
}

/**
 * strobe_slow_free() - undo strobe_slow_init(), whole or not.
 * @run: any run that never began, or settled and will have no more triggers.
 *
 * Context: process.
 */
void strobe_slow_free(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;

	if (!slow)
		return;
	strobe_thread_end(slow);
	for (struct strobe_action *action = run->actions; action->todo != STROBE_DO_END;
	     action++)
		if (!action->write && action->access == STROBE_BUILTIN_ASYNC)
			strobe_ticket_free_place(action->value);
	run->slow = NULL;
	kfree(slow);
}
