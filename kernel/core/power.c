// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine is suspended, or hibernates, and wakes.
 *
 * Runs stay RUNNING, but are silent from before the first process is frozen until
 * after the last device has been resumed: so no register of a device that is
 * asleep, or not set up again, is read or written. Then they go on: timers on
 * their grid, whose points meanwhile are missed as suspended; events are enabled
 * anew, and what a device would have raised nobody can count. The first row says
 * that it is that, by STROBE_ROW_RESUMED.
 */
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/suspend.h>

#include "core/internal.h"
#include "row/budget.h"

/* Runs that begin to run are silent, too. Under strobe_registry. */
bool strobe_asleep;

static void go_to_sleep(void)
{
	struct strobe_run *run;

	guard(mutex)(&strobe_registry);
	strobe_asleep = true;
	list_for_each_entry(run, &strobe_runs, entry)
		strobe_run_suspend(run);
}

static void wake_up_again(void)
{
	struct strobe_run *run;
	int cpu;

	guard(mutex)(&strobe_registry);
	if (!strobe_asleep)
		return;
	/* The budget's clock may have begun anew; nobody looks at it while all is silent. */
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&strobe_budget, cpu), 0, sizeof(struct strobe_budget));
	strobe_asleep = false;
	list_for_each_entry(run, &strobe_runs, entry)
		strobe_run_wake(run);
}

static int power_event(struct notifier_block *block, unsigned long what, void *data)
{
	switch (what) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		go_to_sleep();
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		wake_up_again();
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block power_block = { .notifier_call = power_event };

/**
 * strobe_power_init() - be told when the machine is suspended.
 *
 * Return: 0 or an errno.
 */
int strobe_power_init(void)
{
	return register_pm_notifier(&power_block);
}

/**
 * strobe_power_exit() - be told no more.
 */
void strobe_power_exit(void)
{
	unregister_pm_notifier(&power_block);
}
