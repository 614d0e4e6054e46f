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
 * The producer makes only the step from RUNNING to DONE. All others are made
 * under strobe_registry and run->lock, after the producer has been silenced.
 * A run gives its devices back as soon as it has ended; its rows stay for as
 * long as somebody has them open.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "budget.h"
#include "internal.h"
#include "trace.h"

/* Runs have ids of their own, so that the first one is 1; under strobe_registry. */
static u32 last_run;

/* How long a batch of software triggers may keep others from the run. */
#define TRIGGERS_NS		(200 * NSEC_PER_USEC)
/* Runs that have chosen one event: the hard path walks those that listen. */
#define EVENT_USERS_MAX		64
#define DEFAULT_CAPACITY	8192
#define LEAST_DEFAULT_CAPACITY	1024

static void free_run(struct strobe_run *run)
{
	strobe_ring_free(&run->ring);
	kvfree(run->actions);
	kvfree(run->steps);
	kvfree(run->targets);
	mutex_destroy(&run->lock);
	kfree(run);
}

static void run_release(struct kref *kref)
{
	free_run(container_of(kref, struct strobe_run, kref));
}

/**
 * strobe_run_get() - keep a run.
 * @run: the run.
 */
void strobe_run_get(struct strobe_run *run)
{
	kref_get(&run->kref);
}

/**
 * strobe_run_put() - let go of a run.
 * @run: the run; its memory goes with the last reference.
 *
 * Context: process.
 */
void strobe_run_put(struct strobe_run *run)
{
	kref_put(&run->kref, run_release);
}

/**
 * strobe_state_name() - word for a state.
 * @state: enum strobe_state.
 */
