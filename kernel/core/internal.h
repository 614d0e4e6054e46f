/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of strobe.ko share. See the head of each file for its part:
 *
 *   main.c      module, control device, its ioctls
 *   registry.c  devices and their channels, outputs, events; the catalogue
 *   create.c    STROBE_CREATE
 *   run.c       life of a run; owner fd
 *   row.h       the hard path: one trigger becomes one row
 *   row.c       its less common ways; events of devices
 *   slow.c      rows whose values come from a thread, or later
 *   ticket.c    how the latter find their row
 *   timer.c     the event "timer"
 *   budget.c    what the hard path may take of a CPU
 *   ring.c      memory of the rows
 *   reader.c    ring fd; waking readers
 *   register.c  access to registers
 *   builtin.c   the devices "clock" and "cpu"
 *   sim.c       the device "sim"
 *   sysfs.c     /sys/class/strobe
 *
 * Locks, outermost first:
 *   strobe_registry  mutex: devices, runs, use counts, every change of a run's
 *                    state that is not made by its producer
 *   run->lock        mutex: software triggers against changes of state
 *   run->wake_lock   spinlock: readers of a run
 */
#ifndef _STROBE_INTERNAL_H
#define _STROBE_INTERNAL_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "provider.h"

#ifndef CONFIG_64BIT
#error "strobe needs a 64-bit kernel: rows are 64-bit words stored at once"
#endif

/* Accesses of the built-in channels, of slow ones, and the end of a run's steps. */
enum strobe_builtin {
	STROBE_BUILTIN_TIME	= 64,
	STROBE_BUILTIN_ELAPSED,
	STROBE_BUILTIN_LATE,
	STROBE_BUILTIN_CPU,
	STROBE_BUILTIN_CYCLES,
	STROBE_BUILTIN_WAITED,
	STROBE_BUILTIN_SLEEP,
	STROBE_BUILTIN_ASYNC,
	STROBE_BUILTIN_END,
};

/**
 * struct strobe_action - one step of a run, compiled.
 * @plain: just readl(@io): all there is to do on the common way.
 * @last: the row's last register of a device that may go without a word: if it
 *	reads as all ones, the device is asked whether it is there. Once gone it
 *	stays so, and one look a row is enough. In a slow run, whose row takes
 *	its time, every register of such a device.
 * @plain_last: what would be @plain, but is @last.
 * @access: enum strobe_access or enum strobe_builtin.
 * @write: store @value instead of reading.
 * @field: what was read must be cut to a field.
 * @is_signed: the field is two's complement.
 * @left: shift that drops what is above the field.
 * @right: shift that then drops what is below.
 * @column: of a channel.
 * @value: what to store; of an async channel: where its value is awaited; of a
 *	register that is read: all ones, as it reads when the card is gone.
 * @io: MMIO and IO.
 * @mem: MEM64.
 * @channel: CALL, SLEEP and ASYNC, reads.
 * @output: CALL, writes.
 *
 * Written while the run is created, then constant; read by the producer.
 */
struct strobe_action {
	bool	plain;
	bool	last;
	bool	plain_last;
	u8	access;
	bool	write;
	bool	field;
	bool	is_signed;
	u8	left;
	u8	right;
	u16	column;
	u64	value;
	union {
		void __iomem		*io;
		u64			*mem;
		struct strobe_channel	*channel;
		struct strobe_output	*output;
	};
};

/**
 * struct strobe_ring - memory of the rows.
 * @header: first page; also what user space maps.
 * @pages: all pages.
 * @page_count: how many.
 * @bytes: what is mapped.
 */
