// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scans of a device, as a buffer of strobe's own beside those of other users:
 *
 *   DEVICE.scan            event: each scan is a trigger
 *   DEVICE.scan_voltage0   a sample of the last scan, class HARD: it is in memory
 *   DEVICE.scan_timestamp  when the scan was taken, CLOCK_MONOTONIC where IIO's
 *                          clock can be converted to it, else as it is
 *   DEVICE.scan_count      number of the last scan
 *
 * IIO hands scans over where the driver has them: mostly in the thread of an
 * interrupt, on some devices in hard interrupt context. The row is made there at
 * once, with interrupts off. The time stamp of the scan is when it was due.
 *
 * The device scans what the runs that were created before its start want to read.
 * Whoever comes later must do with that.
 */
#include <linux/bitmap.h>
#include <linux/iio/buffer_impl.h>
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/irqflags.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/unaligned.h>

#include "iio/iio.h"
#include "iio/gaps.h"

/**
 * struct iio_sample - a channel of a scan.
 * @spec: what IIO has.
 * @type: how it is stored.
 * @at: its place in the scan, while @is_on.
 * @is_on: the scan has it.
 * @users: runs that read it.
 * @value: of the last scan.
 */
struct iio_sample {
	const struct iio_chan_spec	*spec;
	struct iio_scan_type		type;
	u32				at;
	bool				is_on;
	u32				users;
	u64				value;
};

/**
 * struct iio_scan - scans of a device.
 * @buffer: IIO's view; counts the references.
 * @unit: the device.
 * @stamp_spec: its time stamps; NULL: it has none.
 * @stamp_at: their place in a scan.
 * @is_on: scans are wanted.
 * @stamp: of the last scan.
 * @scans: scans since they were wanted; 0: there is none to read.
 * @gaps: finds those that were dropped; no period: it cannot.
 * @is_even: @stamp can be converted.
 * @count: samples that a scan can have.
 * @samples: these, in the order of their places.
 *
 * @users and @is_on are changed under strobe's registry lock, all else that
 * changes by who hands a scan over; rows read it.
 */
struct iio_scan {
	struct iio_buffer		buffer;
	struct iio_unit			*unit;
	const struct iio_chan_spec	*stamp_spec;
	u32				stamp_at;
	bool				is_on;
	u64				stamp;
	u64				scans;
	struct iio_gaps			gaps;
	bool				is_even;
	u32				count;
	struct iio_sample		samples[] __counted_by(count);
};

/* ---- scans that come ---- */

static u64 load(const struct iio_scan_type *type, const void *at)
{
	bool big = type->endianness == IIO_BE;
	bool little = type->endianness == IIO_LE;

	switch (type->storagebits) {
	case 8:
		return *(const u8 *)at;
	case 16:
		return big ? get_unaligned_be16(at) :
		       little ? get_unaligned_le16(at) : get_unaligned((const u16 *)at);
	case 32:
		return big ? get_unaligned_be32(at) :
		       little ? get_unaligned_le32(at) : get_unaligned((const u32 *)at);
	default:
		return big ? get_unaligned_be64(at) :
		       little ? get_unaligned_le64(at) : get_unaligned((const u64 *)at);
	}
}

static u64 decode(const struct iio_scan_type *type, const void *at)
{
	u64 raw = load(type, at) >> type->shift;

	if (type->sign == 's')
		return sign_extend64(raw, type->realbits - 1);
	return raw & GENMASK_ULL(type->realbits - 1, 0);
}

/* Of one device never twice at once: its driver hands over one scan after the other. */
static int scan_store(struct iio_buffer *buffer, const void *data)
{
	struct iio_scan *scan = container_of(buffer, struct iio_scan, buffer);
	u64 now = ktime_get_ns(), stamp = now, missed = 0, offset;

	guard(irqsave)();
	if (scan->stamp_spec) {
		stamp = get_unaligned((const u64 *)(data + scan->stamp_at));
		if (scan->is_even && iio_clock_offset(scan->unit->indio, &offset))
			stamp -= offset;
		WRITE_ONCE(scan->stamp, stamp);
		missed = iio_gaps_before(&scan->gaps, stamp);
	}
	for (u32 i = 0; i < scan->count; i++) {
		struct iio_sample *sample = &scan->samples[i];

		if (sample->is_on)
			WRITE_ONCE(sample->value, decode(&sample->type, data + sample->at));
	}
	WRITE_ONCE(scan->scans, scan->scans + 1);
	if (!scan->is_even || stamp > now)
		stamp = now;
	strobe_event_trigger(&scan->unit->event, now, stamp, missed);
	return 0;
}

static void scan_release(struct iio_buffer *buffer)
{
	struct iio_scan *scan = container_of(buffer, struct iio_scan, buffer);

	bitmap_free((unsigned long *)buffer->scan_mask);
	kfree(scan);
}

