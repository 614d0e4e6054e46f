// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a run, and the owner fd.
 *
 *	          START          PAUSE
 *	READY ---------> RUNNING -----> PAUSED
 *	  |                |  ^ RESUME    |
 *	  |                |  +-----------+
 *	  |    limit: DONE |              |
 *	  +--- STOP: STOPPED; unplug, close: FAILED
 *
 * A run that another one triggers is STOPPED with it, and FAILED if that one is.
 * The producer makes only the step from RUNNING to DONE, or to FAILED when it
 * finds a device gone. All others are made under run->lock, after the producer
 * has been silenced, which takes as long as the run's channels do. So
 * strobe_registry, which everybody needs, is taken inside it, for moments only.
 * A run gives its devices back as soon as it has ended; its rows stay for as
 * long as somebody has them open.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "computer/computer.h"
#include "core/internal.h"
#include "events/events.h"
#include "row/slow.h"
#include "row/trace.h"

/* How long values may take that a row awaits when there are no more triggers. */
#define AWAIT_MS	1000

/* For what waits for locks: those of others go on meanwhile. */
static struct workqueue_struct *strobe_wq;

/**
 * strobe_run_init() - before there can be a run.
 *
 * Return: 0 or -ENOMEM.
 */
int strobe_run_init(void)
{
	strobe_wq = alloc_workqueue("strobe", WQ_UNBOUND, 0);
	return strobe_wq ? 0 : -ENOMEM;
}

/**
 * strobe_run_exit() - there are no runs any more.
 */
void strobe_run_exit(void)
{
	destroy_workqueue(strobe_wq);
}

static void free_run(struct strobe_run *run)
{
	strobe_follow_free(run);
	strobe_slow_free(run);
	strobe_give_thread(run);
	strobe_ring_free(&run->ring);
	strobe_computer_free(run->computer);
	strobe_ring_unpay(&run->ring);
	kvfree(run->actions);
	kvfree(run->cuts);
	kvfree(run->steps);
	kvfree(run->targets);
	mutex_destroy(&run->lock);
	kfree(run);
}

static void run_release(struct strobe_ring *ring)
{
	free_run(container_of(ring, struct strobe_run, ring));
}

/* The producer has ended the run: the rest is for a process. */
static void run_ended(struct strobe_ring *ring)
{
	queue_work(strobe_wq, &container_of(ring, struct strobe_run, ring)->done);
}

static const struct strobe_ring_ops run_ring_ops = {
	.ended		= run_ended,
	.show		= strobe_run_fdinfo,
	.release	= run_release,
};

/**
 * strobe_run_get() - keep a run.
 * @run: the run.
 */
void strobe_run_get(struct strobe_run *run)
{
	strobe_ring_get(&run->ring);
}

/**
 * strobe_run_put() - let go of a run.
 * @run: the run; its memory goes with the last reference.
 *
 * Context: process.
 */
void strobe_run_put(struct strobe_run *run)
{
	strobe_ring_put(&run->ring);
}

static u64 run_time(const struct strobe_run *run, u64 monotonic)
{
	return run->is_tai ? ktime_mono_to_any(monotonic, TK_OFFS_TAI) : monotonic;
}

/* ---- changes of state ---- */

/* End the run, in whatever state it is. Under run->lock. */
static void end_run(struct strobe_run *run, u32 state, int error)
{
	struct strobe_ring_header *header = run->ring.header;

	strobe_producer_detach(run);
	strobe_slow_free(run);
	strobe_give_thread(run);
	if (run->state < STROBE_DONE) {
		WRITE_ONCE(header->error, error);
		WRITE_ONCE(header->end_time, run_time(run, ktime_get_ns()));
		WRITE_ONCE(run->state, state);
		/* G: after the last head. */
		smp_store_release(&header->state, state);
	}
	scoped_guard(mutex, &strobe_registry) {
		if (!run->released)
			trace_strobe_stop(run->id, run->state, header->error, run->head,
					  run->triggers);
		strobe_run_unuse(run);
	}
	strobe_wake_all(&run->ring);
	strobe_follow_free(run);
}

/**
 * strobe_run_abort() - a device goes away.
 * @run: a run that uses it.
 * @error: negative errno.
 *
 * After it, nothing uses the device on behalf of this run.
 *
 * Context: process.
 */
void strobe_run_abort(struct strobe_run *run, int error)
{
	guard(mutex)(&run->lock);
	end_run(run, STROBE_FAILED, error);
}

