/* SPDX-License-Identifier: GPL-2.0-only */
/* strobe_board.ko: what its files share. */
#ifndef _STROBE_BOARD_H
#define _STROBE_BOARD_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>

#include "board/blob.h"
#include "provider.h"

struct firmware;
struct pci_dev;
struct pci_driver;
struct platform_driver;

/**
 * struct board_write - a store into a register.
 * @reg: where.
 * @value: what, unless it is what was pending.
 * @pending: store what was pending.
 */
struct board_write {
	struct strobe_register	reg;
	u64			value;
	bool			pending;
};

/**
 * struct board_list - some of a board's writes.
 * @first: the first one.
 * @count: how many.
 */
struct board_list {
	const struct board_write	*first;
	unsigned int			count;
};

/**
 * struct board_event - an interrupt of the board.
 * @event: what is triggered.
 * @next: another event of the same vector.
 * @has_pending: there is a register that shows whether it is this one.
 * @pending: the register.
 * @mask: bits of it.
 * @all_ones: what it reads as when the card is gone.
 * @missed: counts the triggers that the card lost; without one, @missed_mask is 0.
 * @missed_mask: all bits of that counter.
 * @missed_seen: what it was when last read. Written by who starts to listen before
 *	@listening is true, then by the handler.
 * @silence: withdraws the interrupt.
 * @enable: done when it is listened to.
 * @disable: done when it no longer is.
 * @listening: somebody listens. Written under the core's registry lock, read
 *	by the handler.
 *
 * All but @listening and @missed_seen is constant once the board is registered.
 */
struct board_event {
	struct strobe_event	*event;
	struct board_event	*next;
	bool			has_pending;
	struct strobe_register	pending;
	u64			mask;
	u64			all_ones;
	struct strobe_register	missed;
	u64			missed_mask;
	u64			missed_seen;
	struct board_list	silence;
	struct board_list	enable;
	struct board_list	disable;
	bool			listening;
};

/**
 * struct board_vector - an interrupt vector.
 * @board: whose.
 * @events: chain of the events that it means; NULL: not requested.
 * @counts: one of them has a counter of what the card lost.
 * @irq: number that was requested.
 * @hold: ends a time in which it is masked, for the budget had no room.
 * @held: it is masked, and who sets this to false unmasks it. Set by the handler,
 *	cleared by @hold and by who stops listening.
 */
struct board_vector {
	struct board		*board;
	struct board_event	*events;
	bool			counts;
	int			irq;
	struct hrtimer		hold;
	atomic_t		held;
};

/**
 * struct board - a card, or platform device, that a compiled board was found for.
 * @dev: the card.
 * @pdev: the same; NULL for a platform device.
 * @file: name of the firmware file.
 * @blob: what is in it.
 * @bars: where the blob's BARs are mapped.
 * @writes: the blob's writes.
 * @events: the blob's events.
 * @vectors: as many as the blob wants.
 * @irq_name: for /proc/interrupts.
 * @listening: events that are listened to; under the core's registry lock.
 * @device: what strobe is told.
 */
struct board {
	struct device		*dev;
	struct pci_dev		*pdev;
	char			file[80];
	struct board_blob	blob;
	void __iomem		*bars[BOARD_BARS_MAX];
	struct board_write	*writes;
	struct board_event	*events;
	struct board_vector	*vectors;
	const char		*irq_name;
	unsigned int		listening;
	struct strobe_device	device;
};

/* pci.c, platform.c */
extern struct pci_driver board_pci_driver;
extern struct platform_driver board_platform_driver;

/* power.c */
int board_power_on(struct device *dev);

/* make.c */
extern const struct dev_pm_ops board_pm_ops;
int board_refuse(const struct board *board, const char *why);
int board_take(struct board *board, const struct firmware *firmware);
int board_make(struct board *board);
int board_register_device(struct board *board);

/* irq.c */
extern const struct strobe_event_ops board_event_ops;
void board_do_writes(const struct board_list *list, u64 pending);
void board_silence(const struct board *board);
int board_irq_check(struct board *board);

/* hold.c */
void board_intx(struct pci_dev *pdev, bool on);
void board_hold_init(struct board_vector *vector);
void board_hold(struct board_vector *vector, u64 ns);
void board_hold_end(struct board_vector *vector);

#endif /* _STROBE_BOARD_H */
