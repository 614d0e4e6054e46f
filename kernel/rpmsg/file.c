// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of an endpoint, with a node or without: read() takes one message,
 * write() sends one, poll() waits. What happens to the channel changes no more
 * than what it answers.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "rpmsg.h"

/* A message to a transport that does not say how much it takes. */
#define LENGTH_MAX	SZ_64K
/* First version of struct strobe_rpmsg_stats. */
#define STATS_LEAST	offsetofend(struct strobe_rpmsg_stats, sent)
/* A structure of a later version, at most; also where a page is larger. */
#define SIZE_MAX_IN	4096
/* How often who waits for room tries again, ns: not every transport tells when it has some. */
#define ROOM_EVERY	NSEC_PER_MSEC

/**
 * strobe_rpmsg_file_read() - take a message.
 * @io: the call, of the endpoint's file.
 * @to: where to.
 *
 * Context: process.
 * Return: bytes of the message; -EPIPE if none will come; another errno.
 */
ssize_t strobe_rpmsg_file_read(struct kiocb *io, struct iov_iter *to)
{
	struct strobe_rpmsg_endpoint *endpoint = io->ki_filp->private_data;
	bool may_wait = !(io->ki_filp->f_flags & O_NONBLOCK || io->ki_flags & IOCB_NOWAIT);
	ssize_t ret;

	for (;;) {
		/* Before the queue: what is not there then never comes. */
		bool gone = strobe_rpmsg_endpoint_is_gone(endpoint);

		ret = strobe_rpmsg_queue_take(&endpoint->queue, to, may_wait);
		if (ret != -EAGAIN)
			return ret;
		/* Another reader may be at what is there. */
		if (gone && strobe_rpmsg_queue_is_empty(&endpoint->queue))
			return -EPIPE;
		if (!may_wait)
			return -EAGAIN;
		if (wait_event_interruptible(endpoint->wait,
					     strobe_rpmsg_endpoint_is_gone(endpoint) ||
					     !strobe_rpmsg_queue_is_empty(&endpoint->queue)))
			return -ERESTARTSYS;
	}
}

/* -EAGAIN: the transport has no room now. @ept stays while @using is held. */
static int try_send(struct strobe_rpmsg_endpoint *endpoint, void *data, size_t length,
		    bool may_wait)
{
	u32 dst = endpoint->info.dst;
	int ret = -EPIPE;

	if (may_wait) {
		if (down_read_interruptible(&endpoint->using))
			return -ERESTARTSYS;
	} else if (!down_read_trylock(&endpoint->using)) {
		return -EAGAIN;
	}
	if (endpoint->ept) {
		ret = rpmsg_trysendto(endpoint->ept, data, length, dst);
		/*
		 * glink asks the remote for a buffer (-EBUSY), and cuts long
		 * messages (-EINVAL), only for who may wait. What it says then
		 * is its last word.
		 */
		if (may_wait && (ret == -EBUSY || ret == -EINVAL)) {
			ret = rpmsg_sendto(endpoint->ept, data, length, dst);
			if (ret == -EAGAIN)
				ret = -ENOBUFS;
		} else if (ret == -ENOMEM || ret == -EBUSY) {
			/* virtio has no buffer; glink's remote has none. */
			ret = -EAGAIN;
		}
	}
	up_read(&endpoint->using);
	return ret;
}

/*
 * Who waits for room does so here, not in rpmsg_sendto(): virtio does not let
 * go of who has got a signal, and any transport would keep who takes the
 * endpoint away waiting.
 */
static int send(struct strobe_rpmsg_endpoint *endpoint, void *data, size_t length, bool may_wait)
{
	int ret;

	while ((ret = try_send(endpoint, data, length, may_wait)) == -EAGAIN && may_wait)
		if (wait_event_interruptible_hrtimeout(endpoint->room,
						       strobe_rpmsg_endpoint_is_gone(endpoint),
						       ROOM_EVERY) == -ERESTARTSYS)
			return -ERESTARTSYS;
	return ret;
}

/**
 * strobe_rpmsg_file_write() - send a message.
 * @io: the call, of the endpoint's file.
 * @from: its bytes.
 *
 * Context: process.
 * Return: how many they are; -EPIPE if the endpoint has gone; another errno.
 */
ssize_t strobe_rpmsg_file_write(struct kiocb *io, struct iov_iter *from)
{
	struct strobe_rpmsg_endpoint *endpoint = io->ki_filp->private_data;
	bool may_wait = !(io->ki_filp->f_flags & O_NONBLOCK || io->ki_flags & IOCB_NOWAIT);
	size_t length = iov_iter_count(from);
	void *data;
	int ret;

	if (strobe_rpmsg_endpoint_is_gone(endpoint))
		return -EPIPE;
	/* virtio would say so in the kernel's log, each time. */
	if (endpoint->info.dst == RPMSG_ADDR_ANY && endpoint->channel->is_addressed)
		return -EDESTADDRREQ;
	if (length > (endpoint->mtu ?: LENGTH_MAX))
		return -EMSGSIZE;
	data = kmalloc(length, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	ret = copy_from_iter_full(data, length, from) ?
		send(endpoint, data, length, may_wait) : -EFAULT;
	kfree(data);
	if (ret < 0)
		return ret;
	atomic64_inc(&endpoint->sent);
	return length;
}

/**
 * strobe_rpmsg_file_poll() - what the endpoint is ready for.
 * @file: its file.
 * @wait: who waits.
 *
 * Context: process.
 * Return: EPOLLIN, EPOLLOUT, EPOLLPRI, and EPOLLHUP and EPOLLERR when it has gone.
 */
__poll_t strobe_rpmsg_file_poll(struct file *file, poll_table *wait)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &endpoint->wait, wait);
	/* H, pairs with G in news(): without it both could overlook the other. */
	smp_mb();
	if (strobe_rpmsg_endpoint_is_gone(endpoint))
		mask |= EPOLLHUP | EPOLLERR;
	if (!strobe_rpmsg_queue_is_empty(&endpoint->queue))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(endpoint->pause_is_new))
		mask |= EPOLLPRI;
	/* Who takes it away may wait for one who sends; it will wake us. */
	if (!down_read_trylock(&endpoint->using))
		return mask;
	if (endpoint->ept)
		mask |= strobe_rpmsg_endpoint_poll(endpoint, file);
	up_read(&endpoint->using);
	return mask;
}

