/* SPDX-License-Identifier: GPL-2.0-only */
/* What one user has of strobe: see user.c. */
#ifndef _STROBE_USER_H
#define _STROBE_USER_H

#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct user_struct;

/**
 * struct strobe_user - an account.
 * @entry: in the list of accounts.
 * @user: whose it is; a reference.
 * @count: references to this.
 * @runs: runs that are charged.
 * @threads: threads of theirs.
 * @bytes: memory of theirs.
 * @locked: pages of it that are locked memory of the user.
 *
 * All of them under one lock, see user.c.
 *
 * @turn: one of the user's processes at a time waits for strobe_registry, where
 *	that is held for more than a moment: else many of them would make others
 *	wait for all. Outermost but for run->lock.
 */
struct strobe_user {
	struct list_head	entry;
	struct user_struct	*user;
	u32			count;
	u32			runs;
	u32			threads;
	u64			bytes;
	unsigned long		locked;
	struct mutex		turn;	/* see above */
};

struct strobe_user *strobe_user_get(void);
struct strobe_user *strobe_user_hold(struct strobe_user *user);
void strobe_user_put(struct strobe_user *user);
DEFINE_FREE(strobe_user, struct strobe_user *, strobe_user_put(_T))
int strobe_user_charge(struct strobe_user *user, u64 bytes);
void strobe_user_uncharge(struct strobe_user *user, u64 bytes);
void strobe_user_move(struct strobe_user *from, struct strobe_user *to, u64 bytes);
int strobe_user_add_thread(struct strobe_user *user);
void strobe_user_drop_thread(struct strobe_user *user);

#endif /* _STROBE_USER_H */
