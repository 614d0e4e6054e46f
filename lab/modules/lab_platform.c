// SPDX-License-Identifier: GPL-2.0-only
/*
 * A platform device for guests, which have none with registers: the lab's
 * counter without its PCI. The device lab_platform has the card's BARs 0 and 2
 * as its memory, and the four vectors as its interrupts; it goes when the card
 * does, or the module.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/property.h>

#define VECTORS 4

static const int bars[] = { 0, 2 };

static const struct property_entry properties[] = {
	PROPERTY_ENTRY_STRING("compatible", "lab,counter"),
	{ }
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
		.name		= "lab_platform",
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
	for (i = 0; i < VECTORS; i++, next++)
		*next = DEFINE_RES_IRQ(pci_irq_vector(pdev, i));
	pci_set_master(pdev);
	device = platform_device_register_full(&info);
	if (IS_ERR(device))
		return PTR_ERR(device);
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