/* Unless the last row of a run whose triggers are over awaits values: until @last. */
static bool end_if_complete(struct strobe_run *run, ktime_t last)
{
	guard(mutex)(&run->lock);
	if (run->state == STROBE_RUNNING && strobe_slow_awaits(run) &&
	    !READ_ONCE(run->quit) && ktime_before(ktime_get(), last))
		return false;
	end_run(run, run->over ? STROBE_FAILED : STROBE_STOPPED, run->over);
	return true;
}

/*
 * The producer has reached the limit, or found a device gone: the state is final.
 * Or the run that triggers it has ended.
 */
static void run_done(struct work_struct *work)
{
	struct strobe_run *run = container_of(work, struct strobe_run, done);
	ktime_t last;

	/* The values' time begins when the steps are done. */
	scoped_guard(mutex, &run->lock)
		strobe_slow_flush(run);
	last = ktime_add_ms(ktime_get(), AWAIT_MS);
	/* Not under the lock: others may stop it meanwhile. */
	while (!end_if_complete(run, last))
		usleep_range(500, 1000);
}

/* The last row may have come while the producer was being silenced. */
static bool end_if_final(struct strobe_run *run)
{
	if (run->state == STROBE_RUNNING)
		return false;
	end_run(run, STROBE_DONE, 0);
	return true;
}

static void stamp_start(struct strobe_run *run)
{
	struct strobe_ring_header *header = run->ring.header;

	run->started = ktime_get_ns();
	run->start_time = run_time(run, run->started);
	run->first_due = run->started + run->period;
	header->start_time = run->start_time;
	header->start_realtime = ktime_to_ns(ktime_mono_to_any(run->started, TK_OFFS_REAL));
	header->start_tai = ktime_to_ns(ktime_mono_to_any(run->started, TK_OFFS_TAI));
	if (run->period)
		header->first_due = run_time(run, run->first_due);
}

static void unstamp_start(struct strobe_run *run)
{
	struct strobe_ring_header *header = run->ring.header;

	run->started = 0;
	header->start_time = 0;
	header->start_realtime = 0;
	header->start_tai = 0;
	header->first_due = 0;
}

static int start_run(struct strobe_run *run, s32 *cause)
{
	struct strobe_ring_header *header = run->ring.header;
	int ret;

	if (run->state != STROBE_READY) {
		if (run->state >= STROBE_DONE)
			return -ESHUTDOWN;
		return run->state == STROBE_RUNNING ? -EALREADY : -EBUSY;
	}
	/* A start that failed may have made rows: then it is theirs, and until now was a pause. */
	if (run->triggers)
		run->status |= STROBE_ROW_RESUMED;
	else
		stamp_start(run);
	WRITE_ONCE(run->state, STROBE_RUNNING);
	/* Who sees RUNNING sees the start times. */
	smp_store_release(&header->state, STROBE_RUNNING);
	trace_strobe_start(run->id, run->start_time);
	ret = strobe_producer_attach(run, false, cause);
	if (ret && end_if_final(run))
		return -ESHUTDOWN;
	if (ret) {
		WRITE_ONCE(run->state, STROBE_READY);
		if (!run->triggers)
			unstamp_start(run);
		WRITE_ONCE(header->state, STROBE_READY);
	}
	return ret;
}

static int pause_run(struct strobe_run *run)
{
	if (run->state != STROBE_RUNNING) {
		if (run->state >= STROBE_DONE)
			return -ESHUTDOWN;
		return run->state == STROBE_PAUSED ? -EALREADY : -EBUSY;
	}
	strobe_producer_detach(run);
	if (end_if_final(run))
		return -ESHUTDOWN;
	WRITE_ONCE(run->state, STROBE_PAUSED);
	/* G: after the last head so far. */
	smp_store_release(&run->ring.header->state, STROBE_PAUSED);
	return 0;
}

static int resume_run(struct strobe_run *run, s32 *cause)
{
	int ret;

	if (run->state != STROBE_PAUSED) {
		if (run->state >= STROBE_DONE)
			return -ESHUTDOWN;
		return run->state == STROBE_RUNNING ? -EALREADY : -EBUSY;
	}
	run->status |= STROBE_ROW_RESUMED;
	WRITE_ONCE(run->state, STROBE_RUNNING);
	WRITE_ONCE(run->ring.header->state, STROBE_RUNNING);
	ret = strobe_producer_attach(run, true, cause);
	if (ret && end_if_final(run))
		return -ESHUTDOWN;
	if (ret) {
		WRITE_ONCE(run->state, STROBE_PAUSED);
		WRITE_ONCE(run->ring.header->state, STROBE_PAUSED);
	}
	return ret;
}

