// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPIO chip for guests, and an independent observer of who answers it.
 *
 *   line 0 "wave"    input with interrupts: a square wave, made by a timer
 *   line 1 "answer"  output: whoever drives it to the inverse of line 0 has answered the edge
 *   line 2, 3        without a purpose: they keep the level they are driven to; with wire=1
 *                    there is a wire between them: line 3 is an input with interrupts
 *
 * With counted=1 the kernel's driver interrupt-cnt counts the rising edges of line 0. The line
 * then belongs to that driver until the chip goes, and this module stays until it is unbound.
 *
 * In /sys/devices/platform/lab_gpio:
 *
 *   left                  edges still to be made; writing a number starts the wave, 0 stops it
 *   edges                 edges made; edge_ns: when the last one was, CLOCK_MONOTONIC
 *   raised, dropped       edges that raised an interrupt, or came while it was masked
 *   serving               1 from an interrupt of line 0 until its thread is done
 *   answered, unanswered  edges by whether there was an answer before the next edge
 *   wrong                 times that line 1 was driven to the level of line 0: late answers
 *   best_ns, typical_ns, worst_ns, mean_ns
 *                         from an edge to its answer; typical is the median, to 1/64
 *   reset                 writing forgets all of that
 *
 * and in /sys/kernel/debug/lab_gpio the histogram, a line a bin: from, below, count.
 *
 * Each edge is stamped as it is made, in hard interrupt context, each answer as the first thing
 * in the chip's operation. No two edges are closer than period_ns, however late the timer was.
 * Unbinding the driver unplugs the chip.
 */
#include <linux/debugfs.h>
#include <linux/gpio/driver.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/seq_file.h>

#include "compat.h"

enum { WAVE, ANSWER, NEAR_END, FAR_END, LINES };

/* Bins: one a nanosecond up to 64, then 64 for each doubling, up to 2^40 ns. */
#define SUB_BITS	6
#define SUB		BIT(SUB_BITS)
#define BINS		((40 - SUB_BITS + 1) * SUB)

static unsigned long period_ns = NSEC_PER_MSEC;
module_param(period_ns, ulong, 0644);
MODULE_PARM_DESC(period_ns, "distance of the edges, at least 10000 (half the period of the wave)");

static unsigned long delay_ns;
module_param(delay_ns, ulong, 0644);
MODULE_PARM_DESC(delay_ns, "from starting the wave to its first edge; 0: period_ns");

static bool wire;
module_param(wire, bool, 0444);
MODULE_PARM_DESC(wire, "1: a wire from line 2 to line 3 (default 0)");

static bool counted;
module_param(counted, bool, 0444);
MODULE_PARM_DESC(counted, "1: a device for interrupt-cnt, which counts rising edges of line 0 (default 0)");

struct account {
	u64 edges;
	u64 raised;
	u64 dropped;
	u64 answered;
	u64 wrong;
	u64 best;
	u64 worst;
	u64 sum;
	u32 bins[BINS];
};

struct lab_gpio {
	struct gpio_chip chip;
	struct hrtimer timer;
	/* Those who start the wave, one at a time. */
	struct mutex starting;
	/* All below. The two that follow, and the bins, are read without it, too. */
	raw_spinlock_t lock;
	unsigned long levels;
	unsigned long outputs;
	/* Of lines with interrupts: edges that are wanted, and whether they must wait. */
	unsigned int types[LINES];
	bool masked[LINES];
	bool serving;
	bool waiting;
	u64 left;
	u64 edge_time;
	struct account account;
	/* Raises the interrupt of line 3, whoever drives line 2, where interrupts are raised. */
	struct irq_work far_edge;
};

static unsigned int bin_of(u64 ns)
{
	unsigned int shift = ns < SUB ? 0 : fls64(ns) - 1 - SUB_BITS;

	return min_t(u64, shift * SUB + (ns >> shift), BINS - 1);
}

static u64 bin_start(unsigned int bin)
{
	unsigned int shift = bin < SUB ? 0 : bin / SUB - 1;

	return (u64)(bin - shift * SUB) << shift;
}

static ktime_t period(unsigned long ns)
{
	return ns_to_ktime(max(ns, 10000UL));
}

static enum hrtimer_restart make_edge(struct hrtimer *timer)
{
	struct lab_gpio *lab = container_of(timer, struct lab_gpio, timer);
	struct account *account = &lab->account;
	bool raise = false, more;
	unsigned int edge;

