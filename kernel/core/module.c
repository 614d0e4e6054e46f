// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe.ko: on every event, read a set of channels from any devices into one
 * row, and lose nothing silently. This file: the module, the control device
 * /dev/strobe, and what its ioctls share. internal.h has the map of the rest.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "row/budget.h"
#include "core/internal.h"

#define CREATE_TRACE_POINTS
#include "row/trace.h"

/* Devices, runs, use counts, changes of state: see internal.h. */
DEFINE_MUTEX(strobe_registry);

/**
 * strobe_copy_struct() - copy an argument that begins with its size.
 * @to: where to; @known bytes, what the caller's is short of becomes zero.
 * @known: size as this module was compiled.
 * @from: argument.
 * @least: size of the structure's first version.
 *
 * Return: 0, -EFAULT, -EINVAL for a size below @least, -E2BIG if there is
 * something that is not known.
 */
int strobe_copy_struct(void *to, size_t known, const void __user *from, size_t least)
{
	u32 size;
	int ret;

	if (get_user(size, (const u32 __user *)from))
		return -EFAULT;
	if (size < least)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(to, known, from, size);
	if (ret)
		return ret;
	/* It may have changed between the two looks. */
	*(u32 *)to = size;
	return 0;
}

/**
 * strobe_copy_back() - copy an answer.
 * @to: argument.
 * @from: answer; begins with the size that the caller said.
 * @known: size as this module was compiled.
 *
 * Return: 0 or -EFAULT.
 */
int strobe_copy_back(void __user *to, const void *from, size_t known)
{
	size_t size = min_t(size_t, *(const u32 *)from, known);

	return copy_to_user(to, from, size) ? -EFAULT : 0;
}

/**
 * strobe_fd_publish() - give a file to the caller; the last step of a creation.
 * @fd: its number, from get_unused_fd_flags(); also in @from.
 * @file: the file; consumed.
 * @to: argument.
 * @from: answer.
 * @known: size of the answer.
 *
 * Nothing can fail after the number was installed: until then the caller has
 * seen nothing, and releasing the file undoes all.
 *
 * Return: 0 or -EFAULT.
 */
int strobe_fd_publish(int fd, struct file *file, void __user *to, const void *from, size_t known)
{
	int ret = strobe_copy_back(to, from, known);

	if (ret) {
		put_unused_fd(fd);
		fput(file);
		return ret;
	}
	fd_install(fd, file);
	return 0;
}

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

static int __init strobe_init(void)
{
	int ret;

	ret = strobe_budget_init();
	if (ret)
		return ret;
	ret = strobe_sysfs_init();
	if (ret)
		return ret;
	strobe_ticket_init();
	ret = strobe_builtin_init();
	if (ret)
		goto sysfs;
	ret = strobe_sim_init();
	if (ret)
		goto builtin;
	ret = misc_register(&control);
	if (ret)
		goto sim;
	return 0;

sim:
	strobe_sim_exit();
builtin:
	strobe_builtin_exit();
sysfs:
	strobe_sysfs_exit();
	return ret;
}

static void __exit strobe_exit(void)
{
	misc_deregister(&control);
	strobe_sim_exit();
	strobe_builtin_exit();
	strobe_sysfs_exit();
}

module_init(strobe_init);
module_exit(strobe_exit);
MODULE_DESCRIPTION("Reads channels of any devices into one row on every event");
MODULE_LICENSE("GPL");
