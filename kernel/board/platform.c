// SPDX-License-Identifier: GPL-2.0-only
/*
 * Boards of platform devices: cores in FPGAs and chips that are described by a
 * device tree, by ACPI, or by a board's own code.
 *
 * As the PCI driver, this one must harm nothing. It has no table of devices, so
 * that the bus gives it only a device whose driver_override names it, which
 * "strobe board install" writes for the devices of the board.
 *
 * The file's NAME is one of the device's "compatible" strings, or else the name
 * that the bus has for it, up to a colon: the hardware id of an ACPI device.
 */
#include <linux/cleanup.h>
#include <linux/crc32.h>
#include <linux/device.h>
#include <linux/firmware.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/platform_device.h>
#include <linux/property.h>
#include <linux/slab.h>

#include "board/board.h"

#define COMPATIBLES_MAX	8

/* The file of this name, if there is one and it is for a device of that name. */
static int board_platform_try(struct board *board, const char *name, size_t length)
{
	const struct firmware *firmware __free(firmware) = NULL;
	int ret;

	/* It becomes a part of a path. */
	if (!length || length > 48 || memchr(name, '/', length))
		return -ENOENT;
	snprintf(board->file, sizeof(board->file), "strobe/platform-%.*s.board", (int)length, name);
	ret = request_firmware_direct(&firmware, board->file, board->dev);
	if (ret == -ENOENT)
		return ret;
	if (ret)
		return dev_err_probe(board->dev, ret, "%s: cannot be read\n", board->file);
	ret = board_take(board, firmware);
	if (ret)
		return ret;
	if (board->blob.header->platform != (crc32_le(~0U, name, length) ^ ~0U))
		return board_refuse(board, "for another device than its name says");
	return 0;
}

static int board_platform_load(struct board *board, struct platform_device *pdev)
{
	const char *names[COMPATIBLES_MAX];
	int count, ret, i;

	count = device_property_read_string_array(board->dev, "compatible", names, COMPATIBLES_MAX);
	for (i = 0; i < count; i++) {
		ret = board_platform_try(board, names[i], strlen(names[i]));
		if (ret != -ENOENT)
			return ret;
	}
	ret = board_platform_try(board, pdev->name, strcspn(pdev->name, ":"));
	if (ret == -ENOENT)
		return dev_err_probe(board->dev, -ENODEV, "no board is installed for it\n");
	return ret;
}

static int board_platform_map(struct board *board, struct platform_device *pdev)
{
	unsigned int i;

	for (i = 0; i < board->blob.header->bars; i++) {
		const struct strobe_board_bar *bar = &board->blob.bars[i];
		struct resource *memory;

		memory = platform_get_resource(pdev, IORESOURCE_MEM, bar->number);
		if (!memory || resource_size(memory) < bar->size)
			return dev_err_probe(board->dev, -EINVAL,
					     "%s: memory %u has 0x%llx bytes, the board wants 0x%llx\n",
					     board->file, bar->number,
					     memory ? (u64)resource_size(memory) : 0, bar->size);
		board->bars[i] = devm_ioremap_resource(board->dev, memory);
		if (IS_ERR(board->bars[i]))
			return dev_err_probe(board->dev, PTR_ERR(board->bars[i]),
					     "%s: memory %u cannot be mapped\n",
					     board->file, bar->number);
	}
	return 0;
}

/* After board_make(): the vectors are there. */
static int board_platform_irqs(struct board *board, struct platform_device *pdev)
{
	unsigned int i;

	for (i = 0; i < board->blob.header->vectors; i++) {
		struct board_vector *vector = &board->vectors[i];

		if (!vector->events)
			continue;
		vector->irq = platform_get_irq(pdev, i);
		/* It has said what was wrong. */
		if (vector->irq < 0)
			return vector->irq;
		/* A row is made by the hard handler, which such a one does not have. */
		if (irq_check_status_bit(vector->irq, IRQ_NESTED_THREAD))
			return dev_err_probe(board->dev, -EINVAL,
					     "its interrupt %u is handled in a thread, as behind a slow bus; read it with the user engine, by UIO\n",
					     i);
	}
	return 0;
}

static int board_platform_probe(struct platform_device *pdev)
{
	struct board *board;
	int ret;

	board = devm_kzalloc(&pdev->dev, sizeof(*board), GFP_KERNEL);
	if (!board)
		return -ENOMEM;
	board->dev = &pdev->dev;
	ret = board_platform_load(board, pdev) ?:
	      board_power_on(board->dev) ?:
	      board_platform_map(board, pdev) ?:
	      board_make(board) ?:
	      board_platform_irqs(board, pdev);
	if (ret)
		return ret;
	platform_set_drvdata(pdev, board);
	return board_register_device(board);
}

/* Ends the runs that use the device, as board_remove() does. */
static void board_platform_remove(struct platform_device *pdev)
{
	struct board *board = platform_get_drvdata(pdev);

	strobe_device_unregister(&board->device);
	board_silence(board);
}

struct platform_driver board_platform_driver = {
	.probe	= board_platform_probe,
	.remove	= board_platform_remove,
	.driver	= {
		.name	= KBUILD_MODNAME,
		.pm	= pm_sleep_ptr(&board_pm_ops),
	},
};
