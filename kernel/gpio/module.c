// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPIO chips come and go with the drivers of platform devices and PCI cards: the
 * chips that do not sleep are theirs (expanders on a bus such as I2C, SPI or USB
 * sleep, and are for the user engine). So the two buses are watched. Of a device
 * that has got its driver the chips are added, and of one that loses it they are
 * removed, before its driver is told. Both come under that device's lock, so no
 * chip goes while it is added, and none is used when it goes.
 */
#include <linux/device.h>
#include <linux/gpio/driver.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "gpio/gpio.h"

static LIST_HEAD(units);
/* Protects the list. Inside the lock of a device, outside strobe's. */
static DEFINE_MUTEX(units_lock);

/* Of a chip that is wanted: of this device, if one is given, and not known yet. */
struct wish {
	const struct device	*parent;
};

static bool is_known(const struct gpio_chip *chip)
{
	const struct gpio_unit *unit;

	list_for_each_entry(unit, &units, entry)
		if (unit->gdev == chip->gpiodev)
			return true;
	return false;
}

static int is_wanted(struct gpio_chip *chip, const void *data)
{
	const struct wish *wish = data;

	return chip->parent == wish->parent && !chip->can_sleep && chip->get &&
	       !is_known(chip);
}

/* Under the lock of the device, which has its driver. */
static void add_chips_of(struct device *parent)
{
	struct wish wish = { .parent = parent };
	struct gpio_device *gdev;
	struct gpio_unit *unit;

	guard(mutex)(&units_lock);
	while ((gdev = gpio_device_find(&wish, is_wanted))) {
		unit = gpio_unit_add(gdev, gpio_device_get_chip(gdev));
		if (IS_ERR(unit)) {
			dev_warn(parent, "strobe: no lines of this chip (%pe)\n", unit);
			return;
		}
		list_add_tail(&unit->entry, &units);
	}
}

static struct gpio_unit *take_unit_of(const struct device *parent)
{
	struct gpio_unit *unit;

	guard(mutex)(&units_lock);
	list_for_each_entry(unit, &units, entry)
		if (!parent || unit->parent == parent) {
			list_del(&unit->entry);
			return unit;
		}
	return NULL;
}

static void remove_chips_of(const struct device *parent)
{
	struct gpio_unit *unit;

	while ((unit = take_unit_of(parent)))
		gpio_unit_remove(unit);
}

static int bus_notified(struct notifier_block *block, unsigned long what, void *data)
{
	if (what == BUS_NOTIFY_BOUND_DRIVER)
		add_chips_of(data);
	else if (what == BUS_NOTIFY_UNBIND_DRIVER)
		remove_chips_of(data);
	return NOTIFY_OK;
}

static int add_present(struct device *dev, void *unused)
{
	guard(device)(dev);
	if (device_is_bound(dev))
		add_chips_of(dev);
	return 0;
}

static const struct bus_type * const buses[] = {
	&platform_bus_type,
#ifdef CONFIG_PCI
	&pci_bus_type,
#endif
};

/* A block can be in one chain only. */
static struct notifier_block blocks[ARRAY_SIZE(buses)];

static void unwatch(unsigned int count)
{
	while (count--)
		bus_unregister_notifier(buses[count], &blocks[count]);
}

static int __init strobe_gpio_init(void)
{
	int ret;

	for (unsigned int i = 0; i < ARRAY_SIZE(buses); i++) {
		blocks[i].notifier_call = bus_notified;
		ret = bus_register_notifier(buses[i], &blocks[i]);
		if (ret) {
			unwatch(i);
			remove_chips_of(NULL);
			return ret;
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(buses); i++)
		bus_for_each_dev(buses[i], NULL, NULL, add_present);
	return 0;
}

static void __exit strobe_gpio_exit(void)
{
	unwatch(ARRAY_SIZE(buses));
	remove_chips_of(NULL);
}

module_init(strobe_gpio_init);
module_exit(strobe_gpio_exit);
MODULE_DESCRIPTION("GPIO lines as channels, outputs and events of strobe");
MODULE_LICENSE("GPL");
