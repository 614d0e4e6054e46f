// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device side of a virtio rpmsg transport, for the stock virtio_rpmsg_bus:
 * a remote processor that sends every message back to who has sent it, from
 * the address that it was sent to.
 *
 * What it does is done in one work item, as remoteproc does: the driver's
 * callbacks take locks that sleep. A message is taken from the host when there
 * is room for its answer, so that none is lost here.
 *
 * Parameters, in /sys/module/lab_virtio_rpmsg/parameters:
 *
 *   services  what the remote announces, at address REMOTE_FIRST + its index
 *   plugged   0 pulls the remote, 1 plugs it in
 *   stalled   1: it takes no message
 *   taken     messages that it has taken from the host
 *   given     messages that it has given to the host, without announcements
 *   announced channels of the host's own that it was told of
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/rpmsg/byteorder.h>
#include <linux/rpmsg/ns.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>
#include <linux/workqueue.h>

#define BUFFERS		256
#define REMOTE_FIRST	0x400
/* The remote has a name service. */
#define F_NS		0

/* The head of each message in its buffer. */
struct head {
	__le32	src;
	__le32	dst;
	__le32	reserved;
	__le16	length;
	__le16	flags;
	u8	data[];
};

/* The two queues, in the order in which the driver asks for them. */
enum { TO_HOST, TO_REMOTE, QUEUES };

/**
 * struct remote - the remote processor.
 * @vdev: the device that the driver is bound to.
 * @queues: as found by the driver, NULL without one.
 * @seen: buffers of each queue that were taken; written by the work, and by
 *	find_vqs before it runs.
 * @announced: services that the host knows of; as @seen.
 * @status: of the device; written by the driver.
 * @work: all that the remote does.
 */
struct remote {
	struct virtio_device	vdev;
	struct virtqueue	*queues[QUEUES];
	u16			seen[QUEUES];
	unsigned int		announced;
	u8			status;
	struct work_struct	work;
};

static struct platform_device *processor;
/* Written by plug() and pull(), which the parameter serialises. */
static struct remote *remote;

static char *services = "strobe_rpmsg";
module_param(services, charp, 0444);
MODULE_PARM_DESC(services, "what the remote announces");

static bool plugged = true;
static bool stalled;

/* Written by the work alone. */
static unsigned long taken, given, announced;
module_param(taken, ulong, 0444);
MODULE_PARM_DESC(taken, "messages taken from the host");
module_param(given, ulong, 0444);
MODULE_PARM_DESC(given, "messages given to the host");
module_param(announced, ulong, 0444);
MODULE_PARM_DESC(announced, "channels of the host's own that were announced");

static struct remote *to_remote(struct virtio_device *vdev)
{
	return container_of(vdev, struct remote, vdev);
}

/* The next buffer that the driver has put into the queue, or NULL. */
static struct vring_desc *next_buffer(struct remote *it, int queue)
{
	const struct vring *ring = virtqueue_get_vring(it->queues[queue]);
	/* Pairs with the driver's barrier: what the index speaks of is there. */
	u16 index = virtio16_to_cpu(&it->vdev, smp_load_acquire(&ring->avail->idx));
	u16 at = it->seen[queue] % ring->num;

	if (it->seen[queue] == index)
		return NULL;
	return &ring->desc[virtio16_to_cpu(&it->vdev, ring->avail->ring[at])];
}

static struct head *message_in(struct remote *it, const struct vring_desc *buffer)
{
	return phys_to_virt(virtio64_to_cpu(&it->vdev, buffer->addr));
}

/* The buffer is the driver's again, with so many bytes in it. */
static void give_back(struct remote *it, int queue, const struct vring_desc *buffer, size_t length)
{
	const struct vring *ring = virtqueue_get_vring(it->queues[queue]);
	u16 at = it->seen[queue]++;
	vring_used_elem_t *used = &ring->used->ring[at % ring->num];

	used->id = cpu_to_virtio32(&it->vdev, buffer - ring->desc);
	used->len = cpu_to_virtio32(&it->vdev, length);
	/* Pairs with the driver's barrier: the element is there before the index. */
	smp_store_release(&ring->used->idx, cpu_to_virtio16(&it->vdev, at + 1));
}

