// SPDX-License-Identifier: GPL-2.0-only
/*
 * An endpoint as a file: read() takes one message, write() sends one, poll()
 * waits. The file owns the endpoint: closing it is enough, and what happens to
 * the channel changes no more than what the file answers.
 *
 * The end. Who destroys the endpoint (the call, close(), the channel's removal)
 * first keeps new users away and waits for those that are at it (@using), then
 * destroys it, after which no callback runs, and only then says @gone: so the
 * messages that are queued by then are all there will ever be, and stay readable.
 * Nobody waits for messages, or for room to send, in @using.
 *
 * Waking. The callback may be in hard interrupt context, where PREEMPT_RT can
 * take no lock of a wait queue: then an irq_work wakes.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
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

/*
 * 32 KiB: 256 messages of 120 bytes, or 64 of virtio's 496. Taken with each
 * endpoint, since where messages arrive no memory can be had.
 */
static unsigned int queue_kib = 32;
module_param(queue_kib, uint, 0444);
MODULE_PARM_DESC(queue_kib, "memory of an endpoint, most of it for messages that wait, 4 to 1024 KiB, a power of two (default 32)");

/* The memory of endpoints and their queues. */
static struct kmem_cache *cache;

/* All of it, so that two endpoints are not rounded up to four: the cache puts a pointer behind. */
static u32 memory_size(void)
{
	return queue_kib * SZ_1K - sizeof(void *);
}

/*
 * Memory that has a constructor is not cleared for each endpoint anew, not even
 * by kernels that clear all others; that would cost more than all the rest of
 * making one. Nobody gets to see a byte that no message of his has written.
 */
static void construct(void *memory)
{
}

/**
 * strobe_rpmsg_endpoint_setup() - as the module is loaded.
 *
 * Return: 0, -EINVAL for a parameter that is wrong, or -ENOMEM.
 */
int __init strobe_rpmsg_endpoint_setup(void)
{
	const u32 front = sizeof(struct strobe_rpmsg_endpoint);

	/* Messages have most of the least memory. */
	BUILD_BUG_ON(sizeof(struct strobe_rpmsg_endpoint) > SZ_1K);
	if (queue_kib < 4 || queue_kib > 1024 || !is_power_of_2(queue_kib)) {
		pr_err("strobe_rpmsg: queue_kib=%u: it must be a power of two from 4 to 1024\n",
		       queue_kib);
		return -EINVAL;
	}
	/* Messages may be copied to user space, and nothing else. */
	cache = kmem_cache_create_usercopy("strobe_rpmsg_endpoint", memory_size(),
					   __alignof__(struct strobe_rpmsg_endpoint), SLAB_ACCOUNT,
					   front, memory_size() - front, construct);
	return cache ? 0 : -ENOMEM;
}

/**
 * strobe_rpmsg_endpoint_cleanup() - as it is unloaded: no endpoint is there any more.
 */
void strobe_rpmsg_endpoint_cleanup(void)
{
	kmem_cache_destroy(cache);
}

static bool is_gone(const struct strobe_rpmsg_endpoint *endpoint)
{
	/* F, pairs with E in strobe_rpmsg_endpoint_detach(): the queue is complete. */
	return smp_load_acquire(&endpoint->gone);
}

static void wake_now(struct irq_work *work)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(work, struct strobe_rpmsg_endpoint, wake);

	wake_up_interruptible_poll(&endpoint->wait, EPOLLIN | EPOLLRDNORM | EPOLLPRI);
}

static void news(struct strobe_rpmsg_endpoint *endpoint)
{
	/*
	 * Its barrier G pairs with the one that a task has between joining the
	 * queue and looking (H in endpoint_poll()): either it sees the news, or
	 * is seen here.
	 */
	if (!wq_has_sleeper(&endpoint->wait))
		return;
	if (irqs_disabled()) {
		WRITE_ONCE(endpoint->has_woken, true);
		irq_work_queue(&endpoint->wake);
	} else {
		wake_now(&endpoint->wake);
	}
}

/* A message has come: in any context, one at a time. */
static int on_message(struct rpmsg_device *rpdev, void *data, int length, void *priv, u32 src)
{
	struct strobe_rpmsg_endpoint *endpoint = priv;

	if (!strobe_rpmsg_queue_put(&endpoint->queue, data, length)) {
		atomic64_inc(&endpoint->dropped);
		return 0;
	}
	atomic64_inc(&endpoint->received);
	news(endpoint);
	return 0;
}

/* The remote wants no more messages, or wants them again: in any context. */
static int on_pause(struct rpmsg_device *rpdev, void *priv, bool pause)
{
	struct strobe_rpmsg_endpoint *endpoint = priv;

	WRITE_ONCE(endpoint->is_paused, pause);
	/* J, pairs with I in get_pause(): see there. */
	smp_mb();
	WRITE_ONCE(endpoint->pause_is_new, true);
	news(endpoint);
	return 0;
}