static long get_pause(struct strobe_rpmsg_endpoint *endpoint, int __user *arg)
{
	WRITE_ONCE(endpoint->pause_is_new, false);
	/*
	 * I, pairs with J in on_pause(): without them a change could be neither
	 * what is answered here nor news.
	 */
	smp_mb();
	return put_user(READ_ONCE(endpoint->is_paused), arg);
}

static long set_pause(struct strobe_rpmsg_endpoint *endpoint, unsigned long pause)
{
	if (pause > 1)
		return -EINVAL;
	guard(rwsem_read)(&endpoint->using);
	if (!endpoint->ept)
		return -EPIPE;
	return rpmsg_set_flow_control(endpoint->ept, pause, endpoint->info.dst);
}

/**
 * strobe_rpmsg_file_copy_in() - a structure that begins with its size.
 * @to: where to.
 * @room: its size here.
 * @least: of its first version.
 * @arg: the caller's.
 *
 * Context: process.
 * Return: its size there; -EINVAL if that is too small, -E2BIG if it is larger
 * than any will be or has something that is not known here, -EFAULT.
 */
int strobe_rpmsg_file_copy_in(void *to, size_t room, size_t least, const void __user *arg)
{
	u32 size;
	int ret;

	if (get_user(size, (const u32 __user *)arg))
		return -EFAULT;
	if (size < least)
		return -EINVAL;
	if (size > SIZE_MAX_IN)
		return -E2BIG;
	ret = copy_struct_from_user(to, room, arg, size);
	return ret ?: size;
}

static long get_stats(struct strobe_rpmsg_endpoint *endpoint, void __user *arg)
{
	struct strobe_rpmsg_stats stats;
	int size = strobe_rpmsg_file_copy_in(&stats, sizeof(stats), STATS_LEAST, arg);

	if (size < 0)
		return size;
	stats = (struct strobe_rpmsg_stats){
		.size		= size,
		.address	= endpoint->info.src,
		.dst		= endpoint->info.dst,
		.mtu		= endpoint->mtu,
		.queued		= strobe_rpmsg_queue_count(&endpoint->queue),
		.received	= atomic64_read(&endpoint->received),
		.dropped	= atomic64_read(&endpoint->dropped),
		.sent		= atomic64_read(&endpoint->sent),
	};
	if (strobe_rpmsg_endpoint_is_gone(endpoint))
		stats.state |= STROBE_RPMSG_GONE;
	if (READ_ONCE(endpoint->is_paused))
		stats.state |= STROBE_RPMSG_PAUSED;
	return copy_to_user(arg, &stats, min_t(size_t, size, sizeof(stats))) ? -EFAULT : 0;
}

/**
 * strobe_rpmsg_file_ioctl() - the calls of any endpoint.
 * @file: its file.
 * @cmd: the call.
 * @arg: of the call.
 *
 * Context: process.
 * Return: 0, -ENOTTY if it is none, or another errno.
 */
long strobe_rpmsg_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case RPMSG_GET_OUTGOING_FLOWCONTROL:
		return get_pause(endpoint, p);
	case RPMSG_SET_INCOMING_FLOWCONTROL:
		return set_pause(endpoint, arg);
	case STROBE_RPMSG_STATS:
		return get_stats(endpoint, p);
	default:
		return -ENOTTY;
	}
}

/**
 * strobe_rpmsg_file_show_fdinfo() - what /proc says of the file.
 * @m: where to.
 * @file: of an endpoint.
 *
 * Context: process.
 */
void strobe_rpmsg_file_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;

	seq_puts(m, "rpmsg-name:\t");
	seq_escape(m, endpoint->info.name, "\n\\");
	seq_printf(m, "\nrpmsg-src:\t0x%x\n", endpoint->info.src);
	seq_printf(m, "rpmsg-dst:\t0x%x\n", endpoint->info.dst);
	seq_printf(m, "rpmsg-queued:\t%u\n", strobe_rpmsg_queue_count(&endpoint->queue));
	seq_printf(m, "rpmsg-received:\t%lld\n", atomic64_read(&endpoint->received));
	seq_printf(m, "rpmsg-dropped:\t%lld\n", atomic64_read(&endpoint->dropped));
	seq_printf(m, "rpmsg-sent:\t%lld\n", atomic64_read(&endpoint->sent));
	seq_printf(m, "rpmsg-gone:\t%u\n", strobe_rpmsg_endpoint_is_gone(endpoint));
}
