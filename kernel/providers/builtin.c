// SPDX-License-Identifier: GPL-2.0-only
/* The devices "clock" and "cpu"; what their channels read is in row.c. */
#include "providers/providers.h"
#include "row/run.h"

#define BUILTIN(which)	{ .access = (enum strobe_access)(which) }

static struct strobe_channel clock_channels[] = {
	{
		.name = "time", .unit = "ns", .cost_ns = 40,
		.text = "clock of the run, read anew at this step",
		.reg = BUILTIN(STROBE_BUILTIN_TIME),
	}, {
		.name = "elapsed", .unit = "ns", .cost_ns = 5,
		.text = "from the start of the run to the row's stamp",
		.reg = BUILTIN(STROBE_BUILTIN_ELAPSED),
	}, {
		.name = "late", .unit = "ns", .cost_ns = 5,
		.text = "from when the trigger was due to the row's stamp",
		.reg = BUILTIN(STROBE_BUILTIN_LATE),
	}, {
		.name = "waited", .unit = "ns", .cost_ns = 5,
		.text = "from the row's stamp to its first step, which may wait for a thread",
		.reg = BUILTIN(STROBE_BUILTIN_WAITED),
	},
};

static struct strobe_channel cpu_channels[] = {
	{
		.name = "id", .bits = 32, .cost_ns = 5,
		.text = "CPU that made the row",
		.reg = BUILTIN(STROBE_BUILTIN_CPU),
	}, {
		.name = "cycles", .unit = "cycle", .cost_ns = 10,
		.text = "cycle counter of that CPU",
		.reg = BUILTIN(STROBE_BUILTIN_CYCLES),
	},
};

static struct strobe_device clock_device = {
	.name		= "clock",
	.text		= "clocks of this machine",
	.channels	= clock_channels,
	.channel_count	= ARRAY_SIZE(clock_channels),
};

static struct strobe_device cpu_device = {
	.name		= "cpu",
	.text		= "the CPU that makes the row",
	.channels	= cpu_channels,
	.channel_count	= ARRAY_SIZE(cpu_channels),
};

/**
 * strobe_builtin_init() - register both.
 */
int strobe_builtin_init(void)
{
	int ret;

	ret = strobe_device_register(&clock_device);
	if (ret)
		return ret;
	ret = strobe_device_register(&cpu_device);
	if (ret)
		strobe_device_unregister(&clock_device);
	return ret;
}

/**
 * strobe_builtin_exit() - unregister both.
 */
void strobe_builtin_exit(void)
{
	strobe_device_unregister(&cpu_device);
	strobe_device_unregister(&clock_device);
}
