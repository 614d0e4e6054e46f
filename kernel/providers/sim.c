// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device "sim": channels and events without hardware, and faults to
 * order. Its events are in sim_pulse.c. Parameters sim_* can be written while
 * runs go on; faults hit every sim_every-th pulse or read. Writing 0 to "sim"
 * unplugs the device.
 *
 * Channels start anew when the first run takes one of them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/processor.h>
#include <linux/workqueue.h>

#include "providers/providers.h"

static unsigned long sim_seed = 1;
module_param(sim_seed, ulong, 0644);
MODULE_PARM_DESC(sim_seed, "seed of sim.noise");
static unsigned int sim_every = 100;
module_param(sim_every, uint, 0644);
MODULE_PARM_DESC(sim_every, "faults hit every n-th pulse or read (default 100)");
static unsigned long sim_slow_ns;
module_param(sim_slow_ns, ulong, 0644);
MODULE_PARM_DESC(sim_slow_ns, "fault: reads of sim.ramp take this long, at most 10 ms");
static unsigned int sim_fail;
module_param(sim_fail, uint, 0644);
MODULE_PARM_DESC(sim_fail, "fault: these fail, a sum: 1 noise, 2 counter, 4 ramp, 8 sine, 16 the output latch");

enum sim_fail {
	FAIL_NOISE	= 1,
	FAIL_COUNTER	= 2,
	FAIL_RAMP	= 4,
	FAIL_SINE	= 8,
	FAIL_LATCH	= 16,
};

#define SLOW_MAX	(10UL * NSEC_PER_MSEC)
#define RAMP_LENGTH	1000
#define SINE_LENGTH	64
#define SINE_SCALE	0x3F00002000400080ULL	/* 1.0 / 32767 */
#define RAMP_SCALE	0x3F50624DD2F1A9FCULL	/* 0.001 */

/* One turn of a sine, 32767 * sin(2 pi i / 64); its first quarter and the end. */
static const s16 quarter_sine[SINE_LENGTH / 4 + 1] = {
	0, 3212, 6393, 9512, 12539, 15446, 18204, 20787, 23170,
	25329, 27245, 28898, 30273, 31356, 32137, 32609, 32767,
};

/*
 * State of the channels. Runs on several CPUs may read at once: each read takes
 * a number of its own. Reset in process context while nobody reads.
 */
static atomic64_t counter_reads, ramp_reads, sine_reads, noise_reads, latch_writes, latch;

/**
 * strobe_sim_is_hit() - whether a fault is to hit.
 * @n: number of the pulse or read.
 */
bool strobe_sim_is_hit(u64 n)
{
	unsigned int every = READ_ONCE(sim_every);

	return every && n && !(n % every);
}

static bool fails(enum sim_fail which, u64 n)
{
	return unlikely(READ_ONCE(sim_fail) & which) && strobe_sim_is_hit(n);
}

static int counter_read(struct strobe_channel *channel, u64 *value)
{
	u64 n = atomic64_fetch_inc(&counter_reads);

	*value = n;
	return fails(FAIL_COUNTER, n) ? -EIO : 0;
}

static int ramp_read(struct strobe_channel *channel, u64 *value)
{
	u64 n = atomic64_fetch_inc(&ramp_reads);
	unsigned long slow = min(READ_ONCE(sim_slow_ns), SLOW_MAX);

	if (slow && strobe_sim_is_hit(n)) {
		u64 end = ktime_get_mono_fast_ns() + slow;

		while ((s64)(ktime_get_mono_fast_ns() - end) < 0)
			cpu_relax();
	}
	*value = n % RAMP_LENGTH;
	return fails(FAIL_RAMP, n) ? -EIO : 0;
}

static int sine_read(struct strobe_channel *channel, u64 *value)
{
	u64 read = atomic64_fetch_inc(&sine_reads);
	unsigned int n = read % SINE_LENGTH;
	unsigned int i = n % (SINE_LENGTH / 2);
	s64 sine = quarter_sine[i <= SINE_LENGTH / 4 ? i : SINE_LENGTH / 2 - i];

	*value = n < SINE_LENGTH / 2 ? sine : -sine;
	return fails(FAIL_SINE, read) ? -EIO : 0;
}

/* A hash of the number of the read: the same sequence whoever reads. */
static int noise_read(struct strobe_channel *channel, u64 *value)
{
	u64 n = atomic64_fetch_inc(&noise_reads);
	u64 x = (n + 1) * 0x9E3779B97F4A7C15ULL + READ_ONCE(sim_seed);

	if (fails(FAIL_NOISE, n))
		return -EIO;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
	*value = (s16)(x >> 48);
	return 0;
}

static int latch_read(struct strobe_channel *channel, u64 *value)
{
	*value = atomic64_read(&latch);
	return 0;
}

static int latch_write(struct strobe_output *output, u64 value)
{
	if (fails(FAIL_LATCH, atomic64_fetch_inc(&latch_writes)))
		return -EIO;
	atomic64_set(&latch, value);
	return 0;
}

static const struct strobe_channel_ops counter_ops = {
	.lock	= strobe_sim_lock,
	.read	= counter_read,
};

static const struct strobe_channel_ops ramp_ops = {
	.lock	= strobe_sim_lock,
	.read	= ramp_read,
};

