// SPDX-License-Identifier: GPL-2.0-only
/*
 * How often a device scans, and which clock its time stamps are of: by the two,
 * scans that IIO has dropped are found.
 *
 * A trigger that has a period says it by the attribute sampling_frequency, as
 * that of a timer does. What a device calls so is not the period of its scans: of
 * an ADC with a multiplexer it is that of one conversion.
 */
#include <linux/device.h>
#include <linux/iio/consumer.h>
#include <linux/iio/iio.h>
#include <linux/iio/trigger.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "iio/iio.h"

/* Who removes a trigger waits for this before its memory goes: see module.c. */
static DEFINE_MUTEX(triggers_lock);

/**
 * iio_period_trigger_gone() - a trigger is not on the bus any more.
 *
 * Context: process; after the return it may be freed.
 */
void iio_period_trigger_gone(void)
{
	mutex_lock(&triggers_lock);
	mutex_unlock(&triggers_lock);
}

static struct attribute *find_attribute(const struct device *dev, const char *name)
{
	for (unsigned int i = 0; dev->groups && dev->groups[i]; i++)
		for (unsigned int j = 0; dev->groups[i]->attrs && dev->groups[i]->attrs[j]; j++)
			if (!strcmp(dev->groups[i]->attrs[j]->name, name))
				return dev->groups[i]->attrs[j];
	return NULL;
}

/* ns of a frequency that is @number / @by Hz; 0 if it makes no sense. */
static u64 period(u64 number, u64 by)
{
	u64 ns;

	if (!number || by > NSEC_PER_SEC)
		return 0;
	ns = div64_u64(by * NSEC_PER_SEC, number);
	return ns >= STROBE_PERIOD_MIN && ns <= STROBE_PERIOD_MAX ? ns : 0;
}

/* The period that a trigger states; 0: none. Under triggers_lock. */
static u64 period_of_trigger(struct device *trigger)
{
	struct attribute *attr = find_attribute(trigger, "sampling_frequency");
	struct device_attribute *own;
	int whole, micro;
	u64 ns = 0;
	char *page;

	if (!attr)
		return 0;
	own = container_of(attr, struct device_attribute, attr);
	page = own->show ? (char *)get_zeroed_page(GFP_KERNEL) : NULL;
	if (!page)
		return 0;
	if (own->show(trigger, own, page) > 0 &&
	    !iio_str_to_fixpoint(page, 100000, &whole, &micro) && whole >= 0 && micro >= 0)
		ns = period((u64)whole * USEC_PER_SEC + micro, USEC_PER_SEC);
	free_page((unsigned long)page);
	return ns;
}

static int is_trigger(struct device *dev, const void *trigger)
{
	return dev == trigger;
}

/**
 * iio_period_of() - time between the scans of a device, as it is set up now.
 * @indio: the device.
 *
 * The user may give the device another trigger at any time, and remove the old
 * one: so its pointer is only compared, with what is on the bus.
 *
 * Context: process.
 * Return: ns; 0: not known.
 */
u64 iio_period_of(struct iio_dev *indio)
{
	struct iio_trigger *trigger = READ_ONCE(indio->trig);
	struct device *dev;
	u64 ns;

	if (!trigger)
		return 0;
	guard(mutex)(&triggers_lock);
	dev = bus_find_device(&iio_bus_type, NULL, &trigger->dev, is_trigger);
	if (!dev)
		return 0;
	ns = period_of_trigger(dev);
	put_device(dev);
	return ns;
}

/**
 * iio_clock_offset() - what makes a time stamp of a device one of CLOCK_MONOTONIC.
 * @indio: the device.
 * @offset: is to be subtracted from the stamp; now, for a clock may be set.
 *
 * Context: any.
 * Return: whether its clock is as even as that one.
 */
bool iio_clock_offset(struct iio_dev *indio, u64 *offset)
{
	switch (iio_device_get_clock(indio)) {
	case CLOCK_MONOTONIC:
		*offset = 0;
		return true;
	case CLOCK_REALTIME:
		*offset = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_REAL));
		return true;
	case CLOCK_BOOTTIME:
		*offset = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_BOOT));
		return true;
	case CLOCK_TAI:
		*offset = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI));
		return true;
	default:
		return false;
	}
}
