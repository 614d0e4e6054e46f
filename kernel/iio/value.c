// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values that are asked for and set one at a time, over whatever bus the device
 * is on: class SLEEP.
 *
 *   DEVICE.in_voltage0    raw; its scale and offset are those of the driver
 *   DEVICE.in_temp        where the driver knows nothing raw: in millionths
 *   DEVICE.out_voltage0   output, and a channel if it can be read back
 *
 * While a scan is on, many drivers refuse to be asked: then the value is a fault
 * of its row.
 */
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/math64.h>
#include <linux/overflow.h>

#include "iio/iio.h"

/* Rough time of one access; a bus may take much longer. */
#define ACCESS_NS	100000
#define MILLION		1000000

/* What IIO returns: @kind says how, to @number / @by. */
static int fraction(int kind, int val, int val2, s64 *number, u64 *by)
{
	u32 parts = kind == IIO_VAL_INT_PLUS_NANO ? NSEC_PER_SEC : MILLION;

	switch (kind) {
	case IIO_VAL_INT:
		*number = val;
		*by = 1;
		return 0;
	case IIO_VAL_INT_64:
		*number = (s64)((u64)val2 << 32 | (u32)val);
		*by = 1;
		return 0;
	case IIO_VAL_INT_PLUS_MICRO:
	case IIO_VAL_INT_PLUS_NANO:
		/* The sign is that of the first which is not 0. */
		*number = (s64)abs(val) * parts + abs(val2);
		if (val < 0 || val2 < 0)
			*number = -*number;
		*by = parts;
		return 0;
	case IIO_VAL_FRACTIONAL:
		if (!val2)
			return -ERANGE;
		*number = val2 < 0 ? -(s64)val : val;
		*by = abs((s64)val2);
		return 0;
	case IIO_VAL_FRACTIONAL_LOG2:
		if (val2 < 0 || val2 > 62)
			return -ERANGE;
		*number = val;
		*by = BIT_ULL(val2);
		return 0;
	default:
		return kind < 0 ? kind : -EOPNOTSUPP;
	}
}

static int ask(struct iio_unit *unit, const struct iio_chan_spec *spec,
	       enum iio_chan_info_enum what, s64 *number, u64 *by)
{
	struct iio_channel channel = { .indio_dev = unit->indio, .channel = spec };
	int val = 0, val2 = 0;
	int kind = iio_read_channel_attribute(&channel, &val, &val2, what);

	return fraction(kind, val, val2, number, by);
}

/* Leaves it as it is where there is none; in decibel there is none that is linear. */
static int ask_f64(struct iio_unit *unit, const struct iio_chan_spec *spec,
		   enum iio_chan_info_enum what, u64 *bits)
{
	s64 number;
	u64 by;
	int ret;

