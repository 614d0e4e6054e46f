/* SPDX-License-Identifier: GPL-2.0-only */
/* How arguments of ioctls are copied, and files given to their callers. */
#ifndef _STROBE_UABI_H
#define _STROBE_UABI_H

#include <linux/compiler_types.h>
#include <linux/types.h>

struct file;

/* Bytes of a structure of the contract, at most, whatever a page is. */
#define STROBE_SIZE_MAX	4096

int strobe_copy_struct(void *to, size_t known, const void __user *from, size_t least);
void *strobe_copy_array(u64 from, u32 count, size_t known, size_t size);
int strobe_copy_back(void __user *to, const void *from, size_t known);
int strobe_copy_out(void __user *to, size_t size, const void *from, size_t known);
int strobe_fd_publish(int fd, struct file *file, int error);

#endif /* _STROBE_UABI_H */
