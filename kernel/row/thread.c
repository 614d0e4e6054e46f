// SPDX-License-Identifier: GPL-2.0-only
/* The thread that does the steps of a run, if one of its channels may sleep. */
#include <linux/cleanup.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>

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
 * strobe_slow_flush() - wait until the thread has done its steps.
 * @run: any run.
 *
 * Context: process; triggers must not come meanwhile.
 */
void strobe_slow_flush(struct strobe_run *run)
{
	struct strobe_slow *slow = run->slow;

	if (slow && slow->thread)
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
