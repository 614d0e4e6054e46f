// SPDX-License-Identifier: GPL-2.0-only
/*
 * Platform devices for guests, as a device tree describes the blocks of an FPGA:
 * each is a card lab-axi-NAME without its PCI. It has the card's BAR 0 as its
 * memory, its vector as its interrupt, and the block's compatible string.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/property.h>

struct block {
	const char *name;
	struct property_entry properties[2];
};

static const struct block timer = {
	.name		= "lab_axi_timer",
	.properties	= { PROPERTY_ENTRY_STRING("compatible", "xlnx,xps-timer-1.00.a") },
};

static const struct block gpio = {
	.name		= "lab_axi_gpio",
	.properties	= { PROPERTY_ENTRY_STRING("compatible", "xlnx,xps-gpio-1.00.a") },
};

static void free_vectors(void *data)
{
	pci_free_irq_vectors(data);
}

static int lab_fpga_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	const struct block *block = (const struct block *)id->driver_data;
	struct resource resources[2] = { };
	struct platform_device_info info = {
		.parent		= &pdev->dev,
		.name		= block->name,
		.id		= PLATFORM_DEVID_NONE,
		.res		= resources,
		.num_res	= ARRAY_SIZE(resources),
		.properties	= block->properties,
	};
	struct platform_device *device;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (ret < 0)
		return ret;
	ret = devm_add_action_or_reset(&pdev->dev, free_vectors, pdev);
	if (ret)
		return ret;
	resources[0] = DEFINE_RES_MEM(pci_resource_start(pdev, 0), pci_resource_len(pdev, 0));
	/* Below the card's own, so that it goes without that. */
	resources[0].parent = &pdev->resource[0];
	resources[1] = DEFINE_RES_IRQ(pci_irq_vector(pdev, 0));
	pci_set_master(pdev);
	device = platform_device_register_full(&info);
	if (IS_ERR(device))
		return PTR_ERR(device);
	pci_set_drvdata(pdev, device);
	return 0;
}

static void lab_fpga_remove(struct pci_dev *pdev)
{
	platform_device_unregister(pci_get_drvdata(pdev));
	pci_clear_master(pdev);
}

static const struct pci_device_id lab_fpga_ids[] = {
	{ PCI_DEVICE(0x1234, 0x1ab5), .driver_data = (kernel_ulong_t)&timer },
	{ PCI_DEVICE(0x1234, 0x1ab6), .driver_data = (kernel_ulong_t)&gpio },
	{ }
};
MODULE_DEVICE_TABLE(pci, lab_fpga_ids);

static struct pci_driver lab_fpga_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= lab_fpga_ids,
	.probe		= lab_fpga_probe,
	.remove		= lab_fpga_remove,
};
module_pci_driver(lab_fpga_driver);

MODULE_DESCRIPTION("Blocks of the lab's FPGA as platform devices");
MODULE_LICENSE("GPL");
