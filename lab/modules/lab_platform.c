// SPDX-License-Identifier: GPL-2.0-only
/*
 * A platform device for guests, which have none with registers: the lab's
 * counter without its PCI. The device lab_platform has the card's BARs 0 and 2
 * as its memory, and the four vectors as its interrupts; it goes when the card
 * does, or the module. It has a clock and a power domain, as parts of a chip
 * have; parameters tell whether they are on.
 */
#include <linux/clk-provider.h>
#include <linux/clkdev.h>
#include <linux/irq.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/pm_domain.h>
#include <linux/pm_runtime.h>
#include <linux/property.h>

#define VECTORS 4

#define NAME "lab_platform"

static bool nested;
module_param(nested, bool, 0444);
MODULE_PARM_DESC(nested, "the interrupts say that their handlers run in a thread");
static bool clocked;
module_param(clocked, bool, 0444);
MODULE_PARM_DESC(clocked, "the device's clock is on");
static bool powered;
module_param(powered, bool, 0444);
MODULE_PARM_DESC(powered, "the device's power domain is on");

static const int bars[] = { 0, 2 };

static const struct property_entry properties[] = {
	PROPERTY_ENTRY_STRING("compatible", "lab,counter"),
	{ }
};

static int clock_on(struct clk_hw *hw)
{
	clocked = true;
	return 0;
}

static void clock_off(struct clk_hw *hw)
{
	clocked = false;
}

static const struct clk_ops clock_ops = {
	.prepare	= clock_on,
	.unprepare	= clock_off,
};

static struct clk_hw clock;

static void free_clock(void *data)
{
	clk_hw_unregister(&clock);
}

static int make_clock(struct device *dev)
{
	static const struct clk_init_data init = { .name = NAME, .ops = &clock_ops };
	int ret;

	/* Registering takes it away. */
	clock.init = &init;
	/* Of no device: who uses it would hold this module, which may go at any time. */
	ret = clk_hw_register(NULL, &clock);
	if (ret)
		return ret;
	ret = devm_add_action_or_reset(dev, free_clock, NULL);
	if (ret)
		return ret;
	return devm_clk_hw_register_clkdev(dev, &clock, NULL, NAME);
}

static int power_on(struct device *dev)
{
	powered = true;
	return 0;
}

static int power_off(struct device *dev)
{
	powered = false;
	return 0;
}

static struct dev_pm_domain domain = {
	.ops = {
		SYSTEM_SLEEP_PM_OPS(pm_generic_suspend, pm_generic_resume)
		RUNTIME_PM_OPS(power_off, power_on, NULL)
	},
};

static void free_vectors(void *data)
{
	pci_free_irq_vectors(data);
}

static int lab_platform_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct resource resources[ARRAY_SIZE(bars) + VECTORS] = { };
	struct platform_device_info info = {
		.parent		= &pdev->dev,
		.name		= NAME,
		.id		= PLATFORM_DEVID_NONE,
		.res		= resources,
		.num_res	= ARRAY_SIZE(resources),
		.properties	= properties,
	};
	struct platform_device *device;
	struct resource *next = resources;
	unsigned int i;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = pci_alloc_irq_vectors(pdev, VECTORS, VECTORS, PCI_IRQ_MSIX);
	if (ret < 0)
		return ret;
	ret = devm_add_action_or_reset(&pdev->dev, free_vectors, pdev);
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(bars); i++, next++) {
		*next = DEFINE_RES_MEM(pci_resource_start(pdev, bars[i]),
				       pci_resource_len(pdev, bars[i]));
		/* Below the card's own, so that it goes without that. */
		next->parent = &pdev->resource[bars[i]];
	}
	for (i = 0; i < VECTORS; i++, next++) {
		*next = DEFINE_RES_IRQ(pci_irq_vector(pdev, i));
		irq_set_nested_thread(next->start, nested);
	}
	ret = make_clock(&pdev->dev);
	if (ret)
		return ret;
	pci_set_master(pdev);
	device = platform_device_register_full(&info);
	if (IS_ERR(device))
		return PTR_ERR(device);
	dev_pm_domain_set(&device->dev, &domain);
	pci_set_drvdata(pdev, device);
	return 0;
}

static void lab_platform_remove(struct pci_dev *pdev)
{
	platform_device_unregister(pci_get_drvdata(pdev));
	pci_clear_master(pdev);
}

static const struct pci_device_id lab_platform_ids[] = {
	{ PCI_DEVICE(0x1234, 0x1ab1) },
	{ }
};
MODULE_DEVICE_TABLE(pci, lab_platform_ids);

static struct pci_driver lab_platform_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= lab_platform_ids,
	.probe		= lab_platform_probe,
	.remove		= lab_platform_remove,
};
module_pci_driver(lab_platform_driver);

MODULE_DESCRIPTION("The lab's counter as a platform device");
MODULE_LICENSE("GPL");
