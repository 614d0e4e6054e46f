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

#include "row/budget.h"
#include "core/internal.h"
#include "row/budget.h"
#include "row/slow.h"
#include "row/trace.h"
#include "uabi.h"

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
	run->ring.mask = capacity - 1;
	run->ring.stride = c->row_stride / 8;
	run->ring.row_size = sizeof(struct strobe_row) + 8 * channels;
	run->ring.limit = c->limit ?: STROBE_NO_LIMIT;
	run->last = run->ring.limit;
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
	header->capacity = run->ring.mask + 1;
	header->limit = run->ring.limit;
	header->data_offset = PAGE_SIZE;
	header->clock = run->is_tai ? CLOCK_TAI : CLOCK_MONOTONIC;
	header->period_ns = run->period;
	header->engine = STROBE_ENGINE_KERNEL;
}

/* Everything that can be wrong is found here; nothing has changed yet. */
static int configure(struct strobe_run *run, struct strobe_create *c,
		     const struct strobe_step *steps)
{
	int ret;

	ret = choose_event(run, c);
	if (ret)
		return ret;
	return strobe_compile(run, c, steps);
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
	run->ring.header->run = run->id;
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
	trace_strobe_create(run->id, run->event_name, run->channels, run->ring.mask + 1,
			    run->ring.limit);
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
