// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words of a program's state that get new values while the run goes on.
 *
 * The state is the producer's, who may be at work on another CPU, and must not wait.
 * So a value is left for him, and he takes it before the program runs; if he comes
 * while one is being left, he takes it with the next row. Where nothing was left a row
 * does not look for it: what it calls is the program.
 */
#include <linux/spinlock.h>

#include "computer/computer.h"

/* Under computer->tuning; the caller is the only producer, or there is none. */
static void take(struct strobe_computer *computer)
{
	for (u32 i = 0; i < computer->tunables; i++)
		if (computer->tuned & BIT_ULL(i))
			computer->state[i] = computer->tune[i];
	computer->tuned = 0;
	WRITE_ONCE(computer->func, computer->prog->bpf_func);
}

/* What a row calls instead of the program when something was left. */
static unsigned int take_and_compute(const void *values, const struct bpf_insn *of)
{
	struct strobe_computer *computer = (struct strobe_computer *)of;

	if (raw_spin_trylock(&computer->tuning)) {
		take(computer);
		raw_spin_unlock(&computer->tuning);
	}
	return bpf_dispatcher_nop_func(values, of, computer->prog->bpf_func);
}

/**
 * strobe_computer_settle() - what was left is there for the first row.
 * @computer: the program; or NULL.
 *
 * Without it a value that is being left when the first row comes would keep that row
 * from those that were left before, and so from the first values.
 *
 * Context: process, while there is no producer.
 */
void strobe_computer_settle(struct strobe_computer *computer)
{
	unsigned long flags;

	if (!computer)
		return;
	raw_spin_lock_irqsave(&computer->tuning, flags);
	take(computer);
	raw_spin_unlock_irqrestore(&computer->tuning, flags);
}

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
	computer->tuned |= BIT_ULL(tunable);
	WRITE_ONCE(computer->func, take_and_compute);
	raw_spin_unlock_irqrestore(&computer->tuning, flags);
}