static void interrupt(struct remote *it, int queue)
{
	const struct vring *ring = virtqueue_get_vring(it->queues[queue]);
	u16 flags;

	/* The driver says that it wants interrupts, then looks; we the other way round. */
	smp_mb();
	flags = virtio16_to_cpu(&it->vdev, READ_ONCE(ring->avail->flags));
	if (!(flags & VRING_AVAIL_F_NO_INTERRUPT))
		vring_interrupt(0, it->queues[queue]);
}

/* A message to the host; false if it has no room for it now. */
static bool give(struct remote *it, u32 src, u32 dst, const void *data, u16 length)
{
	struct vring_desc *buffer = next_buffer(it, TO_HOST);
	struct head *message;

	if (!buffer)
		return false;
	message = message_in(it, buffer);
	message->src = cpu_to_le32(src);
	message->dst = cpu_to_le32(dst);
	message->reserved = 0;
	message->length = cpu_to_le16(length);
	message->flags = 0;
	memcpy(message->data, data, length);
	give_back(it, TO_HOST, buffer, sizeof(*message) + length);
	return true;
}

/* The next service that the host does not know of yet. */
static bool announce_next(struct remote *it)
{
	struct rpmsg_ns_msg service = { .flags = (__force __rpmsg32)cpu_to_le32(RPMSG_NS_CREATE) };
	const char *name = services;
	size_t length;

	for (unsigned int i = 0; i < it->announced && name; i++) {
		name = strchr(name, ',');
		name += !!name;
	}
	if (!name || !*name)
		return false;
	length = min(strcspn(name, ","), sizeof(service.name) - 1);
	memcpy(service.name, name, length);
	service.addr = (__force __rpmsg32)cpu_to_le32(REMOTE_FIRST + it->announced);
	if (!give(it, RPMSG_NS_ADDR, RPMSG_NS_ADDR, &service, sizeof(service)))
		return false;
	it->announced++;
	return true;
}

/* False if its answer has no room now: then it stays. */
static bool answer(struct remote *it, const struct head *message)
{
	u32 dst = le32_to_cpu(message->dst);

	if (dst == RPMSG_NS_ADDR) {
		WRITE_ONCE(announced, announced + 1);
		return true;
	}
	if (!give(it, dst, le32_to_cpu(message->src), message->data, le16_to_cpu(message->length)))
		return false;
	WRITE_ONCE(given, given + 1);
	return true;
}

/* Does not run twice at once. Who makes room, or sends, queues it again. */
static void serve(struct work_struct *work)
{
	struct remote *it = container_of(work, struct remote, work);
	unsigned long before = taken;
	struct vring_desc *buffer;
	bool has_given;

	if (!(READ_ONCE(it->status) & VIRTIO_CONFIG_S_DRIVER_OK))
		return;
	has_given = announce_next(it);
	while (!READ_ONCE(stalled) && (buffer = next_buffer(it, TO_REMOTE)) &&
	       answer(it, message_in(it, buffer))) {
		give_back(it, TO_REMOTE, buffer, 0);
		WRITE_ONCE(taken, taken + 1);
	}
	if (has_given || taken != before)
		interrupt(it, TO_HOST);
	if (taken != before)
		interrupt(it, TO_REMOTE);
	if (has_given)
		schedule_work(work);
}

static bool notify(struct virtqueue *queue)
{
	schedule_work(&to_remote(queue->vdev)->work);
	return true;
}

static void del_vqs(struct virtio_device *vdev)
{
	struct remote *it = to_remote(vdev);

	for (int i = 0; i < QUEUES; i++) {
		if (it->queues[i])
			vring_del_virtqueue(it->queues[i]);
		it->queues[i] = NULL;
	}
}

static int find_vqs(struct virtio_device *vdev, unsigned int count, struct virtqueue *queues[],
		    struct virtqueue_info infos[], struct irq_affinity *affinity)
{
	struct remote *it = to_remote(vdev);

	if (count != QUEUES)
		return -EINVAL;
	it->announced = 0;
	for (unsigned int i = 0; i < count; i++) {
		it->seen[i] = 0;
		it->queues[i] = vring_create_virtqueue(i, BUFFERS, PAGE_SIZE, vdev, true, false,
						       false, notify, infos[i].callback,
						       infos[i].name);
		if (!it->queues[i]) {
			del_vqs(vdev);
			return -ENOMEM;
		}
		queues[i] = it->queues[i];
	}
	return 0;
}

