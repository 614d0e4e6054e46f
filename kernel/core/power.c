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

/*
 * Runs that begin to run are silent, too. Set before the first run is silenced,
 * whose lock is taken for that; who starts a run looks at it under that lock.
 */
bool strobe_asleep;

/* The next run after this id, with a reference; ids grow along the list. */
static struct strobe_run *run_after(u32 id)
{
	struct strobe_run *run;

	guard(mutex)(&strobe_registry);
	list_for_each_entry(run, &strobe_runs, entry) {
		if (run->id > id) {
			strobe_run_get(run);
			return run;
		}
	}
	return NULL;
}

static void with_all_runs(void (*what)(struct strobe_run *run))
{
	struct strobe_run *run;
	u32 id = 0;

	while ((run = run_after(id))) {
		id = run->id;
		what(run);
		strobe_run_put(run);
	}
}

static void go_to_sleep(void)
{
	WRITE_ONCE(strobe_asleep, true);
	with_all_runs(strobe_run_suspend);
}

static void wake_up_again(void)
{
	int cpu;

	if (!strobe_asleep)
		return;
	/* The budget's clock may have begun anew; nobody looks at it while all is silent. */
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&strobe_budget, cpu), 0, sizeof(struct strobe_budget));
	WRITE_ONCE(strobe_asleep, false);
	with_all_runs(strobe_run_wake);
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