static const struct strobe_channel_ops sine_ops = {
	.lock	= strobe_sim_lock,
	.read	= sine_read,
};

static const struct strobe_channel_ops noise_ops = {
	.lock	= strobe_sim_lock,
	.read	= noise_read,
};

static const struct strobe_channel_ops latch_ops = { .read = latch_read };

static struct strobe_channel sim_channels[] = {
	{
		.name = "counter", .ops = &counter_ops, .cost_ns = 10,
		.text = "one more at each read",
	}, {
		.name = "ramp", .unit = "V", .scale = RAMP_SCALE, .bits = 10,
		.ops = &ramp_ops, .cost_ns = 20, .text = "sawtooth, 1000 reads a period",
	}, {
		.name = "sine", .unit = "V", .scale = SINE_SCALE, .type = STROBE_TYPE_S64,
		.bits = 16, .ops = &sine_ops, .cost_ns = 20, .text = "sine, 64 reads a period",
	}, {
		.name = "noise", .unit = "V", .scale = SINE_SCALE, .type = STROBE_TYPE_S64,
		.bits = 16, .ops = &noise_ops, .cost_ns = 20, .text = "seeded white noise",
	}, {
		.name = "latch", .ops = &latch_ops, .cost_ns = 10,
		.text = "what was last written to the output latch",
	}, {
		.name = "slow", .ops = &strobe_sim_slow_ops, .cost_class = STROBE_CLASS_SLEEP,
		.cost_ns = 50000, .text = "one more at each read, which sleeps sim_sleep_us",
	}, {
		.name = "async", .ops = &strobe_sim_async_ops, .cost_class = STROBE_CLASS_ASYNC,
		.cost_ns = 20000, .text = "one more at each read, arrives sim_async_ns later",
	}, {
		.name = "next", .ops = &strobe_sim_next_ops, .cost_class = STROBE_CLASS_ASYNC,
		.cost_ns = 20, .text = "one more at each read, fetched before the next row",
	},
};

/**
 * strobe_sim_lock() - a run takes a channel.
 * @channel: which.
 */
int strobe_sim_lock(struct strobe_channel *channel)
{
	for (size_t i = 0; i < ARRAY_SIZE(sim_channels); i++)
		if (sim_channels[i].users)
			return 0;
	atomic64_set(&counter_reads, 0);
	atomic64_set(&ramp_reads, 0);
	atomic64_set(&sine_reads, 0);
	atomic64_set(&noise_reads, 0);
	atomic64_set(&latch_writes, 0);
	strobe_sim_slow_reset();
	return 0;
}

static struct strobe_output sim_outputs[] = {
	{ .name = "latch", .write = latch_write, .cost_ns = 10, .text = "a word to keep" },
};

/* ---- plugging ---- */

static struct work_struct vanish_work;

static struct strobe_device sim_device = {
	.name		= "sim",
	.text		= "simulator",
	.channels	= sim_channels,
	.outputs	= sim_outputs,
	.events		= strobe_sim_events,
	.channel_count	= ARRAY_SIZE(sim_channels),
	.output_count	= ARRAY_SIZE(sim_outputs),
	.event_count	= STROBE_SIM_EVENTS,
};

/* plugged: wanted; registered: so it is. Both under the lock. */
static bool plugged = true, registered, ready;
static DEFINE_MUTEX(plug_lock);

static int plug(bool in)
{
	int ret = 0;

	guard(mutex)(&plug_lock);
	plugged = in;
	if (!ready || in == registered)
		return 0;
	if (in)
		ret = strobe_device_register(&sim_device);
	else
		strobe_device_unregister(&sim_device);
	if (!ret)
		registered = in;
	return ret;
}

static void vanish(struct work_struct *work)
{
	plug(false);
}

/**
 * strobe_sim_vanish() - unplug the simulator, soon.
 *
 * Context: any.
 */
void strobe_sim_vanish(void)
{
	schedule_work(&vanish_work);
}

static int sim_set(const char *text, const struct kernel_param *kp)
{
	bool in;
	int ret;

	ret = kstrtobool(text, &in);
	return ret ?: plug(in);
}

static int sim_get(char *buffer, const struct kernel_param *kp)
{
	return sprintf(buffer, "%c\n", READ_ONCE(plugged) ? 'Y' : 'N');
}

static const struct kernel_param_ops sim_param_ops = { .set = sim_set, .get = sim_get };
module_param_cb(sim, &sim_param_ops, NULL, 0644);
MODULE_PARM_DESC(sim, "simulator is plugged in (default Y)");

/**
 * strobe_sim_init() - plug the simulator in, unless sim=0.
 */
int strobe_sim_init(void)
{
	strobe_sim_slow_init();
	INIT_WORK(&vanish_work, vanish);
	strobe_sim_pulse_init();
	scoped_guard(mutex, &plug_lock)
		ready = true;
	return plug(plugged);
}

/**
 * strobe_sim_exit() - unplug it for good.
 */
void strobe_sim_exit(void)
{
	plug(false);
	/* Written again meanwhile? From now on the parameter is only a wish. */
	scoped_guard(mutex, &plug_lock)
		ready = false;
	cancel_work_sync(&vanish_work);
	if (registered)
		strobe_device_unregister(&sim_device);
}