static u8 get_status(struct virtio_device *vdev)
{
	return READ_ONCE(to_remote(vdev)->status);
}

static void set_status(struct virtio_device *vdev, u8 status)
{
	WRITE_ONCE(to_remote(vdev)->status, status);
	schedule_work(&to_remote(vdev)->work);
}

/* After this the remote touches no ring, until it is told that the driver is there. */
static void reset(struct virtio_device *vdev)
{
	WRITE_ONCE(to_remote(vdev)->status, 0);
	cancel_work_sync(&to_remote(vdev)->work);
}

static u64 get_features(struct virtio_device *vdev)
{
	return BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(F_NS);
}

static int finalize_features(struct virtio_device *vdev)
{
	vring_transport_features(vdev);
	return 0;
}

static const struct virtio_config_ops config_ops = {
	.get_status		= get_status,
	.set_status		= set_status,
	.reset			= reset,
	.find_vqs		= find_vqs,
	.del_vqs		= del_vqs,
	.get_features		= get_features,
	.finalize_features	= finalize_features,
};

static void release(struct device *dev)
{
	kfree(to_remote(dev_to_virtio(dev)));
}

static int plug(void)
{
	struct remote *it = kzalloc(sizeof(*it), GFP_KERNEL);
	int ret;

	if (!it)
		return -ENOMEM;
	INIT_WORK(&it->work, serve);
	it->vdev.id.device = VIRTIO_ID_RPMSG;
	it->vdev.config = &config_ops;
	it->vdev.dev.parent = &processor->dev;
	it->vdev.dev.release = release;
	ret = register_virtio_device(&it->vdev);
	if (ret) {
		put_device(&it->vdev.dev);
		return ret;
	}
	remote = it;
	plugged = true;
	return 0;
}

static void pull(void)
{
	struct remote *it = remote;

	remote = NULL;
	plugged = false;
	if (!it)
		return;
	get_device(&it->vdev.dev);
	unregister_virtio_device(&it->vdev);
	/* What the driver's last notification has queued finds no driver. */
	cancel_work_sync(&it->work);
	put_device(&it->vdev.dev);
}

static int plugged_set(const char *text, const struct kernel_param *param)
{
	bool on;
	int ret = kstrtobool(text, &on);

	if (ret)
		return ret;
	/* As the module is loaded: lab_virtio_rpmsg_init() looks at it. */
	if (!processor) {
		plugged = on;
		return 0;
	}
	if (on == plugged)
		return 0;
	if (on)
		return plug();
	pull();
	return 0;
}

static const struct kernel_param_ops plugged_ops = {
	.set = plugged_set,
	.get = param_get_bool,
};
module_param_cb(plugged, &plugged_ops, &plugged, 0644);
MODULE_PARM_DESC(plugged, "the remote is there");

static int stalled_set(const char *text, const struct kernel_param *param)
{
	int ret = param_set_bool(text, param);

	if (!ret && remote)
		schedule_work(&remote->work);
	return ret;
}

static const struct kernel_param_ops stalled_ops = {
	.set = stalled_set,
	.get = param_get_bool,
};
module_param_cb(stalled, &stalled_ops, &stalled, 0644);
MODULE_PARM_DESC(stalled, "the remote takes no messages");

static int __init lab_virtio_rpmsg_init(void)
{
	int ret;

	processor = platform_device_register_simple("lab_virtio_rpmsg", PLATFORM_DEVID_NONE, NULL,
						    0);
	if (IS_ERR(processor))
		return PTR_ERR(processor);
	ret = plugged ? plug() : 0;
	if (ret)
		platform_device_unregister(processor);
	return ret;
}

static void __exit lab_virtio_rpmsg_exit(void)
{
	pull();
	platform_device_unregister(processor);
}

module_init(lab_virtio_rpmsg_init);
module_exit(lab_virtio_rpmsg_exit);
MODULE_DESCRIPTION("The device side of a virtio rpmsg transport, which sends messages back");
MODULE_LICENSE("GPL");
