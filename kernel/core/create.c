// SPDX-License-Identifier: GPL-2.0-only
/*
 * STROBE_CREATE: a request becomes a run. Everything that can be wrong is found
 * before anything is changed; the number of the file is installed last.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "row/access.h"
#include "row/budget.h"
#include "core/internal.h"
#include "row/trace.h"

/* Runs have ids of their own, so that the first one is 1; under strobe_registry. */
static u32 last_run;

/* Runs that have chosen one event: the hard path walks those that listen. */
#define EVENT_USERS_MAX		64
#define DEFAULT_CAPACITY	8192
#define LEAST_DEFAULT_CAPACITY	1024

static int check_config(struct strobe_create *c)
{
	if (strnlen(c->event, sizeof(c->event)) == sizeof(c->event))
		return -EINVAL;
	if (c->flags & ~(STROBE_DRY_RUN | STROBE_SHARED))
		return -EINVAL;
	if (c->priority > STROBE_PRIORITY_MAX ||
	    (c->priority > STROBE_PRIORITY_DEFAULT && !capable(CAP_SYS_NICE))) {
		c->why = STROBE_WHY_PRIORITY;
		return c->priority > STROBE_PRIORITY_MAX ? -EINVAL : -EPERM;
	}
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

/*
 * Whether one of the first @count steps reads @channel: a run uses it but once.
 * Of class ASYNC each step does, for all of a row may be under way at once.
 */
static bool is_used(const struct strobe_run *run, u32 count, const struct strobe_channel *channel)
{
	while (count--)
		if (run->targets[count].channel == channel)
			return true;
	return false;
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
	if ((unsigned int)channel->reg.access == STROBE_BUILTIN_LATE &&
	    run->source != STROBE_SOURCE_TIMER && !(run->event && run->event->has_due))
		return fail_step(c, i, STROBE_WHY_DUE, -EOPNOTSUPP);
	if (channel->reg.access == STROBE_ACCESS_CALL)
		action->channel = channel;
	else
		strobe_register_compile(action, &channel->reg);
	if (channel->cost_class != STROBE_CLASS_HARD) {
		action->access = channel->cost_class == STROBE_CLASS_SLEEP ?
			STROBE_BUILTIN_SLEEP : STROBE_BUILTIN_ASYNC;
		run->is_slow = true;
	}
	action->plain = action->access == STROBE_ACCESS_MMIO32 && !action->field;
	action->column = run->channels;
	run->targets[i].is_used = channel->cost_class != STROBE_CLASS_ASYNC &&
				  is_used(run, i, channel);
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

/* Whether a step after @i reads a register of the same device. */
static bool is_read_later(const struct strobe_run *run, u32 i, u32 count)
{
	const struct strobe_device *device = run->targets[i].channel->device;

	while (--count > i) {
		const struct strobe_channel *other = run->targets[count].channel;

		if (other && other->device == device &&
		    strobe_is_on_bus(run->actions[count].access))
			return true;
	}
	return false;
}

/* Which registers tell whether their device is still there; see struct strobe_action. */
static void mark_last(struct strobe_run *run, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		struct strobe_channel *channel = run->targets[i].channel;
		struct strobe_action *action = &run->actions[i];

		if (!channel || !channel->device->is_there || !strobe_is_on_bus(action->access))
			continue;
		action->last = run->is_slow || !is_read_later(run, i, count);
		action->plain_last = action->last && action->plain;
		action->plain &= !action->last;
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
	mark_last(run, count);
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
	run->last = run->limit;
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
	ret = strobe_run_use(run, c);
	if (ret)
		return ERR_PTR(ret);
	fill_header(run, c);
	run->id = ++last_run;
	run->header->run = run->id;
	run->is_shared = c->flags & STROBE_SHARED;
	run->is_special = run->is_tai || run->is_slow;
	ret = strobe_slow_init(run, c->priority ?: STROBE_PRIORITY_DEFAULT);
	if (ret)
		goto devices;
	run->sysfs = strobe_sysfs_add_run(run);
	if (IS_ERR(run->sysfs)) {
		ret = PTR_ERR(run->sysfs);
		goto devices;
	}
	file = anon_inode_getfile("[strobe-run]", &strobe_owner_fops, run, O_RDWR);
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
	strobe_run_unuse(run);
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
	run = strobe_run_new();
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
