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
 *
 * IIO scans for all users of a device at once, and hands to each what that one
 * wants. Some drivers can only scan certain sets of channels, and ask to be asked;
 * but of the sum of all users' sets IIO asks nobody. So their devices have no scans
 * here.
 */
#include <linux/bitmap.h>
#include <linux/iio/buffer_impl.h>
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/unaligned.h>

#include "iio/iio.h"
#include "iio/scan.h"

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

/*
 * Whether IIO has put the stamp where it belongs. Of a scan that it has not made for
 * strobe alone it leaves channels out; if there are some behind the last that is
 * wanted, it takes one of these for the stamp.
 */
static bool has_stamp(const struct iio_scan *scan)
{
	const struct iio_dev *indio = scan->unit->indio;
	unsigned int length = iio_get_masklength(indio);

	return scan->stamp_spec && indio->active_scan_mask &&
	       find_last_bit(indio->active_scan_mask, length) == scan->last_index;
}

/* A scan, under the lock that keeps it from being turned off meanwhile. */
static void store(struct iio_scan *scan, const void *data, u64 now)
{
	u64 stamp = now, missed, offset;

	WRITE_ONCE(scan->is_stamped, has_stamp(scan));
	if (scan->is_stamped) {
		stamp = get_unaligned((const u64 *)(data + scan->stamp_at));
		if (scan->is_even && iio_clock_offset(scan->unit->indio, &offset))
			stamp -= offset;
		WRITE_ONCE(scan->stamp, stamp);
	}
	/* Without a stamp the time of arrival has to do: it may be late, and is never early. */
	missed = iio_gaps_before(&scan->gaps, stamp);
	for (u32 i = 0; i < scan->count; i++) {
		struct iio_sample *sample = &scan->samples[i];

		if (sample->is_on)
			WRITE_ONCE(sample->value, decode(&sample->type, data + sample->at));
	}
	WRITE_ONCE(scan->scans, scan->scans + 1);
	if (!scan->is_even || stamp > now)
		stamp = now;
	strobe_event_trigger(&scan->unit->event, now, stamp, missed);
}

static int scan_store(struct iio_buffer *buffer, const void *data)
{
	struct iio_scan *scan = container_of(buffer, struct iio_scan, buffer);
	u64 now = ktime_get_ns();

	scoped_guard(raw_spinlock_irqsave, &scan->lock)
		if (scan->is_on)
			store(scan, data, now);
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

/*
 * What is wanted, and if that is nothing, the first: IIO does not scan for a time
 * stamp alone. Of a device that only scans certain sets the last, too: see has_stamp().
 */
static void choose(struct iio_scan *scan)
{
	unsigned long *mask = (unsigned long *)scan->buffer.scan_mask;
	bool last = scan->stamp_spec && scan->unit->indio->available_scan_masks, none = true;
	u32 end = 0;

	bitmap_zero(mask, iio_get_masklength(scan->unit->indio));
	for (u32 i = 0; i < scan->count; i++)
		none &= !scan->samples[i].users;
	for (u32 i = 0; i < scan->count; i++) {
		struct iio_sample *sample = &scan->samples[i];

		sample->is_on = sample->users || (none && !i) || (last && i + 1 == scan->count);
		if (!sample->is_on)
			continue;
		__set_bit(sample->spec->scan_index, mask);
		scan->last_index = sample->spec->scan_index;
		sample->at = place(&end, &sample->type);
	}
	scan->buffer.scan_timestamp = scan->stamp_spec;
	if (scan->stamp_spec)
		scan->stamp_at = place(&end, &scan->stamp_spec->scan_type);
}

/* After it is off, nobody is at a row of it. */
static void turn(struct iio_scan *scan, bool on)
{
	scoped_guard(raw_spinlock_irqsave, &scan->lock)
		scan->is_on = on;
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
	turn(scan, true);
	ret = iio_update_buffers(scan->unit->indio, &scan->buffer, NULL);
	if (ret)
		turn(scan, false);
	/* What START answers is an errno only; IIO says nothing of this. */
	if (ret && !scan->unit->indio->trig)
		dev_notice_ratelimited(&scan->unit->indio->dev,
				       "strobe: no trigger: write the name of one to trigger/current_trigger\n");
	return ret;
}

/* A driver whose trigger cannot be stopped, as of a device that was pulled, goes on. */
static void scan_disable(struct strobe_event *event)
{
	struct iio_scan *scan = scan_of(event);
	int ret;

	turn(scan, false);
	ret = iio_update_buffers(scan->unit->indio, NULL, &scan->buffer);
	if (ret)
		dev_warn(&scan->unit->indio->dev, "strobe: scans do not stop (%d)\n", ret);
	WRITE_ONCE(scan->scans, 0);
}

const struct strobe_event_ops iio_scan_event_ops = {
	.enable		= scan_enable,
	.disable	= scan_disable,
	.accounting	= scan_accounting,
};

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
	    (indio->setup_ops && indio->setup_ops->validate_scan_mask) ||
	    !iio_get_masklength(indio))
		return NULL;
	scan = kzalloc(struct_size(scan, samples, min(indio->num_channels, IIO_SAMPLES_MAX)),
		       GFP_KERNEL);
	if (!scan)
		return NULL;
	iio_buffer_init(&scan->buffer);
	raw_spin_lock_init(&scan->lock);
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
