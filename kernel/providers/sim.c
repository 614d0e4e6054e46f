// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device "sim": channels and an event without hardware, and faults to
 * order. Parameters sim_* can be written while runs go on; faults hit every
 * sim_every-th pulse or read. Writing 0 to "sim" unplugs the device.
 *
 * Channels start anew when the first run takes one of them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/processor.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "providers/providers.h"

static unsigned long sim_pulse_ns = NSEC_PER_MSEC;
module_param(sim_pulse_ns, ulong, 0644);
MODULE_PARM_DESC(sim_pulse_ns, "period of sim.pulse, ns, at least 1000 (default 1 ms)");
static unsigned long sim_seed = 1;
module_param(sim_seed, ulong, 0644);
MODULE_PARM_DESC(sim_seed, "seed of sim.noise");
static unsigned int sim_every = 100;
module_param(sim_every, uint, 0644);
MODULE_PARM_DESC(sim_every, "faults hit every n-th pulse or read (default 100)");
static unsigned long sim_late_ns;
module_param(sim_late_ns, ulong, 0644);
MODULE_PARM_DESC(sim_late_ns, "fault: pulses come this late; beyond a period, pulses are lost");
static unsigned long sim_slow_ns;
module_param(sim_slow_ns, ulong, 0644);
MODULE_PARM_DESC(sim_slow_ns, "fault: reads of sim.ramp take this long, at most 10 ms");
static bool sim_fail;
module_param(sim_fail, bool, 0644);
MODULE_PARM_DESC(sim_fail, "fault: reads of sim.noise fail");
static unsigned int sim_burst;
module_param(sim_burst, uint, 0644);
MODULE_PARM_DESC(sim_burst, "fault: so many triggers more come at once, at most 10000");
static unsigned int sim_drop;
module_param(sim_drop, uint, 0644);
MODULE_PARM_DESC(sim_drop, "fault: so many triggers are lost by the source itself");
static unsigned int sim_vanish;
module_param(sim_vanish, uint, 0644);
MODULE_PARM_DESC(sim_vanish, "fault: the device is unplugged at this pulse of a run");

static unsigned int sim_refuse;
module_param(sim_refuse, uint, 0644);
MODULE_PARM_DESC(sim_refuse, "fault: after so many pulses at once the event cannot be enabled");

#define SLOW_MAX	(10UL * NSEC_PER_MSEC)
#define BURST_MAX	10000U
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
static atomic64_t counter_reads, ramp_reads, sine_reads, noise_reads, latch;

/**
 * strobe_sim_is_hit() - whether a fault is to hit.
 * @n: number of the pulse or read.
 */
bool strobe_sim_is_hit(u64 n)
{
	unsigned int every = READ_ONCE(sim_every);

	return every && n && !(n % every);
}

static int counter_read(struct strobe_channel *channel, u64 *value)
{
	*value = atomic64_fetch_inc(&counter_reads);
	return 0;
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
	return 0;
}

static int sine_read(struct strobe_channel *channel, u64 *value)
{
	unsigned int n = atomic64_fetch_inc(&sine_reads) % SINE_LENGTH;
	unsigned int i = n % (SINE_LENGTH / 2);
	s64 sine = quarter_sine[i <= SINE_LENGTH / 4 ? i : SINE_LENGTH / 2 - i];

	*value = n < SINE_LENGTH / 2 ? sine : -sine;
	return 0;
}

/* A hash of the number of the read: the same sequence whoever reads. */
static int noise_read(struct strobe_channel *channel, u64 *value)
{
	u64 n = atomic64_fetch_inc(&noise_reads);
	u64 x = (n + 1) * 0x9E3779B97F4A7C15ULL + READ_ONCE(sim_seed);

	if (READ_ONCE(sim_fail) && strobe_sim_is_hit(n))
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

static void latch_write(struct strobe_output *output, u64 value)
{
	atomic64_set(&latch, value);
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
	strobe_sim_slow_reset();
	return 0;
}

static struct strobe_output sim_outputs[] = {
	{ .name = "latch", .write = latch_write, .cost_ns = 10, .text = "a word to keep" },
};

/* ---- the event ---- */

/**
 * struct pulse - the event's timer.
 * @timer: absolute, hard.
 * @due: when the next pulse is due.
 * @late: how much of that it is set late; a fault.
 * @period: taken over at the start.
 * @count: pulses since the start.
 * @lost: pulses that did not come since the last one.
 *
 * Written by the timer while the event is enabled, else by enable().
 */
static struct pulse {
	struct hrtimer	timer;
	u64		due;
	u64		late;
	u64		period;
	u64		count;
	u64		lost;
} pulse;

static struct strobe_event sim_events[];
static struct work_struct vanish_work;

static enum hrtimer_restart pulse_fire(struct hrtimer *timer)
{
	u64 now = ktime_get_ns(), due = pulse.due, lost = pulse.lost;
	unsigned int burst = 0;
	bool hit = strobe_sim_is_hit(++pulse.count);

	if (unlikely(pulse.count == READ_ONCE(sim_vanish)))
		schedule_work(&vanish_work);
	if (unlikely(hit)) {
		burst = min(READ_ONCE(sim_burst), BURST_MAX);
		lost += READ_ONCE(sim_drop);
	}
	strobe_event_trigger(sim_events, now, due, lost);
	while (burst--)
		strobe_event_trigger(sim_events, ktime_get_ns(), due, 0);

	pulse.due += pulse.period;
	pulse.lost = 0;
	/* Pulses whose time has passed are lost; the next one says so. */
	if (pulse.due <= now)
		pulse.lost = div64_u64(now - pulse.due, pulse.period) + 1;
	pulse.due += pulse.lost * pulse.period;
	pulse.late = strobe_sim_is_hit(pulse.count + 1) ? READ_ONCE(sim_late_ns) : 0;
	hrtimer_set_expires(timer, ns_to_ktime(pulse.due + pulse.late));
	return HRTIMER_RESTART;
}

static int pulse_enable(struct strobe_event *event)
{
	u32 refuse = min(READ_ONCE(sim_refuse), BURST_MAX);

	pulse.period = max(READ_ONCE(sim_pulse_ns), STROBE_PERIOD_MIN);
	pulse.count = 0;
	pulse.lost = 0;
	pulse.due = ktime_get_ns() + pulse.period;
	if (unlikely(refuse)) {
		scoped_guard(irqsave) {
			while (refuse--) {
				u64 now = ktime_get_ns();

				strobe_event_trigger(event, now, now, 0);
			}
		}
		return -EIO;
	}
	hrtimer_start(&pulse.timer, ns_to_ktime(pulse.due), HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void pulse_disable(struct strobe_event *event)
{
	hrtimer_cancel(&pulse.timer);
}

static const struct strobe_event_ops pulse_ops = {
	.enable		= pulse_enable,
	.disable	= pulse_disable,
};

static struct strobe_event sim_events[] = {
	{
		.name = "pulse", .has_due = true, .ops = &pulse_ops,
		.text = "every sim_pulse_ns nanoseconds",
	},
};

/* ---- plugging ---- */

static struct strobe_device sim_device = {
	.name		= "sim",
	.text		= "simulator",
	.channels	= sim_channels,
	.outputs	= sim_outputs,
	.events		= sim_events,
	.channel_count	= ARRAY_SIZE(sim_channels),
	.output_count	= ARRAY_SIZE(sim_outputs),
	.event_count	= ARRAY_SIZE(sim_events),
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
	hrtimer_setup(&pulse.timer, pulse_fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
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
