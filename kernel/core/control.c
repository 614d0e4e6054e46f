// SPDX-License-Identifier: GPL-2.0-only
/* The control device /dev/strobe. */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "core/internal.h"

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case STROBE_LIST:
		return strobe_ioctl_list(p);
	case STROBE_CREATE:
		return strobe_ioctl_create(p);
	case STROBE_READER:
		return strobe_ioctl_reader(NULL, p);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations control_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= control_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice control = {
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
	return misc_register(&control);
}

/**
 * strobe_control_exit() - remove it.
 */
void strobe_control_exit(void)
{
	misc_deregister(&control);
}
