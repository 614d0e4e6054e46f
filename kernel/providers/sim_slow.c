// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels of the device "sim" that are not ready at once:
 *
 *   sim.slow   reading it sleeps
 *   sim.async  its value arrives later, from a timer's interrupt; one run at a
 *              time may have it
 *   sim.next   its value can be fetched before the next row, not when it is ready
 *
 * All three count their reads. See sim.c for the parameters in common.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "compat.h"
#include "providers/providers.h"

static unsigned int sim_sleep_us = 50;
module_param(sim_sleep_us, uint, 0644);
MODULE_PARM_DESC(sim_sleep_us, "reads of sim.slow sleep for this time, us, at most 1 s (default 50)");
static unsigned long sim_async_ns = 20 * NSEC_PER_USEC;
module_param(sim_async_ns, ulong, 0644);
MODULE_PARM_DESC(sim_async_ns, "values of sim.async arrive after this time, ns (default 20000)");
static unsigned int sim_async_fault;
module_param(sim_async_fault, uint, 0644);
MODULE_PARM_DESC(sim_async_fault,
		 "fault: a value of sim.async 1: never comes, 2: comes twice, 3: fails, 4: comes at once, 5: is refused, 6: comes with the last ticket, too");

#define SLEEP_MAX	USEC_PER_SEC

enum async_fault { NEVER = 1, TWICE, FAILS, AT_ONCE, REFUSED, STALE };

static atomic64_t slow_reads, async_reads, next_reads;

static int slow_read(struct strobe_channel *channel, u64 *value)
{
	unsigned long us = min(READ_ONCE(sim_sleep_us), SLEEP_MAX);

	if (us)
		usleep_range(us, us + us / 8);
	*value = atomic64_fetch_inc(&slow_reads);
	return 0;
}

const struct strobe_channel_ops strobe_sim_slow_ops = {
	.lock	= strobe_sim_lock,
	.read	= slow_read,
};

/* ---- sim.async ---- */

/**
 * struct async - the value under way.
 * @timer: hard; when it arrives.
 * @ticket: of the value; written by begin(), which the timer cannot overtake:
 *	it is started after that.
 * @last: ticket of the value before.
 * @fault: what is to go wrong with it.
 */
static struct async {
	struct hrtimer		timer;
	atomic64_t		ticket;
	atomic64_t		last;
	enum async_fault	fault;
} async;

static void arrive(enum async_fault fault)
{
	u64 ticket = atomic64_read(&async.ticket);
	u64 value = atomic64_fetch_inc(&async_reads);

	if (fault == STALE)
		strobe_complete(atomic64_read(&async.last), ~value, 0);
	strobe_complete(ticket, value, fault == FAILS ? -EIO : 0);
	if (fault == TWICE)
		strobe_complete(ticket, value, 0);
}

static enum hrtimer_restart async_fire(struct hrtimer *timer)
{
	arrive(READ_ONCE(async.fault));
	return HRTIMER_NORESTART;
}

static int async_begin(struct strobe_channel *channel, u64 ticket)
{
	bool hit = strobe_sim_is_hit(atomic64_read(&async_reads));
	enum async_fault fault = hit ? READ_ONCE(sim_async_fault) : 0;

	if (fault == REFUSED) {
		atomic64_inc(&async_reads);
		return -EIO;
	}
	atomic64_set(&async.last, atomic64_xchg(&async.ticket, ticket));
	WRITE_ONCE(async.fault, fault);
	if (fault == AT_ONCE)
		arrive(fault);
	else if (fault != NEVER)
		hrtimer_start(&async.timer, ns_to_ktime(READ_ONCE(sim_async_ns)),
			      HRTIMER_MODE_REL_HARD);
	return 0;
}

/* One value at a time is under way, so one run at a time may ask for it. */
static int async_lock(struct strobe_channel *channel)
{
	return channel->users ? -EBUSY : strobe_sim_lock(channel);
}

static void async_unlock(struct strobe_channel *channel)
{
	hrtimer_cancel(&async.timer);
}

const struct strobe_channel_ops strobe_sim_async_ops = {
	.lock	= async_lock,
	.unlock	= async_unlock,
	.begin	= async_begin,
};

/* ---- sim.next ---- */

static int next_begin(struct strobe_channel *channel, u64 ticket)
{
	return 0;
}

static int next_fetch(struct strobe_channel *channel, u64 *value)
{
	*value = atomic64_fetch_inc(&next_reads);
	return 0;
}

const struct strobe_channel_ops strobe_sim_next_ops = {
	.lock	= strobe_sim_lock,
	.begin	= next_begin,
	.fetch	= next_fetch,
};

/**
 * strobe_sim_slow_reset() - all counts begin anew.
 */
void strobe_sim_slow_reset(void)
{
	atomic64_set(&slow_reads, 0);
	atomic64_set(&async_reads, 0);
	atomic64_set(&next_reads, 0);
}

/**
 * strobe_sim_slow_init() - before the simulator is plugged in.
 */
void strobe_sim_slow_init(void)
{
	hrtimer_setup(&async.timer, async_fire, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
}
