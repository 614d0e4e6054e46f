// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device "loop": the ways to do something again and again in the kernel
 * that are not the timer of a run, so that they can be compared with it. None
 * of them is a way to acquire data: rows are stamped when a thread gets to it.
 *
 *   loop.absolute   a thread sleeps until the next point of a grid
 *   loop.relative   a thread sleeps for what its work has left of the period
 *   loop.work       at each point of a grid a workqueue is told to do it
 *   loop.period     output: the period, ns, for events that are enabled later
 *   loop.slack      output: how much later loop.absolute may wake, ns; as before
 *   loop.priority   output: SCHED_FIFO of the threads; as before
 *
 * "strobe jitter --wait kernel:loop" and its like use it.
 */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>

#include "compat.h"
#include "provider.h"

#define PERIOD_MIN	(10 * NSEC_PER_USEC)
#define PERIOD_MAX	NSEC_PER_SEC

/* Written by rows, in hard context; read when an event is enabled. */
static u64 period_asked = 10 * NSEC_PER_MSEC;
static u64 slack_asked;
static u64 priority_asked = MAX_RT_PRIO / 2;

/**
 * struct loop - what makes one event.
 * @function: of its thread; constant.
 * @event: the event.
 * @thread: the thread that makes it.
 * @period: ns.
 * @slack: ns.
 *
 * Written by enable() and disable(), while nothing else looks.
 */
struct loop {
	int			(*function)(void *data);
	struct strobe_event	*event;
	struct task_struct	*thread;
	u64			period;
	u64			slack;
};

/* Triggers come with interrupts off, as those of an interrupt do. */
static void happen(struct strobe_event *event, u64 now, u64 due, u64 lost)
{
	guard(irqsave)();
	strobe_event_trigger(event, now, due, lost);
}

