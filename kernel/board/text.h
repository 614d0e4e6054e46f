/* SPDX-License-Identifier: GPL-2.0-only */
/* Names and texts of compiled boards; as blob.h, without PCI or hardware. */
#ifndef _STROBE_BOARD_TEXT_H
#define _STROBE_BOARD_TEXT_H

#include <linux/types.h>

bool board_good_text(const char *text, size_t size);
bool board_good_name(const char *name);

#endif /* _STROBE_BOARD_TEXT_H */
