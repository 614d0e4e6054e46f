// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe_board.ko: cards and platform devices become devices of strobe by a text
 * file. pci.c and platform.c find them, make.c makes devices of them, irq.c has
 * their interrupts.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>

#include "board/board.h"

static int __init board_init(void)
{
	int ret;

	ret = pci_register_driver(&board_pci_driver);
	if (ret)
		return ret;
	ret = platform_driver_register(&board_platform_driver);
	if (ret)
		pci_unregister_driver(&board_pci_driver);
	return ret;
}
module_init(board_init);

static void __exit board_exit(void)
{
	platform_driver_unregister(&board_platform_driver);
	pci_unregister_driver(&board_pci_driver);
}
module_exit(board_exit);

MODULE_DESCRIPTION("Cards and platform devices described by board files, for strobe");
MODULE_LICENSE("GPL");
