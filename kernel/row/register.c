// SPDX-License-Identifier: GPL-2.0-only
/* Access to registers outside the hard path, and their compilation for it. */
#include <linux/module.h>

#include "row/access.h"
#include "row/row.h"

/**
 * strobe_register_bits() - width of an access.
 * @access: how.
 *
 * Return: bits, or 0 for what is not a register.
 */
unsigned int strobe_register_bits(enum strobe_access access)
{
	switch (access) {
	case STROBE_ACCESS_MMIO8:
	case STROBE_ACCESS_IO8:
		return 8;
	case STROBE_ACCESS_MMIO16:
	case STROBE_ACCESS_MMIO16BE:
	case STROBE_ACCESS_IO16:
		return 16;
	case STROBE_ACCESS_MMIO32:
	case STROBE_ACCESS_MMIO32BE:
	case STROBE_ACCESS_IO32:
		return 32;
	case STROBE_ACCESS_MEM64:
	case STROBE_ACCESS_MMIO64:
	case STROBE_ACCESS_MMIO64BE:
		return 64;
	default:
		return (unsigned int)access >= STROBE_BUILTIN_TIME &&
		       (unsigned int)access < STROBE_BUILTIN_SLEEP ? 64 : 0;
	}
}

/**
 * strobe_register_check() - is this a register that can be read?
 * @reg: the register.
 *
 * Return: 0 or -EINVAL.
 */
int strobe_register_check(const struct strobe_register *reg)
{
	unsigned int width = strobe_register_bits(reg->access);

	if (!width || reg->shift + reg->bits > width || (reg->shift && !reg->bits))
		return -EINVAL;
	if ((unsigned int)reg->access < STROBE_BUILTIN_TIME && !reg->io)
		return -EINVAL;
	return 0;
}

/**
 * strobe_register_is_whole() - is its value what is read?
 * @reg: a register that strobe_register_check() has accepted.
 *
 * A whole unsigned register needs no cutting: reads extend with zeros.
 */
bool strobe_register_is_whole(const struct strobe_register *reg)
{
	unsigned int width = strobe_register_bits(reg->access);

	return (!reg->bits || reg->bits == width) && (!reg->is_signed || width == 64);
}

/**
 * strobe_register_cut() - how its value is cut from what is read.
 * @reg: a register that strobe_register_check() has accepted.
 * @column: where the value goes.
 */
struct strobe_cut strobe_register_cut(const struct strobe_register *reg, u16 column)
{
	unsigned int bits = reg->bits ?: strobe_register_bits(reg->access);

	if (!reg->is_signed)
		return (struct strobe_cut){
			.mask = ~0ULL >> (64 - bits), .right = reg->shift, .column = column,
		};
	return (struct strobe_cut){
		.left = 64 - reg->shift - bits, .right = 64 - bits, .column = column,
	};
}

/**
 * strobe_register_read() - read a field of a register.
 * @reg: the register.
 *
 * Context: any.
 * Return: the field, sign-extended if it is signed; 0 for STROBE_ACCESS_CALL.
 */
u64 strobe_register_read(const struct strobe_register *reg)
{
	u64 raw = strobe_access_read(reg->access, reg->io);
	struct strobe_cut cut;

	/* A whole register, as nearly all are. */
	if (likely(!reg->bits && !reg->is_signed))
		return raw;
	cut = strobe_register_cut(reg, 0);
	return reg->is_signed ? strobe_cut_signed(&cut, raw) : strobe_cut_unsigned(&cut, raw);
}
EXPORT_SYMBOL_GPL(strobe_register_read);

/**
 * strobe_register_write() - store a whole register.
 * @reg: the register; its field is ignored.
 * @value: what to store; what is wider than the register is cut.
 *
 * Context: any.
 */
void strobe_register_write(const struct strobe_register *reg, u64 value)
{
	strobe_access_write(reg->access, reg->io, value);
}
EXPORT_SYMBOL_GPL(strobe_register_write);
