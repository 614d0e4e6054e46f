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
 * The producer makes only the step from RUNNING to DONE, or to FAILED when it
 * finds a device gone. All others are made under strobe_registry and run->lock,
 * after the producer has been silenced.
 * A run gives its devices back as soon as it has ended; its rows stay for as
 * long as somebody has them open.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "core/internal.h"
#include "row/trace.h"

/* How long a batch of software triggers may keep others from the run. */
#define TRIGGERS_NS		(200 * NSEC_PER_USEC)

static void free_run(struct strobe_run *run)
{
	strobe_slow_free(run);
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
	if (ret) {
		run->attached = false;
		/* An event that could not be enabled may have happened all the same. */
		strobe_slow_settle(run);
	}
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
	strobe_slow_settle(run);
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
	if (target->channel && !target->is_used)
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
		return target->is_used ? 0 : use_channel(target->channel, why);
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

/**
 * strobe_run_unuse() - give all devices back.
 * @run: the run; its producer is silent.
 *
 * Context: process, under strobe_registry.
 */
void strobe_run_unuse(struct strobe_run *run)
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

/**
 * strobe_run_use() - take the devices of a run's event and steps.
 * @run: the run.
 * @c: is told which step is refused, and why.
 *
 * Context: process, under strobe_registry.
 * Return: 0, or an errno and nothing taken.
 */
int strobe_run_use(struct strobe_run *run, struct strobe_create *c)
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
	strobe_slow_free(run);
	if (run->state < STROBE_DONE) {
		WRITE_ONCE(header->error, error);
		WRITE_ONCE(header->end_time, run_time(run, ktime_get_ns()));
		WRITE_ONCE(run->state, state);
		/* G: after the last head. */
		smp_store_release(&header->state, state);
	}
	if (!run->released)
		trace_strobe_stop(run->id, run->state, header->error, run->head, run->triggers);
	strobe_run_unuse(run);
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

/* The producer has reached the limit, or found a device gone: the state is final. */
static void run_done(struct work_struct *work)
{
	struct strobe_run *run = container_of(work, struct strobe_run, done);

	guard(mutex)(&strobe_registry);
	guard(mutex)(&run->lock);
	end_run(run, STROBE_DONE, 0);
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
	struct strobe_ring_header *header = run->header;

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
	struct strobe_ring_header *header = run->header;

	run->started = 0;
	header->start_time = 0;
	header->start_realtime = 0;
	header->start_tai = 0;
	header->first_due = 0;
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
	/* A start that failed may have made rows: then it is theirs, and until now was a pause. */
	if (run->triggers)
		run->status |= STROBE_ROW_RESUMED;
	else
		stamp_start(run);
	WRITE_ONCE(run->state, STROBE_RUNNING);
	/* Who sees RUNNING sees the start times. */
	smp_store_release(&header->state, STROBE_RUNNING);
	trace_strobe_start(run->id, run->start_time);
	ret = attach(run, false);
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
	detach(run);
	if (end_if_final(run))
		return -ESHUTDOWN;
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
	if (ret && end_if_final(run))
		return -ESHUTDOWN;
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
		strobe_slow_flush(run);
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

const struct file_operations strobe_owner_fops = {
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