/* The transport has room again. */
static int on_room(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(entry, struct strobe_rpmsg_endpoint, forward);

	wake_up_interruptible_poll(&endpoint->wait, EPOLLOUT | EPOLLWRNORM);
	return 0;
}

struct forward_table {
	poll_table			table;
	struct strobe_rpmsg_endpoint	*endpoint;
};

static void forward(struct file *file, wait_queue_head_t *from, poll_table *table)
{
	struct strobe_rpmsg_endpoint *endpoint =
		container_of(table, struct forward_table, table)->endpoint;

	if (endpoint->forward_from)
		return;
	endpoint->forward_from = from;
	add_wait_queue(from, &endpoint->forward);
}

/*
 * What the transport says of itself. Pollers wait in a queue of the endpoint,
 * never in one of the transport, which would go with the channel while they are
 * in it: one entry there, put there for the first of them, wakes them.
 * @using is held.
 */
static __poll_t poll_transport(struct strobe_rpmsg_endpoint *endpoint, struct file *file)
{
	struct forward_table forwarding = { .endpoint = endpoint };

	/* K, pairs with L: whoever does not wait for the lock finds the entry there. */
	if (smp_load_acquire(&endpoint->is_forwarding))
		return rpmsg_poll(endpoint->ept, file, NULL);
	guard(mutex)(&endpoint->control->lock);
	if (endpoint->is_forwarding)
		return rpmsg_poll(endpoint->ept, file, NULL);
	init_waitqueue_func_entry(&endpoint->forward, on_room);
	init_poll_funcptr(&forwarding.table, forward);
	rpmsg_poll(endpoint->ept, file, &forwarding.table);
	/* L, pairs with K: see there. */
	smp_store_release(&endpoint->is_forwarding, true);
	/* Asked again, since room that came before the entry was there has woken nobody. */
	return rpmsg_poll(endpoint->ept, file, NULL);
}

static void end_forwarding(struct strobe_rpmsg_endpoint *endpoint)
{
	if (endpoint->forward_from)
		remove_wait_queue(endpoint->forward_from, &endpoint->forward);
	endpoint->forward_from = NULL;
}

/**
 * strobe_rpmsg_endpoint_new() - an endpoint that is not there yet.
 * @control: its channel; a reference is taken.
 * @info: what is wanted; the name ends in a NUL.
 *
 * Context: process.
 * Return: the endpoint, or NULL without memory.
 */
struct strobe_rpmsg_endpoint *
strobe_rpmsg_endpoint_new(struct strobe_rpmsg_control *control,
			  const struct rpmsg_channel_info *info)
{
	struct strobe_rpmsg_endpoint *endpoint =
		kmem_cache_alloc(cache, GFP_KERNEL | __GFP_NOWARN);

	if (!endpoint)
		return NULL;
	memset(endpoint, 0, sizeof(*endpoint));
	strobe_rpmsg_queue_init(&endpoint->queue, endpoint + 1, memory_size() - sizeof(*endpoint));
	get_device(&control->dev);
	endpoint->control = control;
	INIT_LIST_HEAD(&endpoint->entry);
	init_rwsem(&endpoint->using);
	init_waitqueue_head(&endpoint->wait);
	init_waitqueue_head(&endpoint->room);
	init_irq_work(&endpoint->wake, wake_now);
	endpoint->info = *info;
	return endpoint;
}

/**
 * strobe_rpmsg_endpoint_free() - end of an endpoint that is not attached.
 * @endpoint: nobody has it any more.
 *
 * Context: process.
 */
void strobe_rpmsg_endpoint_free(struct strobe_rpmsg_endpoint *endpoint)
{
	/* On PREEMPT_RT that takes a grace period: only if there may be something to wait for. */
	if (endpoint->has_woken)
		irq_work_sync(&endpoint->wake);
	mutex_destroy(&endpoint->queue.reading);
	put_device(&endpoint->control->dev);
	kmem_cache_free(cache, endpoint);
}

/**
 * strobe_rpmsg_endpoint_attach() - make it known to the transport.
 * @endpoint: the endpoint.
 *
 * Context: process; control->present is held.
 * Return: 0; -ENETRESET if the channel has gone; if the transport makes none, of
 * which it does not say why, -EADDRINUSE for a chosen address, else -ENOMEM.
 */
int strobe_rpmsg_endpoint_attach(struct strobe_rpmsg_endpoint *endpoint)
{
	struct strobe_rpmsg_control *control = endpoint->control;
	struct rpmsg_endpoint *ept;

	if (!control->rpdev)
		return -ENETRESET;
	/* Messages may come before this has returned. */
	ept = rpmsg_create_ept(control->rpdev, on_message, endpoint, endpoint->info);
	if (!ept)
		return endpoint->info.src == RPMSG_ADDR_ANY ? -ENOMEM : -EADDRINUSE;
	ept->flow_cb = on_pause;
	endpoint->ept = ept;
	endpoint->info.src = ept->addr;
	endpoint->mtu = max(rpmsg_get_mtu(ept), 0);
	scoped_guard(mutex, &control->lock)
		list_add_tail(&endpoint->entry, &control->endpoints);
	return 0;
}

