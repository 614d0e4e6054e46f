// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Checks the ruler: known numbers of instructions, for the plugin to count.
 *
 *   ruler
 *
 * Span 7 is a loop of 2001 instructions. Span 6 has 20, half of them accesses
 * to a device, at which QEMU leaves a block of translated code and starts anew.
 */
#include "common.h"

#define TURNS	10

int main(void)
{
	volatile uint32_t *card = map_edu();

	MARK_WINDOW_BEGIN();
	for (int i = 0; i < TURNS; i++) {
		MARK_LOOP_BEGIN();
		__asm__ volatile("mov $1000, %%ecx\n1: dec %%ecx\njnz 1b" : : : "ecx", "cc");
		MARK_LOOP_END();
		MARK_ACCESS_BEGIN();
		__asm__ volatile(".rept 10\nmov (%0), %%eax\nnop\n.endr" : : "r"(card) : "eax", "memory");
		MARK_ACCESS_END();
	}
	MARK_WINDOW_END();
	printf("rows 0 missed 0 lost 0\n");
	return 0;
}
