/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run and its steps, as who makes the rows sees them.
 *
 * Locks, outermost first:
 *   run->lock        mutex: every change of a run's state that is not made by its
 *                    producer; software triggers. Held for as long as the run's
 *                    own channels take.
 *   strobe_registry  mutex: devices, runs, use counts. Everybody's: held for
 *                    moments.
 *   ring->lock       spinlock: readers of a run
 */
#ifndef _STROBE_RUN_H
#define _STROBE_RUN_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "provider.h"
#include "ring/ring.h"

#ifndef CONFIG_64BIT
#error "strobe needs a 64-bit kernel: rows are 64-bit words stored at once"
#endif

struct strobe_computer;
struct strobe_slow;

/* Accesses of the built-in channels, and of slow ones. */
enum strobe_builtin {
	STROBE_BUILTIN_TIME	= 64,
	STROBE_BUILTIN_ELAPSED,
	STROBE_BUILTIN_LATE,
	STROBE_BUILTIN_CPU,
	STROBE_BUILTIN_CYCLES,
	STROBE_BUILTIN_WAITED,
	STROBE_BUILTIN_SLEEP,
	STROBE_BUILTIN_ASYNC,
};

/**
 * enum strobe_do - what a step of a run does.
 * @STROBE_DO_PLAIN: readl(), to the next column.
 * @STROBE_DO_SIGNED: readl(), sign-extended.
 * @STROBE_DO_FIELDS: readl(), and its value is cut into columns.
 * @STROBE_DO_CALL: the provider's function reads.
 * @STROBE_DO_OTHER: what is less common: see @access.
 * @STROBE_DO_END: no more steps.
 */
enum strobe_do {
	STROBE_DO_PLAIN,
	STROBE_DO_SIGNED,
	STROBE_DO_FIELDS,
	STROBE_DO_CALL,
	STROBE_DO_OTHER,
	STROBE_DO_END,
};

/**
 * struct strobe_cut - a field of a register becomes the value of a column.
 * @mask: of an unsigned field: its bits, after the shift.
 * @left: of a signed field: shift that drops what is above it.
 * @right: shift that drops what is below; of a signed field, after @left.
 * @column: where it goes.
 */
struct strobe_cut {
	u64	mask;
	u8	left;
	u8	right;
	u16	column;
};

/**
 * struct strobe_action - one step of a run, compiled; or several, that are fields
 * of one register.
 * @plain: STROBE_DO_PLAIN, and not @last: the common way tests for nothing else.
 * @pair: @plain, and so is the next one.
 * @plain_last: STROBE_DO_PLAIN, and @last.
 * @todo: enum strobe_do.
 * @access: enum strobe_access or enum strobe_builtin.
 * @write: store @value instead of reading.
 * @last: the row's last register of a device that may go without a word: if it
 *	reads as all ones, the device is asked whether it is there. Once gone it
 *	stays so, and one look a row is enough. In a slow run, whose row takes
 *	its time, every register of such a device.
 * @act: of an output that the program has written: the bit of its answer.
 * @column: of a channel, the first one of a register; of an output: its place
 *	behind the channels, in the fault bits of a row.
 * @cuts: unsigned fields of a register; 0 of both: it is a whole one, unsigned.
 * @signed_cuts: signed ones.
 * @value: what to store; of an async channel: where its value is awaited.
 * @cut: the unsigned fields of a register, then the signed ones.
 * @read: of a channel whose provider's function reads it.
 * @io: MMIO and IO.
 * @mem: MEM64.
 * @channel: CALL, SLEEP and ASYNC, reads.
 * @output: CALL and SLEEP, writes.
 * @device: whose it is.
 *
 * Written while the run is created, then constant; read by the producer.
 */
struct strobe_action {
	bool	pair;
	bool	plain;
	bool	plain_last;
	u8	todo;
	u8	access;
	bool	write;
	bool	last;
	u8	act;
	u16	column;
	u16	cuts;
	u16	signed_cuts;
	union {
		u64			value;
		const struct strobe_cut	*cut;
		int			(*read)(struct strobe_channel *channel, u64 *value);
	};
	union {
		void __iomem		*io;
		u64			*mem;
		struct strobe_channel	*channel;
		struct strobe_output	*output;
	};
	struct strobe_device	*device;
};

/* Fault words of a row, at most: for all steps but the first 32. */
#define STROBE_FAULT_WORDS_MAX	DIV_ROUND_UP(STROBE_STEPS_MAX - 32, 64)

/* Which kind of event a run has. */
enum strobe_source {
	STROBE_SOURCE_TIMER,
	STROBE_SOURCE_SOFT,
	STROBE_SOURCE_EVENT,
};

