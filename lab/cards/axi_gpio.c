// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-axi-gpio: the AXI GPIO of AMD (Xilinx), as its product guide PG144 says,
 * with two channels of 32 bits and its interrupt. Outside of the block, wires
 * lead from the pins of channel 2 to those of channel 1; a pin of channel 2 that
 * is an input is low.
 *
 *	0x000 GPIO_DATA, 0x008 GPIO2_DATA	pins that are inputs; outputs read 0
 *	0x004 GPIO_TRI, 0x00c GPIO2_TRI		a one makes a pin an input; all are at first
 *	0x11c GIER	bit 31: the interrupt is enabled as a whole
 *	0x120 IP_ISR	bit 0, 1: an input of channel 1, 2 has changed. Writing a one
 *			turns the bit round
 *	0x128 IP_IER	bit 0, 1: that interrupts
 */
#include "axi.h"

#include "qemu/module.h"

#define TYPE_AXI_GPIO "lab-axi-gpio"
OBJECT_DECLARE_SIMPLE_TYPE(AxiGpio, AXI_GPIO)

enum {
	DATA1	= 0x000,
	TRI1	= 0x004,
	DATA2	= 0x008,
	TRI2	= 0x00c,
	GIER	= 0x11c,
	ISR	= 0x120,
	IER	= 0x128,
};

#define ENABLED		(1U << 31)
#define CHANNELS	3U

struct AxiGpio {
	PCIDevice parent;
	MemoryRegion registers;
	uint32_t data[2];
	uint32_t tri[2];
	/* What was at the inputs of channel 1; those of channel 2 are open. */
	uint32_t seen;
	uint32_t global;
	uint32_t status;
	uint32_t enabled;
	bool interrupt;
};

/* The inputs of channel 1. */
static uint32_t inputs(const AxiGpio *gpio)
{
	return gpio->data[1] & ~gpio->tri[1] & gpio->tri[0];
}

static uint64_t registers_read(void *opaque, hwaddr offset, unsigned int size)
{
	AxiGpio *gpio = opaque;

	switch (offset) {
	case DATA1:
		return inputs(gpio);
	case TRI1:
		return gpio->tri[0];
	case TRI2:
		return gpio->tri[1];
	case GIER:
		return gpio->global;
	case ISR:
		return gpio->status;
	case IER:
		return gpio->enabled;
	}
	return 0;
}

static void registers_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
	AxiGpio *gpio = opaque;

	switch (offset) {
	case DATA1:
		gpio->data[0] = value;
		break;
	case TRI1:
		gpio->tri[0] = value;
		break;
	case DATA2:
		gpio->data[1] = value;
		break;
	case TRI2:
		gpio->tri[1] = value;
		break;
	case GIER:
		gpio->global = value & ENABLED;
		break;
	case ISR:
		gpio->status ^= value & CHANNELS;
		break;
	case IER:
		gpio->enabled = value & CHANNELS;
		break;
	}
	if (inputs(gpio) != gpio->seen)
		gpio->status |= 1;
	gpio->seen = inputs(gpio);
	axi_interrupt(&gpio->parent, &gpio->interrupt, gpio->global && gpio->status & gpio->enabled);
}

static const MemoryRegionOps registers = {
	.read		= registers_read,
	.write		= registers_write,
	.endianness	= DEVICE_LITTLE_ENDIAN,
	.valid		= { .min_access_size = 4, .max_access_size = 4 },
	.impl		= { .min_access_size = 4, .max_access_size = 4 },
};

static void axi_gpio_realize(PCIDevice *card, Error **error)
{
	AxiGpio *gpio = AXI_GPIO(card);

	gpio->tri[0] = gpio->tri[1] = UINT32_MAX;
	axi_realize(card, &gpio->registers, &registers, TYPE_AXI_GPIO, error);
}

static void axi_gpio_class_init(ObjectClass *class, void *data)
{
	PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);

	pci->realize = axi_gpio_realize;
	pci->exit = axi_exit;
	pci->vendor_id = LAB_VENDOR;
	pci->device_id = LAB_AXI_GPIO_ID;
	pci->class_id = PCI_CLASS_OTHERS;
	set_bit(DEVICE_CATEGORY_MISC, DEVICE_CLASS(class)->categories);
	DEVICE_CLASS(class)->desc = "An AXI GPIO (PG144) behind PCI";
}

static const TypeInfo axi_gpio_type = {
	.name		= TYPE_AXI_GPIO,
	.parent		= TYPE_PCI_DEVICE,
	.instance_size	= sizeof(AxiGpio),
	.class_init	= axi_gpio_class_init,
	.interfaces	= (InterfaceInfo[]) {
		{ INTERFACE_CONVENTIONAL_PCI_DEVICE },
		{ }
	},
};

static void register_axi_gpio(void)
{
	type_register_static(&axi_gpio_type);
}

type_init(register_axi_gpio)
