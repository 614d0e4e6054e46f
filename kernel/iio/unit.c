// SPDX-License-Identifier: GPL-2.0-only
/* An IIO device as a device of strobe. */
#include <linux/device.h>
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/slab.h>

#include "iio/iio.h"

static void unit_free(struct iio_unit *unit)
{
	iio_scan_free(unit->scan);
	put_device(&unit->indio->dev);
	kvfree(unit->sets);
	kvfree(unit->outputs);
	kvfree(unit->values);
	kvfree(unit->channels);
	kfree(unit);
}

static int unit_make(struct iio_unit *unit)
{
	/* All of them twice, as values and as samples, is more than there can be. */
	u32 count = unit->indio->num_channels, room = 2 * count + IIO_SCAN_EXTRA;
	struct strobe_device *device = &unit->device;

	unit->channels = kvcalloc(room, sizeof(*unit->channels), GFP_KERNEL);
	unit->values = kvcalloc(room, sizeof(*unit->values), GFP_KERNEL);
	unit->outputs = kvcalloc(count, sizeof(*unit->outputs), GFP_KERNEL);
	unit->sets = kvcalloc(count, sizeof(*unit->sets), GFP_KERNEL);
	if (!unit->channels || !unit->values || (count && (!unit->outputs || !unit->sets)))
		return -ENOMEM;
	iio_name_device(unit->name, sizeof(unit->name), unit->indio);
	snprintf(unit->text, sizeof(unit->text), "IIO's %s", dev_name(&unit->indio->dev));
	*device = (struct strobe_device) {
		.name		= unit->name,
		.text		= unit->text,
		.channels	= unit->channels,
		.outputs	= unit->outputs,
		.events		= &unit->event,
		.channel_count	= iio_values_make(unit),
		.output_count	= iio_sets_make(unit),
	};
	unit->scan = iio_scan_make(unit);
	if (unit->scan) {
		device->channel_count += iio_scan_channels(unit, device->channel_count);
		device->event_count = 1;
		unit->event = (struct strobe_event) {
			.name		= "scan",
			.text		= "a scan of its buffer",
			.has_due	= true,
			.ops		= &iio_scan_event_ops,
		};
	}
	return strobe_device_register(device);
}

/**
 * iio_unit_add() - an IIO device becomes a device of strobe.
 * @indio: the device.
 *
 * Context: process; the device does not go meanwhile.
 * Return: the unit or an errno.
 */
struct iio_unit *iio_unit_add(struct iio_dev *indio)
{
	struct iio_unit *unit = kzalloc(sizeof(*unit), GFP_KERNEL);
	int ret;

	if (!unit)
		return ERR_PTR(-ENOMEM);
	get_device(&indio->dev);
	unit->indio = indio;
	ret = unit_make(unit);
	if (!ret)
		return unit;
	unit_free(unit);
	return ERR_PTR(ret);
}

/**
 * iio_unit_remove() - the IIO device is not a device of strobe any more.
 * @unit: the unit; freed.
 *
 * Runs that use it end. After this strobe does not ask the driver for anything.
 *
 * Context: process; the device does not go meanwhile.
 */
void iio_unit_remove(struct iio_unit *unit)
{
	strobe_device_unregister(&unit->device);
	unit_free(unit);
}
