/* SPDX-License-Identifier: GPL-2.0-only */
/* One access to a register, compiled to a step: for row.c and register.c. */
#ifndef _STROBE_ACCESS_H
#define _STROBE_ACCESS_H

#include <linux/io.h>
#include <linux/swab.h>

#include "internal.h"

static __always_inline u64 strobe_cut_field(const struct strobe_action *op, u64 raw)
{
	if (!op->field)
		return raw;
	raw <<= op->left;
	return op->is_signed ? (u64)((s64)raw >> op->right) : raw >> op->right;
}

static __always_inline u64 strobe_access_read(const struct strobe_action *op)
{
	switch (op->access) {
	case STROBE_ACCESS_MEM64:
		return READ_ONCE(*op->mem);
	case STROBE_ACCESS_MMIO8:
		return readb(op->io);
	case STROBE_ACCESS_MMIO16:
		return readw(op->io);
	case STROBE_ACCESS_MMIO32:
		return readl(op->io);
	case STROBE_ACCESS_MMIO64:
		return readq(op->io);
	case STROBE_ACCESS_MMIO16BE:
		return swab16(readw(op->io));
	case STROBE_ACCESS_MMIO32BE:
		return swab32(readl(op->io));
	case STROBE_ACCESS_MMIO64BE:
		return swab64(readq(op->io));
	case STROBE_ACCESS_IO8:
		return ioread8(op->io);
	case STROBE_ACCESS_IO16:
		return ioread16(op->io);
	case STROBE_ACCESS_IO32:
		return ioread32(op->io);
	}
	return 0;
}

static __always_inline void strobe_access_write(const struct strobe_action *op)
{
	switch (op->access) {
	case STROBE_ACCESS_MEM64:
		WRITE_ONCE(*op->mem, op->value);
		break;
	case STROBE_ACCESS_MMIO8:
		writeb(op->value, op->io);
		break;
	case STROBE_ACCESS_MMIO16:
		writew(op->value, op->io);
		break;
	case STROBE_ACCESS_MMIO32:
		writel(op->value, op->io);
		break;
	case STROBE_ACCESS_MMIO64:
		writeq(op->value, op->io);
		break;
	case STROBE_ACCESS_MMIO16BE:
		writew(swab16(op->value), op->io);
		break;
	case STROBE_ACCESS_MMIO32BE:
		writel(swab32(op->value), op->io);
		break;
	case STROBE_ACCESS_MMIO64BE:
		writeq(swab64(op->value), op->io);
		break;
	case STROBE_ACCESS_IO8:
		iowrite8(op->value, op->io);
		break;
	case STROBE_ACCESS_IO16:
		iowrite16(op->value, op->io);
		break;
	case STROBE_ACCESS_IO32:
		iowrite32(op->value, op->io);
		break;
	}
}

#endif /* _STROBE_ACCESS_H */