const char *strobe_state_name(u32 state)
{
	static const char * const names[] = {
		[STROBE_READY]		= "ready",
		[STROBE_RUNNING]	= "running",
		[STROBE_PAUSED]		= "paused",
		[STROBE_DONE]		= "done",
		[STROBE_STOPPED]	= "stopped",
		[STROBE_FAILED]		= "failed",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

/**
 * strobe_run_elapsed() - how long a run has lasted.
 * @run: the run.
 *
 * Return: ns from start to now or to the end; 0 before the start.
 */
u64 strobe_run_elapsed(const struct strobe_run *run)
{
	u64 end = READ_ONCE(run->header->end_time);
	u64 started = READ_ONCE(run->started);

	if (!started)
		return 0;
	return end ? end - READ_ONCE(run->start_time) : ktime_get_ns() - started;
}

/* A state and counters that go together. */
struct look {
	u32	state;
	s32	error;
	u64	head;
	u64	triggers;
};

static struct look look_at(const struct strobe_run *run)
{
	const struct strobe_ring_header *header = run->header;
	struct look look;

	/* G: state before head, so that a final state comes with the last row. */
	look.state = smp_load_acquire(&header->state);
	/* C: head before triggers, so that no more rows than triggers show. */
	look.head = smp_load_acquire(&header->head);
	look.triggers = READ_ONCE(header->triggers);
	look.error = READ_ONCE(header->error);
	return look;
}

static u64 run_time(const struct strobe_run *run, u64 monotonic)
{
	return run->is_tai ? ktime_mono_to_any(monotonic, TK_OFFS_TAI) : monotonic;
}

/* ---- the producer: let it begin, make it silent ---- */

static int listen(struct strobe_run *run)
{
	struct strobe_event *event = run->event;
	int ret;

	list_add_tail_rcu(&run->listener, &event->listeners);
	if (event->listening++ || !event->ops || !event->ops->enable)
		return 0;
	ret = event->ops->enable(event);
	if (!ret)
		return 0;
	event->listening--;
	list_del_rcu(&run->listener);
	synchronize_rcu();
	/* Whatever its errno, it must not be taken for one of STROBE_CONTROL. */
	pr_warn_ratelimited("event %s.%s: cannot be enabled: %d\n", event->device->full_name,
			    event->name, ret);
	return -ENODEV;
}

static void unlisten(struct strobe_run *run)
{
	struct strobe_event *event = run->event;

	list_del_rcu(&run->listener);
	if (event->silent)
		return;
	if (!--event->listening && event->ops && event->ops->disable)
		event->ops->disable(event);	/* waits for its handler, too */
	else
		synchronize_rcu();
}

/* Let triggers come. */
static int attach(struct strobe_run *run, bool resume)
{
	int ret = 0;

	run->attached = true;
	switch (run->source) {
	case STROBE_SOURCE_TIMER:
		if (resume)
			strobe_timer_resume(run);
		else
			strobe_timer_start(run);
		break;
	case STROBE_SOURCE_SOFT:
		break;
	case STROBE_SOURCE_EVENT:
		ret = listen(run);
		break;
	}
	if (ret)
		run->attached = false;
	return ret;
}

/* After it nothing of the hard path is in this run, or will be. */
static void detach(struct strobe_run *run)
{
	if (!run->attached)
		return;
	run->attached = false;
	switch (run->source) {
	case STROBE_SOURCE_TIMER:
		strobe_timer_stop(run);
		break;
	case STROBE_SOURCE_SOFT:
		break;
	case STROBE_SOURCE_EVENT:
		unlisten(run);
		break;
	}
}

/* ---- devices: take them, give them back ---- */

static void unuse_channel(struct strobe_channel *channel)
{
	struct strobe_device *device = channel->device;

	if (channel->ops && channel->ops->unlock)
		channel->ops->unlock(channel);
	channel->users--;
	device->users--;
	module_put(device->owner);
}

static int use_channel(struct strobe_channel *channel, u32 *why)
{
	struct strobe_device *device = channel->device;
	int ret = 0;

	if (!try_module_get(device->owner))
		return -ENODEV;
	if (channel->ops && channel->ops->prepare)
		ret = channel->ops->prepare(channel);
	if (!ret && channel->ops && channel->ops->lock)
		ret = channel->ops->lock(channel);
	if (ret) {
		*why = ret == -EBUSY ? STROBE_WHY_BUSY : STROBE_WHY_PROVIDER;
		module_put(device->owner);
		return ret;
	}
	channel->users++;
	device->users++;
	return 0;
}

static void unuse_target(const struct strobe_target *target)
{
	if (target->channel)
		unuse_channel(target->channel);
	if (target->output) {
		target->output->users--;
		target->output->device->users--;
		module_put(target->output->device->owner);
	}
}

static int use_target(const struct strobe_target *target, u32 *why)
{
	if (target->channel)
		return use_channel(target->channel, why);
	if (!try_module_get(target->output->device->owner))
		return -ENODEV;
	target->output->users++;
	target->output->device->users++;
	return 0;
}

static void unuse_event(struct strobe_event *event)
{
	event->users--;
	event->device->users--;
	module_put(event->device->owner);
}

/* Give everything back; the producer is silent. */
static void release_devices(struct strobe_run *run)
{
	lockdep_assert_held(&strobe_registry);
	if (run->released)
		return;
	for (u32 i = run->step_count; i--;)
		unuse_target(&run->targets[i]);
	if (run->event)
		unuse_event(run->event);
	run->event = NULL;
	WRITE_ONCE(run->released, true);
}

static int use_devices(struct strobe_run *run, struct strobe_create *c)
{
	int ret;
	u32 i;

	if (run->event) {
		if (!try_module_get(run->event->device->owner))
			return -ENODEV;
		run->event->users++;
		run->event->device->users++;
	}
	for (i = 0; i < run->step_count; i++) {
		ret = use_target(&run->targets[i], &c->why);
		if (ret) {
			c->fault_step = i;
			goto undo;
		}
	}
	return 0;

undo:
	while (i--)
		unuse_target(&run->targets[i]);
	if (run->event)
		unuse_event(run->event);
	return ret;
}

/* ---- changes of state ---- */

/* End the run, in whatever state it is. Under strobe_registry and run->lock. */
static void end_run(struct strobe_run *run, u32 state, int error)
{
	struct strobe_ring_header *header = run->header;

	detach(run);
	if (run->state < STROBE_DONE) {
		WRITE_ONCE(header->error, error);
		WRITE_ONCE(header->end_time, run_time(run, ktime_get_ns()));
		WRITE_ONCE(run->state, state);
		/* G: after the last head. */
		smp_store_release(&header->state, state);
	}
	if (!run->released)
		trace_strobe_stop(run->id, run->state, header->error, run->head, run->triggers);
	release_devices(run);
	strobe_wake_all(run);
}

/**
 * strobe_run_abort() - a device goes away.
 * @run: a run that uses it.
 * @error: negative errno.
 *
 * After it, nothing uses the device on behalf of this run.
 *
 * Context: process, under strobe_registry.
 */
void strobe_run_abort(struct strobe_run *run, int error)
{
	guard(mutex)(&run->lock);
	end_run(run, STROBE_FAILED, error);
}

/* The producer has reached the limit. */
static void run_done(struct work_struct *work)
{
	struct strobe_run *run = container_of(work, struct strobe_run, done);

	guard(mutex)(&strobe_registry);
	guard(mutex)(&run->lock);
	end_run(run, STROBE_DONE, 0);
}

static int start_run(struct strobe_run *run)
{
	struct strobe_ring_header *header = run->header;
	int ret;

	if (run->state != STROBE_READY) {
		if (run->state >= STROBE_DONE)
			return -ESHUTDOWN;
		return run->state == STROBE_RUNNING ? -EALREADY : -EBUSY;
	}
	run->started = ktime_get_ns();
	run->start_time = run_time(run, run->started);
	run->first_due = run->started + run->period;
	header->start_time = run->start_time;
	header->start_realtime = ktime_to_ns(ktime_mono_to_any(run->started, TK_OFFS_REAL));
	header->start_tai = ktime_to_ns(ktime_mono_to_any(run->started, TK_OFFS_TAI));
	if (run->period)
		header->first_due = run_time(run, run->first_due);
	WRITE_ONCE(run->state, STROBE_RUNNING);
	/* Who sees RUNNING sees the start times. */
	smp_store_release(&header->state, STROBE_RUNNING);
	trace_strobe_start(run->id, run->start_time);
	ret = attach(run, false);
	if (ret) {
		WRITE_ONCE(run->state, STROBE_READY);
		run->started = 0;
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
	detach(run);
	if (run->state != STROBE_RUNNING) {
		/* The last row came while the producer was being silenced. */
		end_run(run, STROBE_DONE, 0);
		return -ESHUTDOWN;
	}
	WRITE_ONCE(run->state, STROBE_PAUSED);
	/* G: after the last head so far. */
	smp_store_release(&run->header->state, STROBE_PAUSED);
	return 0;
}

static int resume_run(struct strobe_run *run)
{
	int ret;

	if (run->state != STROBE_PAUSED) {
		if (run->state >= STROBE_DONE)
			return -ESHUTDOWN;
		return run->state == STROBE_RUNNING ? -EALREADY : -EBUSY;
	}
	run->status |= STROBE_ROW_RESUMED;
	WRITE_ONCE(run->state, STROBE_RUNNING);
	WRITE_ONCE(run->header->state, STROBE_RUNNING);
	ret = attach(run, true);
	if (ret) {
		WRITE_ONCE(run->state, STROBE_PAUSED);
		WRITE_ONCE(run->header->state, STROBE_PAUSED);
	}
	return ret;
}

static int control_run(struct strobe_run *run, u32 op)
{
	guard(mutex)(&strobe_registry);
	guard(mutex)(&run->lock);
	switch (op) {
	case STROBE_START:
		return start_run(run);
	case STROBE_PAUSE:
		return pause_run(run);
	case STROBE_RESUME:
		return resume_run(run);
	default:
		end_run(run, STROBE_STOPPED, 0);
		return 0;
	}
}

/* Some software triggers: interrupts are off for one row, the lock is held for all. */
static int trigger_some(struct strobe_run *run, u32 *count)
{
	u64 end = ktime_get_ns() + TRIGGERS_NS;

	guard(mutex)(&run->lock);
	if (run->source != STROBE_SOURCE_SOFT)
		return -EOPNOTSUPP;
	while (*count && ktime_get_ns() < end) {
		if (run->state != STROBE_RUNNING)
			return run->state >= STROBE_DONE ? -ESHUTDOWN : -EBUSY;
		scoped_guard(irqsave)
			strobe_soft_trigger(run);
		--*count;
	}
	return 0;
}

static int trigger_run(struct strobe_run *run, u32 count)
{
	u32 left = count;
	int ret;

	while (left) {
		ret = trigger_some(run, &left);
		/* What was triggered is not undone: only a first one can fail. */
		if (ret)
			return left == count ? ret : 0;
		if (signal_pending(current))
			return 0;
		cond_resched();
	}
	return 0;
}

static long ioctl_control(struct strobe_run *run, void __user *arg)
{
	struct strobe_control c;
	struct look look;
	int ret;

	ret = strobe_copy_struct(&c, sizeof(c), arg, sizeof(c));
	if (ret)
		return ret;
	if (c.flags || c.op > STROBE_TRIGGER)
		return -EINVAL;
	if (c.op == STROBE_TRIGGER ? !c.count || c.count > STROBE_TRIGGER_MAX : c.count)
		return -EINVAL;
	/* An answer that has no room would come too late to change nothing. */
	ret = strobe_copy_back(arg, &c, sizeof(c));
	if (ret)
		return ret;
	if (c.op == STROBE_TRIGGER)
		ret = trigger_run(run, c.count);
	else if (c.op != STROBE_STATUS)
		ret = control_run(run, c.op);
	if (ret)
		return ret;
	look = look_at(run);
	c.state = look.state;
	c.error = look.error;
	c.head = look.head;
	c.triggers = look.triggers;
	return strobe_copy_back(arg, &c, sizeof(c));
}

/* ---- owner fd ---- */

static long owner_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_run *run = file->private_data;

	switch (cmd) {
	case STROBE_CONTROL:
		return ioctl_control(run, (void __user *)arg);
	case STROBE_READER:
		return strobe_ioctl_reader(run, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int owner_release(struct inode *inode, struct file *file)
{
	struct strobe_run *run = file->private_data;

	scoped_guard(mutex, &strobe_registry) {
		scoped_guard(mutex, &run->lock)
			end_run(run, STROBE_FAILED, -EPIPE);
		list_del(&run->entry);
		strobe_generation++;
	}
	strobe_sysfs_remove(run->sysfs);
	/* Silent and released: nothing queues them again. */
	irq_work_sync(&run->wake);
	cancel_work_sync(&run->done);
	strobe_run_put(run);
	return 0;
}

/**
 * strobe_run_fdinfo() - lines for /proc/PID/fdinfo.
 * @m: where to.
 * @run: the run.
 */
void strobe_run_fdinfo(struct seq_file *m, const struct strobe_run *run)
{
	struct look look = look_at(run);

	seq_printf(m, "strobe-run:\t%u\n", run->id);
	seq_printf(m, "strobe-event:\t%s\n", run->event_name);
	seq_printf(m, "strobe-state:\t%s\n", strobe_state_name(look.state));
	seq_printf(m, "strobe-channels:\t%u\n", run->channels);
	seq_printf(m, "strobe-capacity:\t%llu\n", run->mask + 1);
	seq_printf(m, "strobe-head:\t%llu\n", look.head);
	seq_printf(m, "strobe-triggers:\t%llu\n", look.triggers);
	seq_printf(m, "strobe-missed:\t%llu\n", look.triggers - look.head);
}

static void owner_show_fdinfo(struct seq_file *m, struct file *file)
{
	strobe_run_fdinfo(m, file->private_data);
}

static const struct file_operations owner_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= owner_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= owner_show_fdinfo,
	.release	= owner_release,
	.llseek		= noop_llseek,
};

/**
 * strobe_describe_run() - its entry in the catalogue.
 * @entry: zeroed; filled in.
 * @run: the run.
 *
 * Context: process, under strobe_registry.
 */
void strobe_describe_run(struct strobe_entry *entry, const struct strobe_run *run)
{
	struct strobe_run_info *info = &entry->run;
	struct look look = look_at(run);

	entry->kind = STROBE_KIND_RUN;
	entry->id = run->id;
	strscpy(entry->name, run->event_name);
	strscpy(entry->text, run->comm);
	info->state = look.state;
	info->error = look.error;
	info->channels = run->channels;
	info->readers = READ_ONCE(run->reader_count);
	info->uid = from_kuid_munged(&init_user_ns, run->uid);
	info->pid = run->pid;
	info->capacity = run->mask + 1;
	info->limit = run->limit;
	info->head = look.head;
	info->triggers = look.triggers;
	info->period_ns = run->period;
	info->elapsed_ns = strobe_run_elapsed(run);
}

/* ---- creation ---- */

static int check_config(struct strobe_create *c)
{
	if (strnlen(c->event, sizeof(c->event)) == sizeof(c->event))
		return -EINVAL;
	if (c->flags & ~(STROBE_DRY_RUN | STROBE_SHARED) || c->reserved)
		return -EINVAL;
	if (c->step_size < sizeof(struct strobe_step) || c->step_size > PAGE_SIZE)
		return -EINVAL;
	if (c->step_count > STROBE_STEPS_MAX) {
		c->why = STROBE_WHY_STEPS;
		return -EINVAL;
	}
	if (c->clock && c->clock != CLOCK_MONOTONIC && c->clock != CLOCK_TAI) {
		c->why = STROBE_WHY_CLOCK;
		return -EINVAL;
	}
	if (c->capacity && (!is_power_of_2(c->capacity) || c->capacity < 2 ||
			    c->capacity > STROBE_CAPACITY_MAX)) {
		c->why = STROBE_WHY_CAPACITY;
		return -EINVAL;
	}
	return 0;
}

static int choose_event(struct strobe_run *run, struct strobe_create *c)
{
	bool timer = !strcmp(c->event, "timer");

	if (timer) {
		run->source = STROBE_SOURCE_TIMER;
	} else if (!strcmp(c->event, "soft")) {
		run->source = STROBE_SOURCE_SOFT;
	} else {
		run->source = STROBE_SOURCE_EVENT;
		run->event = strobe_find_event(c->event);
		if (!run->event) {
			c->why = STROBE_WHY_EVENT;
			return -ENOENT;
		}
	}
	if (run->event && run->event->users >= EVENT_USERS_MAX) {
		c->why = STROBE_WHY_BUSY;
		return -EBUSY;
	}
	if (timer ? c->period_ns < STROBE_PERIOD_MIN || c->period_ns > STROBE_PERIOD_MAX :
		    c->period_ns) {
		c->why = STROBE_WHY_PERIOD;
		return -EINVAL;
	}
	strscpy(run->event_name, c->event);
	run->period = c->period_ns;
	run->slack = timer ? strobe_budget_slack(c->period_ns) : U64_MAX;
	return 0;
}

static int fail_step(struct strobe_create *c, u32 step, enum strobe_why why, int error)
{
	c->fault_step = step;
	c->why = why;
	return error;
}

static int compile_read(struct strobe_run *run, struct strobe_create *c, u32 i,
			const struct strobe_step *step)
{
	struct strobe_channel *channel = strobe_find_channel(step->name);
	struct strobe_action *action = &run->actions[i];

	if (!channel)
		return fail_step(c, i, STROBE_WHY_NAME, -ENOENT);
	if (step->value)
		return fail_step(c, i, STROBE_WHY_STEP, -EINVAL);
	if (channel->cost_class != STROBE_CLASS_HARD)
		return fail_step(c, i, STROBE_WHY_CLASS, -EOPNOTSUPP);
	if ((unsigned int)channel->reg.access == STROBE_BUILTIN_LATE &&
	    run->source != STROBE_SOURCE_TIMER && !(run->event && run->event->has_due))
		return fail_step(c, i, STROBE_WHY_DUE, -EOPNOTSUPP);
	if (channel->reg.access == STROBE_ACCESS_CALL)
		action->channel = channel;
	else
		strobe_register_compile(action, &channel->reg);
	action->plain = action->access == STROBE_ACCESS_MMIO32 && !action->field;
	action->column = run->channels;
	run->targets[i].channel = channel;
	strobe_describe_channel(&run->steps[i], channel);
	run->steps[i].flags = 0;
	run->channels++;
	c->cost_ns += channel->cost_ns;
	return 0;
}

static int compile_write(struct strobe_run *run, struct strobe_create *c, u32 i,
			 const struct strobe_step *step)
{
	struct strobe_output *output = strobe_find_output(step->name);
	struct strobe_action *action = &run->actions[i];

	if (!output)
		return fail_step(c, i, STROBE_WHY_NAME, -ENOENT);
	if (output->bits < 64 && step->value >> output->bits)
		return fail_step(c, i, STROBE_WHY_VALUE, -ERANGE);
	if (output->reg.access == STROBE_ACCESS_CALL)
		action->output = output;
	else
		strobe_register_compile(action, &output->reg);
	action->write = true;
	action->value = step->value;
	run->targets[i].output = output;
	strobe_describe_output(&run->steps[i], output);
	run->steps[i].flags = 0;
	c->cost_ns += output->cost_ns;
	return 0;
}

static int compile_step(struct strobe_run *run, struct strobe_create *c, u32 i,
			const struct strobe_step *step)
{
	if (step->flags || strnlen(step->name, sizeof(step->name)) == sizeof(step->name))
		return fail_step(c, i, STROBE_WHY_STEP, -EINVAL);
	switch (step->op) {
	case STROBE_OP_READ:
		return compile_read(run, c, i, step);
	case STROBE_OP_WRITE:
		return compile_write(run, c, i, step);
	default:
		return fail_step(c, i, STROBE_WHY_STEP, -EINVAL);
	}
}

static int compile_steps(struct strobe_run *run, struct strobe_create *c,
			 const struct strobe_step *steps)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;
	u32 count = c->step_count;
	int ret;

	run->actions = kvcalloc(count + 1, sizeof(*run->actions), gfp);
	run->steps = kvcalloc(count, sizeof(*run->steps), gfp);
	run->targets = kvcalloc(count, sizeof(*run->targets), gfp);
	if (!run->actions || !run->steps || !run->targets)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++) {
		ret = compile_step(run, c, i, &steps[i]);
		if (ret)
			return ret;
	}
	run->actions[count].access = STROBE_BUILTIN_END;
	run->step_count = count;
	return 0;
}

static u64 default_capacity(u64 period)
{
	u64 rows = period ? div64_u64(NSEC_PER_SEC + period - 1, period) : DEFAULT_CAPACITY;

	return roundup_pow_of_two(max(rows, LEAST_DEFAULT_CAPACITY));
}

/* Geometry: what the ring will look like. */
static void lay_out(struct strobe_run *run, struct strobe_create *c,
		    const struct strobe_step *steps)
{
	u64 capacity = c->capacity ?: default_capacity(c->period_ns);
	u32 channels = 0;

	for (u32 i = 0; i < c->step_count; i++)
		channels += steps[i].op == STROBE_OP_READ;
	c->capacity = capacity;
	c->channels = channels;
	c->row_stride = ALIGN(sizeof(struct strobe_row) + 8 * channels, 64);
	c->ring_bytes = strobe_ring_size(capacity, c->row_stride);
	run->mask = capacity - 1;
	run->stride = c->row_stride / 8;
	run->limit = c->limit ?: STROBE_NO_LIMIT;
	run->is_tai = c->clock == CLOCK_TAI;
}

/* Before any lock is taken: it may take long. */
static int take_memory(struct strobe_run *run, const struct strobe_create *c)
{
	if (c->flags & STROBE_DRY_RUN)
		return strobe_ring_fits(c->ring_bytes) ? 0 : -ENOSPC;
	return strobe_ring_alloc(&run->ring, c->ring_bytes);
}

static void fill_header(struct strobe_run *run, const struct strobe_create *c)
{
	struct strobe_ring_header *header;

	header = run->ring.header;
	header->magic = STROBE_RING_MAGIC;
	header->major = STROBE_RING_MAJOR;
	header->minor = STROBE_RING_MINOR;
	header->header_size = sizeof(*header);
	header->row_stride = c->row_stride;
	header->channels = run->channels;
	header->capacity = run->mask + 1;
	header->limit = run->limit;
	header->data_offset = PAGE_SIZE;
	header->clock = run->is_tai ? CLOCK_TAI : CLOCK_MONOTONIC;
	header->period_ns = run->period;
	header->engine = STROBE_ENGINE_KERNEL;
	run->header = header;
	run->slots = (u64 *)((char *)header + PAGE_SIZE);
}

static struct strobe_run *new_run(void)
{
	struct strobe_run *run = kzalloc(sizeof(*run), GFP_KERNEL_ACCOUNT);

	if (!run)
		return NULL;
	kref_init(&run->kref);
	mutex_init(&run->lock);
	spin_lock_init(&run->wake_lock);
	INIT_LIST_HEAD(&run->readers);
	INIT_LIST_HEAD(&run->waiting);
	INIT_LIST_HEAD(&run->entry);
	INIT_LIST_HEAD(&run->listener);
	INIT_WORK(&run->done, run_done);
	init_irq_work(&run->wake, strobe_wake_waiting);
	strobe_timer_init(run);
	run->wake_at = U64_MAX;
	run->uid = current_fsuid();
	run->pid = task_tgid_nr(current);
	get_task_comm(run->comm, current->group_leader);
	return run;
}

/* Everything that can be wrong is found here; nothing has changed yet. */
static int configure(struct strobe_run *run, struct strobe_create *c,
		     const struct strobe_step *steps)
{
	int ret;

	ret = choose_event(run, c);
	if (ret)
		return ret;
	return compile_steps(run, c, steps);
}

/* Under strobe_registry. The file, once there, owns the run. */
static struct file *build_run(struct strobe_run *run, struct strobe_create *c,
			      const struct strobe_step *steps, int no_memory)
{
	struct file *file;
	int ret;

	ret = configure(run, c, steps);
	if (ret)
		return ERR_PTR(ret);
	if (no_memory) {
		if (no_memory == -ENOSPC)
			c->why = STROBE_WHY_MEMORY;
		return ERR_PTR(no_memory);
	}
	if (c->flags & STROBE_DRY_RUN)
		return NULL;
	if (last_run == U32_MAX)
		return ERR_PTR(-ENOSPC);
	ret = use_devices(run, c);
	if (ret)
		return ERR_PTR(ret);
	fill_header(run, c);
	run->id = ++last_run;
	run->header->run = run->id;
	run->is_shared = c->flags & STROBE_SHARED;
	run->sysfs = strobe_sysfs_add_run(run);
	if (IS_ERR(run->sysfs)) {
		ret = PTR_ERR(run->sysfs);
		goto devices;
	}
	file = anon_inode_getfile("[strobe-run]", &owner_fops, run, O_RDWR);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		strobe_sysfs_remove(run->sysfs);
		goto devices;
	}
	list_add_tail(&run->entry, &strobe_runs);
	strobe_generation++;
	c->run = run->id;
	trace_strobe_create(run->id, run->event_name, run->channels, run->mask + 1, run->limit);
	return file;

devices:
	release_devices(run);
	return ERR_PTR(ret);
}

/* The steps, copied before any lock is taken: user memory may be slow. */
static struct strobe_step *copy_steps(const struct strobe_create *c)
{
	struct strobe_step *steps;
	int ret;

	steps = kvcalloc(c->step_count, sizeof(*steps), GFP_KERNEL_ACCOUNT);
	if (!steps)
		return ERR_PTR(-ENOMEM);
	for (u32 i = 0; i < c->step_count; i++) {
		ret = copy_struct_from_user(&steps[i], sizeof(steps[i]),
					    u64_to_user_ptr(c->steps + (u64)i * c->step_size),
					    c->step_size);
		if (ret) {
			kvfree(steps);
			return ERR_PTR(ret);
		}
	}
	return steps;
}

/* Returns the owner's file, NULL after a dry run, or an error. */
static struct file *create_run(struct strobe_create *c)
{
	struct strobe_step *steps;
	struct strobe_run *run;
	struct file *file;
	int no_memory, ret;

	ret = check_config(c);
	if (ret)
		return ERR_PTR(ret);
	steps = copy_steps(c);
	if (IS_ERR(steps))
		return ERR_CAST(steps);
	run = new_run();
	if (!run) {
		kvfree(steps);
		return ERR_PTR(-ENOMEM);
	}
	lay_out(run, c, steps);
	no_memory = take_memory(run, c);
	scoped_guard(mutex, &strobe_registry)
		file = build_run(run, c, steps, no_memory);
	kvfree(steps);
	if (IS_ERR_OR_NULL(file))
		strobe_run_put(run);
	return file;
}

/**
 * strobe_ioctl_create() - STROBE_CREATE.
 * @arg: struct strobe_create.
 *
 * Context: process.
 * Return: 0 or an errno; what is known of the fault is in the argument.
 */
long strobe_ioctl_create(void __user *arg)
{
	struct strobe_create c;
	struct file *file;
	int fd, ret;
	bool dry;

	ret = strobe_copy_struct(&c, sizeof(c), arg, sizeof(c));
	if (ret)
		return ret;
	c.fd = -1;
	c.run = 0;
	c.fault_step = STROBE_NO_STEP;
	c.why = STROBE_WHY_NONE;
	c.channels = 0;
	c.row_stride = 0;
	c.ring_bytes = 0;
	c.cost_ns = 0;
	dry = c.flags & STROBE_DRY_RUN;
	fd = dry ? 0 : get_unused_fd_flags(O_CLOEXEC);
	file = fd < 0 ? ERR_PTR(fd) : create_run(&c);
	if (!IS_ERR_OR_NULL(file)) {
		c.fd = fd;
		return strobe_fd_publish(fd, file, arg, &c, sizeof(c));
	}
	if (!dry && fd >= 0)
		put_unused_fd(fd);
	ret = strobe_copy_back(arg, &c, sizeof(c));
	return IS_ERR(file) ? PTR_ERR(file) : ret;
}
