// SPDX-License-Identifier: GPL-2.0-only
/* The thread that does the steps of a run, if one of its channels may sleep. */
#include <linux/cleanup.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>

#include "row/budget.h"
#include "row/slow.h"

static bool take_work(struct strobe_slow *slow)
{
	bool wanted;

	scoped_guard(raw_spinlock_irqsave, &slow->lock) {
		wanted = slow->wanted;
		slow->wanted = false;
	}
	return wanted;
}

static int serve(void *data)
{
	struct strobe_slow *slow = data;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!take_work(slow)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		strobe_slow_steps(slow);
		wake_up(&slow->idle);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* The row that the steps complete is published under the same lock. */
static bool is_stepping(struct strobe_slow *slow)
{
	bool stepping;

	scoped_guard(raw_spinlock_irqsave, &slow->lock)
		stepping = slow->stepping;
	return stepping;
}

/**
 * strobe_thread_rest() - has the thread taken too much of this CPU?
 * @slow: the run's; it has a thread.
 * @now: CLOCK_MONOTONIC.
 *
 * Its time is the scheduler's, which knows all of it when the thread sleeps, and
 * sleep it does between rows. It is paid for where the triggers are.
 *
 * Context: interrupts off, under slow->lock.
 * Return: ns until it may have more.
 */
u64 strobe_thread_rest(struct strobe_slow *slow, u64 now)
{
	u64 used = READ_ONCE(slow->thread->se.sum_exec_runtime);

	strobe_budget_charge_thread(now, used - slow->charged);
	slow->charged = used;
	return strobe_budget_rest(now);
}

/**
 * strobe_slow_rest() - how long a software trigger has to wait for the thread's sake.
 * @run: any run.
 *
 * Context: process, under run->lock.
 * Return: ns.
 */
u64 strobe_slow_rest(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;
	u64 rest;

	if (!slow || !slow->thread)
		return 0;
	scoped_guard(raw_spinlock_irqsave, &slow->lock)
		rest = strobe_thread_rest(slow, ktime_get_ns());
	return rest;
}

/**
 * strobe_slow_flush() - wait until the thread has done its steps.
 * @run: any run.
 *
 * Who is killed meanwhile gives the row up.
 *
 * Context: process; triggers must not come meanwhile.
 */
void strobe_slow_flush(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;

	if (!slow || !slow->thread || !wait_event_killable(slow->idle, !is_stepping(slow)))
		return;
	WRITE_ONCE(run->quit, true);
	wait_event(slow->idle, !is_stepping(slow));
}

/**
 * strobe_thread_make() - a thread for the steps of a run.
 * @slow: the run's, with its id known.
 * @priority: SCHED_FIFO.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
int strobe_thread_make(struct strobe_slow *slow, u32 priority)
{
	struct sched_attr attr = {
		.size		= sizeof(attr),
		.sched_policy	= SCHED_FIFO,
		.sched_priority	= priority,
	};
	struct task_struct *thread;
	int ret;

	thread = kthread_create(serve, slow, "strobe/%u", slow->run->id);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ret = sched_setattr_nocheck(thread, &attr);
	if (ret) {
		kthread_stop(thread);
		return ret;
	}
	slow->thread = thread;
	wake_up_process(thread);
	return 0;
}

/**
 * strobe_thread_end() - end it, if there is one.
 * @slow: the run's, which settled and will have no more triggers.
 *
 * Context: process.
 */
void strobe_thread_end(struct strobe_slow *slow)
{
	if (slow->thread)
		kthread_stop(slow->thread);
}