/* Silence a run for as long as the machine is suspended; its state stays. */
static void suspend_run(struct strobe_run *run)
{
	int cpu = run->timer_cpu;

	/* One that its producer has just ended still has its event. */
	if (!run->attached)
		return;
	strobe_producer_detach(run);
	if (end_if_final(run))
		return;
	run->suspended = true;
	/* Its timer is one of that CPU's all the same. */
	scoped_guard(mutex, &strobe_registry)
		run->timer_cpu = cpu;
}

/**
 * strobe_run_suspend() - the machine is about to be suspended.
 * @run: any run.
 *
 * After it nothing of strobe touches a device on behalf of this run.
 *
 * Context: process.
 */
void strobe_run_suspend(struct strobe_run *run)
{
	guard(mutex)(&run->lock);
	suspend_run(run);
}

/**
 * strobe_run_wake() - the machine is awake, and its devices are.
 * @run: any run; it goes on, or fails with -ENODEV if its event cannot be enabled.
 *
 * Context: process.
 */
void strobe_run_wake(struct strobe_run *run)
{
	s32 cause = 0;

	guard(mutex)(&run->lock);
	if (!run->suspended)
		return;
	strobe_producer_slept(run);
	if (run->source == STROBE_SOURCE_TIMER) {
		/* Set if who has suspended the machine was killed meanwhile. */
		WRITE_ONCE(run->quit, false);
		run->attached = true;
		strobe_timer_go_on(run);
	} else if (strobe_producer_attach(run, true, &cause)) {
		end_run(run, STROBE_FAILED, -ENODEV);
	}
}

static int control_run(struct strobe_run *run, u32 op, s32 *cause)
{
	switch (op) {
	case STROBE_START:
		return start_run(run, cause);
	case STROBE_PAUSE:
		return pause_run(run);
	case STROBE_RESUME:
		return resume_run(run, cause);
	default:
		end_run(run, STROBE_STOPPED, 0);
		return 0;
	}
}

/**
 * strobe_run_control() - change the state of a run.
 * @run: the run.
 * @op: STROBE_START, STROBE_PAUSE, STROBE_RESUME or STROBE_STOP.
 * @cause: what the provider said of an event that cannot be enabled.
 *
 * Context: process.
 * Return: 0 or an errno of enum strobe_control_op.
 */
int strobe_run_control(struct strobe_run *run, u32 op, s32 *cause)
{
	int ret;

	guard(mutex)(&run->lock);
	ret = control_run(run, op, cause);
	/* Devices are awake as long as a process is; what has begun waits as all others do. */
	if (READ_ONCE(strobe_asleep))
		suspend_run(run);
	return ret;
}

/**
 * strobe_run_leave() - the owner has gone: the run ends, and is not listed any more.
 * @run: the run.
 *
 * Context: process.
 */
void strobe_run_leave(struct strobe_run *run)
{
	/* Nobody is interested in the row that is under way. */
	WRITE_ONCE(run->quit, true);
	scoped_guard(mutex, &run->lock)
		end_run(run, STROBE_FAILED, -EPIPE);
	scoped_guard(mutex, &strobe_registry) {
		list_del(&run->entry);
		strobe_catalogue_changed();
	}
	strobe_ring_leave(&run->ring);
	strobe_sysfs_remove(run->sysfs);
	/* Silent and released: nothing queues them again. */
	irq_work_sync(&run->ring.wake);
	cancel_work_sync(&run->done);
}

/**
 * strobe_run_new() - a run of the caller's, with nothing in it.
 *
 * Context: process.
 * Return: for strobe_run_put(), or NULL.
 */
struct strobe_run *strobe_run_new(void)
{
	struct strobe_run *run = kzalloc(sizeof(*run), GFP_KERNEL_ACCOUNT);

	if (!run)
		return NULL;
	strobe_ring_init(&run->ring, &run_ring_ops);
	mutex_init(&run->lock);
	INIT_LIST_HEAD(&run->entry);
	INIT_LIST_HEAD(&run->listener);
	INIT_LIST_HEAD(&run->follows);
	INIT_WORK(&run->done, run_done);
	strobe_timer_init(run);
	run->timer_cpu = -1;
	run->uid = current_fsuid();
	run->pid = task_tgid_nr(current);
	get_task_comm(run->comm, current->group_leader);
	return run;
}
