/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * <linux/rpmsg.h> for programs that want RPMSG_CREATE_EPT_FD_IOCTL of it: the
 * call of the series "rpmsg: char: Implement eptdev based on anonymous inode",
 * version 5, to the byte. No kernel has it; should one get it, its own
 * definition is used, and the number means what it means there. Programs that
 * are written for strobe use STROBE_RPMSG_CREATE of strobe_rpmsg.h.
 *
 * With this directory in front of the system's headers
 *
 *	cc -I include/compat ...
 *
 * programs for the series compile unchanged. It is the system's header, if there
 * is one, and what that lacks.
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
 * struct rpmsg_endpoint_info - an endpoint that is wanted as a node, or a channel.
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

/* Older systems lack some of the stock calls. */
#ifndef RPMSG_CREATE_DEV_IOCTL
#define RPMSG_CREATE_DEV_IOCTL	_IOW(0xb5, 0x3, struct rpmsg_endpoint_info)
#endif
#ifndef RPMSG_RELEASE_DEV_IOCTL
#define RPMSG_RELEASE_DEV_IOCTL	_IOW(0xb5, 0x4, struct rpmsg_endpoint_info)
#endif
#ifndef RPMSG_GET_OUTGOING_FLOWCONTROL
#define RPMSG_GET_OUTGOING_FLOWCONTROL	_IOR(0xb5, 0x5, int)
#endif
#ifndef RPMSG_SET_INCOMING_FLOWCONTROL
#define RPMSG_SET_INCOMING_FLOWCONTROL	_IOR(0xb5, 0x6, int)
#endif

#ifndef RPMSG_CREATE_EPT_FD_IOCTL
/**
 * struct rpmsg_endpoint_fd_info - an endpoint that is wanted as a file.
 * @name: in, of the service; ends in a NUL.
 * @src: in, the local address, or RPMSG_ADDR_ANY; out, the one it has got.
 * @dst: in, where messages go, or RPMSG_ADDR_ANY.
 * @flags: in, O_RDONLY, O_WRONLY or O_RDWR, and O_NONBLOCK, O_CLOEXEC.
 * @fd: out, the file.
 *
 * Who makes a second endpoint of the same structure sets @src anew.
 */
struct rpmsg_endpoint_fd_info {
	char	name[32];
	__u32	src;
	__u32	dst;
	__u32	flags;
	__s32	fd;
};

/* On the control node: creates an endpoint. */
#define RPMSG_CREATE_EPT_FD_IOCTL	_IOWR(0xb5, 0x7, struct rpmsg_endpoint_fd_info)
#endif

#endif /* _COMPAT_LINUX_RPMSG_H */
