// SPDX-License-Identifier: GPL-2.0-only
/*
 * What has to be in the kernel of a card's driver, if the rest is a program: it
 * finds the card, lets programs map its memory, and tells it that its interrupt
 * was heard.
 *
 * It is for edu, a card of QEMU's. For another one change the parts that say
 * "yours"; docs/how-to/uio-driver.md goes through it.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/uio_driver.h>

/* Yours: which bits ask for the interrupt, and where they are acknowledged. */
#define IRQ_STATUS	0x24
#define IRQ_ACK		0x64

/**
 * struct uio_edu - one card.
 * @uio: what programs have of it.
 * @registers: its first memory, for the handler.
 */
struct uio_edu {
	struct uio_info	uio;
	void __iomem	*registers;
};

/*
 * Yours. Other cards may have the same line, so this is called for theirs too.
 * It only makes the card silent: what the interrupt was about, the program finds
 * out, and UIO counts those that the program was too slow for.
 */
static irqreturn_t uio_edu_interrupt(int irq, struct uio_info *uio)
{
	struct uio_edu *edu = uio->priv;
	u32 raised = readl(edu->registers + IRQ_STATUS);

	/* All ones is what a card answers that was pulled out. */
	if (!raised || raised == U32_MAX)
		return IRQ_NONE;
	writel(raised, edu->registers + IRQ_ACK);
	/* The write has arrived before the line is looked at again. */
	readl(edu->registers + IRQ_STATUS);
	return IRQ_HANDLED;
}

/* Every memory of the card is a map, in their order; a program maps N with the offset N pages. */
static void uio_edu_maps(struct pci_dev *card, struct uio_info *uio)
{
	static const char * const names[] = { "bar0", "bar1", "bar2", "bar3", "bar4", "bar5" };
	unsigned int bar, n = 0;

	for (bar = 0; bar < PCI_STD_NUM_BARS && n < MAX_UIO_MAPS; bar++) {
		resource_size_t start = pci_resource_start(card, bar);

		if (!(pci_resource_flags(card, bar) & IORESOURCE_MEM) || !start)
			continue;
		uio->mem[n++] = (struct uio_mem) {
			.name = names[bar],
			.memtype = UIO_MEM_PHYS,
			/* Pages are mapped: a smaller memory begins at an offset in one. */
			.addr = start & PAGE_MASK,
			.offs = offset_in_page(start),
			.size = PAGE_ALIGN(offset_in_page(start) + pci_resource_len(card, bar)),
		};
	}
}

static int uio_edu_probe(struct pci_dev *card, const struct pci_device_id *id)
{
	struct device *dev = &card->dev;
	struct uio_edu *edu;
	int err;

	edu = devm_kzalloc(dev, sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	err = pcim_enable_device(card);
	if (err)
		return dev_err_probe(dev, err, "cannot be enabled\n");
	/* Yours: the memory that the handler needs. Nobody else may have it meanwhile. */
	edu->registers = devm_ioremap_resource(dev, &card->resource[0]);
	if (IS_ERR(edu->registers))
		return PTR_ERR(edu->registers);
	edu->uio.name = KBUILD_MODNAME;
	edu->uio.version = "1";
	edu->uio.priv = edu;
	uio_edu_maps(card, &edu->uio);
	/* A card without an interrupt is one to be mapped. */
	edu->uio.irq = card->irq;
	edu->uio.irq_flags = IRQF_SHARED;
	edu->uio.handler = uio_edu_interrupt;
	/* The last: a program may open it at once. It is undone first. */
	err = devm_uio_register_device(dev, &edu->uio);
	return err ? dev_err_probe(dev, err, "no UIO device\n") : 0;
}

/* Yours. */
static const struct pci_device_id uio_edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};
MODULE_DEVICE_TABLE(pci, uio_edu_ids);

static struct pci_driver uio_edu_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= uio_edu_ids,
	.probe		= uio_edu_probe,
};
module_pci_driver(uio_edu_driver);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The kernel's part of a driver in userspace, for QEMU's card edu");