	scoped_guard(raw_spinlock, &lab->lock) {
		WRITE_ONCE(lab->levels, lab->levels ^ BIT(WAVE));
		account->edges++;
		edge = lab->levels & BIT(WAVE) ? IRQ_TYPE_EDGE_RISING : IRQ_TYPE_EDGE_FALLING;
		if (lab->types[WAVE] & edge) {
			raise = !lab->masked[WAVE];
			account->raised += raise;
			lab->serving |= raise;
			account->dropped += !raise;
		}
		more = --lab->left;
		lab->waiting = true;
		lab->edge_time = ktime_get_ns();
	}
	if (raise)
		generic_handle_domain_irq(lab->chip.irq.domain, WAVE);
	if (!more)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ktime_add(ktime_get(), period(READ_ONCE(period_ns))));
	return HRTIMER_RESTART;
}

/* Line 1 is driven; lab->lock is held. */
static void judge(struct lab_gpio *lab, int value, u64 now)
{
	struct account *account = &lab->account;
	u64 took = now - lab->edge_time;
	unsigned int bin = bin_of(took);

	if (!!value == !!(lab->levels & BIT(WAVE))) {
		account->wrong += account->edges != 0;
		return;
	}
	if (!lab->waiting)
		return;
	lab->waiting = false;
	account->best = account->answered ? min(account->best, took) : took;
	account->worst = max(account->worst, took);
	account->sum += took;
	account->answered++;
	WRITE_ONCE(account->bins[bin], account->bins[bin] + 1);
}

static void raise_far_edge(struct irq_work *work)
{
	struct lab_gpio *lab = container_of(work, struct lab_gpio, far_edge);

	generic_handle_domain_irq(lab->chip.irq.domain, FAR_END);
}

/* Line 2 is driven; lab->lock is held. */
static void follow_wire(struct lab_gpio *lab, int value)
{
	unsigned int edge = value ? IRQ_TYPE_EDGE_RISING : IRQ_TYPE_EDGE_FALLING;

	if (!!value == !!(lab->levels & BIT(FAR_END)))
		return;
	WRITE_ONCE(lab->levels, lab->levels ^ BIT(FAR_END));
	if (lab->types[FAR_END] & edge && !lab->masked[FAR_END])
		irq_work_queue(&lab->far_edge);
}

static bool is_source(unsigned int line)
{
	return line == WAVE || (wire && line == FAR_END);
}

static int lab_set(struct gpio_chip *chip, unsigned int line, int value)
{
	u64 now = ktime_get_ns();
	struct lab_gpio *lab = gpiochip_get_data(chip);

	if (is_source(line))
		return 0;
	scoped_guard(raw_spinlock_irqsave, &lab->lock) {
		WRITE_ONCE(lab->levels, (lab->levels & ~BIT(line)) | (value ? BIT(line) : 0));
		if (line == ANSWER)
			judge(lab, value, now);
		if (wire && line == NEAR_END)
			follow_wire(lab, value);
	}
	return 0;
}

#if KERNEL_VERSION(6, 17, 0) > LINUX_VERSION_CODE
/* The method of a chip answered nothing. */
static void lab_chip_set(struct gpio_chip *chip, unsigned int line, int value)
{
	lab_set(chip, line, value);
}
#else
#define lab_chip_set lab_set
#endif

static int lab_get(struct gpio_chip *chip, unsigned int line)
{
	struct lab_gpio *lab = gpiochip_get_data(chip);

	return !!(READ_ONCE(lab->levels) & BIT(line));
}

static int lab_get_direction(struct gpio_chip *chip, unsigned int line)
{
	struct lab_gpio *lab = gpiochip_get_data(chip);

	if (READ_ONCE(lab->outputs) & BIT(line))
		return GPIO_LINE_DIRECTION_OUT;
	return GPIO_LINE_DIRECTION_IN;
}

static int lab_direction_input(struct gpio_chip *chip, unsigned int line)
{
	struct lab_gpio *lab = gpiochip_get_data(chip);

	scoped_guard(raw_spinlock_irqsave, &lab->lock)
		WRITE_ONCE(lab->outputs, lab->outputs & ~BIT(line));
	return 0;
}

static int lab_direction_output(struct gpio_chip *chip, unsigned int line, int value)
{
	struct lab_gpio *lab = gpiochip_get_data(chip);

	if (is_source(line))
		return -EINVAL;
	scoped_guard(raw_spinlock_irqsave, &lab->lock)
		WRITE_ONCE(lab->outputs, lab->outputs | BIT(line));
	lab_set(chip, line, value);
	return 0;
}

/*
 * The flow is that of a level: masked from the interrupt until its thread is done, so that an
 * edge which comes meanwhile is seen to be dropped here, not silently merged with the one before.
 */
static void set_masked(struct irq_data *data, bool masked)
{
	struct lab_gpio *lab = gpiochip_get_data(irq_data_get_irq_chip_data(data));

	scoped_guard(raw_spinlock_irqsave, &lab->lock) {
		lab->masked[irqd_to_hwirq(data)] = masked;
		if (!masked && irqd_to_hwirq(data) == WAVE)
			lab->serving = false;
	}
}

