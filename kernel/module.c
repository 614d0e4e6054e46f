// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe.ko: on every event, read a set of channels from any devices into one
 * row, and lose nothing silently. This file: what is done when the module comes
 * and goes. The folders, from the lowest to the highest; each one calls and
 * includes only what stands before it:
 *
 *   uabi.c      copying of arguments
 *   ring/       memory of the rows, ring fds, waking of readers
 *   row/        the hard path: one trigger becomes one row
 *   events/     what triggers: timers, software, events of devices
 *   core/       devices, runs, the control device, sysfs
 *   providers/  devices that are here without hardware
 *
 * Others are modules of their own: board/, frames/, rpmsg/, test/.
 */
#include <linux/module.h>

#include "core/internal.h"
#include "providers/providers.h"
#include "row/budget.h"
#include "row/slow.h"

static int __init strobe_init(void)
{
	int ret;

	ret = strobe_budget_init();
	if (ret)
		return ret;
	ret = strobe_sysfs_init();
	if (ret)
		return ret;
	strobe_ticket_init();
	ret = strobe_run_init();
	if (ret)
		goto sysfs;
	ret = strobe_builtin_init();
	if (ret)
		goto runs;
	ret = strobe_sim_init();
	if (ret)
		goto builtin;
	ret = strobe_power_init();
	if (ret)
		goto sim;
	ret = strobe_control_init();
	if (ret)
		goto power;
	return 0;

power:
	strobe_power_exit();
sim:
	strobe_sim_exit();
builtin:
	strobe_builtin_exit();
runs:
	strobe_run_exit();
sysfs:
	strobe_sysfs_exit();
	return ret;
}

static void __exit strobe_exit(void)
{
	strobe_control_exit();
	strobe_power_exit();
	strobe_sim_exit();
	strobe_builtin_exit();
	strobe_run_exit();
	strobe_sysfs_exit();
}

module_init(strobe_init);
module_exit(strobe_exit);
MODULE_DESCRIPTION("Reads channels of any devices into one row on every event");
MODULE_LICENSE("GPL");
