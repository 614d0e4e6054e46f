// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe_frames.ko: what the firmware of a co-processor samples, as events. A
 * service of rpmsg that sends strobe frames (docs/reference/frames.md) is a
 * device: each frame is a trigger of its one event, and the fields of the frame,
 * which a board file names, are its channels.
 *
 * The service "strobe-frames" is bound by its name, others by writing
 * "strobe_frames" into the driver_override of their channel, as "strobe board
 * install" does. What a frame has in it is read from the firmware file
 * strobe/rpmsg-SERVICE.board.
 *
 * The frame that has come last stays where it is until the next one: a row of
 * another event may have it too. A row that is made by the frame's own trigger
 * has its own frame; one that needs a thread, for a channel of class "sleep",
 * has what has come last when the thread is there.
 */
#include <linux/cleanup.h>
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/firmware.h>
#include <linux/module.h>
#include <linux/rpmsg.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/unaligned.h>

#include "board/blob.h"
#include "provider.h"

#define MAGIC		0x4653	/* "SF" */
#define VERSION		1
/* How long a remote that is full is asked, under the registry's lock. */
#define PATIENCE_NS	(20 * NSEC_PER_MSEC)
#define READ_NS		10

enum frames_kind {
	KIND_FRAMES	= 1,
	KIND_START	= 16,
	KIND_STOP	= 17,
};

/**
 * struct frames_header - first in each message.
 * @magic: MAGIC.
 * @version: VERSION.
 * @kind: enum frames_kind.
 * @count: frames behind it.
 * @stream: which START it belongs to.
 * @bytes: of a frame.
 */
struct frames_header {
	__le16	magic;
	u8	version;
	u8	kind;
	u8	count;
	u8	stream;
	__le16	bytes;
};

/**
 * struct frames_start - the message that has the remote begin.
 * @header: what it is.
 * @credits: frames it may send; 0: no limit, for a callback takes them all.
 * @reserved: 0.
 */
struct frames_start {
	struct frames_header	header;
	__le32			credits;
	__le32			reserved;
};

/**
 * struct frames_counters - what has become of messages; channels of the device.
 * @messages: all that have come.
 * @too_short: refused: less than it says.
 * @too_long: refused: more than it says.
 * @malformed: refused: not one of ours.
 * @out_of_order: frames that were refused: late, or a duplicate.
 *
 * Written by the callback alone, which is called for one message at a time.
 */
struct frames_counters {
	u64	messages;
	u64	too_short;
	u64	too_long;
	u64	malformed;
	u64	out_of_order;
};

/**
 * struct frames - a service that sends frames.
 * @rpdev: its channel.
 * @ept: where its messages arrive.
 * @blob: its board.
 * @bytes: of a frame.
 * @counters: see there.
 * @lock: a frame is delivered, or listening begins or ends. Raw, for the
 *	callback may be in hard interrupt context, and the row is made under it.
 * @listening: the event is enabled. Under @lock.
 * @stream: number of the last START. Under @lock.
 * @expected: sequence of the next frame. Under @lock.
 * @words: the last frame. Written by the callback under @lock; read by rows.
 * @event: the frame.
 * @device: what strobe is told.
 */
struct frames {
	struct rpmsg_device	*rpdev;
	struct rpmsg_endpoint	*ept;
	struct board_blob	blob;
	u32			bytes;
	struct frames_counters	counters;
	raw_spinlock_t		lock;	/* see above */
	bool			listening;
	u8			stream;
	u32			expected;
	u64			*words;
	struct strobe_event	event;
	struct strobe_device	device;
};

/* ---- messages, in whatever context the transport has ---- */

static void count(u64 *counter, u64 more)
{
	WRITE_ONCE(*counter, *counter + more);
}

/*
 * How many frames the message has; 0 if it was refused. It is the transport's
 * memory, which the remote may still write to: the number is read once.
 */
static unsigned int frames_check(struct frames *frames, const void *data, size_t length)
{
	const struct frames_header *header = data;
	unsigned int frame_count;
	size_t wanted;

	if (length < sizeof(*header)) {
		count(&frames->counters.too_short, 1);
		return 0;
	}
	frame_count = READ_ONCE(header->count);
	if (get_unaligned_le16(&header->magic) != MAGIC || header->version != VERSION ||
	    header->kind != KIND_FRAMES || !frame_count ||
	    get_unaligned_le16(&header->bytes) != frames->bytes) {
		count(&frames->counters.malformed, 1);
		return 0;
	}
	wanted = sizeof(*header) + frame_count * frames->bytes;
	if (length < wanted) {
		count(&frames->counters.too_short, 1);
		return 0;
	}
	if (length > wanted) {
		count(&frames->counters.too_long, 1);
		return 0;
	}
	return frame_count;
}

/*
 * One frame, and with it a row of each run that listens. Under frames->lock.
 * What the row has is what was accounted for: the word with the sequence is read
 * once, for the remote may still write to it.
 */
