// SPDX-License-Identifier: GPL-2.0-only
/* What is said of a run: in the catalogue, in sysfs, in fdinfo, to its owner. */
#include <linux/seq_file.h>
#include <linux/timekeeping.h>

#include "core/internal.h"

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
	u64 end = READ_ONCE(run->ring.header->end_time);
	u64 started = READ_ONCE(run->started);

	if (!started)
		return 0;
	return end ? end - READ_ONCE(run->start_time) : ktime_get_ns() - started;
}

/**
 * strobe_look_at() - where a run is.
 * @run: the run.
 *
 * Context: any.
 */
struct strobe_look strobe_look_at(const struct strobe_run *run)
{
	const struct strobe_ring_header *header = run->ring.header;
	struct strobe_look look;

	/* G: state before head, so that a final state comes with the last row. */
	look.state = smp_load_acquire(&header->state);
	/* C: head before triggers, so that no more rows than triggers show. */
	look.head = smp_load_acquire(&header->head);
	/* And skipped before them; its partner is in strobe_count_skipped(). */
	look.skipped = smp_load_acquire(&header->skipped);
	look.triggers = READ_ONCE(header->triggers);
	look.error = READ_ONCE(header->error);
	return look;
}

/**
 * strobe_run_fdinfo() - lines for /proc/PID/fdinfo.
 * @m: where to.
 * @ring: of the run.
 */
void strobe_run_fdinfo(struct seq_file *m, struct strobe_ring *ring)
{
	const struct strobe_run *run = container_of(ring, struct strobe_run, ring);
	struct strobe_look look = strobe_look_at(run);

	seq_printf(m, "strobe-run:\t%u\n", run->id);
	seq_printf(m, "strobe-event:\t%s\n", run->event_name);
	seq_printf(m, "strobe-state:\t%s\n", strobe_state_name(look.state));
	seq_printf(m, "strobe-channels:\t%u\n", run->channels);
	seq_printf(m, "strobe-capacity:\t%llu\n", run->ring.mask + 1);
	seq_printf(m, "strobe-head:\t%llu\n", look.head);
	seq_printf(m, "strobe-triggers:\t%llu\n", look.triggers);
	seq_printf(m, "strobe-missed:\t%llu\n", strobe_look_missed(&look));
	seq_printf(m, "strobe-skipped:\t%llu\n", look.skipped);
}

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
	struct strobe_look look = strobe_look_at(run);

	entry->kind = STROBE_KIND_RUN;
	entry->id = run->id;
	entry->flags = run->accounting | (run->is_shared ? STROBE_ENTRY_SHARED : 0);
	strscpy(entry->name, run->event_name);
	strscpy(entry->text, run->comm);
	info->state = look.state;
	info->error = look.error;
	info->channels = run->channels;
	info->readers = READ_ONCE(run->ring.reader_count);
	info->uid = from_kuid_munged(&init_user_ns, run->uid);
	info->pid = run->pid;
	info->capacity = run->ring.mask + 1;
	info->limit = run->ring.limit;
	info->head = look.head;
	info->triggers = look.triggers;
	info->period_ns = run->period;
	info->elapsed_ns = strobe_run_elapsed(run);
	info->skipped = look.skipped;
	info->errors = READ_ONCE(run->ring.header->errors);
	info->outputs = run->outputs;
}
