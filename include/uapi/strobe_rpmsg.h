/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * rpmsg endpoints as file descriptors: what strobe_rpmsg.ko adds to the stock
 * calls of <linux/rpmsg.h>. docs/reference/rpmsg.md says what each call does.
 *
 * RPMSG_CREATE_EPT_FD_IOCTL is the call of the series "rpmsg: char: Implement
 * eptdev based on anonymous inode", version 5, to the byte. No kernel has it;
 * should one get it, its own definition is used.
 */
#ifndef _UAPI_STROBE_RPMSG_H
#define _UAPI_STROBE_RPMSG_H

#include <linux/ioctl.h>
#include <linux/rpmsg.h>
#include <linux/types.h>

/* Older systems lack some of the stock calls. */
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

/* Messages that an endpoint holds for its reader, at most. */
#define RPMSG_EPT_QUEUE_MAX		256

/**
 * struct rpmsg_endpoint_stats - what an endpoint has done.
 * @size: in, sizeof() of this structure.
 * @src: out, its local address.
 * @dst: out, where its messages go.
 * @mtu: out, the most bytes that a message to the remote may have; 0: the
 *	transport does not say.
 * @queued: out, messages that wait for read().
 * @reserved: out, 0.
 * @received: out, messages that were queued so far.
 * @dropped: out, messages that came and found no room, and are lost.
 * @sent: out, messages that the transport has taken.
 */
struct rpmsg_endpoint_stats {
	__u32	size;
	__u32	src;
	__u32	dst;
	__u32	mtu;
	__u32	queued;
	__u32	reserved;
	__aligned_u64	received;
	__aligned_u64	dropped;
	__aligned_u64	sent;
};

/* On an endpoint. The number is one of strobe's own: 0xb5 is rpmsg's. */
#define RPMSG_GET_EPT_STATS_IOCTL	_IO(0xDA, 0x40)	/* struct rpmsg_endpoint_stats */

#endif /* _UAPI_STROBE_RPMSG_H */
