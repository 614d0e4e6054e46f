// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of boards.
 *
 * While nobody listens to any event of a board, its interrupts are off at the
 * card: INTx is disabled; MSI is disabled, and the card is no bus master, so
 * that nothing it does can reach the machine. They go on with the first
 * listener and off with the last. So there can be no storm before anybody
 * listens, and no replay of an interrupt that is an hour old.
 *
 * All vectors go on and off together: a multi-message MSI has one address for
 * all of them, which the kernel clears when the first is freed.
 */
#include <linux/cleanup.h>
#include <linux/interrupt.h>
#include <linux/pci.h>
#include <linux/timekeeping.h>

#include "board/board.h"

/**
 * board_do_writes() - do a list of writes.
 * @list: the list.
 * @pending: what was pending; only a silence list uses it.
 *
 * Context: any.
 */
void board_do_writes(const struct board_list *list, u64 pending)
{
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		const struct board_write *write = &list->first[i];

		strobe_register_write(&write->reg, write->pending ? pending : write->value);
	}
}

/* Asked only where a value says that it may be so: it asks the bus. */
static bool board_is_gone(const struct board *board)
{
	return board->device.is_there && !board->device.is_there(&board->device);
}

/*
 * What is pending of an event; 0 if it is not meant, or the card is gone,
 * which reads as all ones. The question to the bus is asked in that case only.
 */
static __always_inline u64 board_pending(const struct board *board, const struct board_event *event)
{
	const struct strobe_register *reg = &event->pending;
	u64 value;

	/* Nearly every card's; it is read before the row is made. */
	if (likely(reg->access == STROBE_ACCESS_MMIO32))
		value = readl(reg->io);
	else
		value = strobe_register_read(reg);
	if (value == event->all_ones && board_is_gone(board))
		return 0;
	return value & event->mask;
}

/*
 * Triggers that the card has lost since it was last asked. Half of the numbers
 * are ahead, and half behind: a small step back is no loss.
 */
static u64 board_missed(const struct board *board, struct board_event *event)
{
	u64 now, missed;

	if (!event->missed_mask)
		return 0;
	now = strobe_register_read(&event->missed);
	missed = (now - event->missed_seen) & event->missed_mask;
	if (likely(!missed))
		return 0;
	/* A card that is gone reads as all ones. */
	if (now == event->missed_mask && board_is_gone(board))
		return 0;
	event->missed_seen = now;
	return missed > event->missed_mask / 2 ? 0 : missed;
}

/* No messages, but levels or edges. */
static bool board_has_lines(const struct board *board)
{
	u32 irq = board->blob.header->irq;

	return irq == STROBE_BOARD_IRQ_INTX || irq == STROBE_BOARD_IRQ_LINE;
}

/* @counts: some event has a counter of what the card lost; who has none pays nothing. */
static __always_inline irqreturn_t board_handle(struct board_vector *vector, bool counts)
{
	u64 now = ktime_get_ns(), quiet = 0;
	const struct board *board = vector->board;
	irqreturn_t result = IRQ_NONE;
	struct board_event *event;

	/* It was another's, of the same line: ours is masked, and comes later. */
	if (unlikely(atomic_read(&vector->held)))
		return IRQ_NONE;
	for (event = vector->events; event; event = event->next) {
		u64 pending = 0;

		if (event->has_pending) {
			pending = board_pending(board, event);
			if (!pending)
				continue;
		}
		/* LISTENING, with board_event_enable(): it then sees what that has read. */
		if (smp_load_acquire(&event->listening)) {
			u64 missed = counts ? board_missed(board, event) : 0;

			quiet = max(quiet, strobe_event_trigger(event->event, now, 0, missed));
		}
		board_do_writes(&event->silence, pending);
		/*
		 * The writes are posted. If they had not arrived when a line's
		 * handler is done, it would be called again, for nothing.
		 */
		if (event->has_pending && board_has_lines(board))
			strobe_register_read(&event->pending);
		result = IRQ_HANDLED;
	}
	if (unlikely(quiet))
		board_hold(vector, quiet);
	return result;
}

