// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every IIO device becomes a device of strobe, whoever may use it besides: no
 * board has to map its channels to a consumer. The bus of IIO says when one comes
 * and goes. It is told that a device goes before anything of it is undone, so
 * runs that use it end first, and its driver sees the end of a normal use.
 */
#include <linux/device.h>
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>

#include "iio/iio.h"

static LIST_HEAD(units);
/* Protects the list; outside strobe's locks. */
static DEFINE_MUTEX(units_lock);
/* This module goes: nothing is added any more. */
static bool is_leaving;

/* The bus has devices and triggers. */
static bool is_device(const struct device *dev)
{
	return dev->type && dev->type->name && !strcmp(dev->type->name, "iio_device");
}

static int add(struct device *dev, void *unused)
{
	struct iio_unit *unit;

	if (!is_device(dev))
		return 0;
	guard(mutex)(&units_lock);
	if (is_leaving)
		return 0;
	list_for_each_entry(unit, &units, entry)
		if (&unit->indio->dev == dev)
			return 0;
	unit = iio_unit_add(dev_to_iio_dev(dev));
	if (IS_ERR(unit))
		dev_warn(dev, "strobe: not to be used (%pe)\n", unit);
	else
		list_add_tail(&unit->entry, &units);
	return 0;
}

static struct iio_unit *take(const struct device *dev)
{
	struct iio_unit *unit;

	guard(mutex)(&units_lock);
	list_for_each_entry(unit, &units, entry)
		if (!dev || &unit->indio->dev == dev) {
			list_del(&unit->entry);
			return unit;
		}
	return NULL;
}

static void remove(const struct device *dev)
{
	struct iio_unit *unit;

	while ((unit = take(dev)))
		iio_unit_remove(unit);
}

/* Of a device that has begun to go when this module is loaded, only the last is heard. */
static int bus_notified(struct notifier_block *block, unsigned long what, void *data)
{
	switch (what) {
	case BUS_NOTIFY_ADD_DEVICE:
		add(data, NULL);
		break;
	case BUS_NOTIFY_REMOVED_DEVICE:
		if (!is_device(data))
			iio_period_trigger_gone();
		fallthrough;
	case BUS_NOTIFY_DEL_DEVICE:
		remove(data);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = bus_notified };

static int __init strobe_iio_init(void)
{
	int ret = bus_register_notifier(&iio_bus_type, &block);

	return ret ?: bus_for_each_dev(&iio_bus_type, NULL, NULL, add);
}

static void __exit strobe_iio_exit(void)
{
	scoped_guard(mutex, &units_lock)
		is_leaving = true;
	/* As long as there are units, it is heard what goes. */
	remove(NULL);
	bus_unregister_notifier(&iio_bus_type, &block);
}

module_init(strobe_iio_init);
module_exit(strobe_iio_exit);
MODULE_DESCRIPTION("Devices of the Industrial I/O subsystem as devices of strobe");
MODULE_LICENSE("GPL");
/* MODULE_IMPORT_NS() takes a word before Linux 6.13, and a text since. */
MODULE_INFO(import_ns, "IIO_CONSUMER");
