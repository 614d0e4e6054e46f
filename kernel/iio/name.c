// SPDX-License-Identifier: GPL-2.0-only
/* Names and units: those of IIO's files in sysfs, as far as strobe's rules for names allow. */
#include <linux/ctype.h>
#include <linux/device.h>
#include <linux/iio/iio.h>
#include <linux/string.h>

#include "iio/iio.h"

/* Of (raw + offset) * scale, by the ABI of IIO. */
static const struct {
	const char	*name;
	const char	*unit;
} kinds[] = {
	[IIO_VOLTAGE]			= { "voltage", "mV" },
	[IIO_CURRENT]			= { "current", "mA" },
	[IIO_POWER]			= { "power", "mW" },
	[IIO_ACCEL]			= { "accel", "m/s2" },
	[IIO_ANGL_VEL]			= { "anglvel", "rad/s" },
	[IIO_MAGN]			= { "magn", "G" },
	[IIO_LIGHT]			= { "illuminance", "lx" },
	[IIO_INTENSITY]			= { "intensity" },
	[IIO_PROXIMITY]			= { "proximity" },
	[IIO_TEMP]			= { "temp", "mdegC" },
	[IIO_INCLI]			= { "incli", "deg" },
	[IIO_ROT]			= { "rot", "deg" },
	[IIO_ANGL]			= { "angl", "rad" },
	[IIO_TIMESTAMP]			= { "timestamp", "ns" },
	[IIO_CAPACITANCE]		= { "capacitance", "nF" },
	[IIO_ALTVOLTAGE]		= { "altvoltage", "mV" },
	[IIO_CCT]			= { "cct", "K" },
	[IIO_PRESSURE]			= { "pressure", "kPa" },
	[IIO_HUMIDITYRELATIVE]		= { "humidityrelative", "m%" },
	[IIO_ACTIVITY]			= { "activity", "%" },
	[IIO_STEPS]			= { "steps" },
	[IIO_ENERGY]			= { "energy", "J" },
	[IIO_DISTANCE]			= { "distance", "m" },
	[IIO_VELOCITY]			= { "velocity", "m/s" },
	[IIO_CONCENTRATION]		= { "concentration", "%" },
	[IIO_RESISTANCE]		= { "resistance", "Ohm" },
	[IIO_PH]			= { "ph" },
	[IIO_UVINDEX]			= { "uvindex" },
	[IIO_ELECTRICALCONDUCTIVITY]	= { "electricalconductivity", "S/m" },
	[IIO_COUNT]			= { "count" },
	[IIO_INDEX]			= { "index" },
	[IIO_GRAVITY]			= { "gravity", "m/s2" },
	[IIO_POSITIONRELATIVE]		= { "positionrelative", "m%" },
	[IIO_PHASE]			= { "phase", "rad" },
	[IIO_MASSCONCENTRATION]		= { "massconcentration", "ug/m3" },
};

static const char * const modifiers[] = {
	[IIO_MOD_X]			= "x",
	[IIO_MOD_Y]			= "y",
	[IIO_MOD_Z]			= "z",
	[IIO_MOD_LIGHT_BOTH]		= "both",
	[IIO_MOD_LIGHT_IR]		= "ir",
	[IIO_MOD_LIGHT_CLEAR]		= "clear",
	[IIO_MOD_LIGHT_RED]		= "red",
	[IIO_MOD_LIGHT_GREEN]		= "green",
	[IIO_MOD_LIGHT_BLUE]		= "blue",
	[IIO_MOD_LIGHT_UV]		= "uv",
	[IIO_MOD_TEMP_AMBIENT]		= "ambient",
	[IIO_MOD_TEMP_OBJECT]		= "object",
	[IIO_MOD_RUNNING]		= "running",
	[IIO_MOD_JOGGING]		= "jogging",
	[IIO_MOD_WALKING]		= "walking",
	[IIO_MOD_STILL]			= "still",
	[IIO_MOD_I]			= "i",
	[IIO_MOD_Q]			= "q",
	[IIO_MOD_CO2]			= "co2",
	[IIO_MOD_VOC]			= "voc",
};

/**
 * iio_name_unit() - unit of a channel.
 * @spec: the channel.
 *
 * Return: the unit of (raw + offset) * scale; NULL if there is none.
 */
const char *iio_name_unit(const struct iio_chan_spec *spec)
{
	return spec->type < ARRAY_SIZE(kinds) ? kinds[spec->type].unit : NULL;
}

/* What a name must not have becomes a line. To isalnum() the letters of Latin-1 are some, too. */
static void clean(char *name)
{
	for (; *name; name++)
		if (!isascii(*name) || (!isalnum(*name) && *name != '-'))
			*name = '_';
}

/**
 * iio_name_value() - name of a channel.
 * @name: STROBE_PART_SIZE bytes for it.
 * @before: what it begins with.
 * @spec: the channel.
 *
 * Return: whether it fits.
 */
bool iio_name_value(char *name, const char *before, const struct iio_chan_spec *spec)
{
	const size_t room = STROBE_PART_SIZE;
	const char *kind = spec->type < ARRAY_SIZE(kinds) ? kinds[spec->type].name : NULL;
	size_t at;

	if (kind)
		at = scnprintf(name, room, "%s%s", before, kind);
	else
		at = scnprintf(name, room, "%stype%u", before, spec->type);
	if (spec->indexed)
		at += scnprintf(name + at, room - at, "%d", spec->channel);
	if (spec->differential)
		at += scnprintf(name + at, room - at, "-%s%d", kind ?: "", spec->channel2);
	else if (spec->modified && spec->channel2 < (int)ARRAY_SIZE(modifiers) &&
		 modifiers[spec->channel2])
		at += scnprintf(name + at, room - at, "_%s", modifiers[spec->channel2]);
	else if (spec->modified)
		at += scnprintf(name + at, room - at, "_mod%d", spec->channel2);
	if (spec->extend_name)
		at += scnprintf(name + at, room - at, "_%s", spec->extend_name);
	clean(name);
	return at + 1 < room;
}

/**
 * iio_name_is_taken() - whether one before has the name of the last.
 * @values: channels or outputs of a device.
 * @last: place of the last.
 *
 * Return: whether it is so.
 */
bool iio_name_is_taken(const struct iio_value *values, u32 last)
{
	for (u32 i = 0; i < last; i++)
		if (!strcmp(values[i].name, values[last].name))
			return true;
	return false;
}

/**
 * iio_name_device() - name of a device: its label, or what its driver calls it.
 * @name: where it goes.
 * @room: bytes there.
 * @indio: the device.
 */
void iio_name_device(char *name, size_t room, const struct iio_dev *indio)
{
	const char *own = indio->label ?: indio->name ?: "";

	/* One like a run's name, or with a digit first, is none for strobe. */
	snprintf(name, room, "%s%s",
		 isascii(own[0]) && isalpha(own[0]) && strncmp(own, "run", 3) ? "" : "iio_", own);
	clean(name);
}