static const struct iio_buffer_access_funcs scan_access = {
	.store_to	= scan_store,
	.release	= scan_release,
	.modes		= INDIO_BUFFER_SOFTWARE | INDIO_BUFFER_TRIGGERED,
};

/* ---- the event ---- */

static struct iio_scan *scan_of(struct strobe_event *event)
{
	return container_of(event, struct iio_unit, event)->scan;
}

static int period_and_clock(struct iio_scan *scan, u64 *period)
{
	u64 offset;

	*period = 0;
	scan->is_even = scan->stamp_spec && iio_clock_offset(scan->unit->indio, &offset);
	if (scan->is_even)
		*period = iio_period_of(scan->unit->indio);
	return *period != 0;
}

static enum strobe_accounting scan_accounting(struct strobe_event *event)
{
	struct iio_scan *scan = scan_of(event);
	u64 period;

	if (scan->is_on)
		period = scan->gaps.period;
	else
		period_and_clock(scan, &period);
	return period ? STROBE_ACCOUNTING_BY_TIME : STROBE_ACCOUNTING_NONE;
}

/* A place for what takes so many bits, aligned to its own size; moves @end. */
static u32 place(u32 *end, const struct iio_scan_type *type)
{
	u32 bytes = type->storagebits / 8, at = ALIGN(*end, bytes);

	*end = at + bytes;
	return at;
}

/* What is wanted, and if that is nothing, the first: IIO does not scan for a time stamp alone. */
static void choose(struct iio_scan *scan)
{
	unsigned long *mask = (unsigned long *)scan->buffer.scan_mask;
	bool none = true;
	u32 end = 0;

	bitmap_zero(mask, iio_get_masklength(scan->unit->indio));
	for (u32 i = 0; i < scan->count; i++)
		none &= !scan->samples[i].users;
	for (u32 i = 0; i < scan->count; i++) {
		struct iio_sample *sample = &scan->samples[i];

		sample->is_on = sample->users || (none && !i);
		if (!sample->is_on)
			continue;
		__set_bit(sample->spec->scan_index, mask);
		sample->at = place(&end, &sample->type);
	}
	scan->buffer.scan_timestamp = scan->stamp_spec;
	if (scan->stamp_spec)
		scan->stamp_at = place(&end, &scan->stamp_spec->scan_type);
}

static int scan_enable(struct strobe_event *event)
{
	struct iio_scan *scan = scan_of(event);
	u64 period;
	int ret;

	period_and_clock(scan, &period);
	scan->gaps = (struct iio_gaps){ .period = period };
	WRITE_ONCE(scan->scans, 0);
	choose(scan);
	ret = iio_update_buffers(scan->unit->indio, &scan->buffer, NULL);
	scan->is_on = !ret;
	return ret;
}

/* IIO has waited for who hands scans over. */
static void scan_disable(struct strobe_event *event)
{
	struct iio_scan *scan = scan_of(event);

	iio_update_buffers(scan->unit->indio, NULL, &scan->buffer);
	scan->is_on = false;
	WRITE_ONCE(scan->scans, 0);
}

const struct strobe_event_ops iio_scan_event_ops = {
	.enable		= scan_enable,
	.disable	= scan_disable,
	.accounting	= scan_accounting,
};

/* ---- its channels ---- */

static struct iio_scan *scan_of_channel(struct strobe_channel *channel, u32 *place)
{
	struct iio_unit *unit = container_of(channel->device, struct iio_unit, device);

	*place = unit->values[channel - unit->channels].place;
	return unit->scan;
}

static int sample_prepare(struct strobe_channel *channel)
{
	u32 place;
	struct iio_scan *scan = scan_of_channel(channel, &place);
	struct iio_sample *sample = &scan->samples[place];

	if (scan->is_on && !sample->is_on)
		return -EBUSY;
	if (!sample->users)
		iio_value_scale(scan->unit, sample->spec, &channel->scale, &channel->offset);
	sample->users++;
	return 0;
}

static void sample_unprepare(struct strobe_channel *channel)
{
	u32 place;

	scan_of_channel(channel, &place)->samples[place].users--;
}

/* Of the last scan: before the first there is nothing to read. */
static int sample_read(struct strobe_channel *channel, u64 *value)
{
	u32 place;
	struct iio_scan *scan = scan_of_channel(channel, &place);

	*value = READ_ONCE(scan->samples[place].value);
	return READ_ONCE(scan->scans) ? 0 : -ENODATA;
}

static int stamp_read(struct strobe_channel *channel, u64 *value)
{
	u32 place;
	struct iio_scan *scan = scan_of_channel(channel, &place);

	*value = READ_ONCE(scan->stamp);
	return READ_ONCE(scan->scans) ? 0 : -ENODATA;
}

