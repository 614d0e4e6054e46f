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
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "computer/computer.h"
#include "core/internal.h"
#include "ring/user.h"
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

static int check_config(const struct strobe_create *c, struct strobe_created *answer)
{
	if (strnlen(c->event, sizeof(c->event)) == sizeof(c->event))
		return -EINVAL;
	if (c->flags & ~(STROBE_DRY_RUN | STROBE_SHARED) || c->reserved)
		return -EINVAL;
	if (c->priority > STROBE_PRIORITY_MAX)
		return strobe_refuse(answer, STROBE_WHY_PRIORITY, -EINVAL);
	if (c->priority > STROBE_PRIORITY_DEFAULT && c->priority > rlimit(RLIMIT_RTPRIO) &&
	    !capable(CAP_SYS_NICE))
		return strobe_refuse(answer, STROBE_WHY_PRIORITY, -EPERM);
	if (c->step_size < sizeof(struct strobe_step))
		return -EINVAL;
	if (c->step_size > STROBE_SIZE_MAX)
		return -E2BIG;
	if (c->step_count > STROBE_STEPS_MAX)
		return strobe_refuse(answer, STROBE_WHY_STEPS, -EINVAL);
	if (c->clock && c->clock != CLOCK_MONOTONIC && c->clock != CLOCK_TAI)
		return strobe_refuse(answer, STROBE_WHY_CLOCK, -EINVAL);
	if (c->capacity && (!is_power_of_2(c->capacity) || c->capacity < 2 ||
			    c->capacity > STROBE_CAPACITY_MAX))
		return strobe_refuse(answer, STROBE_WHY_CAPACITY, -EINVAL);
	return 0;
}

static int choose_event(struct strobe_run *run, const struct strobe_create *c,
			struct strobe_created *answer)
{
	bool timer = !strcmp(c->event, "timer");
	struct strobe_event *event;

	if (timer) {
		run->source = STROBE_SOURCE_TIMER;
	} else if (!strcmp(c->event, "soft")) {
		run->source = STROBE_SOURCE_SOFT;
	} else {
		run->source = STROBE_SOURCE_EVENT;
		event = strobe_is_follow(c->event) ? strobe_follow_event(run, c->event) :
						     strobe_find_event(c->event);
		if (IS_ERR(event))
			return strobe_refuse(answer, STROBE_WHY_EVENT, PTR_ERR(event));
		run->event = event;
		/* The row was laid out for what was there then. */
		if (!run->event || (run->event->may_skip && !run->may_skip))
			return strobe_refuse(answer, STROBE_WHY_EVENT, -ENOENT);
	}
	if (run->event && run->event->users >= EVENT_USERS_MAX)
		return strobe_refuse(answer, STROBE_WHY_BUSY, -EBUSY);
	if (timer ? c->period_ns < STROBE_PERIOD_MIN || c->period_ns > STROBE_PERIOD_MAX :
		    c->period_ns)
		return strobe_refuse(answer, STROBE_WHY_PERIOD, -EINVAL);
	run->accounting = strobe_accounting_flags(run->event);
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

/* Whether a trigger of this event may be left out on purpose. */
static bool may_skip(const char *name)
{
	struct strobe_event *event;

	guard(mutex)(&strobe_registry);
	event = strobe_find_event(name);
	return event && event->may_skip;
}

/* Geometry: what the ring will look like. */
static void lay_out(struct strobe_run *run, const struct strobe_create *c,
		    const struct strobe_step *steps, const struct strobe_program *program,
		    struct strobe_created *answer)
{
	u32 reads = 0, words;