/* Hard interrupt context, on PREEMPT_RT too. */
static irqreturn_t board_interrupt(int irq, void *data)
{
	return board_handle(data, false);
}

/* The same of a vector with an event that counts. */
static irqreturn_t board_counting_interrupt(int irq, void *data)
{
	return board_handle(data, true);
}

static irq_handler_t board_handler(const struct board_vector *vector)
{
	return vector->counts ? board_counting_interrupt : board_interrupt;
}

/*
 * Of a platform device's line. The chip that it comes by may hand its interrupts on from
 * a thread, on PREEMPT_RT with interrupts on, where a row must not be interrupted.
 */
static irqreturn_t board_line_interrupt(int irq, void *data)
{
	guard(irqsave)();
	return board_handler(data)(irq, data);
}

/* Of a shared line's action, whose handler does all there is to do: nobody wakes it. */
static irqreturn_t board_no_thread(int irq, void *data)
{
	return IRQ_NONE;
}

/*
 * All who share a line have to agree on IRQF_ONESHOT: whether it stays masked
 * until the last thread is done. Where handlers are made threads, as on
 * PREEMPT_RT, it does, and whoever comes to our line later will want that: so we
 * want it, too. Else we do as whoever was there before.
 */
static int board_request_shared(struct board *board, struct board_vector *vector)
{
	const unsigned long flags = IRQF_NO_THREAD | IRQF_SHARED;
	int ret = -EBUSY;

	/* PROBE: the kernel is silent if somebody does not want it. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		ret = request_threaded_irq(vector->irq, board_handler(vector), board_no_thread,
					   flags | IRQF_ONESHOT | IRQF_PROBE_SHARED,
					   board->irq_name, vector);
	if (ret == -EBUSY)
		ret = request_irq(vector->irq, board_handler(vector), flags,
				  board->irq_name, vector);
	return ret;
}

static void board_irqs_free(struct board *board, unsigned int count)
{
	while (count--) {
		if (board->vectors[count].events)
			free_irq(board->vectors[count].irq, &board->vectors[count]);
	}
}

static void board_irqs_off(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;
	struct pci_dev *pdev = board->pdev;

	if (header->irq == STROBE_BOARD_IRQ_LINE) {
		board_irqs_free(board, header->vectors);
		return;
	}
	if (header->irq == STROBE_BOARD_IRQ_INTX) {
		pci_intx(pdev, false);
		board_irqs_free(board, 1);
		return;
	}
	/* First of all, as a message without a handler goes to address 0. */
	pci_clear_master(pdev);
	board_irqs_free(board, header->vectors);
	pci_free_irq_vectors(pdev);
	/* The kernel has just enabled it. */
	pci_intx(pdev, false);
}

static int board_irqs_request(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;
	bool intx = header->irq == STROBE_BOARD_IRQ_INTX;
	bool line = header->irq == STROBE_BOARD_IRQ_LINE;
	unsigned int i;
	int ret;

	for (i = 0; i < header->vectors; i++) {
		struct board_vector *vector = &board->vectors[i];

		if (!vector->events)
			continue;
		/* platform.c has asked for a platform device's own. */
		if (!line)
			vector->irq = intx ? board->pdev->irq : pci_irq_vector(board->pdev, i);
		if (intx)
			ret = board_request_shared(board, vector);
		else
			ret = request_irq(vector->irq,
					  line ? board_line_interrupt : board_handler(vector),
					  IRQF_NO_THREAD, board->irq_name, vector);
		if (ret) {
			board_irqs_free(board, i);
			return ret;
		}
	}
	return 0;
}

static int board_irqs_on(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;
	struct pci_dev *pdev = board->pdev;
	unsigned int kind;
	int ret;

	if (header->irq == STROBE_BOARD_IRQ_LINE)
		return board_irqs_request(board);
	if (header->irq == STROBE_BOARD_IRQ_INTX) {
		ret = board_irqs_request(board);
		if (!ret)
			pci_intx(pdev, true);
		return ret;
	}
	kind = header->irq == STROBE_BOARD_IRQ_MSI ? PCI_IRQ_MSI : PCI_IRQ_MSIX;
	ret = pci_alloc_irq_vectors(pdev, header->vectors, header->vectors, kind);
	if (ret < 0)
		return ret;
	ret = board_irqs_request(board);
	if (ret) {
		pci_free_irq_vectors(pdev);
		pci_intx(pdev, false);
		return ret;
	}
	/* Without this the card could not send its messages. */
	pci_set_master(pdev);
	return 0;
}

