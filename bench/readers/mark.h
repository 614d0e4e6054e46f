/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* No-ops that bench/plugin/insncount.c recognises; see there. */
#ifndef BENCH_MARK_H
#define BENCH_MARK_H

#define MARK(id) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, " #id ", 0x00, 0xed, 0x5e" : : : "memory")

#define MARK_WINDOW_BEGIN()	MARK(0x01)
#define MARK_WINDOW_END()	MARK(0x02)
/* Span 1: from the write that raises an interrupt to the row stored, where the modules have its end. */
#define MARK_RAISE()		MARK(0x12)
/* Spans 6 and 7: for checking the plugin itself. */
#define MARK_ACCESS_BEGIN()	MARK(0x1c)
#define MARK_ACCESS_END()	MARK(0x1d)
#define MARK_LOOP_BEGIN()	MARK(0x1e)
#define MARK_LOOP_END()		MARK(0x1f)

#endif /* BENCH_MARK_H */
