// SPDX-License-Identifier: GPL-2.0-only
/*
 * A chip as a device of strobe, which is called as the kernel calls the chip:
 *
 *   gpiochip0.line4           channel, and output: the level of line 4
 *   gpiochip0.line4-rising    event: an edge; likewise -falling and -both
 *
 * The description of the device is the chip's label, that of a channel the
 * line's name. Programs show it all as the user engine does: gpio:CHIP/LINE.
 *
 * On PREEMPT_RT a driver of a chip may use locks that sleep, and cannot be asked
 * whether it does. So levels are read and driven by threads there, unless the
 * parameter "raw" has the chip. Interrupts are not concerned: what the kernel
 * calls of a chip to handle one is called under raw locks everywhere.
 */
#include <linux/device.h>
#include <linux/gpio/consumer.h>
#include <linux/gpio/driver.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/property.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "gpio/gpio.h"

/* Rough time of one access. */
#define ACCESS_NS	500

static char *raw = "";
module_param(raw, charp, 0444);
MODULE_PARM_DESC(raw, "PREEMPT_RT: labels or names of chips whose drivers use no lock that sleeps, or \"all\"");

/* Whether a list of words, with commas between them, has this one. */
static bool has(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; *at; at += *at == ',') {
		const char *end = strchrnul(at, ',');

		if (end - at == length && !strncmp(at, word, length))
			return true;
		at = end;
	}
	return false;
}

static bool is_hard(const struct gpio_unit *unit)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || has(raw, "all") ||
	       has(raw, unit->device.name) || (unit->device.text && has(raw, unit->device.text));
}

/* As its driver calls it, or the firmware. */
static const char *name_of_line(struct gpio_unit *unit, struct gpio_chip *chip, u32 offset)
{
	struct device *dev = gpio_device_to_device(unit->gdev);
	const char *name = NULL;
	const char **names;
	int count;

	if (chip->names) {
		name = chip->names[offset];
	} else {
		count = device_property_string_array_count(dev, "gpio-line-names");
		if (count <= 0 || (u32)count <= chip->offset + offset)
			return NULL;
		names = kcalloc(count, sizeof(*names), GFP_KERNEL);
		if (!names)
			return NULL;
		if (device_property_read_string_array(dev, "gpio-line-names", names, count) > 0)
			name = names[chip->offset + offset];
		kfree(names);
	}
	return name && *name && strlen(name) < STROBE_TEXT_SIZE ? name : NULL;
}

static void make_line(struct gpio_unit *unit, struct gpio_chip *chip, u32 offset, u32 cost_class)
{
	static const char * const edges[] = { "rising", "falling", "both" };
	struct gpio_line *line = &unit->lines[offset];
	const char *name = name_of_line(unit, chip, offset);

	line->unit = unit;
	line->offset = offset;
	gpio_line_init(line);
	snprintf(line->names[GPIO_EDGES], sizeof(line->names[0]), "line%u", offset);
	unit->channels[offset] = (struct strobe_channel) {
		.name		= line->names[GPIO_EDGES],
		.text		= name,
		.bits		= 1,
		.cost_class	= cost_class,
		.cost_ns	= ACCESS_NS,
		.ops		= &gpio_level_ops,
	};
	unit->outputs[offset] = (struct strobe_output) {
		.name		= line->names[GPIO_EDGES],
		.text		= name,
		.bits		= 1,
		.cost_class	= cost_class,
		.cost_ns	= ACCESS_NS,
		.write		= gpio_line_write,
		.ops		= &gpio_drive_ops,
	};
	for (u32 edge = 0; edge < GPIO_EDGES; edge++) {
		snprintf(line->names[edge], sizeof(line->names[0]), "line%u-%s", offset,
			 edges[edge]);
		unit->events[GPIO_EDGES * offset + edge] = (struct strobe_event) {
			.name		= line->names[edge],
			.text		= name,
			.ops		= &gpio_edge_ops,
		};
	}
}

static void unit_free(struct gpio_unit *unit)
{
	gpio_device_put(unit->gdev);
	kvfree(unit->events);
	kvfree(unit->outputs);
	kvfree(unit->channels);
	kvfree(unit->lines);
	kfree(unit);
}

static int unit_make(struct gpio_unit *unit, struct gpio_chip *chip)
{
	const char *label = gpio_device_get_label(unit->gdev);
	u32 count = chip->ngpio, cost_class;

	unit->lines = kvcalloc(count, sizeof(*unit->lines), GFP_KERNEL);
	unit->channels = kvcalloc(count, sizeof(*unit->channels), GFP_KERNEL);
	unit->outputs = kvcalloc(count, sizeof(*unit->outputs), GFP_KERNEL);
	unit->events = kvcalloc(count, GPIO_EDGES * sizeof(*unit->events), GFP_KERNEL);
	if (!unit->lines || !unit->channels || !unit->outputs || !unit->events)
		return -ENOMEM;
	unit->device = (struct strobe_device) {
		.name		= dev_name(gpio_device_to_device(unit->gdev)),
		.text		= label && strlen(label) < STROBE_TEXT_SIZE ? label : NULL,
		.channels	= unit->channels,
		.outputs	= unit->outputs,
		.events		= unit->events,
		.channel_count	= count,
		.output_count	= count,
		/* Without a way to an interrupt there are no edges. */
		.event_count	= chip->to_irq ? GPIO_EDGES * count : 0,
	};
	cost_class = is_hard(unit) ? STROBE_CLASS_HARD : STROBE_CLASS_SLEEP;
	for (u32 i = 0; i < count; i++)
		make_line(unit, chip, i, cost_class);
	return strobe_device_register(&unit->device);
}

/**
 * gpio_unit_add() - a chip becomes a device of strobe.
 * @gdev: the chip; its reference becomes the unit's.
 * @chip: the same; one that does not sleep.
 *
 * Context: process; the chip does not go meanwhile.
 * Return: the unit, or an errno and the reference is dropped.
 */
struct gpio_unit *gpio_unit_add(struct gpio_device *gdev, struct gpio_chip *chip)
{
	struct gpio_unit *unit = kzalloc(sizeof(*unit), GFP_KERNEL);
	int ret;

	if (!unit) {
		gpio_device_put(gdev);
		return ERR_PTR(-ENOMEM);
	}
	unit->gdev = gdev;
	unit->parent = chip->parent;
	ret = unit_make(unit, chip);
	if (!ret)
		return unit;
	unit_free(unit);
	return ERR_PTR(ret);
}

/**
 * gpio_unit_remove() - the chip is not a device of strobe any more.
 * @unit: the unit; freed.
 *
 * Runs that use it end. After this no line of it is used.
 *
 * Context: process; the chip does not go meanwhile.
 */
void gpio_unit_remove(struct gpio_unit *unit)
{
	strobe_device_unregister(&unit->device);
	unit_free(unit);
}
