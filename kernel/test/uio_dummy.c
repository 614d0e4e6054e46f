// SPDX-License-Identifier: GPL-2.0-only
/*
 * A UIO device without hardware: a timer raises its event, and a page of memory
 * tells what the device itself knows, so that a program can compare.
 *
 * It runs when it is loaded; irqcontrol (a 0 or 1 written to /dev/uioN) stops
 * it and lets it go on. To enable what is enabled changes nothing. The
 * parameter plugged takes it away from who uses it, as hot-plug does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/device.h>
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uio_driver.h>

#include "compat.h"

#define PERIOD_MIN	(10UL * NSEC_PER_USEC)
/*
 * Soft, because waking who waits takes locks that sleep with PREEMPT_RT; on the
 * CPU of who enables it, so that it can be kept away from one that is busy.
 */
#define MODE		HRTIMER_MODE_ABS_PINNED_SOFT

/**
 * struct dummy_page - map 0.
 * @sequence: odd while the others are being written; two more for each event.
 * @time: of the last event, CLOCK_MONOTONIC, ns.
 * @events: since the device is there.
 */
struct dummy_page {
	u64	sequence;
	u64	time;
	u64	events;
};

static unsigned long period_ns = NSEC_PER_MSEC;
module_param(period_ns, ulong, 0644);
MODULE_PARM_DESC(period_ns, "time from event to event, ns, at least 10000 (default 1 ms)");

static bool control = true;
module_param(control, bool, 0444);
MODULE_PARM_DESC(control, "0: a driver without irqcontrol (default 1)");

static uint going_ms;
module_param(going_ms, uint, 0644);
MODULE_PARM_DESC(going_ms, "how long the removal of the device takes, ms (default 0)");

/* Written by the timer only, once it runs. */
static struct dummy_page *page;
static struct hrtimer timer;

/* Of the page, for who reads files only. */
static unsigned long long time_ns;
module_param(time_ns, ullong, 0444);
MODULE_PARM_DESC(time_ns, "CLOCK_MONOTONIC at the last event, ns (read only)");

/* Guards @present, @enabled and @limit, and starting and stopping of the timer. */
static DEFINE_MUTEX(lock);
static bool present;
static bool enabled;
static unsigned long limit;

/* Guards @parent and @plugged; taken before UIO's locks, as @lock is after them. */
static DEFINE_MUTEX(plug_lock);
static struct device *parent;
static bool plugged = true;

static ktime_t period(void)
{
	return ns_to_ktime(max(READ_ONCE(period_ns), PERIOD_MIN));
}

static bool exhausted(void)
{
	unsigned long end = READ_ONCE(limit);

	return end && READ_ONCE(page->events) >= end;
}

static int irqcontrol(struct uio_info *info, s32 on);

static struct uio_info dummy = {
	.name		= "uio_dummy",
	.version	= "1",
	.irq		= UIO_IRQ_CUSTOM,
	.irqcontrol	= irqcontrol,
};

static enum hrtimer_restart fire(struct hrtimer *unused)
{
	u64 sequence = page->sequence;

	WRITE_ONCE(page->sequence, sequence + 1);
	smp_wmb(); /* a reader that sees a new value sees that it is being written */
	WRITE_ONCE(time_ns, ktime_get_ns());
	WRITE_ONCE(page->time, time_ns);
	WRITE_ONCE(page->events, page->events + 1);
	smp_wmb(); /* who sees it finished sees the new values */
	WRITE_ONCE(page->sequence, sequence + 2);

	uio_event_notify(&dummy);
	if (exhausted())
		return HRTIMER_NORESTART;
	/*
	 * A period from now, not from when this was due: a soft timer that was late
	 * would raise the next event at once, before who waits could read this one.
	 */
	hrtimer_set_expires(&timer, ktime_add(ktime_get(), period()));
	return HRTIMER_RESTART;
}