static void frames_deliver(struct frames *frames, const u8 *frame, u8 stream, u64 now)
{
	u64 first = get_unaligned_le64(frame);
	u32 sequence, missed;

	OPTIMIZER_HIDE_VAR(first);
	sequence = first;
	if (!frames->listening)
		return;
	missed = sequence - frames->expected;
	/* Half of the numbers are ahead, and half behind. */
	if (stream != frames->stream || missed > U32_MAX / 2) {
		count(&frames->counters.out_of_order, 1);
		return;
	}
	frames->expected = sequence + 1;
	WRITE_ONCE(frames->words[0], first);
	for (u32 i = 1; i < frames->bytes / 8; i++)
		WRITE_ONCE(frames->words[i], get_unaligned_le64(frame + 8 * i));
	strobe_event_trigger(&frames->event, now, 0, missed);
}

static int frames_callback(struct rpmsg_device *rpdev, void *data, int length, void *priv, u32 src)
{
	u64 now = ktime_get_ns();	/* the arrival: first thing */
	struct frames *frames = priv;
	const struct frames_header *header = data;
	const u8 *frame = data + sizeof(*header);
	unsigned int left;

	count(&frames->counters.messages, 1);
	left = frames_check(frames, data, length);
	for (; left; left--, frame += frames->bytes) {
		/* Each for itself: interrupts are not off for longer than a row takes. */
		scoped_guard(raw_spinlock_irqsave, &frames->lock)
			frames_deliver(frames, frame, READ_ONCE(header->stream), now);
	}
	return 0;
}

/* ---- commands; process context, under the core's registry lock ---- */

static int frames_send(struct frames *frames, enum frames_kind kind)
{
	struct frames_start start = {
		.header = {
			.magic	 = cpu_to_le16(MAGIC),
			.version = VERSION,
			.kind	 = kind,
			.stream	 = frames->stream,
		},
	};
	int length = kind == KIND_START ? sizeof(start) : sizeof(start.header);
	u64 until = ktime_get_ns() + PATIENCE_NS;
	int ret;

	/* rpmsg_send() would wait for a remote that is stuck, and all of strobe with it. */
	for (;;) {
		ret = rpmsg_trysend(frames->ept, &start, length);
		if ((ret != -ENOMEM && ret != -EAGAIN && ret != -EBUSY) || ktime_get_ns() > until)
			return ret;
		usleep_range(1000, 2000);
	}
}

static struct frames *frames_of(struct strobe_event *event)
{
	return container_of(event, struct frames, event);
}

static int frames_enable(struct strobe_event *event)
{
	struct frames *frames = frames_of(event);
	int ret;

	scoped_guard(raw_spinlock_irqsave, &frames->lock) {
		frames->stream++;
		frames->expected = 0;
		frames->listening = true;
	}
	ret = frames_send(frames, KIND_START);
	if (!ret)
		return 0;
	scoped_guard(raw_spinlock_irqsave, &frames->lock)
		frames->listening = false;
	return ret;
}

static void frames_disable(struct strobe_event *event)
{
	struct frames *frames = frames_of(event);

	/* Who delivers has the lock: after this nobody does. */
	scoped_guard(raw_spinlock_irqsave, &frames->lock)
		frames->listening = false;
	/* A remote that does not hear it sends what nobody takes. */
	frames_send(frames, KIND_STOP);
}

static const struct strobe_event_ops frames_event_ops = {
	.enable		= frames_enable,
	.disable	= frames_disable,
};

/* ---- the device ---- */

static int frames_refuse(const struct frames *frames, const char *why)
{
	return dev_err_probe(&frames->rpdev->dev, -EINVAL, "strobe/rpmsg-%s.board: %s\n",
			     frames->rpdev->id.name, why);
}

