// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control device /dev/strobe. Whoever may open it for reading may look; a run
 * can write outputs, so that making one needs an open for writing.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "computer/computer.h"
#include "core/internal.h"
#include "uabi.h"

/**
 * struct control_file - an open file of the control device.
 * @seen: generation of the catalogue that it has got last; 0: none. Written by
 *	STROBE_LIST, read by poll.
 */
struct control_file {
	u64	seen;
};

static long ioctl_features(void __user *arg)
{
	struct strobe_features f;
	int ret;

	ret = strobe_copy_struct(&f, sizeof(f), arg, sizeof(f));
	if (ret)
		return ret;
	if (f.flags)
		return -EINVAL;
	f.major = STROBE_RING_MAJOR;
	f.minor = STROBE_RING_MINOR;
	f.create_flags = STROBE_DRY_RUN | STROBE_SHARED;
	f.reader_flags = STROBE_NONBLOCK;
	f.incompat = STROBE_INCOMPAT_FAULTS | STROBE_INCOMPAT_SKIPPED;
	f.causes = BIT(STROBE_MISSED_OVERRUN) | BIT(STROBE_MISSED_BUSY) |
		   BIT(STROBE_MISSED_THROTTLED) | BIT(STROBE_MISSED_SOURCE) |
		   BIT(STROBE_MISSED_SUSPENDED);
	f.steps_max = STROBE_STEPS_MAX;
	if (strobe_programs_allowed())
		f.features = STROBE_FEATURE_PROGRAMS | STROBE_FEATURE_ACT | STROBE_FEATURE_TUNE;
	else
		f.features = 0;
	f.features |= STROBE_FEATURE_FOLLOW;
	return strobe_copy_back(arg, &f, sizeof(f));
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct control_file *control = file->private_data;
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case STROBE_FEATURES:
		return ioctl_features(p);
	case STROBE_LIST:
		return strobe_ioctl_list(p, &control->seen);
	case STROBE_CREATE:
		return strobe_ioctl_create(p, file->f_mode & FMODE_WRITE);
	case STROBE_READER:
		return strobe_ioctl_reader(NULL, p);
	case STROBE_TUNE:
		return file->f_mode & FMODE_WRITE ? strobe_ioctl_tune(NULL, p) : -EBADF;
	default:
		return -ENOTTY;
	}
}

static __poll_t control_poll(struct file *file, poll_table *wait)
{
	struct control_file *control = file->private_data;

	poll_wait(file, &strobe_catalogue_queue, wait);
	if (READ_ONCE(control->seen) == READ_ONCE(strobe_generation))
		return 0;
	return EPOLLIN | EPOLLRDNORM;
}

static int control_open(struct inode *inode, struct file *file)
{
	struct control_file *control = kzalloc(sizeof(*control), GFP_KERNEL_ACCOUNT);

	if (!control)
		return -ENOMEM;
	file->private_data = control;
	return 0;
}

static int control_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static const struct file_operations control_fops = {
	.owner		= THIS_MODULE,
	.open		= control_open,
	.release	= control_release,
	.poll		= control_poll,
	.unlocked_ioctl	= control_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice control_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "strobe",
	.fops	= &control_fops,
	.mode	= 0660,
};

/**
 * strobe_control_init() - from now on there is /dev/strobe.
 */
int strobe_control_init(void)
{
	return misc_register(&control_device);
}

/**
 * strobe_control_exit() - remove it.
 */
void strobe_control_exit(void)
{
	misc_deregister(&control_device);
}
