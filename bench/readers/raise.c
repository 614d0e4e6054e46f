// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Raises interrupts of QEMU's card "edu", one after the other, and marks each.
 *
 *   raise COUNT [CHANNEL...]
 *
 * With channels, a run of strobe on the card's interrupt reads them; without,
 * some other module has the card. Either acknowledges the interrupt.
 */
#include "common.h"

#define EDU_IRQ_STATUS	(0x24 / 4)
#define EDU_IRQ_RAISE	(0x60 / 4)
#define ATTEMPTS	1000000
#define PAUSE		5000	/* turns of a loop: so that interrupts stay within their budget of the CPU */

int main(int argc, char **argv)
{
	volatile uint32_t *card = map_edu();
	struct strobe_control end = { .head = 0 };
	int count, owner = -1;

	if (argc < 2)
		return 2;
	count = atoi(argv[1]);
	if (argc > 2) {
		owner = create_run("bench.irq", 0, argv + 2);
		control(owner, STROBE_START);
	}
	MARK_WINDOW_BEGIN();
	for (int i = 0; i < count; i++) {
		int left = ATTEMPTS;

		MARK_RAISE();
		card[EDU_IRQ_RAISE] = 1;
		while (card[EDU_IRQ_STATUS])
			if (!--left) {
				fprintf(stderr, "raise: interrupt %d is not acknowledged\n", i);
				return 1;
			}
		for (volatile int turn = 0; turn < PAUSE; turn++)
			;
	}
	MARK_WINDOW_END();
	if (owner >= 0)
		end = control(owner, STROBE_STOP);
	printf("rows %llu missed %llu lost 0\n", (unsigned long long)end.head,
	       (unsigned long long)(end.triggers - end.head - end.skipped));
	return 0;
}
