/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * rpmsg endpoints as file descriptors: the calls of strobe_rpmsg.ko that are
 * strobe's own. docs/reference/rpmsg.md says what each does.
 *
 *   fd = open("/dev/strobe_rpmsg0")    the control node of a channel
 *     STROBE_RPMSG_CREATE -> file      an endpoint; closing it ends the endpoint
 *       read, write, poll              one message a call
 *       STROBE_RPMSG_STATS             what it is, and what it has done
 *
 * The rules for size, reserved fields and errors are those of strobe.h.
 *
 * A control node and an endpoint also know the calls of the stock driver, by the
 * numbers and names of <linux/rpmsg.h>, and the control node one that a series
 * has proposed for it: include/compat/linux/rpmsg.h. None of that is needed for
 * what is here.
 */
#ifndef _UAPI_STROBE_RPMSG_H
#define _UAPI_STROBE_RPMSG_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Any address will do; as a destination: none. */
#define STROBE_RPMSG_ADDR_ANY		0xFFFFFFFFU
/* Bytes of a service's name, its NUL included. */
#define STROBE_RPMSG_NAME_SIZE		32
/* Messages that an endpoint holds for its reader, at most. */
#define STROBE_RPMSG_QUEUE_MAX		256

/* "flags" of struct strobe_rpmsg_create: one of the first two, or both. */
#define STROBE_RPMSG_READ		(1U << 0)
#define STROBE_RPMSG_WRITE		(1U << 1)
#define STROBE_RPMSG_NONBLOCK		(1U << 2)

/**
 * struct strobe_rpmsg_create - an endpoint that is wanted as a file.
 * @size: in, sizeof() of this structure.
 * @flags: in, STROBE_RPMSG_READ and so on.
 * @name: in, of the service; ends in a NUL.
 * @src: in, its own address, or STROBE_RPMSG_ADDR_ANY.
 * @dst: in, where its messages go, or STROBE_RPMSG_ADDR_ANY.
 * @reserved: in, 0.
 * @fd: out, the file; close-on-exec.
 * @address: out, its own address, which it was given or has asked for.
 * @mtu: out, the most bytes that a message may have; 0: the transport does not
 *	say.
 *
 * The answers are not looked at. They are written if the call succeeds.
 */
struct strobe_rpmsg_create {
	__u32	size;
	__u32	flags;
	char	name[STROBE_RPMSG_NAME_SIZE];
	__u32	src;
	__u32	dst;
	__u32	reserved;
	__s32	fd;
	__u32	address;
	__u32	mtu;
};

/* "state" of struct strobe_rpmsg_stats. */
#define STROBE_RPMSG_GONE	(1U << 0)	/* nothing will come any more */
#define STROBE_RPMSG_PAUSED	(1U << 1)	/* the remote wants no messages now */

/**
 * struct strobe_rpmsg_stats - what an endpoint is, and what it has done.
 * @size: in, sizeof() of this structure.
 * @state: out, STROBE_RPMSG_GONE and so on.
 * @address: out, its own address.
 * @dst: out, where its messages go.
 * @mtu: out, as in struct strobe_rpmsg_create.
 * @queued: out, messages that wait for read().
 * @received: out, messages that were queued so far.
 * @dropped: out, messages that came and found no room, and are lost.
 * @sent: out, messages that the transport has taken.
 */
struct strobe_rpmsg_stats {
	__u32	size;
	__u32	state;
	__u32	address;
	__u32	dst;
	__u32	mtu;
	__u32	queued;
	__aligned_u64	received;
	__aligned_u64	dropped;
	__aligned_u64	sent;
};

/* As in strobe.h, which has the numbers 0x00 to 0x1f. Those from 0x20 are here. */
#define STROBE_RPMSG_IOC_MAGIC	0xDA

/* On a control node, with struct strobe_rpmsg_create. */
#define STROBE_RPMSG_CREATE	_IO(STROBE_RPMSG_IOC_MAGIC, 0x20)
/* On an endpoint, with struct strobe_rpmsg_stats. */
#define STROBE_RPMSG_STATS	_IO(STROBE_RPMSG_IOC_MAGIC, 0x21)

#endif /* _UAPI_STROBE_RPMSG_H */