/* Let the timer run if it is to run. Call with the lock held, the timer silent. */
static void go_on(void)
{
	if (enabled && !exhausted())
		hrtimer_start(&timer, ktime_add(ktime_get(), period()), MODE);
}

static int irqcontrol(struct uio_info *info, s32 on)
{
	guard(mutex)(&lock);
	if (!present)
		return -ENODEV;
	if (enabled == !!on)
		return 0;
	enabled = on;
	if (on)
		go_on();
	else
		hrtimer_cancel(&timer);
	return 0;
}

static int limit_set(const char *text, const struct kernel_param *parameter)
{
	int error;

	guard(mutex)(&lock);
	if (enabled)
		hrtimer_cancel(&timer);
	error = param_set_ulong(text, parameter);
	go_on();
	return error;
}

static const struct kernel_param_ops limit_ops = {
	.set = limit_set,
	.get = param_get_ulong,
};

module_param_cb(limit, &limit_ops, &limit, 0644);
MODULE_PARM_DESC(limit, "no more events after this many since loading (default 0: no limit)");

/* Call with plug_lock held. Who opens it at once waits for the lock to enable it. */
static int plug(void)
{
	int error;

	guard(mutex)(&lock);
	memset(page, 0, sizeof(*page));
	error = uio_register_device(parent, &dummy);
	if (error)
		return error;
	present = true;
	enabled = true;
	go_on();
	return 0;
}

/* Call with plug_lock held. */
static void unplug(void)
{
	/* From now on nobody can start the timer, which tells UIO. */
	scoped_guard(mutex, &lock) {
		present = false;
		enabled = false;
		hrtimer_cancel(&timer);
	}
	/* Until it is unregistered its files are there, and irqcontrol says that it is not. */
	if (going_ms)
		msleep(going_ms);
	uio_unregister_device(&dummy);
}

static int plugged_set(const char *text, const struct kernel_param *parameter)
{
	bool before;
	int error;

	guard(mutex)(&plug_lock);
	before = plugged;
	error = param_set_bool(text, parameter);
	/* Without a parent the module is being loaded or unloaded. */
	if (error || !parent || plugged == before)
		return error;
	if (!plugged) {
		unplug();
		return 0;
	}
	error = plug();
	plugged = !error;
	return error;
}

static const struct kernel_param_ops plugged_ops = {
	.set = plugged_set,
	.get = param_get_bool,
};

module_param_cb(plugged, &plugged_ops, &plugged, 0644);
MODULE_PARM_DESC(plugged, "0: the device is removed, also while a program uses it (default 1)");

static int __init dummy_init(void)
{
	struct device *root;
	int error;

	page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	dummy.mem[0].name = "state";
	dummy.mem[0].addr = (phys_addr_t)(uintptr_t)page;
	dummy.mem[0].size = PAGE_SIZE;
	dummy.mem[0].memtype = UIO_MEM_LOGICAL;
	if (!control)
		dummy.irqcontrol = NULL;
	hrtimer_setup(&timer, fire, CLOCK_MONOTONIC, MODE);

	root = root_device_register("uio_dummy");
	if (IS_ERR(root)) {
		error = PTR_ERR(root);
		goto free;
	}
	scoped_guard(mutex, &plug_lock) {
		parent = root;
		error = plugged ? plug() : 0;
		if (!error)
			return 0;
		parent = NULL;
	}
	root_device_unregister(root);
free:
	free_page((unsigned long)page);
	return error;
}

static void __exit dummy_exit(void)
{
	/* Nobody has it open; who writes a parameter finds it disabled, and no parent. */
	guard(mutex)(&plug_lock);
	if (plugged)
		unplug();
	root_device_unregister(parent);
	parent = NULL;
	free_page((unsigned long)page);
}

module_init(dummy_init);
module_exit(dummy_exit);

MODULE_DESCRIPTION("UIO device whose events come from a timer");
MODULE_LICENSE("GPL");
