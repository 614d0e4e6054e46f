// SPDX-License-Identifier: GPL-2.0-only
/*
 * An endpoint as a file without a node, by strobe's own call and by that of the
 * series. The file owns the endpoint: closing it is enough.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/rpmsg.h>
#include <linux/uaccess.h>

#include <compat/linux/rpmsg.h>

#include "rpmsg.h"

/* First version of struct strobe_rpmsg_create. */
#define CREATE_LEAST	offsetofend(struct strobe_rpmsg_create, mtu)
#define FLAGS		(STROBE_RPMSG_READ | STROBE_RPMSG_WRITE | STROBE_RPMSG_NONBLOCK)

static long destroy(struct strobe_rpmsg_endpoint *endpoint)
{
	guard(rwsem_read)(&endpoint->channel->present);
	strobe_rpmsg_endpoint_detach(endpoint);
	return 0;
}

static int file_release(struct inode *inode, struct file *file)
{
	struct strobe_rpmsg_endpoint *endpoint = file->private_data;

	/* Nobody uses it any more. Who takes the channel away may be about to wake it. */
	scoped_guard(rwsem_read, &endpoint->channel->present)
		if (endpoint->ept)
			strobe_rpmsg_endpoint_detach(endpoint);
	strobe_rpmsg_endpoint_put(endpoint);
	return 0;
}

static long file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (cmd == RPMSG_DESTROY_EPT_IOCTL)
		return destroy(file->private_data);
	return strobe_rpmsg_file_ioctl(file, cmd, arg);
}

static const struct file_operations file_fops = {
	.owner		= THIS_MODULE,
	.release	= file_release,
	.read_iter	= strobe_rpmsg_file_read,
	.write_iter	= strobe_rpmsg_file_write,
	.poll		= strobe_rpmsg_file_poll,
	.unlocked_ioctl	= file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= strobe_rpmsg_file_show_fdinfo,
};

/* An endpoint with its file, which owns it. */
static struct file *open_endpoint(struct strobe_rpmsg_channel *channel,
				  const struct rpmsg_channel_info *info, int flags)
{
	struct strobe_rpmsg_endpoint *endpoint;
	struct file *file;
	int ret;

	endpoint = strobe_rpmsg_endpoint_new(channel, info);
	if (!endpoint)
		return ERR_PTR(-ENOMEM);
	file = anon_inode_getfile("[rpmsg]", &file_fops, endpoint, flags & ~O_CLOEXEC);
	if (IS_ERR(file)) {
		strobe_rpmsg_endpoint_put(endpoint);
		return file;
	}
	scoped_guard(rwsem_read, &channel->present)
		ret = strobe_rpmsg_endpoint_attach(endpoint);
	if (!ret)
		return file;
	fput(file);
	return ERR_PTR(ret);
}

/**
 * struct pending - a file that nobody has seen yet.
 * @fd: its number, reserved.
 * @file: it.
 * @endpoint: what it owns.
 */
struct pending {
	int				fd;
	struct file			*file;
	struct strobe_rpmsg_endpoint	*endpoint;
};

static int prepare(struct pending *pending, struct strobe_rpmsg_channel *channel,
		   const struct rpmsg_channel_info *info, int flags)
{
	pending->fd = get_unused_fd_flags(flags & O_CLOEXEC);
	if (pending->fd < 0)
		return pending->fd;
	pending->file = open_endpoint(channel, info, flags);
	if (IS_ERR(pending->file)) {
		put_unused_fd(pending->fd);
		return PTR_ERR(pending->file);
	}
	pending->endpoint = pending->file->private_data;
	return 0;
}

/* Its maker could not be told of it: he has seen nothing, and releasing the file undoes all. */
static long abandon(const struct pending *pending)
{
	put_unused_fd(pending->fd);
	fput(pending->file);
	return -EFAULT;
}

static int check(const struct strobe_rpmsg_create *create)
{
	if (create->flags & ~FLAGS || !(create->flags & (STROBE_RPMSG_READ | STROBE_RPMSG_WRITE)))
		return -EINVAL;
	if (create->reserved)
		return -EINVAL;
	return strnlen(create->name, sizeof(create->name)) == sizeof(create->name) ? -EINVAL : 0;
}

static int open_flags(u32 flags)
{
	int mode = flags & STROBE_RPMSG_READ ? O_RDONLY : O_WRONLY;

	if (flags & STROBE_RPMSG_READ && flags & STROBE_RPMSG_WRITE)
		mode = O_RDWR;
	return mode | O_CLOEXEC | (flags & STROBE_RPMSG_NONBLOCK ? O_NONBLOCK : 0);
}

/**
 * strobe_rpmsg_create() - STROBE_RPMSG_CREATE.
 * @channel: the channel.
 * @arg: struct strobe_rpmsg_create.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_rpmsg_create(struct strobe_rpmsg_channel *channel, void __user *arg)
{
	struct strobe_rpmsg_create create;
	struct rpmsg_channel_info info;
	struct pending pending;
	int size, ret;

	size = strobe_rpmsg_file_copy_in(&create, sizeof(create), CREATE_LEAST, arg);
	if (size < 0)
		return size;
	ret = check(&create);
	if (ret)
		return ret;
	info = (struct rpmsg_channel_info){ .src = create.src, .dst = create.dst };
	memcpy(info.name, create.name, sizeof(info.name));
	ret = prepare(&pending, channel, &info, open_flags(create.flags));
	if (ret)
		return ret;
	create.fd = pending.fd;
	create.address = pending.endpoint->info.src;
	create.mtu = pending.endpoint->mtu;
	if (copy_to_user(arg, &create, min_t(size_t, size, sizeof(create))))
		return abandon(&pending);
	/* Last, when nothing can fail any more. */
	fd_install(pending.fd, pending.file);
	return 0;
}

/**
 * strobe_rpmsg_create_of_series() - RPMSG_CREATE_EPT_FD_IOCTL.
 * @channel: the channel.
 * @arg: struct rpmsg_endpoint_fd_info.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_rpmsg_create_of_series(struct strobe_rpmsg_channel *channel, void __user *arg)
{
	struct rpmsg_endpoint_fd_info wanted;
	struct rpmsg_channel_info info;
	struct pending pending;
	int ret;

	if (copy_from_user(&wanted, arg, sizeof(wanted)))
		return -EFAULT;
	if (wanted.flags & ~(O_ACCMODE | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if ((wanted.flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	if (strnlen(wanted.name, sizeof(wanted.name)) == sizeof(wanted.name))
		return -EINVAL;
	info = (struct rpmsg_channel_info){ .src = wanted.src, .dst = wanted.dst };
	memcpy(info.name, wanted.name, sizeof(info.name));
	ret = prepare(&pending, channel, &info, wanted.flags);
	if (ret)
		return ret;
	wanted.fd = pending.fd;
	wanted.src = pending.endpoint->info.src;
	if (copy_to_user(arg, &wanted, sizeof(wanted)))
		return abandon(&pending);
	/* Last, when nothing can fail any more. */
	fd_install(pending.fd, pending.file);
	return 0;
}
