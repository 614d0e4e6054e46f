// SPDX-License-Identifier: GPL-2.0-only
/* STROBE_READER: somebody gets a ring fd of a run. Also: runs by their ids. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/uaccess.h>

#include "core/internal.h"
#include "ring/user.h"
#include "uabi.h"

/**
 * strobe_run_allows() - may the caller have this run?
 * @run: the run.
 * @only_read: no more of it than its rows.
 *
 * Context: process.
 */
bool strobe_run_allows(const struct strobe_run *run, bool only_read)
{
	return (only_read && run->is_shared) || uid_eq(current_fsuid(), run->uid) ||
	       capable(CAP_SYS_ADMIN);
}

/**
 * strobe_run_by_id() - somebody's run.
 * @id: its id.
 * @only_read: the caller wants no more than its rows.
 *
 * Context: process.
 * Return: the run, with a reference; -ENOENT; -EACCES if the caller may not.
 */
struct strobe_run *strobe_run_by_id(u32 id, bool only_read)
{
	struct strobe_run *run;

	guard(mutex)(&strobe_registry);
	run = strobe_find_run(id);
	if (!run)
		return ERR_PTR(-ENOENT);
	if (!strobe_run_allows(run, only_read))
		return ERR_PTR(-EACCES);
	strobe_run_get(run);
	return run;
}

/* On the owner fd it is the owner's, whoever was given that. */
static struct file *open_reader(struct strobe_run *run, bool owned, const struct strobe_reader *r)
{
	struct strobe_user *user = owned ? strobe_user_hold(run->ring.owner) : strobe_user_get();
	struct file *file;

	if (!user)
		return ERR_PTR(-ENOMEM);
	file = strobe_reader_open(&run->ring, user, r->first, r->flags & STROBE_NONBLOCK);
	strobe_user_put(user);
	return file;
}

/**
 * strobe_ioctl_reader() - STROBE_READER.
 * @owned: the run, on an owner fd; NULL on the control device.
 * @arg: struct strobe_reader.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_ioctl_reader(struct strobe_run *owned, void __user *arg)
{
	struct strobe_reader r;
	struct strobe_run *run;
	struct file *file;
	int ret;

	ret = strobe_copy_struct(&r, sizeof(r), arg, sizeof(r));
	if (ret)
		return ret;
	if (r.flags & ~STROBE_NONBLOCK || r.reserved || (owned && r.run))
		return -EINVAL;
	if (owned) {
		run = owned;
		strobe_run_get(run);
	} else {
		run = strobe_run_by_id(r.run, true);
		if (IS_ERR(run))
			return PTR_ERR(run);
	}
	r.channels = run->channels;
	r.outputs = run->outputs;
	r.row_size = run->ring.row_size;
	r.ring_bytes = run->ring.bytes;
	r.fd = get_unused_fd_flags(O_CLOEXEC);
	if (r.fd < 0) {
		strobe_run_put(run);
		return r.fd;
	}
	file = open_reader(run, owned, &r);
	/* The file has a reference of its own. */
	strobe_run_put(run);
	if (IS_ERR(file)) {
		put_unused_fd(r.fd);
		return PTR_ERR(file);
	}
	return strobe_fd_publish(r.fd, file, strobe_copy_back(arg, &r, sizeof(r)));
}
