// SPDX-License-Identifier: GPL-2.0-only
/* The channels of a device's scans: what is in memory of the last one. See scan.c. */
#include <linux/iio/iio.h>
#include <linux/string.h>

#include "iio/iio.h"
#include "iio/scan.h"

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
	int ret = 0;

	if (scan->is_on && !sample->is_on)
		return -EBUSY;
	if (!sample->users)
		ret = iio_value_scale(scan->unit, sample->spec, &channel->scale, &channel->offset);
	sample->users += !ret;
	return ret;
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
	return READ_ONCE(scan->scans) && READ_ONCE(scan->is_stamped) ? 0 : -ENODATA;
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
		if (!iio_name_value(value->name, "scan_", sample->spec) ||
		    !strcmp(value->name, "scan_count") || !strcmp(value->name, "scan_timestamp") ||
		    iio_name_is_taken(unit->values, channel - unit->channels)) {
			dev_notice(&unit->indio->dev, "strobe: no name for the sample with index %d\n",
				   sample->spec->scan_index);
			continue;
		}
		*channel = (struct strobe_channel) {
			.name	= value->name,
			.unit	= iio_name_unit(sample->spec),
			.text	= "of the last scan",
			.type	= sample->type.sign == 's' ? STROBE_TYPE_S64 : STROBE_TYPE_U64,
			.bits	= sample->type.realbits,
			.ops	= &sample_ops,
			.scale	= STROBE_F64_ONE,
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
