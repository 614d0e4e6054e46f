/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of core/ share:
 *
 *   control.c    the control device, its ioctls
 *   devices.c    devices and their channels, outputs, events
 *   catalogue.c  STROBE_LIST
 *   create.c     STROBE_CREATE
 *   program.c    what STROBE_CREATE does if there is a program
 *   compile.c    steps by name become channels and outputs
 *   actions.c    these become what a row does
 *   use.c        the devices of a run: taken, given back
 *   run.c        life of a run
 *   producer.c   what makes its rows: let it begin, make it silent
 *   look.c       what is said of a run
 *   power.c      the machine is suspended, and wakes
 *   owner.c      owner fd, STROBE_CONTROL
 *   attach.c     STROBE_READER
 *   tune.c       STROBE_TUNE
 *   follow.c     rows of a run as events and channels of another one
 *   follow_rows.c  what they trigger
 *   bounds.c     what a run may cost others
 *   sysfs.c      /sys/class/strobe
 */
#ifndef _STROBE_INTERNAL_H
#define _STROBE_INTERNAL_H

#include <linux/fs.h>

#include "row/run.h"

struct strobe_given;

/* devices.c; all under strobe_registry */
extern struct mutex strobe_registry;
extern struct list_head strobe_devices;
extern struct list_head strobe_runs;
extern u64 strobe_generation;
extern struct wait_queue_head strobe_catalogue_queue;
void strobe_catalogue_changed(void);
struct strobe_channel *strobe_find_channel(const char *name);
struct strobe_output *strobe_find_output(const char *name);
struct strobe_event *strobe_find_event(const char *name);
struct strobe_run *strobe_find_run(u32 id);

/* catalogue.c */
void strobe_describe_channel(struct strobe_entry *entry, const struct strobe_channel *channel);
u32 strobe_accounting_flags(struct strobe_event *event);
void strobe_describe_output(struct strobe_entry *entry, const struct strobe_output *output);
long strobe_ioctl_list(void __user *arg, u64 *seen);

/* control.c */
int strobe_control_init(void);
void strobe_control_exit(void);

/* create.c */
static inline int strobe_refuse(struct strobe_created *answer, enum strobe_why why, int error)
{
	answer->why = why;
	return error;
}

long strobe_ioctl_create(void __user *arg, bool may_write);

/* compile.c */
int strobe_compile(struct strobe_run *run, const struct strobe_step *steps, u32 count,
		   const struct strobe_given *given, struct strobe_created *answer);

/* program.c */
int strobe_program_size(const struct strobe_program *about, u32 steps,
			struct strobe_created *answer);
int strobe_program_is_good(const struct strobe_given *given, struct strobe_created *answer);
int strobe_program_take(struct strobe_run *run, const struct strobe_given *given,
			struct strobe_created *answer);
int strobe_program_fits(const struct strobe_run *run, const struct strobe_given *given,
			struct strobe_created *answer);

/* actions.c */
int strobe_actions_make(struct strobe_run *run);

/* use.c; under strobe_registry */
int strobe_run_use(struct strobe_run *run, struct strobe_created *answer);
void strobe_run_unuse(struct strobe_run *run);

/* bounds.c; under strobe_registry */
int strobe_take_thread(struct strobe_run *run);
void strobe_give_thread(struct strobe_run *run);
int strobe_check_cost(struct strobe_run *run, u32 count, u64 program);
int strobe_take_timer(struct strobe_run *run, int cpu);

/* run.c */
int strobe_run_init(void);
void strobe_run_exit(void);
struct strobe_run *strobe_run_new(void);
void strobe_run_get(struct strobe_run *run);
void strobe_run_put(struct strobe_run *run);
int strobe_run_control(struct strobe_run *run, u32 op, s32 *cause);
void strobe_run_abort(struct strobe_run *run, int error);
void strobe_run_leave(struct strobe_run *run);
void strobe_run_suspend(struct strobe_run *run);
void strobe_run_wake(struct strobe_run *run);

/* producer.c; under run->lock */
int strobe_producer_attach(struct strobe_run *run, bool resume, s32 *cause);
void strobe_producer_detach(struct strobe_run *run);
void strobe_producer_slept(struct strobe_run *run);

/* power.c */
extern bool strobe_asleep;
int strobe_power_init(void);
void strobe_power_exit(void);

/* look.c */

/**
 * struct strobe_look - a state and counters that go together.
 * @state: enum strobe_state.
 * @error: negative errno of a FAILED run.
 * @head: rows made.
 * @triggers: triggers known.
 * @skipped: triggers left out on purpose.
 */
struct strobe_look {
	u32	state;
	s32	error;
	u64	head;
	u64	triggers;
	u64	skipped;
};

/* Counters are of slightly different moments, while the run goes on. */
static inline u64 strobe_look_missed(const struct strobe_look *look)
{
	u64 accounted = look->head + look->skipped;

	return look->triggers > accounted ? look->triggers - accounted : 0;
}

struct strobe_look strobe_look_at(const struct strobe_run *run);
u64 strobe_run_elapsed(const struct strobe_run *run);
const char *strobe_state_name(u32 state);
void strobe_describe_run(struct strobe_entry *entry, const struct strobe_run *run);
void strobe_run_fdinfo(struct seq_file *m, struct strobe_ring *ring);

/* owner.c */
extern const struct file_operations strobe_owner_fops;

/* attach.c */
bool strobe_run_allows(const struct strobe_run *run, bool only_read);
struct strobe_run *strobe_run_by_id(u32 id, bool only_read);
long strobe_ioctl_reader(struct strobe_run *owned, void __user *arg);

/* tune.c */
long strobe_ioctl_tune(struct strobe_run *owned, void __user *arg);

/* follow.c */
bool strobe_is_follow(const char *name);
u64 strobe_follow_bytes(u32 names);
struct strobe_event *strobe_follow_event(struct strobe_run *run, const char *name);
struct strobe_channel *strobe_follow_channel(struct strobe_run *run, const char *name);
void strobe_follow_free(struct strobe_run *run);

/* sysfs.c */
int strobe_sysfs_init(void);
void strobe_sysfs_exit(void);
struct device *strobe_sysfs_add_device(struct strobe_device *device);
struct device *strobe_sysfs_add_run(struct strobe_run *run);
void strobe_sysfs_remove(struct device *sysfs);

#endif /* _STROBE_INTERNAL_H */