struct strobe_ring {
	struct strobe_ring_header	*header;
	struct page			**pages;
	unsigned int			page_count;
	size_t				bytes;
};

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
 * @header: of the ring; the producer's copies below are what counts, user
 *	space cannot write it but nothing here reads it back either.
 * @slots: row 0.
 * @mask: capacity - 1.
 * @stride: of a row, in words.
 * @step_count: steps.
 * @actions: steps, compiled; then STROBE_BUILTIN_END.
 * @limit: rows to make.
 * @slack: budget clock ticks that the steps may take before the timer's next
 *	grid point is in danger; see budget.c.
 * @period: of the timer, ns.
 * @is_tai: times are CLOCK_TAI.
 * @source: kind of event.
 * @is_slow: some channels are not ready at once.
 * @is_special: @is_tai or @is_slow: rows are made out of line.
 * @slow: what such a run has besides, until it has ended; NULL for others. See
 *	slow.c, also for who writes what follows in such a run.
 *
 * Written by the producer (one context at a time: the timer, the event's
 * handler, or a software trigger under @lock), by others only while it is
 * silent:
 * @head: rows made.
 * @triggers: triggers known.
 * @due: when the next trigger of the timer is due, CLOCK_MONOTONIC.
 * @held: grid point until which the budget forbids the timer; 0: none.
 * @status: of the next row.
 * @last: rows at which the run ends: the limit, or those up to the row that
 *	found a device gone.
 * @error: why it ends there; 0: the limit.
 * @booked: the next row is paid for, and due at
 * @slot: on the budget's clock.
 * @row_ticks: what was paid for its steps: what the last such row took.
 * @state: enum strobe_state. RUNNING to DONE, or to FAILED with @error, by the
 *	producer, all other changes under strobe_registry and @lock with the
 *	producer silent.
 *
 * @wake_at: rows at which somebody wants to be woken; written under @wake_lock,
 *	read by the producer; barriers E and F, see reader.c.
 * @wake: wakes readers, queued by the producer.
 * @timer: of the timer event.
 *
 * Under strobe_registry:
 * @listener: in the event's list of listeners.
 * @entry: in the list of runs.
 * @event: the event; NULL for the built-in ones or once released.
 * @released: devices are not used any more.
 * @attached: the producer may produce.
 *
 * @lock: see above.
 * @wake_lock: protects @readers and what they want.
 * @readers: struct strobe_reader_file; all of them, for the end of the run.
 * @waiting: those of them that want to be woken at a row.
 * @reader_count: how many.
 * @done: releases the devices after the producer has ended the run.
 * @kref: one for the owner fd, one for each reader.
 * @ring: memory.
 * @id: in the catalogue.
 * @is_shared: STROBE_SHARED.
 * @uid: of the owner.
 * @pid: of the process that created it.
 * @comm: its name.
 * @event_name: as asked for.
 * @steps: as asked for; the names of the columns also when devices are gone.
 * @targets: what the steps use.
 * @channels: values in a row.
 * @started: CLOCK_MONOTONIC at the start.
 * @start_time: the same on the run's clock.
 * @first_due: of the timer's grid, CLOCK_MONOTONIC.
 * @sysfs: its directory.
 */
struct strobe_run {
	struct strobe_ring_header	*header;
	u64				*slots;
	u64				mask;
	u32				stride;
	u32				step_count;
	struct strobe_action		*actions;
	u64				limit;
	u64				slack;
	u64				period;
	bool				is_tai;
	enum strobe_source		source;
	bool				is_slow;
	bool				is_special;
	struct strobe_slow		*slow;

	u64				head;
	u64				triggers;
	u64				due;
	u64				held;
	u64				status;
	u64				last;
	s32				error;
	bool				booked;
	u64				slot;
	u64				row_ticks;
	u32				state;

	u64				wake_at;
	struct irq_work			wake;
	struct hrtimer			timer;

	struct list_head		listener;
	struct list_head		entry;
	struct strobe_event		*event;
	bool				released;
	bool				attached;

	struct mutex			lock;		/* see above */
	spinlock_t			wake_lock;	/* see above */
	struct list_head		readers;
	struct list_head		waiting;
	u32				reader_count;
	struct work_struct		done;
	struct kref			kref;
	struct strobe_ring		ring;
	u32				id;
	bool				is_shared;
	kuid_t				uid;
	pid_t				pid;
	char				comm[TASK_COMM_LEN];
	char				event_name[STROBE_NAME_SIZE];
	struct strobe_entry		*steps;
	struct strobe_target		*targets;
	u32				channels;
	u64				started;
	u64				start_time;
	u64				first_due;
	struct device			*sysfs;
};

/**
 * struct strobe_target - what a step of a run uses, for giving it back.
 * @channel: a channel that is prepared and locked, or
 * @output: an output.
 * @is_used: an earlier step has prepared and locked the channel.
 */
struct strobe_target {
	struct strobe_channel	*channel;
	struct strobe_output	*output;
	bool			is_used;
};

/* main.c */
extern struct mutex strobe_registry;
int strobe_copy_struct(void *to, size_t known, const void __user *from, size_t least);
int strobe_copy_back(void __user *to, const void *from, size_t known);
int strobe_fd_publish(int fd, struct file *file, void __user *to, const void *from, size_t known);