static void lab_irq_mask(struct irq_data *data)
{
	set_masked(data, true);
	gpiochip_disable_irq(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
}

static void lab_irq_unmask(struct irq_data *data)
{
	gpiochip_enable_irq(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
	set_masked(data, false);
}

static int lab_irq_set_type(struct irq_data *data, unsigned int type)
{
	struct lab_gpio *lab = gpiochip_get_data(irq_data_get_irq_chip_data(data));

	if (!is_source(irqd_to_hwirq(data)) || type & ~IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	scoped_guard(raw_spinlock_irqsave, &lab->lock)
		lab->types[irqd_to_hwirq(data)] = type;
	return 0;
}

/* Nobody wants the interrupt any more: an edge raises nothing, and none is dropped. */
static void lab_irq_shutdown(struct irq_data *data)
{
	struct lab_gpio *lab = gpiochip_get_data(irq_data_get_irq_chip_data(data));

	lab_irq_mask(data);
	scoped_guard(raw_spinlock_irqsave, &lab->lock) {
		lab->types[irqd_to_hwirq(data)] = IRQ_TYPE_NONE;
		if (irqd_to_hwirq(data) == WAVE)
			lab->serving = false;
	}
}

static const struct irq_chip lab_irq_chip = {
	.name		= "lab",
	.irq_mask	= lab_irq_mask,
	.irq_unmask	= lab_irq_unmask,
	.irq_set_type	= lab_irq_set_type,
	.irq_shutdown	= lab_irq_shutdown,
	.flags		= IRQCHIP_IMMUTABLE,
	GPIOCHIP_IRQ_RESOURCE_HELPERS,
};

static ssize_t left_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct lab_gpio *lab = dev_get_drvdata(dev);
	u64 left;

	scoped_guard(raw_spinlock_irq, &lab->lock)
		left = lab->left;
	return sysfs_emit(text, "%llu\n", left);
}

static ssize_t left_store(struct device *dev, struct device_attribute *attr,
			  const char *text, size_t length)
{
	struct lab_gpio *lab = dev_get_drvdata(dev);
	u64 left;
	int err = kstrtou64(text, 0, &left);

	if (err)
		return err;
	guard(mutex)(&lab->starting);
	hrtimer_cancel(&lab->timer);
	scoped_guard(raw_spinlock_irq, &lab->lock)
		lab->left = left;
	if (left)
		hrtimer_start(&lab->timer, period(READ_ONCE(delay_ns) ?: READ_ONCE(period_ns)),
			      HRTIMER_MODE_REL_PINNED_HARD);
	return length;
}
static DEVICE_ATTR_RW(left);

static ssize_t reset_store(struct device *dev, struct device_attribute *attr,
			   const char *text, size_t length)
{
	struct lab_gpio *lab = dev_get_drvdata(dev);

	scoped_guard(raw_spinlock_irq, &lab->lock) {
		memset(&lab->account, 0, sizeof(lab->account));
		lab->waiting = false;
	}
	return length;
}
static DEVICE_ATTR_WO(reset);

/* The median: start of the bin in which half of all answers are reached. */
static u64 typical(const struct account *account)
{
	u64 seen = 0;

	for (unsigned int bin = 0; bin < BINS; bin++) {
		seen += account->bins[bin];
		if (2 * seen >= account->answered)
			return account->answered ? max(bin_start(bin), account->best) : 0;
	}
	return 0;
}

#define FIGURE(name, value) \
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, \
			   char *text) \
{ \
	struct lab_gpio *lab = dev_get_drvdata(dev); \
	struct account *account __maybe_unused = &lab->account; \
	u64 figure; \
\
	scoped_guard(raw_spinlock_irq, &lab->lock) \
		figure = value; \
	return sysfs_emit(text, "%llu\n", figure); \
} \
static DEVICE_ATTR_RO(name)

FIGURE(edges, account->edges);
FIGURE(edge_ns, lab->edge_time);
FIGURE(raised, account->raised);
FIGURE(dropped, account->dropped);
FIGURE(serving, lab->serving);
FIGURE(answered, account->answered);
FIGURE(unanswered, account->edges - account->answered);
FIGURE(wrong, account->wrong);
FIGURE(best_ns, account->best);
FIGURE(typical_ns, typical(account));
FIGURE(worst_ns, account->worst);
FIGURE(mean_ns, account->answered ? div64_u64(account->sum, account->answered) : 0);

static struct attribute *lab_gpio_attrs[] = {
	&dev_attr_left.attr, &dev_attr_reset.attr,
	&dev_attr_edges.attr, &dev_attr_edge_ns.attr, &dev_attr_raised.attr, &dev_attr_dropped.attr,
	&dev_attr_serving.attr,
	&dev_attr_answered.attr, &dev_attr_unanswered.attr, &dev_attr_wrong.attr,
	&dev_attr_best_ns.attr, &dev_attr_typical_ns.attr, &dev_attr_worst_ns.attr,
	&dev_attr_mean_ns.attr,
	NULL
};
ATTRIBUTE_GROUPS(lab_gpio);

static int histogram_show(struct seq_file *file, void *unused)
{
	struct lab_gpio *lab = file->private;

	for (unsigned int bin = 0; bin < BINS; bin++) {
		u32 count = READ_ONCE(lab->account.bins[bin]);

		if (count)
			seq_printf(file, "%llu %llu %u\n",
				   bin_start(bin), bin_start(bin + 1), count);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(histogram);

static void end_wave(void *data)
{
	struct lab_gpio *lab = data;

	hrtimer_cancel(&lab->timer);
	irq_work_sync(&lab->far_edge);
}

static void remove_file(void *file)
{
	debugfs_remove(file);
}

static void remove_counter(void *counter)
{
	platform_device_unregister(counter);
}

/* A device that the kernel's driver interrupt-cnt knows by its name. */
static int add_counter(struct lab_gpio *lab)
{
	struct platform_device_info info = {
		.parent	= lab->chip.parent,
		.name	= "interrupt-cnt",
		.id	= PLATFORM_DEVID_NONE,
	};
	unsigned int irq = irq_create_mapping(lab->chip.irq.domain, WAVE);
	struct resource resource = DEFINE_RES_IRQ(irq);
	struct platform_device *counter;

	if (!irq)
		return -EINVAL;
	info.res = &resource;
	info.num_res = 1;
	counter = platform_device_register_full(&info);
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	return devm_add_action_or_reset(lab->chip.parent, remove_counter, counter);
}

static const char *const names[LINES] = { "wave", "answer", "spare0", "spare1" };

static int lab_gpio_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct lab_gpio *lab;
	struct gpio_chip *chip;
	struct dentry *file;
	int err;

	lab = devm_kzalloc(dev, sizeof(*lab), GFP_KERNEL);
	if (!lab)
		return -ENOMEM;
	raw_spin_lock_init(&lab->lock);
	mutex_init(&lab->starting);
	lab->masked[WAVE] = true;
	lab->masked[FAR_END] = true;
	lab->far_edge = IRQ_WORK_INIT_HARD(raise_far_edge);
	hrtimer_setup(&lab->timer, make_edge, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	platform_set_drvdata(pdev, lab);

	chip = &lab->chip;
	chip->label = "lab";
	chip->parent = dev;
	chip->owner = THIS_MODULE;
	chip->base = -1;
	chip->ngpio = LINES;
	chip->names = names;
	chip->get = lab_get;
	chip->set = lab_chip_set;
	chip->get_direction = lab_get_direction;
	chip->direction_input = lab_direction_input;
	chip->direction_output = lab_direction_output;
	gpio_irq_chip_set_chip(&chip->irq, &lab_irq_chip);
	chip->irq.handler = handle_level_irq;
	chip->irq.default_type = IRQ_TYPE_NONE;
	err = devm_gpiochip_add_data(dev, chip, lab);
	if (err)
		return err;
	/* Undone before the chip goes. */
	err = devm_add_action_or_reset(dev, end_wave, lab);
	if (err)
		return err;
	if (counted) {
		err = add_counter(lab);
		if (err)
			return err;
	}
	file = debugfs_create_file("lab_gpio", 0444, NULL, lab, &histogram_fops);
	return devm_add_action_or_reset(dev, remove_file, file);
}

static struct platform_driver lab_gpio_driver = {
	.driver.name		= "lab_gpio",
	.driver.dev_groups	= lab_gpio_groups,
	.probe			= lab_gpio_probe,
};

static struct platform_device *device;

static int __init lab_gpio_init(void)
{
	int err = platform_driver_register(&lab_gpio_driver);

	if (err)
		return err;
	device = platform_device_register_simple("lab_gpio", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		platform_driver_unregister(&lab_gpio_driver);
	return PTR_ERR_OR_ZERO(device);
}

static void __exit lab_gpio_exit(void)
{
	platform_device_unregister(device);
	platform_driver_unregister(&lab_gpio_driver);
}

module_init(lab_gpio_init);
module_exit(lab_gpio_exit);
MODULE_DESCRIPTION("Square wave on a GPIO line, and an observer of the answers");
MODULE_LICENSE("GPL");
