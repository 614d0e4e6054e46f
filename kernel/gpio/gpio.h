/* SPDX-License-Identifier: GPL-2.0-only */
/* GPIO lines as channels, outputs and events: strobe_gpio.ko. See module.c. */
#ifndef _STROBE_GPIO_H
#define _STROBE_GPIO_H

#include <linux/hrtimer.h>
#include <linux/list.h>

#include "provider.h"

struct device;
struct gpio_chip;
struct gpio_desc;
struct gpio_device;
struct gpio_line;

/* Events of a line, in the order of its part of gpio_unit.events. */
enum gpio_edge { GPIO_RISING, GPIO_FALLING, GPIO_BOTH, GPIO_EDGES };

/**
 * struct gpio_line - a line, used or not.
 * @unit: whose it is.
 * @offset: its number on the chip.
 * @desc: while it is used, else NULL. Read by rows.
 * @users: channels, outputs and events of it that are used.
 * @drivers: outputs among them.
 * @event: the event that is enabled, else NULL.
 * @irq: its interrupt, while an event is enabled.
 * @hold: ends a time in which the interrupt is off.
 * @held: it is off.
 * @names: of its channel and its events.
 *
 * Written under strobe's registry lock; @held by the handler, the timer and who
 * has silenced both.
 */
struct gpio_line {
	struct gpio_unit	*unit;
	u32			offset;
	struct gpio_desc	*desc;
	u32			users;
	u32			drivers;
	struct strobe_event	*event;
	int			irq;
	struct hrtimer		hold;
	atomic_t		held;
	char			names[1 + GPIO_EDGES][20];
};

/**
 * struct gpio_unit - a chip.
 * @entry: in the list of units.
 * @gdev: the chip, with a reference.
 * @parent: what it is a part of.
 * @device: as strobe knows it.
 * @lines: all lines of the chip.
 * @channels: a level for each line.
 * @outputs: the same.
 * @events: GPIO_EDGES for each line.
 */
struct gpio_unit {
	struct list_head	entry;
	struct gpio_device	*gdev;
	struct device		*parent;
	struct strobe_device	device;
	struct gpio_line	*lines;
	struct strobe_channel	*channels;
	struct strobe_output	*outputs;
	struct strobe_event	*events;
};

/* unit.c */
struct gpio_unit *gpio_unit_add(struct gpio_device *gdev, struct gpio_chip *chip);
void gpio_unit_remove(struct gpio_unit *unit);

/* line.c */
extern const struct strobe_channel_ops gpio_level_ops;
extern const struct strobe_output_ops gpio_drive_ops;
extern const struct strobe_event_ops gpio_edge_ops;
int gpio_line_write(struct strobe_output *output, u64 value);
void gpio_line_init(struct gpio_line *line);

#endif /* _STROBE_GPIO_H */