/* registry.c; all under strobe_registry */
extern struct list_head strobe_devices;
extern struct list_head strobe_runs;
extern u64 strobe_generation;
u32 strobe_next_id(void);
struct strobe_channel *strobe_find_channel(const char *name);
struct strobe_output *strobe_find_output(const char *name);
struct strobe_event *strobe_find_event(const char *name);
struct strobe_run *strobe_find_run(u32 id);
void strobe_describe_channel(struct strobe_entry *entry, const struct strobe_channel *channel);
void strobe_describe_output(struct strobe_entry *entry, const struct strobe_output *output);
long strobe_ioctl_list(void __user *arg);

/* create.c */
long strobe_ioctl_create(void __user *arg);

/* run.c */
extern const struct file_operations strobe_owner_fops;
struct strobe_run *strobe_run_new(void);
int strobe_run_use(struct strobe_run *run, struct strobe_create *c);
void strobe_run_unuse(struct strobe_run *run);
void strobe_run_get(struct strobe_run *run);
void strobe_run_put(struct strobe_run *run);
void strobe_run_abort(struct strobe_run *run, int error);
void strobe_describe_run(struct strobe_entry *entry, const struct strobe_run *run);
u64 strobe_run_elapsed(const struct strobe_run *run);
const char *strobe_state_name(u32 state);
void strobe_run_fdinfo(struct seq_file *m, const struct strobe_run *run);

/* row.c; hard; more in row.h */
void strobe_soft_trigger(struct strobe_run *run);
void strobe_miss(struct strobe_run *run, enum strobe_missed cause, u64 count);

/* slow.c; more in row.h */
int strobe_slow_init(struct strobe_run *run, u32 priority);
void strobe_slow_flush(struct strobe_run *run);
void strobe_slow_settle(struct strobe_run *run);
void strobe_slow_free(struct strobe_run *run);
void strobe_slow_await(struct strobe_slow *slow);
void strobe_slow_arrive(struct strobe_slow *slow, u16 column, u64 value, int error);

/* ticket.c */
void strobe_ticket_init(void);
int strobe_ticket_take_place(struct strobe_slow *slow, u16 column);
void strobe_ticket_free_place(u32 place);
u64 strobe_ticket_new(u32 place);
bool strobe_ticket_use(u64 number, u64 value, int error);
void strobe_ticket_give_up(u32 place);

/* timer.c */
void strobe_timer_init(struct strobe_run *run);
void strobe_timer_start(struct strobe_run *run);
void strobe_timer_resume(struct strobe_run *run);
void strobe_timer_stop(struct strobe_run *run);

/* ring.c */
u64 strobe_ring_oldest(u64 head, u64 capacity, u64 limit);
bool strobe_ring_fits(size_t bytes);
int strobe_ring_alloc(struct strobe_ring *ring, size_t bytes);
void strobe_ring_free(struct strobe_ring *ring);
size_t strobe_ring_size(u64 capacity, u32 stride);
int strobe_ring_mmap(struct strobe_ring *ring, struct vm_area_struct *vma);

/* reader.c */
long strobe_ioctl_reader(struct strobe_run *owned, void __user *arg);
void strobe_wake_waiting(struct irq_work *work);
void strobe_wake_all(struct strobe_run *run);

/* register.c */
unsigned int strobe_register_bits(enum strobe_access access);
int strobe_register_check(const struct strobe_register *reg);
void strobe_register_compile(struct strobe_action *action, const struct strobe_register *reg);

/* builtin.c */
int strobe_builtin_init(void);
void strobe_builtin_exit(void);

/* sim.c */
bool strobe_sim_is_hit(u64 n);
int strobe_sim_lock(struct strobe_channel *channel);
int strobe_sim_init(void);
void strobe_sim_exit(void);

/* sim_slow.c */
extern const struct strobe_channel_ops strobe_sim_slow_ops;
extern const struct strobe_channel_ops strobe_sim_async_ops;
extern const struct strobe_channel_ops strobe_sim_next_ops;
void strobe_sim_slow_init(void);
void strobe_sim_slow_reset(void);

/* sysfs.c */
int strobe_sysfs_init(void);
void strobe_sysfs_exit(void);
struct device *strobe_sysfs_add_device(struct strobe_device *device);
struct device *strobe_sysfs_add_run(struct strobe_run *run);
void strobe_sysfs_remove(struct device *sysfs);

#endif /* _STROBE_INTERNAL_H */
