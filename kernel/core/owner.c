// SPDX-License-Identifier: GPL-2.0-only
/* The owner fd of a run: STROBE_CONTROL and what others have too, and its end when it is closed. */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "core/internal.h"
#include "events/events.h"
#include "uabi.h"

static long ioctl_control(struct strobe_run *run, void __user *arg)
{
	struct strobe_control c;
	struct strobe_look look;
	int ret, copied;

	ret = strobe_copy_struct(&c, sizeof(c), arg, sizeof(c));
	if (ret)
		return ret;
	if (c.flags || c.reserved || c.op > STROBE_TRIGGER)
		return -EINVAL;
	if (c.op == STROBE_TRIGGER ? !c.count || c.count > STROBE_TRIGGER_MAX : c.count)
		return -EINVAL;
	/* An answer that has no room would come too late to change nothing. */
	ret = strobe_copy_back(arg, &c, sizeof(c));
	if (ret)
		return ret;
	c.cause = 0;
	if (c.op == STROBE_TRIGGER)
		ret = strobe_soft_triggers(run, c.count);
	else if (c.op != STROBE_STATUS)
		ret = strobe_run_control(run, c.op, &c.cause);
	if (ret != -ENODEV)
		c.cause = 0;
	look = strobe_look_at(run);
	c.state = look.state;
	c.error = look.error;
	c.head = look.head;
	c.triggers = look.triggers;
	c.skipped = look.skipped;
	copied = strobe_copy_back(arg, &c, sizeof(c));
	return ret ?: copied;
}

static long owner_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_run *run = file->private_data;

	switch (cmd) {
	case STROBE_CONTROL:
		return ioctl_control(run, (void __user *)arg);
	case STROBE_READER:
		return strobe_ioctl_reader(run, (void __user *)arg);
	case STROBE_TUNE:
		return strobe_ioctl_tune(run, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int owner_release(struct inode *inode, struct file *file)
{
	struct strobe_run *run = file->private_data;

	strobe_run_leave(run);
	strobe_run_put(run);
	return 0;
}

static void owner_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct strobe_run *run = file->private_data;

	strobe_run_fdinfo(m, &run->ring);
}

const struct file_operations strobe_owner_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= owner_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= owner_show_fdinfo,
	.release	= owner_release,
	.llseek		= noop_llseek,
};
