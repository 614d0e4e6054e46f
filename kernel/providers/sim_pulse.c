// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events of the device "sim":
 *
 *   sim.pulse      every sim_pulse_ns nanoseconds
 *   sim.decimated  the same, but only each sim_keep-th makes a row; the others
 *                  are left out on purpose, and counted as such
 *
 * One timer makes both. See sim.c for the parameters in common.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "compat.h"
#include "providers/providers.h"

static unsigned long sim_pulse_ns = NSEC_PER_MSEC;
module_param(sim_pulse_ns, ulong, 0644);
MODULE_PARM_DESC(sim_pulse_ns, "period of sim.pulse, ns, at least 1000 (default 1 ms)");
static unsigned long sim_late_ns;
module_param(sim_late_ns, ulong, 0644);
MODULE_PARM_DESC(sim_late_ns, "fault: pulses come this late; if that is more than a period, pulses are lost");
static unsigned int sim_burst;
module_param(sim_burst, uint, 0644);
MODULE_PARM_DESC(sim_burst, "fault: this many more triggers come at once, at most 10000");
static unsigned int sim_drop;
module_param(sim_drop, uint, 0644);
MODULE_PARM_DESC(sim_drop, "fault: the source itself loses this many triggers");
static unsigned int sim_vanish;
module_param(sim_vanish, uint, 0644);
MODULE_PARM_DESC(sim_vanish, "fault: the device is unplugged at this pulse of a run");
static unsigned int sim_refuse;
module_param(sim_refuse, uint, 0644);
MODULE_PARM_DESC(sim_refuse, "fault: enabling an event raises this many pulses at once, and then fails");
static unsigned int sim_keep = 10;
module_param(sim_keep, uint, 0644);
MODULE_PARM_DESC(sim_keep, "every n-th pulse of sim.decimated makes a row (default 10)");

#define BURST_MAX	10000U

enum { PULSE, DECIMATED };

/**
 * struct pulse - the timer of the events.
 * @timer: absolute, hard.
 * @due: when the next pulse is due.
 * @period: taken over at the start.
 * @count: pulses since the start.
 * @lost: pulses that did not come since the last one.
 * @kept: pulses since the last one of sim.decimated that made a row.
 * @decimated_lost: of these, those that did not come.
 * @enabled: which events are listened to.
 *
 * Written by the timer while an event is enabled. @enabled, and all else while
 * none is, by enable() and disable(), under the core's registry lock.
 */
static struct pulse {
	struct hrtimer	timer;
	u64		due;
	u64		period;
	u64		count;
	u64		lost;
	u64		kept;
	u64		decimated_lost;
	bool		enabled[STROBE_SIM_EVENTS];
} pulse;

/* One pulse for who listens to sim.decimated. */
static void decimate(u64 now, u64 due, u64 lost)
{
	u64 keep = max(READ_ONCE(sim_keep), 1U);

	pulse.decimated_lost += lost;
	if (++pulse.kept < keep) {
		strobe_event_skip(&strobe_sim_events[DECIMATED], 1);
		return;
	}
	strobe_event_trigger(&strobe_sim_events[DECIMATED], now, due, pulse.decimated_lost);
	pulse.kept = 0;
	pulse.decimated_lost = 0;
}

static void raise(u64 now, u64 due, u64 lost)
{
	if (READ_ONCE(pulse.enabled[PULSE]))
		strobe_event_trigger(&strobe_sim_events[PULSE], now, due, lost);
	if (READ_ONCE(pulse.enabled[DECIMATED]))
		decimate(now, due, lost);
}

static enum hrtimer_restart pulse_fire(struct hrtimer *timer)
{
	u64 now = ktime_get_ns(), due = pulse.due, lost = pulse.lost, late;
	unsigned int burst = 0;
	bool hit = strobe_sim_is_hit(++pulse.count);

	if (unlikely(pulse.count == READ_ONCE(sim_vanish)))
		strobe_sim_vanish();
	if (unlikely(hit)) {
		burst = min(READ_ONCE(sim_burst), BURST_MAX);
		lost += READ_ONCE(sim_drop);
	}
	raise(now, due, lost);
	while (burst--)
		raise(ktime_get_ns(), due, 0);

	pulse.due += pulse.period;
	pulse.lost = 0;
	/* Pulses whose time has passed are lost; the next one says so. */
	if (pulse.due <= now)
		pulse.lost = div64_u64(now - pulse.due, pulse.period) + 1;
	pulse.due += pulse.lost * pulse.period;
	late = strobe_sim_is_hit(pulse.count + 1) ? READ_ONCE(sim_late_ns) : 0;
	hrtimer_set_expires(timer, ns_to_ktime(pulse.due + late));
	return HRTIMER_RESTART;
}

/* A fault: the event happens some times, and then cannot be enabled. */
static int refuse(struct strobe_event *event, u32 times)
{
	scoped_guard(irqsave) {
		while (times--) {
			u64 now = ktime_get_ns();

			strobe_event_trigger(event, now, now, 0);
		}
	}
	return -EIO;
}

static int pulse_enable(struct strobe_event *event)
{
	u32 times = min(READ_ONCE(sim_refuse), BURST_MAX);
	bool runs = pulse.enabled[PULSE] || pulse.enabled[DECIMATED];

	if (unlikely(times))
		return refuse(event, times);
	if (event == &strobe_sim_events[DECIMATED]) {
		pulse.kept = 0;
		pulse.decimated_lost = 0;
	}
	WRITE_ONCE(pulse.enabled[event - strobe_sim_events], true);
	if (runs)
		return 0;
	pulse.period = max(READ_ONCE(sim_pulse_ns), STROBE_PERIOD_MIN);
	pulse.count = 0;
	pulse.lost = 0;
	pulse.due = ktime_get_ns() + pulse.period;
	hrtimer_start(&pulse.timer, ns_to_ktime(pulse.due), HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void pulse_disable(struct strobe_event *event)
{
	hrtimer_cancel(&pulse.timer);
	WRITE_ONCE(pulse.enabled[event - strobe_sim_events], false);
	if (pulse.enabled[PULSE] || pulse.enabled[DECIMATED])
		hrtimer_start(&pulse.timer, ns_to_ktime(pulse.due), HRTIMER_MODE_ABS_PINNED_HARD);
}

static const struct strobe_event_ops pulse_ops = {
	.enable		= pulse_enable,
	.disable	= pulse_disable,
};

struct strobe_event strobe_sim_events[STROBE_SIM_EVENTS] = {
	[PULSE] = {
		.name = "pulse", .has_due = true, .ops = &pulse_ops,
		.accounting = STROBE_ACCOUNTING_EXACT,
		.text = "every sim_pulse_ns nanoseconds",
	},
	[DECIMATED] = {
		.name = "decimated", .has_due = true, .may_skip = true, .ops = &pulse_ops,
		.accounting = STROBE_ACCOUNTING_EXACT,
		.text = "as pulse, but only each sim_keep-th makes a row",
	},
};

/**
 * strobe_sim_pulse_init() - before the simulator is plugged in.
 */
void strobe_sim_pulse_init(void)
{
	hrtimer_setup(&pulse.timer, pulse_fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
}
