/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks for counting instructions between two places of the hard path: no-ops
 * that the plugin of bench/ recognises. Nothing of them is in a normal build.
 */
#ifndef _STROBE_MARKS_H
#define _STROBE_MARKS_H

#include <linux/compiler.h>

/* nopl 0x5eed00NN(%rax,%rax,1); even ids begin a span, id + 1 ends it. */
static __always_inline void strobe_mark(const unsigned char id)
{
#ifdef STROBE_MARKS
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, %c0, 0x00, 0xed, 0x5e" : : "i" (id) : "memory");
#endif
}

#endif /* _STROBE_MARKS_H */
