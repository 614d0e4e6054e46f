// SPDX-License-Identifier: GPL-2.0-only
/* How arguments of ioctls are copied, and files given to their callers. */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/slab.h>
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
	if (size > STROBE_SIZE_MAX)
		return -E2BIG;
	ret = copy_struct_from_user(to, known, from, size);
	if (ret)
		return ret;
	/* It may have changed between the two looks. */
	*(u32 *)to = size;
	return 0;
}

/**
 * strobe_copy_array() - copy an array of structures from user space.
 * @from: address of the first one.
 * @count: how many.
 * @known: size of one as this module was compiled.
 * @size: size of one as the caller was compiled; at most STROBE_SIZE_MAX.
 *
 * Context: process; user memory may be slow, so no lock is to be held.
 * Return: the array, of @known bytes each, for kvfree(); or -ENOMEM, -EFAULT, or
 * -E2BIG if one has something that is not known.
 */
void *strobe_copy_array(u64 from, u32 count, size_t known, size_t size)
{
	char *to = kvcalloc(count, known, GFP_KERNEL_ACCOUNT);
	int ret;

	if (!to)
		return ERR_PTR(-ENOMEM);
	for (u32 i = 0; i < count; i++) {
		ret = copy_struct_from_user(to + i * known, known,
					    u64_to_user_ptr(from + i * size), size);
		if (ret) {
			kvfree(to);
			return ERR_PTR(ret);
		}
	}
	return to;
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
 * strobe_copy_out() - copy what is only an answer.
 * @to: where to.
 * @size: bytes there; what is not known becomes zero.
 * @from: answer.
 * @known: size as this module was compiled.
 *
 * Return: 0 or -EFAULT.
 */
int strobe_copy_out(void __user *to, size_t size, const void *from, size_t known)
{
	if (copy_to_user(to, from, min(size, known)))
		return -EFAULT;
	return size > known && clear_user(to + known, size - known) ? -EFAULT : 0;
}

/**
 * strobe_fd_publish() - give a file to the caller; the last step of a creation.
 * @fd: its number, from get_unused_fd_flags().
 * @file: the file; consumed.
 * @error: 0 if the answer was copied, which tells its number; else an errno.
 *
 * Nothing can fail after the number was installed: until then the caller has
 * seen nothing, and releasing the file undoes all.
 *
 * Return: @error.
 */
int strobe_fd_publish(int fd, struct file *file, int error)
{
	if (error) {
		put_unused_fd(fd);
		fput(file);
	} else {
		fd_install(fd, file);
	}
	return error;
}
