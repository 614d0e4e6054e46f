// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a run does with a line. The line is taken from the kernel with its first
 * use, and given back with its last; its interrupt is on only while a run listens.
 *
 * A chip that is removed is not there any more for gpiolib: what is read of it is
 * -ENODEV. But its unit has been removed before, see module.c.
 */
#include <linux/gpio/consumer.h>
#include <linux/gpio/driver.h>
#include <linux/gpio/machine.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "gpio/gpio.h"

/* Of an interrupt that the budget has no room for; as of boards. */
#define HOLD_MIN_NS	(100 * NSEC_PER_USEC)
#define HOLD_MAX_NS	(100 * NSEC_PER_MSEC)

/* ---- use ---- */

static int line_get(struct gpio_line *line)
{
	struct gpio_chip *chip = gpio_device_get_chip(line->unit->gdev);
	struct gpio_desc *desc;

	if (line->users++)
		return 0;
	/* Active high, and as it is: the direction is the user's matter. */
	desc = chip ? gpiochip_request_own_desc(chip, line->offset, "strobe",
						GPIO_ACTIVE_HIGH, GPIOD_ASIS) :
		      ERR_PTR(-ENODEV);
	if (IS_ERR(desc)) {
		line->users--;
		/* EBUSY means another run. */
		return PTR_ERR(desc) == -EBUSY ? -EADDRINUSE : PTR_ERR(desc);
	}
	WRITE_ONCE(line->desc, desc);
	return 0;
}

static void line_put(struct gpio_line *line)
{
	if (--line->users)
		return;
	gpiochip_free_own_desc(line->desc);
	WRITE_ONCE(line->desc, NULL);
}

/* Another use is as the first one has it. */
static int line_get_input(struct gpio_line *line)
{
	int ret = line_get(line);

	if (ret || line->users > 1)
		return ret;
	ret = gpiod_direction_input(line->desc);
	if (ret)
		line_put(line);
	return ret;
}

/* ---- levels ---- */

static struct gpio_line *line_of_channel(struct strobe_channel *channel)
{
	struct gpio_unit *unit = container_of(channel->device, struct gpio_unit, device);

	return &unit->lines[channel - unit->channels];
}

static int level_prepare(struct strobe_channel *channel)
{
	return line_get_input(line_of_channel(channel));
}

static void level_unprepare(struct strobe_channel *channel)
{
	line_put(line_of_channel(channel));
}

/* Hard, or on PREEMPT_RT in the run's thread: see unit.c. */
static int level_read(struct strobe_channel *channel, u64 *value)
{
	int level = gpiod_get_raw_value(line_of_channel(channel)->desc);

	*value = level > 0;
	return min(level, 0);
}

const struct strobe_channel_ops gpio_level_ops = {
	.prepare	= level_prepare,
	.unprepare	= level_unprepare,
	.read		= level_read,
};

/* ---- outputs ---- */

static struct gpio_line *line_of_output(struct strobe_output *output)
{
	struct gpio_unit *unit = container_of(output->device, struct gpio_unit, device);

	return &unit->lines[output - unit->outputs];
}

/*
 * It keeps its level until it is driven. Who reads it as an input, or waits for
 * its edges, would wait for ever: he is to come second, or not at all.
 */
static int drive_prepare(struct strobe_output *output)
{
	struct gpio_line *line = line_of_output(output);
	int ret;

	if (line->users && !line->drivers)
		return -EBUSY;
	ret = line_get(line);
	if (ret)
		return ret;
	if (!line->drivers) {
		ret = gpiod_get_raw_value(line->desc);
		if (ret >= 0)
			ret = gpiod_direction_output_raw(line->desc, ret);
		if (ret) {
			line_put(line);
			return ret;
		}
	}
	line->drivers++;
	return 0;
}

static void drive_unprepare(struct strobe_output *output)
{
	struct gpio_line *line = line_of_output(output);

	/* Who still reads it is to see the pin, and not the last level that was driven. */
	if (!--line->drivers && line->users > 1)
		gpiod_direction_input(line->desc);
	line_put(line);
}

const struct strobe_output_ops gpio_drive_ops = {
	.prepare	= drive_prepare,
	.unprepare	= drive_unprepare,
};

/* The first kernels 6.12 have no answer. */
static int set_raw(struct gpio_desc *desc, int value)
{
	return __builtin_choose_expr(__same_type(gpiod_set_raw_value(desc, value), int),
				     gpiod_set_raw_value(desc, value),
				     (gpiod_set_raw_value(desc, value), 0));
}

