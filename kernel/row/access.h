/* SPDX-License-Identifier: GPL-2.0-only */
/* One access to a register: for row.c and register.c. MEM64 has its address in io, too. */
#ifndef _STROBE_ACCESS_H
#define _STROBE_ACCESS_H

#include <linux/io.h>
#include <linux/swab.h>

#include "row/row.h"

/* A register on a bus: where no card is, it reads as all ones. */
static inline bool strobe_is_on_bus(u8 access)
{
	return access >= STROBE_ACCESS_MMIO8 && access <= STROBE_ACCESS_IO32;
}

/* All that a register can show: what it reads as where no card is. */
static inline u64 strobe_all_ones(u8 access)
{
	return ~0ULL >> (64 - strobe_register_bits(access));
}

static __always_inline u64 strobe_access_read(u8 access, void __iomem *io)
{
	switch (access) {
	case STROBE_ACCESS_MEM64:
		return READ_ONCE(*(u64 __force *)io);
	case STROBE_ACCESS_MMIO8:
		return readb(io);
	case STROBE_ACCESS_MMIO16:
		return readw(io);
	case STROBE_ACCESS_MMIO32:
		return readl(io);
	case STROBE_ACCESS_MMIO64:
		return readq(io);
	case STROBE_ACCESS_MMIO16BE:
		return swab16(readw(io));
	case STROBE_ACCESS_MMIO32BE:
		return swab32(readl(io));
	case STROBE_ACCESS_MMIO64BE:
		return swab64(readq(io));
	case STROBE_ACCESS_IO8:
		return ioread8(io);
	case STROBE_ACCESS_IO16:
		return ioread16(io);
	case STROBE_ACCESS_IO32:
		return ioread32(io);
	}
	return 0;
}

static __always_inline void strobe_access_write(u8 access, void __iomem *io, u64 value)
{
	switch (access) {
	case STROBE_ACCESS_MEM64:
		WRITE_ONCE(*(u64 __force *)io, value);
		break;
	case STROBE_ACCESS_MMIO8:
		writeb(value, io);
		break;
	case STROBE_ACCESS_MMIO16:
		writew(value, io);
		break;
	case STROBE_ACCESS_MMIO32:
		writel(value, io);
		break;
	case STROBE_ACCESS_MMIO64:
		writeq(value, io);
		break;
	case STROBE_ACCESS_MMIO16BE:
		writew(swab16(value), io);
		break;
	case STROBE_ACCESS_MMIO32BE:
		writel(swab32(value), io);
		break;
	case STROBE_ACCESS_MMIO64BE:
		writeq(swab64(value), io);
		break;
	case STROBE_ACCESS_IO8:
		iowrite8(value, io);
		break;
	case STROBE_ACCESS_IO16:
		iowrite16(value, io);
		break;
	case STROBE_ACCESS_IO32:
		iowrite32(value, io);
		break;
	}
}

#endif /* _STROBE_ACCESS_H */