	for (u32 i = 0; i < c->step_count; i++)
		reads += steps[i].op == STROBE_OP_READ;
	run->derived = program->derived_count;
	run->may_skip = may_skip(c->event) || program->flags & STROBE_PROGRAM_SKIPS;
	answer->channels = reads + run->derived;
	run->fault_words = strobe_fault_words(answer->channels, c->step_count - reads);
	words = answer->channels + run->fault_words + run->may_skip;
	answer->outputs = c->step_count - reads;
	answer->capacity = c->capacity ?: default_capacity(c->period_ns);
	answer->row_size = sizeof(struct strobe_row) + 8 * words;
	answer->row_stride = ALIGN(answer->row_size, 64);
	answer->ring_bytes = strobe_ring_size(answer->capacity, answer->row_stride);
	run->ring.mask = answer->capacity - 1;
	run->ring.stride = answer->row_stride / 8;
	run->ring.row_size = answer->row_size;
	run->ring.limit = c->limit ?: STROBE_NO_LIMIT;
	run->last = run->ring.limit;
	run->is_tai = c->clock == CLOCK_TAI;
}

/* Memory that is paid for beside the ring. */
static u64 memory_of(const struct strobe_run *run, const struct strobe_create *c,
		     const struct strobe_step *steps, u64 program)
{
	u64 step = sizeof(*run->actions) + sizeof(*run->cuts) + sizeof(*run->steps) +
		   sizeof(*run->targets);
	u32 follows = strobe_is_follow(c->event);

	for (u32 i = 0; i < c->step_count; i++)
		follows += strobe_is_follow(steps[i].name);
	return sizeof(*run) + c->step_count * step + strobe_follow_bytes(follows) + program;
}

/* Before any lock is taken: it may take long. */
static int take_memory(struct strobe_run *run, u64 memory, bool dry, struct strobe_created *answer)
{
	size_t bytes = answer->ring_bytes;
	int ret;

	/* What no machine has nobody can pay: then nothing else is looked at. */
	if (bytes == SIZE_MAX)
		return strobe_refuse(answer, STROBE_WHY_MEMORY, -ENOSPC);
	ret = strobe_ring_pay(&run->ring, bytes + memory);
	if (ret)
		return ret;
	if (dry)
		return strobe_ring_fits(bytes) ? 0 : -ENOSPC;
	return strobe_ring_alloc(&run->ring, bytes);
}

static void fill_header(struct strobe_run *run)
{
	struct strobe_ring_header *header = run->ring.header;

	header->magic = STROBE_RING_MAGIC;
	header->major = STROBE_RING_MAJOR;
	header->minor = STROBE_RING_MINOR;
	header->header_size = sizeof(*header);
	header->row_stride = 8 * run->ring.stride;
	header->row_size = run->ring.row_size;
	header->channels = run->channels;
	header->outputs = run->outputs;
	header->capacity = run->ring.mask + 1;
	header->limit = run->ring.limit;
	header->data_offset = PAGE_SIZE;
	header->clock = run->is_tai ? CLOCK_TAI : CLOCK_MONOTONIC;
	header->incompat = (run->fault_words ? STROBE_INCOMPAT_FAULTS : 0) |
			   (run->may_skip ? STROBE_INCOMPAT_SKIPPED : 0);
	header->period_ns = run->period;
	header->run = run->id;
	header->engine = STROBE_ENGINE_KERNEL;
}

/* Everything that can be wrong is found here; nothing has changed yet. */
static int configure(struct strobe_run *run, const struct strobe_create *c,
		     const struct strobe_step *steps, const struct strobe_given *given,
		     struct strobe_created *answer)
{
	u64 cost = strobe_program_cost(given);
	int ret;

