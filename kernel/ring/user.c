// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user has of strobe, whatever process has made it: runs, their threads
 * and their memory. So much memory is free for everybody who may open the
 * control device; what is beyond is locked memory of the user, as that of perf
 * and io_uring is. See docs/decisions/0021-bounds-of-a-user.md.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

#include "ring/ring.h"
#include "ring/user.h"

static unsigned int user_runs_max = 256;
module_param(user_runs_max, uint, 0644);
MODULE_PARM_DESC(user_runs_max, "runs that a user without CAP_SYS_RESOURCE may have (default 256)");
static unsigned long user_bytes_free;
module_param(user_bytes_free, ulong, 0644);
MODULE_PARM_DESC(user_bytes_free,
		 "bytes that the runs of a user may take before RLIMIT_MEMLOCK counts; 0: a sixteenth of the memory (default)");

/* Irqsave: taken under ring->lock, which hard interrupts take. */
static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);

static struct strobe_user *find(const struct user_struct *whose)
{
	struct strobe_user *user;

	list_for_each_entry(user, &users, entry)
		if (user->user == whose)
			return user;
	return NULL;
}

/**
 * strobe_user_get() - the account of the caller.
 *
 * Context: process.
 * Return: for strobe_user_put(), or NULL without memory.
 */
struct strobe_user *strobe_user_get(void)
{
	struct strobe_user *made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT), *user;

	scoped_guard(spinlock_irqsave, &users_lock) {
		user = find(current_user());
		if (!user && made) {
			user = made;
			made = NULL;
			user->user = get_uid(current_user());
			mutex_init(&user->turn);
			list_add(&user->entry, &users);
		}
		if (user)
			user->count++;
	}
	kfree(made);
	return user;
}

/**
 * strobe_user_hold() - one more reference.
 * @user: the account.
 *
 * Return: the account.
 */
struct strobe_user *strobe_user_hold(struct strobe_user *user)
{
	scoped_guard(spinlock_irqsave, &users_lock)
		user->count++;
	return user;
}

/**
 * strobe_user_put() - let go of an account.
 * @user: the account, or NULL.
 *
 * Context: process.
 */
void strobe_user_put(struct strobe_user *user)
{
	if (!user)
		return;
	scoped_guard(spinlock_irqsave, &users_lock) {
		if (--user->count)
			return;
		list_del(&user->entry);
	}
	free_uid(user->user);
	mutex_destroy(&user->turn);
	kfree(user);
}

/* Pages of so many bytes that the user has locked. */
static unsigned long locked_of(u64 bytes)
{
	u64 free = READ_ONCE(user_bytes_free) ?: (totalram_pages() << PAGE_SHIFT) / 16;

	return bytes > free ? (bytes - free + PAGE_SIZE - 1) >> PAGE_SHIFT : 0;
}

/* Under users_lock. */
static void set_bytes(struct strobe_user *user, u64 bytes)
{
	unsigned long locked = locked_of(bytes);

	atomic_long_add(locked - user->locked, &user->user->locked_vm);
	user->locked = locked;
	user->bytes = bytes;
}

/* Under users_lock. May the user have so much? */
static bool may_lock(const struct strobe_user *user, u64 bytes)
{
	unsigned long locked = locked_of(bytes);

	return locked <= user->locked ||
	       atomic_long_read(&user->user->locked_vm) + locked - user->locked <=
	       rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

/**
 * strobe_user_charge() - a run more.
 * @user: the caller's account.
 * @bytes: that it takes.
 *
 * Context: process.
 * Return: 0; -EUSERS if there are too many, -ENOSPC if that is too much.
 */
int strobe_user_charge(struct strobe_user *user, u64 bytes)
{
	bool is_many, is_much, is_locked;
	u64 all;

	scoped_guard(spinlock_irqsave, &users_lock) {
		all = user->bytes + bytes;
		is_many = user->runs >= READ_ONCE(user_runs_max);
		is_much = all > strobe_ring_bytes_max() / 2;
		is_locked = !may_lock(user, all);
		if (!is_many && !is_much && !is_locked) {
			user->runs++;
			set_bytes(user, all);
			return 0;
		}
	}
	if (is_many && !capable(CAP_SYS_RESOURCE))
		return -EUSERS;
	if (is_much && !capable(CAP_SYS_RESOURCE))
		return -ENOSPC;
	if (is_locked && !capable(CAP_IPC_LOCK))
		return -ENOSPC;
	scoped_guard(spinlock_irqsave, &users_lock) {
		user->runs++;
		set_bytes(user, user->bytes + bytes);
	}
	return 0;
}

/**
 * strobe_user_uncharge() - a run less.
 * @user: the account.
 * @bytes: that it took.
 */
void strobe_user_uncharge(struct strobe_user *user, u64 bytes)
{
	scoped_guard(spinlock_irqsave, &users_lock) {
		user->runs--;
		set_bytes(user, user->bytes - bytes);
	}
}

/**
 * strobe_user_move() - a run is another's now.
 * @from: whose it was.
 * @to: whose it is, be that too much or not: nothing new can be had then.
 * @bytes: that it takes.
 */
void strobe_user_move(struct strobe_user *from, struct strobe_user *to, u64 bytes)
{
	strobe_user_uncharge(from, bytes);
	scoped_guard(spinlock_irqsave, &users_lock) {
		to->runs++;
		set_bytes(to, to->bytes + bytes);
	}
}

/**
 * strobe_user_add_thread() - a thread of the kernel more that works for a user.
 * @user: the caller's account.
 *
 * It counts with the user's processes. (Not the other way round: who makes
 * processes is not asked for what strobe has.)
 *
 * Context: process.
 * Return: 0, or -EAGAIN beyond RLIMIT_NPROC.
 */
int strobe_user_add_thread(struct strobe_user *user)
{
	u64 processes = get_rlimit_value(current_ucounts(), UCOUNT_RLIMIT_NPROC);
	bool is_many;

	scoped_guard(spinlock_irqsave, &users_lock)
		is_many = processes + ++user->threads > rlimit(RLIMIT_NPROC);
	if (!is_many || capable(CAP_SYS_RESOURCE))
		return 0;
	strobe_user_drop_thread(user);
	return -EAGAIN;
}

/**
 * strobe_user_drop_thread() - a thread less.
 * @user: the account.
 */
void strobe_user_drop_thread(struct strobe_user *user)
{
	scoped_guard(spinlock_irqsave, &users_lock)
		user->threads--;
}
