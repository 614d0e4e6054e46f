// SPDX-License-Identifier: GPL-2.0-only
/*
 * A complete provider to copy: one device "sample" with three channels, an
 * output and an event.
 *
 *   sample.level   a value that a function fetches
 *   sample.total   a 64-bit word in memory, read without a call
 *   sample.since   what "total" has grown since this was last read: to read it
 *                  clears it, so one run at a time has it
 *   sample.step    an output: how much "total" grows at each event
 *   sample.tick    an event, raised by a timer every 10 ms
 *
 * Real hardware puts __iomem addresses into struct strobe_register and calls
 * strobe_event_trigger() from an interrupt handler requested with
 * IRQF_NO_THREAD. Try it:
 *
 *   modprobe strobe_sample
 *   strobe record --event sample.tick --read sample.level,sample.total \
 *                 --set sample.step=3 --rows 100 -o -
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "compat.h"
#include "provider.h"

#define TICK_NS	(10 * NSEC_PER_MSEC)

/* Written by tick() and step_write(), both in hard context; read by rows. */
static u64 total, step = 1;

/* Of sample.since. Added to by tick(), cleared by since_read(); both hard. */
static atomic64_t since;
/* Bit 0: a run has it. */
static unsigned long since_taken;
/* Runs for which it counts; as if that took power. Under strobe's registry lock; read by tick(). */
static unsigned int powered;
module_param(powered, uint, 0444);
MODULE_PARM_DESC(powered, "runs for which sample.since counts");

/* Grid points that have passed since the last tick; of tick() alone. */
static u64 lost;

/* Hard: interrupts are off, on PREEMPT_RT too. Nothing here may sleep. */
static int level_read(struct strobe_channel *channel, u64 *value)
{
	*value = READ_ONCE(total) % 100;
	return 0;
}

static int step_write(struct strobe_output *output, u64 value)
{
	WRITE_ONCE(step, value);
	return 0;
}

static int since_read(struct strobe_channel *channel, u64 *value)
{
	*value = atomic64_xchg(&since, 0);
	return 0;
}

/* Set the hardware up for a run: here, let it count. What has been lies behind. */
static int since_prepare(struct strobe_channel *channel)
{
	if (!powered)
		atomic64_set(&since, 0);
	WRITE_ONCE(powered, powered + 1);
	return 0;
}

static void since_unprepare(struct strobe_channel *channel)
{
	WRITE_ONCE(powered, powered - 1);
}

/* Two runs would take each other's counts away, so the second is refused. */
static int since_lock(struct strobe_channel *channel)
{
	return test_and_set_bit(0, &since_taken) ? -EBUSY : 0;
}

static void since_unlock(struct strobe_channel *channel)
{
	clear_bit(0, &since_taken);
}

static const struct strobe_channel_ops level_ops = { .read = level_read };

static const struct strobe_channel_ops since_ops = {
	.prepare	= since_prepare,
	.unprepare	= since_unprepare,
	.lock		= since_lock,
	.unlock		= since_unlock,
	.read		= since_read,
};

static struct strobe_channel channels[] = {
	{
		/* What a read over a bus takes: it counts for what a row may cost. */
		.name = "level", .unit = "%", .ops = &level_ops, .cost_ns = 1000,
		.text = "how full it is",
	}, {
		.name = "total", .text = "sum of all steps",
		.reg = { .access = STROBE_ACCESS_MEM64, .mem = &total },
	}, {
		.name = "since", .ops = &since_ops,
		.text = "growth of total since this was read; one run at a time",
	},
};

static struct strobe_output outputs[] = {
	{ .name = "step", .bits = 16, .write = step_write, .text = "growth of total a tick" },
};

static struct hrtimer timer;

static int tick_enable(struct strobe_event *event)
{
	lost = 0;
	hrtimer_start(&timer, TICK_NS, HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

/* After this the event must be silent: hrtimer_cancel() waits for the handler. */
static void tick_disable(struct strobe_event *event)
{
	hrtimer_cancel(&timer);
}

static const struct strobe_event_ops tick_ops = {
	.enable		= tick_enable,
	.disable	= tick_disable,
};

static struct strobe_event events[] = {
	{
		/* What it loses, it counts. */
		.name = "tick", .has_due = true, .ops = &tick_ops, .text = "every 10 ms",
		.accounting = STROBE_ACCOUNTING_EXACT,
	},
};

static enum hrtimer_restart tick(struct hrtimer *t)
{
	u64 now = ktime_get_ns();	/* the stamp: first thing in the handler */
	u64 due = ktime_to_ns(hrtimer_get_expires(t));
	u64 growth = READ_ONCE(step);

	WRITE_ONCE(total, total + growth);
	if (READ_ONCE(powered))
		atomic64_add(growth, &since);
	strobe_event_trigger(&events[0], now, due, lost);
	/* Points that have passed after this one are lost; the next tick says so. */
	lost = hrtimer_forward(t, ns_to_ktime(now), TICK_NS) - 1;
	return HRTIMER_RESTART;
}

static struct strobe_device device = {
	.name		= "sample",
	.text		= "sample provider",
	.channels	= channels,
	.outputs	= outputs,
	.events		= events,
	.channel_count	= ARRAY_SIZE(channels),
	.output_count	= ARRAY_SIZE(outputs),
	.event_count	= ARRAY_SIZE(events),
};

static int __init sample_init(void)
{
	hrtimer_setup(&timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	return strobe_device_register(&device);
}

static void __exit sample_exit(void)
{
	strobe_device_unregister(&device);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("Sample provider of strobe");
MODULE_LICENSE("GPL");
