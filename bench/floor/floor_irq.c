// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor of a device's interrupt: QEMU's card "edu" raises a message, the
 * handler makes a row of number, time and eight registers.
 *
 *   modprobe floor_irq [threaded=1]	the row is made in the handler's thread
 *
 * A program raises the interrupts: bench/readers/raise.c.
 */
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/timekeeping.h>

#include "floor.h"
#include "row/marks.h"

#define EDU_LIVENESS	0x04
#define EDU_IRQ_STATUS	0x24
#define EDU_IRQ_ACK	0x64

static bool threaded;
module_param(threaded, bool, 0444);
MODULE_PARM_DESC(threaded, "make the row in a thread, as drivers of slow devices do");

static void __iomem *card;
static u64 rows[FLOOR_WORDS * 1024];
static u64 head;

static void make_row(void)
{
	u64 *row = rows + (head & 1023) * FLOOR_WORDS;

	row[0] = head;
	row[1] = ktime_get_ns();
	for (int i = 2; i < FLOOR_WORDS; i++)
		row[i] = readl(card + EDU_LIVENESS);
	smp_store_release(&head, head + 1);	/* the row is whole */
	strobe_mark(0x13);
	writel(readl(card + EDU_IRQ_STATUS), card + EDU_IRQ_ACK);
}

static irqreturn_t interrupt(int irq, void *data)
{
	if (threaded)
		return IRQ_WAKE_THREAD;
	make_row();
	return IRQ_HANDLED;
}

static irqreturn_t interrupt_thread(int irq, void *data)
{
	make_row();
	return IRQ_HANDLED;
}

static int floor_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	card = pcim_iomap_region(pdev, 0, KBUILD_MODNAME);
	if (IS_ERR(card))
		return PTR_ERR(card);
	pci_set_master(pdev);
	ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI);
	if (ret < 0)
		return ret;
	ret = request_threaded_irq(pci_irq_vector(pdev, 0), interrupt,
				   threaded ? interrupt_thread : NULL,
				   threaded ? 0 : IRQF_NO_THREAD, KBUILD_MODNAME, pdev);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

static void floor_remove(struct pci_dev *pdev)
{
	free_irq(pci_irq_vector(pdev, 0), pdev);
	pci_free_irq_vectors(pdev);
}

static const struct pci_device_id floor_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};

static struct pci_driver floor_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= floor_ids,
	.probe		= floor_probe,
	.remove		= floor_remove,
};
module_pci_driver(floor_driver);

MODULE_DESCRIPTION("Floor of the cost of an interrupt, to compare with strobe");
MODULE_LICENSE("GPL");
