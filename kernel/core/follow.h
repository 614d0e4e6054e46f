/* SPDX-License-Identifier: GPL-2.0-only */
/* A run that another one follows: what follow.c and follow_rows.c share. */
#ifndef _STROBE_FOLLOW_H
#define _STROBE_FOLLOW_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/workqueue.h>

#include "core/internal.h"

/**
 * struct strobe_follow - a run as a device of another one.
 * @entry: in the follows of @run.
 * @run: who follows. Constant.
 * @followed: the other one; a reference. Constant.
 * @every: every how many rows one counts. Constant once the run is made.
 * @triggers: its rows trigger. Constant once the run is made.
 * @sleeper: among the readers of the other run, from the beginning: who reads the
 *	rows last pays for them.
 * @work: triggers. Hard.
 * @arm: wants the next row, after a hold.
 * @hold: until the budget of the CPU has room.
 * @lock: two CPUs may be at @work: protects @listening to @come. Of the follow that
 *	triggers also @error, and what @values have: nothing else writes them, and
 *	nothing at all while a row is open, which a thread may read them for.
 * @listening: the run's producer is attached.
 * @held: @hold goes on.
 * @late: it has gone on since the last trigger.
 * @next: rows before this one are told, or count in @come.
 * @come: rows that count, and were not told.
 * @error: why @values have nothing of a row; 0: they have.
 * @seen: triggers of @run, when it has looked last; if its rows do not trigger.
 * @device: what the run's event and its channels belong to; in no list.
 * @event: its rows.
 * @values: struct strobe_follow_value, all that the run reads. Constant once it is
 *	made.
 * @rcu: one of two CPUs that are at @work may be in it after the other has ended.
 */
struct strobe_follow {
	struct list_head	entry;
	struct strobe_run	*run;
	struct strobe_run	*followed;
	u32			every;
	bool			triggers;
	struct strobe_sleeper	sleeper;
	struct irq_work		work;
	struct work_struct	arm;
	struct hrtimer		hold;
	raw_spinlock_t		lock;	/* see above */
	bool			listening;
	bool			held;
	bool			late;
	u64			next;
	u64			come;
	int			error;
	u64			seen;
	struct strobe_device	device;
	struct strobe_event	event;
	struct list_head	values;
	struct rcu_head		rcu;
};

/**
 * struct strobe_follow_value - a channel of the other run. Constant are
 * @channel: as a channel of this one.
 * @entry: in follow->values.
 * @word: of the row.
 * @column: whose fault bit counts; -1: none.
 *
 * Of the row that was taken last, written by who takes it:
 * @now: the word.
 * @has_failed: the fault bit.
 */
struct strobe_follow_value {
	struct strobe_channel	channel;
	struct list_head	entry;
	u32			word;
	s32			column;
	u64			now;
	bool			has_failed;
};

/* follow_rows.c */
void strobe_follow_init(struct strobe_follow *follow);
void strobe_follow_look(struct strobe_follow *follow);
void strobe_follow_quiet(struct strobe_follow *follow);

#endif /* _STROBE_FOLLOW_H */
