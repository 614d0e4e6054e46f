// SPDX-License-Identifier: GPL-2.0-only
/* How arguments of ioctls are copied, and files given to their callers. */
#include <linux/file.h>
#include <linux/uaccess.h>

#include "uabi.h"

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
