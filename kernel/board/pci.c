// SPDX-License-Identifier: GPL-2.0-only
/*
 * Boards of PCI cards.
 *
 * "strobe board install" compiles the text and puts the result beside the
 * firmware; this driver asks for it whenever a card appears that has no driver.
 *
 * The driver matches any card, so it must not do harm to any. It does nothing
 * to a card, does not even enable it, before a file with its ids was found in
 * the administrator's firmware directory and every byte of that was checked;
 * without a file it declines without a word, and the next driver is asked. It
 * never takes a bridge of the machine. It has no device table and so is never
 * loaded because a card was found, only because the administrator wants it.
 */
#include <linux/cleanup.h>
#include <linux/device.h>
#include <linux/firmware.h>
#include <linux/pci.h>

#include "board/board.h"

/* The file for exactly this card, else the one for all of its model. */
static int board_request(struct board *board, const struct firmware **firmware)
{
	struct pci_dev *pdev = board->pdev;
	int ret;

	/* "direct": without a file, nobody waits for a helper of user space. */
	snprintf(board->file, sizeof(board->file), "strobe/pci-%04x-%04x-%04x-%04x.board",
		 pdev->vendor, pdev->device, pdev->subsystem_vendor, pdev->subsystem_device);
	ret = request_firmware_direct(firmware, board->file, &pdev->dev);
	if (ret != -ENOENT)
		return ret;
	snprintf(board->file, sizeof(board->file), "strobe/pci-%04x-%04x.board",
		 pdev->vendor, pdev->device);
	return request_firmware_direct(firmware, board->file, &pdev->dev);
}

static bool board_is_for(const struct strobe_board_header *header, const struct pci_dev *pdev)
{
	if (header->vendor != pdev->vendor || header->device != pdev->device)
		return false;
	if (header->subvendor == STROBE_BOARD_ANY_ID && header->subdevice == STROBE_BOARD_ANY_ID)
		return true;
	return header->subvendor == pdev->subsystem_vendor &&
	       header->subdevice == pdev->subsystem_device;
}

static int board_load(struct board *board)
{
	const struct firmware *firmware __free(firmware) = NULL;
	int ret;

	ret = board_request(board, &firmware);
	if (ret == -ENOENT)
		return -ENODEV;
	if (ret)
		return dev_err_probe(board->dev, ret, "%s: cannot be read\n", board->file);
	ret = board_take(board, firmware);
	if (ret)
		return ret;
	if (!board_is_for(board->blob.header, board->pdev))
		return board_refuse(board, "for another card than its name says");
	return 0;
}

/* INTx must not come back on when the card is given up; see irq.c. */
static void board_leave(void *data)
{
	board_intx(data, false);
}

static int board_enable(struct board *board)
{
	struct pci_dev *pdev = board->pdev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "cannot be enabled\n");
	/* The kernel restores INTx on its own when the device is released: before this. */
	ret = devm_add_action_or_reset(&pdev->dev, board_leave, pdev);
	if (ret)
		return ret;
	pci_intx(pdev, false);
	return board_irq_check(board);
}

static int board_map(struct board *board)
{
	struct device *dev = &board->pdev->dev;
	unsigned int i;

	for (i = 0; i < board->blob.header->bars; i++) {
		const struct strobe_board_bar *bar = &board->blob.bars[i];

		if (pci_resource_len(board->pdev, bar->number) < bar->size)
			return dev_err_probe(dev, -EINVAL,
					     "%s: BAR %u has 0x%llx bytes, the board wants 0x%llx\n",
					     board->file, bar->number,
					     (u64)pci_resource_len(board->pdev, bar->number),
					     bar->size);
		board->bars[i] = pcim_iomap_region(board->pdev, bar->number, KBUILD_MODNAME);
		if (IS_ERR(board->bars[i]))
			return dev_err_probe(dev, PTR_ERR(board->bars[i]),
					     "%s: BAR %u cannot be mapped\n",
					     board->file, bar->number);
	}
	return 0;
}

/*
 * The machine's own bridges, which no board file should take by mistake. Other
 * bridges stay: the bus interfaces of many data acquisition cards call
 * themselves that.
 */
static bool board_is_bridge(const struct pci_dev *pdev)
{
	return pdev->hdr_type != PCI_HEADER_TYPE_NORMAL ||
	       pdev->class >> 8 == PCI_CLASS_BRIDGE_HOST ||
	       pdev->class >> 8 == PCI_CLASS_BRIDGE_ISA;
}

/* Does the card still answer? Any context; a question to the bus, of a microsecond or more. */
static bool board_is_there(const struct strobe_device *device)
{
	struct pci_dev *pdev = container_of(device, struct board, device)->pdev;

	return !pci_channel_offline(pdev) && pci_device_is_present(pdev);
}

static int board_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct board *board;
	int ret;

	if (board_is_bridge(pdev))
		return -ENODEV;
	board = devm_kzalloc(&pdev->dev, sizeof(*board), GFP_KERNEL);
	if (!board)
		return -ENOMEM;
	board->dev = &pdev->dev;
	board->pdev = pdev;
	board->device.is_there = board_is_there;
	ret = board_load(board) ?: board_enable(board) ?: board_map(board) ?: board_make(board);
	if (ret)
		return ret;
	pci_set_drvdata(pdev, board);
	return board_register_device(board);
}

/*
 * Ends the runs that use the card. When strobe_device_unregister() returns none
 * of them touches it any more, its events were disabled and so its interrupts
 * are freed; the rest is released by the driver core.
 */
static void board_remove(struct pci_dev *pdev)
{
	struct board *board = pci_get_drvdata(pdev);

	strobe_device_unregister(&board->device);
	board_silence(board);
}

/* No MODULE_DEVICE_TABLE: see above. */
static const struct pci_device_id board_ids[] = {
	{ PCI_DEVICE(PCI_ANY_ID, PCI_ANY_ID) },
	{ }
};

struct pci_driver board_pci_driver = {
	.name		= KBUILD_MODNAME,
	.id_table	= board_ids,
	.probe		= board_probe,
	.remove		= board_remove,
	.driver.pm	= pm_sleep_ptr(&board_pm_ops),
};
