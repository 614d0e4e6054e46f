/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * <linux/rpmsg.h> for programs that want RPMSG_CREATE_EPT_FD_IOCTL of it, such
 * as those written for version 5 of the series that proposes it. With this
 * directory, and that of strobe_rpmsg.h, in front of the system's headers
 *
 *	cc -I include/compat -I include/uapi ...
 *
 * they compile unchanged. It is the system's header, if there is one, and what
 * that lacks.
 */
#ifndef _COMPAT_LINUX_RPMSG_H
#define _COMPAT_LINUX_RPMSG_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __has_include_next
#if __has_include_next("linux/rpmsg.h")
#include_next <linux/rpmsg.h>
#endif
#endif

#ifndef RPMSG_ADDR_ANY
#define RPMSG_ADDR_ANY		0xFFFFFFFF
#endif

#ifndef RPMSG_CREATE_EPT_IOCTL
/**
 * struct rpmsg_endpoint_info - an endpoint that is wanted as a node.
 * @name: of the service; ends in a NUL.
 * @src: the local address, or RPMSG_ADDR_ANY.
 * @dst: where messages go, or RPMSG_ADDR_ANY.
 */
struct rpmsg_endpoint_info {
	char	name[32];
	__u32	src;
	__u32	dst;
};

#define RPMSG_CREATE_EPT_IOCTL	_IOW(0xb5, 0x1, struct rpmsg_endpoint_info)
#define RPMSG_DESTROY_EPT_IOCTL	_IO(0xb5, 0x2)
#endif

#include <strobe_rpmsg.h>

#endif /* _COMPAT_LINUX_RPMSG_H */