/**
 * board_irq_check() - can the card raise the interrupts that its board says?
 * @board: the board.
 *
 * Context: process.
 * Return: 0 or -EINVAL; the log says why.
 */
int board_irq_check(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;
	struct pci_dev *pdev = board->pdev;
	int have;

	switch (header->irq) {
	case STROBE_BOARD_IRQ_INTX:
		if (!pdev->pin || !pdev->irq || pdev->irq == IRQ_NOTCONNECTED)
			return dev_err_probe(&pdev->dev, -EINVAL,
					     "%s: the card has no INTx line here\n", board->file);
		return 0;
	case STROBE_BOARD_IRQ_MSI:
		have = pci_msi_vec_count(pdev);
		break;
	case STROBE_BOARD_IRQ_MSIX:
		have = pci_msix_vec_count(pdev);
		break;
	default:
		return 0;
	}
	if (have < header->vectors)
		return dev_err_probe(&pdev->dev, -EINVAL,
				     "%s: %u interrupt vectors wanted, the card has %d of that kind\n",
				     board->file, header->vectors, max(have, 0));
	return 0;
}

static struct board_event *board_event_of(struct strobe_event *event, struct board **board)
{
	*board = container_of(event->device, struct board, device);
	return &(*board)->events[event - (*board)->device.events];
}

/* Withdraws what is raised and not meant as a trigger. */
static void board_event_silence(const struct board *board, const struct board_event *own)
{
	u64 pending = 0;

	if (own->has_pending)
		pending = board_pending(board, own);
	if (pending || !own->has_pending)
		board_do_writes(&own->silence, pending);
}

/**
 * board_silence() - the card is given back, and asserts nothing that was raised here.
 * @board: the board; nobody listens.
 *
 * The kernel lets a card through to its line as soon as the next driver enables
 * it. Until that driver has a handler nobody would care for what the card still
 * asserts, and the line would be switched off for all cards that share it.
 *
 * Context: process.
 */
void board_silence(const struct board *board)
{
	unsigned int i;

	if (board_is_gone(board))
		return;
	for (i = 0; i < board->device.event_count; i++)
		board_event_silence(board, &board->events[i]);
}

static int board_event_enable(struct strobe_event *event)
{
	struct board *board;
	struct board_event *own = board_event_of(event, &board);
	int ret;

	if (!board->listening) {
		ret = board_irqs_on(board);
		if (ret)
			return ret;
	}
	board->listening++;
	/*
	 * What was raised before is not a trigger, and a card that waits to be
	 * acknowledged would never raise another. The interrupt is on
	 * already: what is raised meanwhile, the handler silences.
	 */
	board_event_silence(board, own);
	if (own->missed_mask)
		own->missed_seen = strobe_register_read(&own->missed);
	/*
	 * LISTENING, with board_handle(): else a handler on another CPU could count
	 * from what the counter was for the last run.
	 */
	smp_store_release(&own->listening, true);
	board_do_writes(&own->enable, 0);
	return 0;
}

static void board_event_disable(struct strobe_event *event)
{
	struct board *board;
	struct board_event *own = board_event_of(event, &board);
	const struct strobe_board_event *raw = &board->blob.events[own - board->events];
	struct board_vector *vector = &board->vectors[raw->vector];

	board_do_writes(&own->disable, 0);
	WRITE_ONCE(own->listening, false);
	/* No handler that saw it true runs on, nor masks the vector for it. */
	synchronize_irq(vector->irq);
	board_hold_end(vector);
	if (!--board->listening)
		board_irqs_off(board);
}

/* Under the core's registry lock, one at a time. */
const struct strobe_event_ops board_event_ops = {
	.enable		= board_event_enable,
	.disable	= board_event_disable,
};