	if (!iio_channel_has_info(spec, what))
		return 0;
	ret = ask(unit, spec, what, &number, &by);
	if (!ret)
		*bits = iio_f64_of(number, by);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

/**
 * iio_value_scale() - how a raw value becomes one with a unit.
 * @unit: the device.
 * @spec: the channel.
 * @scale: binary64.
 * @offset: binary64; of what is scaled.
 *
 * Context: process.
 * Return: 0; or what the driver says if it cannot tell now, and nothing changed.
 */
int iio_value_scale(struct iio_unit *unit, const struct iio_chan_spec *spec, u64 *scale,
		    u64 *offset)
{
	u64 factor = STROBE_F64_ONE, raw = 0;
	int ret = ask_f64(unit, spec, IIO_CHAN_INFO_SCALE, &factor) ?:
		  ask_f64(unit, spec, IIO_CHAN_INFO_OFFSET, &raw);

	if (ret)
		return ret;
	*scale = factor;
	*offset = iio_f64_product(raw, factor);
	return 0;
}

static struct iio_value *value_of(struct strobe_channel *channel, struct iio_unit **unit)
{
	*unit = container_of(channel->device, struct iio_unit, device);
	return &(*unit)->values[channel - (*unit)->channels];
}

/*
 * The user may have set another range since it was last used. Not of a device that
 * runs ask already: the driver might be at a long conversion, and this is under
 * strobe's registry lock, for which others wait.
 */
static int raw_prepare(struct strobe_channel *channel)
{
	struct iio_unit *unit;
	struct iio_value *value = value_of(channel, &unit);
	int ret = 0;

	if (!unit->asking)
		ret = iio_value_scale(unit, value->spec, &channel->scale, &channel->offset);
	unit->asking += !ret;
	return ret;
}

static int processed_prepare(struct strobe_channel *channel)
{
	container_of(channel->device, struct iio_unit, device)->asking++;
	return 0;
}

static void value_unprepare(struct strobe_channel *channel)
{
	container_of(channel->device, struct iio_unit, device)->asking--;
}

static int raw_read(struct strobe_channel *channel, u64 *word)
{
	struct iio_unit *unit;
	struct iio_value *value = value_of(channel, &unit);
	s64 number;
	u64 by;
	int ret = ask(unit, value->spec, IIO_CHAN_INFO_RAW, &number, &by);

	if (ret)
		return ret;
	*word = by == 1 ? number : div64_s64(number, by);
	return 0;
}

static int processed_read(struct strobe_channel *channel, u64 *word)
{
	struct iio_unit *unit;
	struct iio_value *value = value_of(channel, &unit);
	s64 number, whole;
	u64 by;
	int ret = ask(unit, value->spec, IIO_CHAN_INFO_PROCESSED, &number, &by);

	if (ret)
		return ret;
	whole = div64_s64(number, by);
	/* What is left is less than 2^31, or 10^9. */
	number = div64_s64((number - whole * (s64)by) * MILLION, by);
	if (check_mul_overflow(whole, (s64)MILLION, &whole))
		return -ERANGE;
	*word = whole + number;
	return 0;
}

static const struct strobe_channel_ops raw_ops = {
	.prepare	= raw_prepare,
	.unprepare	= value_unprepare,
	.read		= raw_read,
};

static const struct strobe_channel_ops processed_ops = {
	.prepare	= processed_prepare,
	.unprepare	= value_unprepare,
	.read		= processed_read,
};

/**
 * iio_values_make() - the channels that are asked for.
 * @unit: the device; has room for them.
 *
 * Context: process.
 * Return: how many.
 */
u32 iio_values_make(struct iio_unit *unit)
{
	u32 count = 0;

	for (int i = 0; i < unit->indio->num_channels; i++) {
		const struct iio_chan_spec *spec = &unit->indio->channels[i];
		bool raw = iio_channel_has_info(spec, IIO_CHAN_INFO_RAW);
		struct strobe_channel *channel = &unit->channels[count];
		struct iio_value *value = &unit->values[count];

		if (!raw && !iio_channel_has_info(spec, IIO_CHAN_INFO_PROCESSED))
			continue;
		value->spec = spec;
		if (!iio_name_value(value->name, spec->output ? "out_" : "in_", spec) ||
		    iio_name_is_taken(unit->values, count))
			continue;
		*channel = (struct strobe_channel) {
			.name		= value->name,
			.unit		= iio_name_unit(spec),
			.type		= STROBE_TYPE_S64,
			.cost_class	= STROBE_CLASS_SLEEP,
			.cost_ns	= ACCESS_NS,
			.ops		= raw ? &raw_ops : &processed_ops,
			.scale		= iio_f64_of(1, MILLION),
		};
		/* For the catalogue; a run asks again. */
		if (raw) {
			channel->scale = STROBE_F64_ONE;
			iio_value_scale(unit, spec, &channel->scale, &channel->offset);
		}
		count++;
	}
	return count;
}

/* ---- outputs ---- */

static int set_prepare(struct strobe_output *output)
{
	struct iio_unit *unit = container_of(output->device, struct iio_unit, device);

	if (unit->asking)
		return 0;
	return iio_value_scale(unit, unit->sets[output - unit->outputs].spec, &output->scale,
			       &output->offset);
}

static int set_write(struct strobe_output *output, u64 word)
{
	struct iio_unit *unit = container_of(output->device, struct iio_unit, device);
	struct iio_channel channel = {
		.indio_dev	= unit->indio,
		.channel	= unit->sets[output - unit->outputs].spec,
	};

	return iio_write_channel_raw(&channel, (int)word);
}

static const struct strobe_output_ops set_ops = { .prepare = set_prepare };

/**
 * iio_sets_make() - the outputs.
 * @unit: the device; has room for them.
 *
 * Context: process.
 * Return: how many.
 */
u32 iio_sets_make(struct iio_unit *unit)
{
	u32 count = 0;

	if (!unit->indio->info->write_raw)
		return 0;
	for (int i = 0; i < unit->indio->num_channels; i++) {
		const struct iio_chan_spec *spec = &unit->indio->channels[i];
		struct strobe_output *output = &unit->outputs[count];
		struct iio_value *value = &unit->sets[count];

		if (!spec->output || !iio_channel_has_info(spec, IIO_CHAN_INFO_RAW))
			continue;
		value->spec = spec;
		if (!iio_name_value(value->name, "out_", spec) ||
		    iio_name_is_taken(unit->sets, count))
			continue;
		*output = (struct strobe_output) {
			.name		= value->name,
			.unit		= iio_name_unit(spec),
			/* IIO hands an int over; the driver knows the range, and refuses. */
			.type		= STROBE_TYPE_S64,
			.bits		= 32,
			.cost_class	= STROBE_CLASS_SLEEP,
			.cost_ns	= ACCESS_NS,
			.scale		= STROBE_F64_ONE,
			.write		= set_write,
			.ops		= &set_ops,
		};
		/* As above. */
		iio_value_scale(unit, spec, &output->scale, &output->offset);
		count++;
	}
	return count;
}