	ret = choose_event(run, c, answer);
	if (ret)
		return ret;
	ret = strobe_compile(run, steps, c->step_count, given, answer);
	if (ret)
		return ret;
	ret = strobe_program_fits(run, given, answer);
	if (ret)
		return ret;
	answer->cost_ns += cost;
	ret = strobe_check_cost(run, c->step_count, cost);
	return ret ? strobe_refuse(answer, STROBE_WHY_COST, ret) : 0;
}

/* Under strobe_registry. The file, once there, owns the run. */
static struct file *build_run(struct strobe_run *run, const struct strobe_create *c,
			      const struct strobe_step *steps, const struct strobe_given *given,
			      int no_memory, struct strobe_created *answer)
{
	struct file *file;
	int ret;

	ret = configure(run, c, steps, given, answer);
	if (ret)
		return ERR_PTR(ret);
	if (no_memory == -ENOSPC)
		return ERR_PTR(strobe_refuse(answer, STROBE_WHY_MEMORY, no_memory));
	if (no_memory == -EUSERS)
		return ERR_PTR(strobe_refuse(answer, STROBE_WHY_RUNS, no_memory));
	if (no_memory)
		return ERR_PTR(no_memory);
	if (c->flags & STROBE_DRY_RUN)
		return NULL;
	if (last_run == U32_MAX)
		return ERR_PTR(-ENOSPC);
	ret = strobe_run_use(run, answer);
	if (ret)
		return ERR_PTR(ret);
	run->id = ++last_run;
	run->is_shared = c->flags & STROBE_SHARED;
	run->is_special = run->is_tai || run->is_slow || run->fault_words || run->may_skip ||
			  run->computer;
	run->is_computed = run->computer && !(run->is_tai || run->is_slow || run->fault_words ||
					     run->acts);
	fill_header(run);
	ret = strobe_take_thread(run);
	if (ret)
		goto devices;
	ret = strobe_slow_init(run, c->priority ?: STROBE_PRIORITY_DEFAULT);
	if (ret == -EUSERS)
		answer->why = STROBE_WHY_ASYNC;
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
	strobe_catalogue_changed();
	answer->run = run->id;
	trace_strobe_create(run->id, run->event_name, run->channels, run->ring.mask + 1,
			    run->ring.limit);
	return file;

devices:
	strobe_run_unuse(run);
	return ERR_PTR(ret);
}

/* All that the user has given is here. */
static struct file *make_run(const struct strobe_create *c, const struct strobe_step *steps,
			     const struct strobe_given *given, struct strobe_created *answer)
{
	bool dry = c->flags & STROBE_DRY_RUN;
	struct strobe_run *run;
	struct file *file;
	int no_memory, ret;

	ret = strobe_program_size(&given->about, c->step_count, answer);
	if (ret)
		return ERR_PTR(ret);
	run = strobe_run_new();
	if (!run)
		return ERR_PTR(-ENOMEM);
	lay_out(run, c, steps, &given->about, answer);
	ret = strobe_program_is_good(given, answer);
	if (ret) {
		strobe_run_put(run);
		return ERR_PTR(ret);
	}
	no_memory = take_memory(run, memory_of(run, c, steps, strobe_given_bytes(given)), dry,
				answer);
	if (!no_memory && !dry)
		ret = strobe_program_take(run, given, answer);
	file = ERR_PTR(no_memory ?: ret);
	if (run->ring.owner && !ret) {
		guard(mutex)(&run->ring.owner->turn);
		guard(mutex)(&strobe_registry);
		file = build_run(run, c, steps, given, no_memory, answer);
	}
	if (IS_ERR_OR_NULL(file))
		strobe_run_put(run);
	return file;
}

/* Returns the owner's file, NULL after a dry run, or an error. */
static struct file *create_run(const struct strobe_create *c, struct strobe_created *answer)
{
	struct strobe_given given = { };
	struct strobe_step *steps;
	struct file *file;
	int ret;

	ret = check_config(c, answer);
	if (ret)
		return ERR_PTR(ret);
	steps = strobe_copy_array(c->steps, c->step_count, sizeof(*steps), c->step_size);
	if (IS_ERR(steps))
		return ERR_CAST(steps);
	ret = strobe_given_copy(&given, c->program);
	file = ret ? ERR_PTR(ret) : make_run(c, steps, &given, answer);
	strobe_given_free(&given);
	kvfree(steps);
	return file;
}

/**
 * strobe_ioctl_create() - STROBE_CREATE.
 * @arg: struct strobe_create.
 * @may_write: the control device is open for writing.
 *
 * Context: process.
 * Return: 0 or an errno; what is known of the fault is in the answer.
 */
long strobe_ioctl_create(void __user *arg, bool may_write)
{
	struct strobe_created answer = { .fd = -1, .fault_step = STROBE_NO_STEP };
	struct strobe_create c;
	void __user *to;
	struct file *file;
	int fd, ret;
	bool dry;

	ret = strobe_copy_struct(&c, sizeof(c), arg, offsetof(struct strobe_create, program));
	if (ret)
		return ret;
	dry = c.flags & STROBE_DRY_RUN;
	if (!dry && !may_write)
		return -EBADF;
	if (c.answer_size < sizeof(answer) || c.answer_size > STROBE_SIZE_MAX || c.answer_size % 8)
		return -EINVAL;
	to = u64_to_user_ptr(c.answer);
	fd = dry ? -1 : get_unused_fd_flags(O_CLOEXEC);
	file = !dry && fd < 0 ? ERR_PTR(fd) : create_run(&c, &answer);
	if (!IS_ERR_OR_NULL(file)) {
		answer.fd = fd;
		ret = strobe_copy_out(to, c.answer_size, &answer, sizeof(answer));
		return strobe_fd_publish(fd, file, ret);
	}
	if (fd >= 0)
		put_unused_fd(fd);
	ret = strobe_copy_out(to, c.answer_size, &answer, sizeof(answer));
	return IS_ERR(file) ? PTR_ERR(file) : ret;
}
