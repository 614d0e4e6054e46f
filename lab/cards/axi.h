/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of FPGA vendors' catalogues, written from their manuals: each is behind
 * a PCI card of its own, whose BAR 0 is the block. The card's one interrupt is
 * the block's, which is a level: with MSI-X, each rise of it is a message.
 */
#ifndef LAB_AXI_H
#define LAB_AXI_H

#include "card.h"

#include "hw/pci/msix.h"

#define LAB_AXI_TIMER_ID	0x1ab5
#define LAB_AXI_GPIO_ID		0x1ab6

#define AXI_MSIX_BAR		4
#define AXI_SIZE		0x1000

/* Gives the card its BAR and its interrupt; false: it cannot have them, and "error" says why. */
static inline bool axi_realize(PCIDevice *card, MemoryRegion *registers, const MemoryRegionOps *ops, const char *name,
			       Error **error)
{
	pci_config_set_interrupt_pin(card->config, 1);
	memory_region_init_io(registers, OBJECT(card), ops, card, name, AXI_SIZE);
	pci_register_bar(card, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, registers);
	if (msix_init_exclusive_bar(card, 1, AXI_MSIX_BAR, error) < 0)
		return false;
	msix_vector_use(card, 0);
	return true;
}

/* The card goes: what axi_realize() has given it goes, too. */
static inline void axi_exit(PCIDevice *card)
{
	pci_set_irq(card, 0);
	msix_uninit_exclusive_bar(card);
}

/* The block's interrupt has this level, and had that one. */
static inline void axi_interrupt(PCIDevice *card, bool *was, bool is)
{
	if (!msix_enabled(card))
		pci_set_irq(card, is);
	else if (is && !*was)
		msix_notify(card, 0);
	*was = is;
}

#endif
