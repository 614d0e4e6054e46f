/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What lab_ioctl.c and its users agree on. */
#ifndef LAB_IOCTL_H
#define LAB_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define LAB_REGISTERS	10	/* that one call reads at most */

/* One register: 32 bits at @offset bytes of the page. */
struct lab_register {
	__u32	offset;
	__u32	value;
};

/* The registers from @offset on, one after the other. */
struct lab_registers {
	__u32	offset;
	__u32	count;
	__u32	values[LAB_REGISTERS];
};

#define LAB_READ	_IOWR('L', 1, struct lab_register)
#define LAB_WRITE	_IOW('L', 2, struct lab_register)
#define LAB_READ_MANY	_IOWR('L', 3, struct lab_registers)

#endif /* LAB_IOCTL_H */
