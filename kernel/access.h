/* SPDX-License-Identifier: GPL-2.0-only */
/* One access to a register, compiled to a step: for row.c and register.c. */
#ifndef _STROBE_ACCESS_H
#define _STROBE_ACCESS_H

#include <linux/io.h>
#include <linux/swab.h>

#include "internal.h"

static __always_inline u64 strobe_cut_field(const struct strobe_action *action, u64 raw)
{
	if (!action->field)
		return raw;
	raw <<= action->left;
	return action->is_signed ? (u64)((s64)raw >> action->right) : raw >> action->right;
}

static __always_inline u64 strobe_access_read(const struct strobe_action *action)
{
	switch (action->access) {
	case STROBE_ACCESS_MEM64:
		return READ_ONCE(*action->mem);
	case STROBE_ACCESS_MMIO8:
		return readb(action->io);
	case STROBE_ACCESS_MMIO16:
		return readw(action->io);
	case STROBE_ACCESS_MMIO32:
		return readl(action->io);
	case STROBE_ACCESS_MMIO64:
		return readq(action->io);
	case STROBE_ACCESS_MMIO16BE:
		return swab16(readw(action->io));
	case STROBE_ACCESS_MMIO32BE:
		return swab32(readl(action->io));
	case STROBE_ACCESS_MMIO64BE:
		return swab64(readq(action->io));
	case STROBE_ACCESS_IO8:
		return ioread8(action->io);
	case STROBE_ACCESS_IO16:
		return ioread16(action->io);
	case STROBE_ACCESS_IO32:
		return ioread32(action->io);
	}
	return 0;
}

static __always_inline void strobe_access_write(const struct strobe_action *action)
{
	switch (action->access) {
	case STROBE_ACCESS_MEM64:
		WRITE_ONCE(*action->mem, action->value);
		break;
	case STROBE_ACCESS_MMIO8:
		writeb(action->value, action->io);
		break;
	case STROBE_ACCESS_MMIO16:
		writew(action->value, action->io);
		break;
	case STROBE_ACCESS_MMIO32:
		writel(action->value, action->io);
		break;
	case STROBE_ACCESS_MMIO64:
		writeq(action->value, action->io);
		break;
	case STROBE_ACCESS_MMIO16BE:
		writew(swab16(action->value), action->io);
		break;
	case STROBE_ACCESS_MMIO32BE:
		writel(swab32(action->value), action->io);
		break;
	case STROBE_ACCESS_MMIO64BE:
		writeq(swab64(action->value), action->io);
		break;
	case STROBE_ACCESS_IO8:
		iowrite8(action->value, action->io);
		break;
	case STROBE_ACCESS_IO16:
		iowrite16(action->value, action->io);
		break;
	case STROBE_ACCESS_IO32:
		iowrite32(action->value, action->io);
		break;
	}
}

#endif /* _STROBE_ACCESS_H */