/**
 * strobe_rpmsg_endpoint_detach() - the endpoint ends, its file stays.
 * @endpoint: attached or not any more; the second time nothing happens.
 *
 * Context: process; control->present is held, so that the transport stays.
 */
void strobe_rpmsg_endpoint_detach(struct strobe_rpmsg_endpoint *endpoint)
{
	struct rpmsg_endpoint *ept;

	scoped_guard(rwsem_write, &endpoint->using) {
		ept = endpoint->ept;
		endpoint->ept = NULL;
	}
	if (!ept)
		return;
	scoped_guard(mutex, &endpoint->control->lock)
		list_del_init(&endpoint->entry);
	end_forwarding(endpoint);
	/* Not every transport takes that of pauses back; one that is just at it does not look. */
	WRITE_ONCE(ept->flow_cb, NULL);
	/* No other callback runs after this. */
	rpmsg_destroy_ept(ept);
	/*
	 * E, pairs with F in is_gone(): without them a reader could believe that
	 * the last message is not there, and that none will come.
	 */
	smp_store_release(&endpoint->gone, true);
	/* G again: see news(). */
	if (wq_has_sleeper(&endpoint->wait))
		wake_up_poll(&endpoint->wait, EPOLLHUP | EPOLLERR | EPOLLIN);
	if (wq_has_sleeper(&endpoint->room))
		wake_up(&endpoint->room);
}

static int endpoint_release(struct inode *inode, struct file *file)
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

static ssize_t endpoint_read(struct kiocb *io, struct iov_iter *to)
{
	struct strobe_rpmsg_endpoint *endpoint = io->ki_filp->private_data;
	bool may_wait = !(io->ki_filp->f_flags & O_NONBLOCK || io->ki_flags & IOCB_NOWAIT);
	ssize_t ret;

	for (;;) {
		/* Before the queue: what is not there then never comes. */
		bool gone = is_gone(endpoint);

		ret = strobe_rpmsg_queue_take(&endpoint->queue, to, may_wait);
		if (ret != -EAGAIN)
			return ret;
		/* Another reader may be at what is there. */
		if (gone && strobe_rpmsg_queue_is_empty(&endpoint->queue))
			return -EPIPE;
		if (!may_wait)
			return -EAGAIN;
		if (wait_event_interruptible(endpoint->wait, is_gone(endpoint) ||
					     !strobe_rpmsg_queue_is_empty(&endpoint->queue)))
			return -ERESTARTSYS;
	}
}

/* An endpoint that is there stays while @using is held. */
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
		/* What virtio says when it has no buffer. */
		if (ret == -ENOMEM)
			ret = -EAGAIN;
		/* More that is only done for who may wait: glink asks the remote for buffers. */
		if (ret < 0 && ret != -EAGAIN && may_wait)
			ret = rpmsg_sendto(endpoint->ept, data, length, dst);
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
		if (wait_event_interruptible_hrtimeout(endpoint->room, is_gone(endpoint),
						       ROOM_EVERY) == -ERESTARTSYS)
			return -ERESTARTSYS;
	return ret;
}

static ssize_t endpoint_write(struct kiocb *io, struct iov_iter *from)
{
	struct strobe_rpmsg_endpoint *endpoint = io->ki_filp->private_data;
	bool may_wait = !(io->ki_filp->f_flags & O_NONBLOCK || io->ki_flags & IOCB_NOWAIT);
	size_t length = iov_iter_count(from);
	void *data;
	int ret;

	if (is_gone(endpoint))
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

static __poll_t endpoint_poll(struct file *file, poll_table *wait)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &endpoint->wait, wait);
	/* H, pairs with G in news(): without it both could overlook the other. */
	smp_mb();
	if (is_gone(endpoint))
		mask |= EPOLLHUP | EPOLLERR;
	if (!strobe_rpmsg_queue_is_empty(&endpoint->queue))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(endpoint->pause_is_new))
		mask |= EPOLLPRI;
	/* Who takes it away may wait for one who sends; it will wake us. */
	if (!down_read_trylock(&endpoint->using))
		return mask;
	if (endpoint->ept)
		mask |= poll_transport(endpoint, file);
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

static long endpoint_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
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

static void endpoint_show_fdinfo(struct seq_file *m, struct file *file)
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
	seq_printf(m, "rpmsg-gone:\t%u\n", is_gone(endpoint));
}

const struct file_operations strobe_rpmsg_endpoint_fops = {
	.owner		= THIS_MODULE,
	.release	= endpoint_release,
	.read_iter	= endpoint_read,
	.write_iter	= endpoint_write,
	.poll		= endpoint_poll,
	.unlocked_ioctl	= endpoint_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= endpoint_show_fdinfo,
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
	file = anon_inode_getfile("[rpmsg]", &strobe_rpmsg_endpoint_fops, endpoint,
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