/**
 * struct strobe_run - one acquisition.
 *
 * Constant while triggers may come (written by create, read by the producer):
 * @ring: where rows go; its first fields. The reference that it counts first is
 *	the owner fd's.
 * @step_count: steps.
 * @actions: steps, compiled; then one that is STROBE_DO_END.
 * @acts: those that the program has done, in @actions behind its end; then another
 *	STROBE_DO_END. NULL: there are none.
 * @cuts: fields that the actions cut.
 * @slack: budget clock ticks that the steps may take before the timer's next
 *	grid point is in danger; see budget.c.
 * @period: of the timer, ns.
 * @is_tai: times are CLOCK_TAI.
 * @source: kind of event.
 * @is_slow: some channels are not ready at once.
 * @may_skip: triggers may be left out on purpose: rows have a word for it.
 * @fault_words: of a row, behind its values.
 * @is_special: any of @is_tai, @is_slow, @may_skip, @fault_words, @computer: its
 *	rows are more than a common row.
 * @is_computed: @computer, with or without @may_skip, none of the others, and no @acts.
 * @slow: what such a run has besides, until it has ended; NULL for others. See
 *	slow.c, also for who writes what follows in such a run.
 * @computer: its program; NULL: none.
 *
 * Written by the producer (one context at a time: the timer, the event's
 * handler, or a software trigger under @lock), by others only while it is
 * silent:
 * @head: rows made.
 * @triggers: triggers known.
 * @due: when the next trigger of the timer is due, CLOCK_MONOTONIC.
 * @held: grid point until which the budget forbids the timer; 0: none.
 * @skipped: triggers left out on purpose.
 * @status: of the next row: flags, and what has failed of the first 32.
 * @faults: what has failed of the others.
 * @last: rows at which the run ends: the limit, or those up to the row that
 *	found a device gone.
 * @error: why it ends there; 0: the limit.
 * @waits: triggers that the budget refused since it last had to be asked twice.
 * @row_ticks: what its steps took then; at first, what they say they cost.
 * @state: enum strobe_state. RUNNING to DONE, or to FAILED with @error, by the
 *	producer, all other changes under @lock with the producer silent.
 *
 * @timer: of the timer event.
 *
 * @quit: the steps of the open row need not be finished. Set by who must not
 *	wait long, in process context, under no lock; cleared under @lock when
 *	triggers begin to come, or go on. Read by who does the steps.
 *
 * Under strobe_registry:
 * @listener: in the event's list of listeners.
 * @entry: in the list of runs.
 * @event: the event; NULL for the built-in ones or once released.
 * @released: devices are not used any more.
 * @timer_cpu: where its timer runs; -1: nowhere.
 *
 * Under @lock:
 * @attached: the producer may produce.
 * @has_thread: its user has a thread more.
 * @joined: triggers there were when it joined others who listen to its event; of
 *	the first, who has enabled it, U64_MAX.
 * @suspended: the producer may not produce, though the run is RUNNING, until the
 *	machine is awake again.
 *
 * @lock: see above.
 * @done: releases the devices after the producer has ended the run.
 * @id: in the catalogue.
 * @is_shared: STROBE_SHARED.
 * @uid: of the owner.
 * @pid: of the process that created it.
 * @comm: its name.
 * @event_name: as asked for.
 * @accounting: of its event, when it was created: a flag of a catalogue's entry.
 * @steps: as asked for; the names of the columns also when devices are gone.
 * @targets: what the steps use.
 * @channels: values in a row, derived ones among them.
 * @derived: entries behind @steps: of columns that a program computes.
 * @outputs: outputs that a row writes.
 * @started: CLOCK_MONOTONIC at the start.
 * @start_time: the same on the run's clock.
 * @first_due: of the timer's grid, CLOCK_MONOTONIC.
 * @sysfs: its directory.
 *
 * @follows: struct strobe_follow, the runs that it follows. Made while the run is
 *	created, freed when its devices have been given back.
 * @over: why it ends because the run that triggers it has; 0: that one is complete.
 *	Written by the producer, read by who ends it then.
 */
struct strobe_run {
	struct strobe_ring		ring;
	u32				step_count;
	struct strobe_action		*actions;
	const struct strobe_action	*acts;
	struct strobe_cut		*cuts;
	u64				slack;
	u64				period;
	bool				is_tai;
	enum strobe_source		source;
	bool				is_slow;
	bool				is_special;
	bool				is_computed;
	bool				may_skip;
	u32				fault_words;
	struct strobe_slow		*slow;
	struct strobe_computer		*computer;

	u64				head;
	u64				triggers;
	u64				due;
	u64				held;
	u64				skipped;
	u64				status;
	u64				last;
	s32				error;
	u32				waits;
	u64				row_ticks;
	u32				state;
	u64				faults[STROBE_FAULT_WORDS_MAX];

	struct hrtimer			timer;

	bool				quit;

	struct list_head		listener;
	struct list_head		entry;
	struct strobe_event		*event;
	bool				released;
	int				timer_cpu;
	bool				attached;
	bool				has_thread;
	u64				joined;
	bool				suspended;

	struct mutex			lock;		/* see above */
	struct work_struct		done;
	u32				id;
	bool				is_shared;
	kuid_t				uid;
	pid_t				pid;
	char				comm[TASK_COMM_LEN];
	char				event_name[STROBE_NAME_SIZE];
	u32				accounting;
	struct strobe_entry		*steps;
	struct strobe_target		*targets;
	u32				channels;
	u32				derived;
	u32				outputs;
	u64				started;
	u64				start_time;
	u64				first_due;
	struct device			*sysfs;

	struct list_head		follows;
	s32				over;
};

/**
 * struct strobe_target - what a step of a run uses, for giving it back.
 * @channel: a channel that is prepared and locked, or
 * @output: an output, and
 * @value: what is written to it.
 * @act: of an output that the program has written: the bit of its answer; else 0.
 * @column: see struct strobe_action.
 * @is_used: an earlier step has prepared and locked the channel.
 */
struct strobe_target {
	struct strobe_channel	*channel;
	struct strobe_output	*output;
	u64			value;
	u8			act;
	u16			column;
	bool			is_used;
};

/* enum strobe_class of what a step uses. */
static inline u32 strobe_target_class(const struct strobe_target *target)
{
	return target->channel ? target->channel->cost_class : target->output->cost_class;
}

#endif /* _STROBE_RUN_H */