/**
 * gpio_line_write() - drive a line.
 * @output: the output.
 * @value: its level.
 *
 * Context: hard, or as of a channel of class SLEEP: see unit.c.
 * Return: 0 or an errno.
 */
int gpio_line_write(struct strobe_output *output, u64 value)
{
	return set_raw(line_of_output(output)->desc, value);
}

/* ---- edges ---- */

static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	struct gpio_line *line = container_of(timer, struct gpio_line, hold);

	if (atomic_xchg(&line->held, false))
		enable_irq(line->irq);
	return HRTIMER_NORESTART;
}

/*
 * Hard interrupt context; but on PREEMPT_RT the drivers of some chips find out in
 * a thread which line it was. There it comes later, and as if it were hard.
 */
static irqreturn_t edge_interrupt(int irq, void *data)
{
	u64 now = ktime_get_ns(), quiet;
	struct gpio_line *line = data;

	guard(irqsave)();
	quiet = strobe_event_trigger(line->event, now, 0, 0);
	if (unlikely(quiet)) {
		disable_irq_nosync(irq);
		/* After it is off: who clears it must find it so. */
		atomic_set_release(&line->held, true);
		hrtimer_start(&line->hold, ns_to_ktime(clamp(quiet, HOLD_MIN_NS, HOLD_MAX_NS)),
			      HRTIMER_MODE_REL_PINNED_HARD);
	}
	return IRQ_HANDLED;
}

static struct gpio_line *line_of_event(struct strobe_event *event, enum gpio_edge *edge)
{
	struct gpio_unit *unit = container_of(event->device, struct gpio_unit, device);
	unsigned int place = event - unit->events;

	*edge = place % GPIO_EDGES;
	return &unit->lines[place / GPIO_EDGES];
}

/* The handler turns its interrupt off, and a timer on again: not of one behind a slow bus. */
static bool is_at_hand(unsigned int irq)
{
	struct irq_data *data = irq_get_irq_data(irq);

	return data && !irq_data_get_irq_chip(data)->irq_bus_lock;
}

/* What START answers is an errno only. */
static int refuse(struct gpio_line *line, const char *why, int error)
{
	pr_notice_ratelimited("strobe: %s.line%u: %s\n", line->unit->device.full_name,
			      line->offset, why);
	return error;
}

static int edge_enable(struct strobe_event *event)
{
	static const unsigned long triggers[] = {
		[GPIO_RISING]	= IRQF_TRIGGER_RISING,
		[GPIO_FALLING]	= IRQF_TRIGGER_FALLING,
		[GPIO_BOTH]	= IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING,
	};
	enum gpio_edge edge;
	struct gpio_line *line = line_of_event(event, &edge);
	int ret;

	/* A line has one interrupt, for one kind of edge. */
	if (line->event)
		return refuse(line, "a run listens to another kind of edge", -EBUSY);
	if (line->drivers)
		return refuse(line, "a run drives it", -EBUSY);
	ret = line_get_input(line);
	if (ret)
		return ret;
	ret = gpiod_to_irq(line->desc);
	if (ret >= 0 && !is_at_hand(ret))
		ret = -EOPNOTSUPP;
	if (ret >= 0) {
		line->irq = ret;
		line->event = event;
		ret = request_irq(line->irq, edge_interrupt, IRQF_NO_THREAD | triggers[edge],
				  "strobe", line);
	}
	if (!ret)
		return 0;
	line->event = NULL;
	line_put(line);
	return refuse(line, "its interrupt cannot be had for such an edge", ret);
}

static void edge_disable(struct strobe_event *event)
{
	enum gpio_edge edge;
	struct gpio_line *line = line_of_event(event, &edge);

	/* No handler runs on, nor turns the interrupt off again. */
	disable_irq(line->irq);
	hrtimer_cancel(&line->hold);
	atomic_set(&line->held, false);
	free_irq(line->irq, line);
	line->event = NULL;
	line_put(line);
}

const struct strobe_event_ops gpio_edge_ops = {
	.enable		= edge_enable,
	.disable	= edge_disable,
};

/**
 * gpio_line_init() - prepare a line.
 * @line: the line, zeroed.
 */
void gpio_line_init(struct gpio_line *line)
{
	hrtimer_setup(&line->hold, hold_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}
