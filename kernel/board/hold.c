// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of boards that come faster than the budget of the CPU allows are
 * masked for as long as it has no room: refused rows cost an interrupt each, and
 * a fast card would take the whole CPU with them.
 *
 * A message or a line of the card's own is masked at the interrupt controller;
 * that of a line which others may share at the card. What is raised meanwhile
 * comes as one interrupt when that is over, as if the CPU had been slow.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/pci.h>

#include "board/board.h"
#include "compat.h"

/*
 * So long at least: it costs an interrupt itself, and a few rows at once are as
 * many as one by one. So long at most, in case a clock is wrong.
 */
#define HOLD_MIN_NS	(100 * NSEC_PER_USEC)
#define HOLD_MAX_NS	(100 * NSEC_PER_MSEC)

static bool is_shared(const struct board_vector *vector)
{
	return vector->board->blob.header->irq == STROBE_BOARD_IRQ_INTX;
}

/**
 * board_intx() - the card may use its line, or not.
 * @pdev: the card.
 * @on: it may.
 *
 * pci_intx() may allocate, and so is not for interrupt context.
 *
 * Context: any.
 */
void board_intx(struct pci_dev *pdev, bool on)
{
	u16 command;

	pci_read_config_word(pdev, PCI_COMMAND, &command);
	/* The card is gone. */
	if (command == 0xffff)
		return;
	if (on)
		command &= ~PCI_COMMAND_INTX_DISABLE;
	else
		command |= PCI_COMMAND_INTX_DISABLE;
	pci_write_config_word(pdev, PCI_COMMAND, command);
}

static void unmask(struct board_vector *vector)
{
	if (!atomic_xchg(&vector->held, false))
		return;
	if (is_shared(vector))
		board_intx(vector->board->pdev, true);
	else
		enable_irq(vector->irq);
}

static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	unmask(container_of(timer, struct board_vector, hold));
	return HRTIMER_NORESTART;
}

/**
 * board_hold() - mask an interrupt for a while.
 * @vector: the interrupt; not masked.
 * @ns: how long.
 *
 * Context: hard, its handler.
 */
void board_hold(struct board_vector *vector, u64 ns)
{
	if (is_shared(vector))
		board_intx(vector->board->pdev, false);
	else
		disable_irq_nosync(vector->irq);
	/* After it is masked: who clears it must find it so. */
	atomic_set_release(&vector->held, true);
	hrtimer_start(&vector->hold, ns_to_ktime(clamp(ns, HOLD_MIN_NS, HOLD_MAX_NS)),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/**
 * board_hold_end() - unmask it, if it is masked.
 * @vector: the interrupt.
 *
 * Context: process.
 */
void board_hold_end(struct board_vector *vector)
{
	hrtimer_cancel(&vector->hold);
	unmask(vector);
}

/**
 * board_hold_init() - prepare a vector.
 * @vector: the interrupt.
 */
void board_hold_init(struct board_vector *vector)
{
	hrtimer_setup(&vector->hold, hold_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}