static int frames_load(struct frames *frames)
{
	const struct firmware *firmware __free(firmware) = NULL;
	struct device *dev = &frames->rpdev->dev;
	const char *service = frames->rpdev->id.name;
	char file[64], why[96];
	const void *copy;
	int ret;

	/* It becomes a part of a path. */
	if (!*service || strchr(service, '/'))
		return dev_err_probe(dev, -EINVAL, "no file can have the name of this service\n");
	snprintf(file, sizeof(file), "strobe/rpmsg-%s.board", service);
	ret = request_firmware_direct(&firmware, file, dev);
	if (ret)
		return dev_err_probe(dev, ret, "%s: not installed, or not to be read\n", file);
	copy = devm_kmemdup(dev, firmware->data, firmware->size, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	if (board_blob_parse(&frames->blob, copy, firmware->size, why, sizeof(why)))
		return frames_refuse(frames, why);
	if (!board_blob_is_frames(&frames->blob))
		return frames_refuse(frames, "not of a service that sends frames");
	if (frames->blob.header->platform != (crc32_le(~0U, service, strlen(service)) ^ ~0U))
		return frames_refuse(frames, "of another service than its name says");
	frames->bytes = frames->blob.bars[0].size;
	frames->words = devm_kzalloc(dev, frames->bytes, GFP_KERNEL);
	return frames->words ? 0 : -ENOMEM;
}

/* A field of the frame: the blob has checked that it lies in one of the words. */
static struct strobe_channel frames_field(struct frames *frames,
					  const struct strobe_board_value *raw)
{
	const struct strobe_board_register *reg = &raw->reg;
	u32 type = STROBE_TYPE_U64;

	if (reg->flags & STROBE_BOARD_FLOAT)
		type = STROBE_TYPE_F64;
	else if (reg->flags & STROBE_BOARD_SIGNED)
		type = STROBE_TYPE_S64;
	return (struct strobe_channel) {
		.name		= raw->name,
		.unit		= raw->unit,
		.text		= raw->text,
		.scale		= raw->scale,
		.offset		= raw->offset,
		.type		= type,
		.bits		= reg->bits,
		.cost_ns	= READ_NS,
		.reg = {
			.access		= STROBE_ACCESS_MEM64,
			.shift		= 8 * (reg->offset % 8) + reg->shift,
			.bits		= reg->bits,
			.is_signed	= type == STROBE_TYPE_S64,
			.mem		= &frames->words[reg->offset / 8],
		},
	};
}

static struct strobe_channel frames_counter(const char *name, const char *text, u64 *counter)
{
	return (struct strobe_channel) {
		.name		= name,
		.text		= text,
		.cost_ns	= READ_NS,
		.reg = { .access = STROBE_ACCESS_MEM64, .mem = counter },
	};
}

static int frames_make(struct frames *frames)
{
	struct frames_counters *counters = &frames->counters;
	const struct strobe_channel own[] = {
		frames_counter("messages", "messages that have come", &counters->messages),
		frames_counter("short", "refused: less than they say", &counters->too_short),
		frames_counter("long", "refused: more than they say", &counters->too_long),
		frames_counter("malformed", "refused: not strobe frames of this size",
			       &counters->malformed),
		frames_counter("out_of_order", "frames refused: late, or duplicates",
			       &counters->out_of_order),
	};
	const struct board_blob *blob = &frames->blob;
	u32 fields = blob->header->channels;
	struct strobe_channel *channels;

	channels = devm_kcalloc(&frames->rpdev->dev, fields + ARRAY_SIZE(own), sizeof(*channels),
				GFP_KERNEL);
	if (!channels)
		return -ENOMEM;
	for (u32 i = 0; i < fields; i++)
		channels[i] = frames_field(frames, &blob->channels[i]);
	memcpy(channels + fields, own, sizeof(own));
	frames->event = (struct strobe_event) {
		.name	= blob->events[0].name,
		.text	= blob->events[0].text,
		.ops	= &frames_event_ops,
		/* The co-processor numbers its frames. */
		.accounting = STROBE_ACCOUNTING_EXACT,
	};
	frames->device = (struct strobe_device) {
		.name		= blob->header->name,
		.text		= blob->header->text,
		.parent		= &frames->rpdev->dev,
		.channels	= channels,
		.events		= &frames->event,
		.channel_count	= fields + ARRAY_SIZE(own),
		.event_count	= 1,
	};
	return 0;
}

static int frames_probe(struct rpmsg_device *rpdev)
{
	struct rpmsg_channel_info address = { .src = RPMSG_ADDR_ANY, .dst = rpdev->dst };
	struct frames *frames;
	int ret;

	frames = devm_kzalloc(&rpdev->dev, sizeof(*frames), GFP_KERNEL);
	if (!frames)
		return -ENOMEM;
	frames->rpdev = rpdev;
	raw_spin_lock_init(&frames->lock);
	/* What a program before has started, and is on its way, is hardly taken for ours. */
	frames->stream = ktime_get_ns();
	ret = frames_load(frames) ?: frames_make(frames);
	if (ret)
		return ret;
	strscpy(address.name, rpdev->id.name);
	/* Not the channel's own: its callback may come before there is anything to give it. */
	frames->ept = rpmsg_create_ept(rpdev, frames_callback, frames, address);
	if (!frames->ept)
		return dev_err_probe(&rpdev->dev, -ENOMEM, "no endpoint\n");
	dev_set_drvdata(&rpdev->dev, frames);
	ret = strobe_device_register(&frames->device);
	if (ret) {
		rpmsg_destroy_ept(frames->ept);
		return dev_err_probe(&rpdev->dev, ret, "cannot be registered\n");
	}
	return 0;
}

/*
 * First the runs end, what has come is in their rings, and nobody sends any
 * more; only then the endpoint may go.
 */
static void frames_remove(struct rpmsg_device *rpdev)
{
	struct frames *frames = dev_get_drvdata(&rpdev->dev);

	strobe_device_unregister(&frames->device);
	rpmsg_destroy_ept(frames->ept);
}

static const struct rpmsg_device_id frames_ids[] = {
	{ .name = "strobe-frames" },
	{ }
};
MODULE_DEVICE_TABLE(rpmsg, frames_ids);

static struct rpmsg_driver frames_driver = {
	.drv.name	= KBUILD_MODNAME,
	.id_table	= frames_ids,
	.probe		= frames_probe,
	.remove		= frames_remove,
};
module_rpmsg_driver(frames_driver);

MODULE_DESCRIPTION("Messages of a co-processor as events of strobe");
MODULE_LICENSE("GPL");
