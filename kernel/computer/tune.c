// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words of a program's state that get new values while the run goes on.
 *
 * The state is the producer's, who may be at work on another CPU, and must not wait.
 * So a value is left for him, and he takes it before the program runs; if he comes
 * while one is being left, he takes it with the next row.
 */
#include <linux/spinlock.h>

#include "computer/computer.h"

/**
 * strobe_computer_tune() - leave a value for the next row.
 * @computer: the program.
 * @tunable: number of the word; below @computer->tunables.
 * @value: the word.
 *
 * Context: process.
 */
void strobe_computer_tune(struct strobe_computer *computer, u32 tunable, u64 value)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&computer->tuning, flags);
	computer->tune[tunable] = value;
	WRITE_ONCE(computer->tuned, computer->tuned | BIT_ULL(tunable));
	raw_spin_unlock_irqrestore(&computer->tuning, flags);
}

/**
 * strobe_computer_take_tuned() - take what was left.
 * @computer: the program.
 *
 * Context: interrupts off; the caller is the only producer.
 */
void strobe_computer_take_tuned(struct strobe_computer *computer)
{
	if (!raw_spin_trylock(&computer->tuning))
		return;
	for (u32 i = 0; i < computer->tunables; i++)
		if (computer->tuned & BIT_ULL(i))
			computer->state[i] = computer->tune[i];
	WRITE_ONCE(computer->tuned, 0);
	raw_spin_unlock(&computer->tuning);
}
