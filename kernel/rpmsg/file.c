// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of an endpoint: read() takes one message, write() sends one, poll()
 * waits. It owns the endpoint: closing it is enough, and what happens to the
 * channel changes no more than what it answers.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "rpmsg.h"

/* A message to a transport that does not say how much it takes. */
#define LENGTH_MAX	SZ_64K
/* First version of struct rpmsg_endpoint_stats. */
#define STATS_LEAST	offsetofend(struct rpmsg_endpoint_stats, sent)
/* How often who waits for room tries again, ns: not every transport tells when it has some. */
#define ROOM_EVERY	NSEC_PER_MSEC

static int file_release(struct inode *inode, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;

	/* Nobody uses it any more. Who takes the channel away may be about to wake it. */
	scoped_guard(rwsem_read, &endpoint->control->present)
		if (endpoint->ept)
			strobe_rpmsg_endpoint_detach(endpoint);
	if (endpoint->node)
		strobe_rpmsg_node_close(endpoint->node);
	strobe_rpmsg_endpoint_free(endpoint);
	return 0;
}

static ssize_t file_read(struct kiocb *io, struct iov_iter *to)
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

static ssize_t file_write(struct kiocb *io, struct iov_iter *from)
{
	struct strobe_rpmsg_endpoint *endpoint = io->ki_filp->private_data;
	bool may_wait = !(io->ki_filp->f_flags & O_NONBLOCK || io->ki_flags & IOCB_NOWAIT);
	size_t length = iov_iter_count(from);
	void *data;
	int ret;

	if (strobe_rpmsg_endpoint_is_gone(endpoint))
		return -EPIPE;
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

static __poll_t file_poll(struct file *file, poll_table *wait)
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

static long get_stats(struct strobe_rpmsg_endpoint *endpoint, void __user *arg)
{
	struct rpmsg_endpoint_stats stats;
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)arg))
		return -EFAULT;
	if (size < STATS_LEAST)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&stats, sizeof(stats), arg, size);
	if (ret)
		return ret;
	stats = (struct rpmsg_endpoint_stats){
		.size		= size,
		.src		= endpoint->info.src,
		.dst		= endpoint->info.dst,
		.mtu		= endpoint->mtu,
		.queued		= strobe_rpmsg_queue_count(&endpoint->queue),
		.received	= atomic64_read(&endpoint->received),
		.dropped	= atomic64_read(&endpoint->dropped),
		.sent		= atomic64_read(&endpoint->sent),
	};
	return copy_to_user(arg, &stats, min_t(size_t, size, sizeof(stats))) ? -EFAULT : 0;
}

static long destroy(struct strobe_rpmsg_endpoint *endpoint)
{
	guard(rwsem_read)(&endpoint->control->present);
	strobe_rpmsg_endpoint_detach(endpoint);
	if (endpoint->node)
		strobe_rpmsg_node_remove(endpoint->node);
	return 0;
}

static long file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;
	void __user *p = (void __user *)arg;

	switch (cmd) {
	case RPMSG_DESTROY_EPT_IOCTL:
		return destroy(endpoint);
	case RPMSG_GET_OUTGOING_FLOWCONTROL:
		return get_pause(endpoint, p);
	case RPMSG_SET_INCOMING_FLOWCONTROL:
		return set_pause(endpoint, arg);
	case RPMSG_GET_EPT_STATS_IOCTL:
		return get_stats(endpoint, p);
	default:
		return -ENOTTY;
	}
}

static void file_show_fdinfo(struct seq_file *m, struct file *file)
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

const struct file_operations strobe_rpmsg_file_fops = {
	.owner		= THIS_MODULE,
	.release	= file_release,
	.read_iter	= file_read,
	.write_iter	= file_write,
	.poll		= file_poll,
	.unlocked_ioctl	= file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= file_show_fdinfo,
};

/**
 * strobe_rpmsg_check_name() - whether a name of a service is whole.
 * @name: as it came, RPMSG_NAME_SIZE bytes.
 *
 * Return: 0, or -EINVAL for a name without its end, which would be cut.
 */
int strobe_rpmsg_check_name(const char *name)
{
	return strnlen(name, RPMSG_NAME_SIZE) == RPMSG_NAME_SIZE ? -EINVAL : 0;
}

static int check_info(const struct rpmsg_endpoint_fd_info *info)
{
	if (info->flags & ~(O_ACCMODE | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if ((info->flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	return strobe_rpmsg_check_name(info->name);
}

/* An endpoint with its file, which owns it. */
static struct file *open_endpoint(struct strobe_rpmsg_control *control,
				  struct rpmsg_endpoint_fd_info *info)
{
	struct rpmsg_channel_info wanted = { .src = info->src, .dst = info->dst };
	struct strobe_rpmsg_endpoint *endpoint;
	struct file *file;
	int ret;

	memcpy(wanted.name, info->name, sizeof(wanted.name));
	endpoint = strobe_rpmsg_endpoint_new(control, &wanted);
	if (!endpoint)
		return ERR_PTR(-ENOMEM);
	file = anon_inode_getfile("[rpmsg]", &strobe_rpmsg_file_fops, endpoint,
				  info->flags & ~O_CLOEXEC);
	if (IS_ERR(file)) {
		strobe_rpmsg_endpoint_free(endpoint);
		return file;
	}
	scoped_guard(rwsem_read, &control->present)
		ret = strobe_rpmsg_endpoint_attach(endpoint);
	if (ret) {
		fput(file);
		return ERR_PTR(ret);
	}
	info->src = endpoint->info.src;
	return file;
}

/**
 * strobe_rpmsg_create_fd() - RPMSG_CREATE_EPT_FD_IOCTL.
 * @control: the channel.
 * @arg: struct rpmsg_endpoint_fd_info.
 *
 * The number of the file is installed last, when nothing can fail any more:
 * until then the caller has seen nothing, and releasing the file undoes all.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_rpmsg_create_fd(struct strobe_rpmsg_control *control, void __user *arg)
{
	struct rpmsg_endpoint_fd_info info;
	struct file *file;
	int ret;

	if (copy_from_user(&info, arg, sizeof(info)))
		return -EFAULT;
	ret = check_info(&info);
	if (ret)
		return ret;
	info.fd = get_unused_fd_flags(info.flags & O_CLOEXEC);
	if (info.fd < 0)
		return info.fd;
	file = open_endpoint(control, &info);
	if (IS_ERR(file)) {
		put_unused_fd(info.fd);
		return PTR_ERR(file);
	}
	if (copy_to_user(arg, &info, sizeof(info))) {
		put_unused_fd(info.fd);
		fput(file);
		return -EFAULT;
	}
	fd_install(info.fd, file);
	return 0;
}
