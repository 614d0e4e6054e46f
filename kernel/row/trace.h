/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints, /sys/kernel/tracing/events/strobe. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM strobe

#if !defined(_STROBE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _STROBE_TRACE_H

#include <linux/tracepoint.h>

#include "row/run.h"

TRACE_EVENT(strobe_create,
	TP_PROTO(u32 run, const char *event, u32 channels, u64 capacity, u64 limit),
	TP_ARGS(run, event, channels, capacity, limit),
	TP_STRUCT__entry(
		__field(u32, run)
		__string(event, event)
		__field(u32, channels)
		__field(u64, capacity)
		__field(u64, limit)
	),
	TP_fast_assign(
		__entry->run = run;
		__assign_str(event);
		__entry->channels = channels;
		__entry->capacity = capacity;
		__entry->limit = limit;
	),
	TP_printk("run=%u event=%s channels=%u capacity=%llu limit=%llu", __entry->run,
		  __get_str(event), __entry->channels, __entry->capacity, __entry->limit)
);

TRACE_EVENT(strobe_start,
	TP_PROTO(u32 run, u64 time),
	TP_ARGS(run, time),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u64, time)
	),
	TP_fast_assign(
		__entry->run = run;
		__entry->time = time;
	),
	TP_printk("run=%u time=%llu", __entry->run, __entry->time)
);

TRACE_EVENT(strobe_trigger,
	TP_PROTO(const struct strobe_run *run, u64 now),
	TP_ARGS(run, now),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u64, trigger)
		__field(u64, now)
	),
	TP_fast_assign(
		__entry->run = run->id;
		__entry->trigger = run->triggers;
		__entry->now = now;
	),
	TP_printk("run=%u trigger=%llu now=%llu", __entry->run, __entry->trigger, __entry->now)
);

TRACE_EVENT(strobe_row,
	TP_PROTO(const struct strobe_run *run, u64 row, u64 trigger, u64 time, u64 status),
	TP_ARGS(run, row, trigger, time, status),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u64, row)
		__field(u64, trigger)
		__field(u64, time)
		__field(u64, status)
	),
	TP_fast_assign(
		__entry->run = run->id;
		__entry->row = row;
		__entry->trigger = trigger;
		__entry->time = time;
		__entry->status = status;
	),
	TP_printk("run=%u row=%llu trigger=%llu time=%llu status=%#llx", __entry->run,
		  __entry->row, __entry->trigger, __entry->time, __entry->status)
);

TRACE_EVENT(strobe_missed,
	TP_PROTO(u32 run, u32 cause, u64 count),
	TP_ARGS(run, cause, count),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u32, cause)
		__field(u64, count)
	),
	TP_fast_assign(
		__entry->run = run;
		__entry->cause = cause;
		__entry->count = count;
	),
	TP_printk("run=%u cause=%s count=%llu", __entry->run,
		  __print_symbolic(__entry->cause, { 0, "overrun" }, { 1, "busy" },
				   { 2, "throttled" }, { 3, "source" }, { 4, "suspended" }),
		  __entry->count)
);

TRACE_EVENT(strobe_skipped,
	TP_PROTO(u32 run, u64 count),
	TP_ARGS(run, count),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u64, count)
	),
	TP_fast_assign(
		__entry->run = run;
		__entry->count = count;
	),
	TP_printk("run=%u count=%llu", __entry->run, __entry->count)
);

TRACE_EVENT(strobe_stop,
	TP_PROTO(u32 run, u32 state, int error, u64 rows, u64 triggers),
	TP_ARGS(run, state, error, rows, triggers),
	TP_STRUCT__entry(
		__field(u32, run)
		__field(u32, state)
		__field(int, error)
		__field(u64, rows)
		__field(u64, triggers)
	),
	TP_fast_assign(
		__entry->run = run;
		__entry->state = state;
		__entry->error = error;
		__entry->rows = rows;
		__entry->triggers = triggers;
	),
	TP_printk("run=%u state=%s error=%d rows=%llu triggers=%llu", __entry->run,
		  __print_symbolic(__entry->state, { 0, "ready" }, { 1, "running" },
				   { 2, "paused" }, { 3, "done" }, { 4, "stopped" },
				   { 5, "failed" }),
		  __entry->error, __entry->rows, __entry->triggers)
);

#endif /* _STROBE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
