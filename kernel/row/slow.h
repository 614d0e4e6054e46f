/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs with channels that are not ready at once: see open_row.c. */
#ifndef _STROBE_SLOW_H
#define _STROBE_SLOW_H

#include "row/run.h"

struct task_struct;

/**
 * struct strobe_slow - what a run with slow channels has besides.
 * @run: whose it is.
 * @lock: protects all that follows, and the run's head, triggers and missed
 *	counts. The words that steps store need no lock: each column has one writer;
 *	nor do @row, @now and @due while the steps go on, which were set before.
 * @thread: does the steps, if one of them may sleep; else NULL. Constant while
 *	triggers may come.
 * @idle: where others wait for the thread to be done with the steps; woken by
 *	the thread only.
 * @fetches: channels whose value is fetched before the next row. Constant.
 * @wanted: the thread has steps to do. Set by the trigger, taken by the thread.
 * @open: a row is open.
 * @stepping: its steps are going on. Set by the trigger, cleared by who does
 *	them.
 * @cut: its steps were not all done: it is to be given up.
 * @awaited: values that have not arrived yet.
 * @row: the open row, in the ring.
 * @now: its stamp, CLOCK_MONOTONIC.
 * @time: its stamp on the run's clock.
 * @due: when it was due, CLOCK_MONOTONIC.
 * @began: when its steps began, CLOCK_MONOTONIC. Only who does the steps has it.
 * @status: its status, so far.
 * @faults: what has failed beyond that, so far.
 * @missed: triggers that were missed while it is open.
 * @charged: CPU time of the thread that was paid for, ns.
 * @skipped: triggers that were skipped while it is open.
 */
struct strobe_slow {
	struct strobe_run	*run;
	raw_spinlock_t		lock;	/* see above */
	struct task_struct	*thread;
	wait_queue_head_t	idle;
	u32			fetches;
	bool			wanted;
	bool			open;
	bool			stepping;
	bool			cut;
	u32			awaited;
	u64			*row;
	u64			now;
	u64			time;
	u64			due;
	u64			began;
	u64			status;
	u64			faults[STROBE_FAULT_WORDS_MAX];
	u64			missed[STROBE_MISSED_CAUSES];
	u64			charged;
	u64			skipped;
};

/* open_row.c */
void strobe_slow_row(struct strobe_run *run, u64 now, u64 due);
void strobe_slow_miss(struct strobe_run *run, enum strobe_missed cause, u64 count);
void strobe_slow_skip(struct strobe_run *run, u64 count);
void strobe_slow_fail(struct strobe_slow *slow, u16 column);
void strobe_slow_steps(struct strobe_slow *slow);
bool strobe_slow_is_open(struct strobe_run *run);
void strobe_slow_await(struct strobe_slow *slow);
void strobe_slow_arrive(struct strobe_slow *slow, u16 column, u64 value, int error);

void strobe_slow_complete(struct strobe_slow *slow);
void strobe_slow_count(struct strobe_slow *slow);

/* slow.c */
int strobe_slow_init(struct strobe_run *run, u32 priority);
bool strobe_slow_awaits(struct strobe_run *run);
void strobe_slow_settle(struct strobe_run *run);
void strobe_slow_free(struct strobe_run *run);

/* thread.c */
int strobe_thread_make(struct strobe_slow *slow, u32 priority);
void strobe_thread_end(struct strobe_slow *slow);
void strobe_slow_flush(struct strobe_run *run);
u64 strobe_thread_rest(struct strobe_slow *slow, u64 now);
u64 strobe_slow_rest(struct strobe_run *run);

/* ticket.c */
void strobe_ticket_init(void);
int strobe_ticket_take_place(struct strobe_slow *slow, u16 column);
void strobe_ticket_free_place(u32 place);
u64 strobe_ticket_new(u32 place);
bool strobe_ticket_use(u64 number, u64 value, int error);
void strobe_ticket_give_up(u32 place);

#endif /* _STROBE_SLOW_H */