static int absolute_thread(void *data)
{
	struct loop *loop = data;
	u64 due = ktime_get_ns() + loop->period, lost = 0;

	for (;;) {
		ktime_t expires = ns_to_ktime(due);
		u64 now;

		/* Before the question: who says stop wakes a thread that sleeps. */
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout_range(&expires, loop->slack, HRTIMER_MODE_ABS);
		now = ktime_get_ns();
		if (now < due)
			continue;
		happen(loop->event, now, due, lost);
		due += loop->period;
		/* Points that have passed by now are lost; the next trigger says so. */
		now = ktime_get_ns();
		lost = now > due ? div64_u64(now - due, loop->period) + 1 : 0;
		due += lost * loop->period;
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int relative_thread(void *data)
{
	struct loop *loop = data;

	for (;;) {
		u64 begun = ktime_get_ns(), now, left, range;
		ktime_t expires;

		happen(loop->event, begun, 0, 0);
		now = ktime_get_ns();
		left = loop->period > now - begun ? loop->period - (now - begun) : 0;
		/* One in a hundred either way, as the loop that this is modelled on has it. */
		range = div_u64(left, 100);
		expires = ns_to_ktime(now + left - range);
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout_range(&expires, 2 * range, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static struct strobe_event events[];

/* The first two events, in their order. */
static struct loop loops[] = {
	{ .function = absolute_thread },
	{ .function = relative_thread },
};

static int loop_enable(struct strobe_event *event)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = READ_ONCE(priority_asked),
	};
	struct loop *loop = &loops[event - events];
	struct task_struct *thread;

	loop->event = event;
	loop->period = READ_ONCE(period_asked);
	loop->slack = READ_ONCE(slack_asked);
	thread = kthread_create(loop->function, loop, "strobe_loop");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* Cannot fail: the thread is new, and the priority one that there is. */
	sched_setattr_nocheck(thread, &attr);
	/* As the timer of a run: where it was started. */
	kthread_bind(thread, raw_smp_processor_id());
	loop->thread = thread;
	wake_up_process(thread);
	return 0;
}

static void loop_disable(struct strobe_event *event)
{
	struct loop *loop = &loops[event - events];

	/* To stop it must run: not behind whoever spins on its CPU with a priority above. */
	sched_set_normal(loop->thread, 0);
	kthread_stop(loop->thread);
}

/**
 * struct loop_work - the timer and the work of loop.work.
 * @timer: absolute; not hard: a hard one may wake nobody.
 * @work: makes the trigger.
 * @period: ns; written by enable().
 * @told: the work was told and has not taken @due yet. Set by the timer, cleared
 *	by the work: until then the timer leaves @due and @lost_before alone.
 * @due: the point for which the work was told.
 * @lost_before: points before it for which it was not.
 * @lost: points since; of the timer alone.
 */
static struct loop_work {
	struct hrtimer		timer;
	struct work_struct	work;
	u64			period;
	bool			told;
	u64			due;
	u64			lost_before;
	u64			lost;
} loop_work;

static void work_do(struct work_struct *work)
{
	u64 due = loop_work.due, lost = loop_work.lost_before, now;

	/* A: after both are read. Pairs with B; else the timer could change them before. */
	smp_store_release(&loop_work.told, false);
	now = ktime_get_ns();
	happen(&events[2], now, due, lost);
}

static enum hrtimer_restart work_tell(struct hrtimer *timer)
{
	/* B: pairs with A: the work has read what is written here. */
	if (smp_load_acquire(&loop_work.told)) {
		loop_work.lost++;
	} else {
		loop_work.due = ktime_to_ns(hrtimer_get_expires(timer));
		loop_work.lost_before = loop_work.lost;
		loop_work.lost = 0;
		WRITE_ONCE(loop_work.told, true);
		/* Orders what is written before it for the work. */
		queue_work(system_highpri_wq, &loop_work.work);
	}
	loop_work.lost += hrtimer_forward_now(timer, ns_to_ktime(loop_work.period)) - 1;
	return HRTIMER_RESTART;
}

static int work_enable(struct strobe_event *event)
{
	loop_work.period = READ_ONCE(period_asked);
	/* What was told may have been taken away when it was disabled. */
	loop_work.told = false;
	loop_work.lost = 0;
	hrtimer_start(&loop_work.timer, ns_to_ktime(ktime_get_ns() + loop_work.period),
		      HRTIMER_MODE_ABS_PINNED);
	return 0;
}

static void work_disable(struct strobe_event *event)
{
	hrtimer_cancel(&loop_work.timer);
	cancel_work_sync(&loop_work.work);
}

static const struct strobe_event_ops loop_ops = {
	.enable		= loop_enable,
	.disable	= loop_disable,
};

static const struct strobe_event_ops work_ops = {
	.enable		= work_enable,
	.disable	= work_disable,
};

static struct strobe_event events[] = {
	{
		.name = "absolute", .has_due = true, .ops = &loop_ops,
		.accounting = STROBE_ACCOUNTING_EXACT,
		.text = "a thread sleeps until the next point of a grid",
	}, {
		.name = "relative", .ops = &loop_ops, .accounting = STROBE_ACCOUNTING_EXACT,
		.text = "a thread sleeps for what is left of the period",
	}, {
		.name = "work", .has_due = true, .ops = &work_ops,
		.accounting = STROBE_ACCOUNTING_EXACT,
		.text = "a workqueue is told at each point of a grid",
	},
};

static int period_write(struct strobe_output *output, u64 value)
{
	WRITE_ONCE(period_asked, clamp(value, PERIOD_MIN, PERIOD_MAX));
	return 0;
}

static int slack_write(struct strobe_output *output, u64 value)
{
	WRITE_ONCE(slack_asked, min_t(u64, value, PERIOD_MAX));
	return 0;
}

static int priority_write(struct strobe_output *output, u64 value)
{
	WRITE_ONCE(priority_asked, clamp(value, 1, MAX_RT_PRIO - 1));
	return 0;
}

static struct strobe_output outputs[] = {
	{
		.name = "period", .bits = 32, .unit = "ns", .write = period_write,
		.text = "period of events that are enabled later, 10 us to 1 s",
	}, {
		.name = "slack", .bits = 32, .unit = "ns", .write = slack_write,
		.text = "how much later than its point loop.absolute may wake",
	}, {
		.name = "priority", .bits = 7, .write = priority_write,
		.text = "of the threads, SCHED_FIFO, 1 to 99",
	},
};

static struct strobe_device device = {
	.name		= "loop",
	.text		= "loops to compare with a timer",
	.outputs	= outputs,
	.events		= events,
	.output_count	= ARRAY_SIZE(outputs),
	.event_count	= ARRAY_SIZE(events),
};

static int __init loop_init(void)
{
	hrtimer_setup(&loop_work.timer, work_tell, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
	INIT_WORK(&loop_work.work, work_do);
	return strobe_device_register(&device);
}

static void __exit loop_exit(void)
{
	strobe_device_unregister(&device);
}

module_init(loop_init);
module_exit(loop_exit);
MODULE_DESCRIPTION("Loops to compare with a timer of strobe");
MODULE_LICENSE("GPL");