static int count_read(struct strobe_channel *channel, u64 *value)
{
	u32 place;

	*value = READ_ONCE(scan_of_channel(channel, &place)->scans);
	return *value ? 0 : -ENODATA;
}

static const struct strobe_channel_ops sample_ops = {
	.prepare	= sample_prepare,
	.unprepare	= sample_unprepare,
	.read		= sample_read,
};

static const struct strobe_channel_ops stamp_ops = { .read = stamp_read };
static const struct strobe_channel_ops count_ops = { .read = count_read };

/**
 * iio_scan_channels() - channels of the scans of a device.
 * @unit: the device; has room for them.
 * @first: place of the first among its channels.
 *
 * Context: process.
 * Return: how many.
 */
u32 iio_scan_channels(struct iio_unit *unit, u32 first)
{
	struct strobe_channel *channel = &unit->channels[first];
	struct iio_scan *scan = unit->scan;

	for (u32 i = 0; i < scan->count; i++) {
		const struct iio_sample *sample = &scan->samples[i];
		struct iio_value *value = &unit->values[channel - unit->channels];

		value->place = i;
		if (!iio_name_value(value->name, "scan_", sample->spec))
			continue;
		*channel = (struct strobe_channel) {
			.name	= value->name,
			.unit	= iio_name_unit(sample->spec),
			.text	= "of the last scan",
			.type	= sample->type.sign == 's' ? STROBE_TYPE_S64 : STROBE_TYPE_U64,
			.bits	= sample->type.realbits,
			.ops	= &sample_ops,
		};
		iio_value_scale(unit, sample->spec, &channel->scale, &channel->offset);
		channel++;
	}
	if (scan->stamp_spec)
		*channel++ = (struct strobe_channel) {
			.name = "scan_timestamp", .unit = "ns", .ops = &stamp_ops,
			.text = "when the last scan was taken",
		};
	*channel++ = (struct strobe_channel) {
		.name = "scan_count", .ops = &count_ops,
		.text = "number of the last scan, from 1",
	};
	return channel - &unit->channels[first];
}

/* ---- life ---- */

/* One word each, whatever the driver may change about it later. */
static bool is_sample(const struct iio_chan_spec *spec)
{
	const struct iio_scan_type *type = &spec->scan_type;

	return spec->scan_index >= 0 && spec->type != IIO_TIMESTAMP && !spec->output &&
	       !spec->has_ext_scan_type && type->repeat <= 1 &&
	       (type->sign == 's' || type->sign == 'u') &&
	       (type->storagebits == 8 || type->storagebits == 16 ||
		type->storagebits == 32 || type->storagebits == 64) &&
	       type->realbits && type->realbits + type->shift <= type->storagebits;
}

/* In the order of a scan. */
static void insert(struct iio_scan *scan, const struct iio_chan_spec *spec)
{
	u32 at = scan->count++;

	for (; at && scan->samples[at - 1].spec->scan_index > spec->scan_index; at--)
		scan->samples[at] = scan->samples[at - 1];
	scan->samples[at] = (struct iio_sample){ .spec = spec, .type = spec->scan_type };
}

/**
 * iio_scan_make() - prepare the scans of a device.
 * @unit: the device.
 *
 * Context: process.
 * Return: the scans; NULL if it has no buffer that others can share, nothing
 * that is one word a scan, or there is no memory.
 */
struct iio_scan *iio_scan_make(struct iio_unit *unit)
{
	const struct iio_dev *indio = unit->indio;
	struct iio_scan *scan;

	if (!(indio->modes & (INDIO_BUFFER_SOFTWARE | INDIO_BUFFER_TRIGGERED)) ||
	    !iio_get_masklength(indio))
		return NULL;
	scan = kzalloc(struct_size(scan, samples, min(indio->num_channels, IIO_SAMPLES_MAX)),
		       GFP_KERNEL);
	if (!scan)
		return NULL;
	iio_buffer_init(&scan->buffer);
	scan->buffer.access = &scan_access;
	scan->buffer.scan_mask = (long *)bitmap_zalloc(iio_get_masklength(indio), GFP_KERNEL);
	scan->unit = unit;
	for (int i = 0; i < indio->num_channels && scan->count < IIO_SAMPLES_MAX; i++) {
		const struct iio_chan_spec *spec = &indio->channels[i];

		if (spec->type == IIO_TIMESTAMP && spec->scan_index >= 0)
			scan->stamp_spec = spec;
		else if (is_sample(spec))
			insert(scan, spec);
	}
	if (scan->buffer.scan_mask && scan->count)
		return scan;
	iio_scan_free(scan);
	return NULL;
}

/**
 * iio_scan_free() - the device has gone, or could not be made.
 * @scan: the scans, which nobody wants; or NULL.
 *
 * Context: process.
 */
void iio_scan_free(struct iio_scan *scan)
{
	/* IIO has a reference while it scans. */
	if (scan)
		iio_buffer_put(&scan->buffer);
}
