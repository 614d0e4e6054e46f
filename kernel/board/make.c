// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a compiled board says is made into a device of strobe, whatever bus the
 * hardware is on.
 */
#include <linux/device.h>
#include <linux/firmware.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "board/board.h"

/* Of one access over PCI: a read waits for its answer, a write does not. */
#define READ_NS		900
#define WRITE_NS	100

/**
 * board_refuse() - says in the log why a board is not used.
 * @board: the board.
 * @why: what is wrong with its file.
 *
 * Context: process.
 * Return: -EINVAL.
 */
int board_refuse(const struct board *board, const char *why)
{
	return dev_err_probe(board->dev, -EINVAL, "%s: %s\n", board->file, why);
}

static void board_free_copy(void *copy)
{
	kvfree(copy);
}

/**
 * board_take() - checks a blob, and keeps a copy.
 * @board: the board.
 * @firmware: the blob.
 *
 * A copy, as names stay in it, and nobody else can change it between check and
 * use.
 *
 * Context: process.
 * Return: 0 or a negative errno; the log says why.
 */
int board_take(struct board *board, const struct firmware *firmware)
{
	char why[96];
	void *copy;
	int ret;

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		return board_refuse(board, "boards need a little-endian machine");
	if (!firmware->size || firmware->size > STROBE_BOARD_SIZE_MAX)
		return board_refuse(board, "empty, or longer than 1 MiB");

	copy = kvmemdup(firmware->data, firmware->size, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	ret = devm_add_action_or_reset(board->dev, board_free_copy, copy);
	if (ret)
		return ret;
	if (board_blob_parse(&board->blob, copy, firmware->size, why, sizeof(why)))
		return board_refuse(board, why);
	if (board_blob_is_frames(&board->blob))
		return board_refuse(board, "for a co-processor, which has no registers");
	return 0;
}

/* How a register is reached; STROBE_ACCESS_CALL: not at all. */
static enum strobe_access board_access(const struct board *board,
				       const struct strobe_board_register *raw)
{
	/* By the logarithm of the width in bytes. */
	static const enum strobe_access io[4] = {
		STROBE_ACCESS_IO8, STROBE_ACCESS_IO16, STROBE_ACCESS_IO32,
	};
	static const enum strobe_access little[4] = {
		STROBE_ACCESS_MMIO8, STROBE_ACCESS_MMIO16,
		STROBE_ACCESS_MMIO32, STROBE_ACCESS_MMIO64,
	};
	static const enum strobe_access big[4] = {
		STROBE_ACCESS_CALL, STROBE_ACCESS_MMIO16BE,
		STROBE_ACCESS_MMIO32BE, STROBE_ACCESS_MMIO64BE,
	};
	unsigned int width = ilog2(raw->width);
	bool is_big = raw->flags & STROBE_BOARD_BIG_ENDIAN;

	if (raw->width == 8 && !IS_ENABLED(CONFIG_64BIT))
		return STROBE_ACCESS_CALL;
	if (board->pdev &&
	    pci_resource_flags(board->pdev, board->blob.bars[raw->bar].number) & IORESOURCE_IO)
		return is_big ? STROBE_ACCESS_CALL : io[width];
	return is_big ? big[width] : little[width];
}

static int board_register(const struct board *board, const struct strobe_board_register *raw,
			  struct strobe_register *reg)
{
	reg->access = board_access(board, raw);
	reg->shift = raw->shift;
	/* A whole register needs no cutting. */
	reg->bits = raw->bits == 8 * raw->width ? 0 : raw->bits;
	reg->is_signed = raw->flags & STROBE_BOARD_SIGNED;
	reg->reread = raw->flags & STROBE_BOARD_REREAD;
	reg->io = board->bars[raw->bar] + raw->offset;
	if (reg->access == STROBE_ACCESS_CALL)
		return dev_err_probe(board->dev, -EINVAL,
				     "%s: BAR %u, 0x%x: %u bits %s-endian are not possible here\n",
				     board->file, board->blob.bars[raw->bar].number, raw->offset,
				     8 * raw->width,
				     raw->flags & STROBE_BOARD_BIG_ENDIAN ? "big" : "little");
	return 0;
}

static u32 board_type(const struct strobe_board_register *raw)
{
	if (raw->flags & STROBE_BOARD_FLOAT)
		return STROBE_TYPE_F64;
	return raw->flags & STROBE_BOARD_SIGNED ? STROBE_TYPE_S64 : STROBE_TYPE_U64;
}

static int board_make_channels(struct board *board)
{
	const struct board_blob *blob = &board->blob;
	unsigned int count = blob->header->channels, i;
	struct strobe_channel *channels;
	int ret;

	channels = devm_kcalloc(board->dev, count, sizeof(*channels), GFP_KERNEL);
	if (!channels)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct strobe_board_value *raw = &blob->channels[i];

		channels[i] = (struct strobe_channel) {
			.name		= raw->name,
			.unit		= raw->unit,
			.text		= raw->text,
			.scale		= raw->scale,
			.offset		= raw->offset,
			.type		= board_type(&raw->reg),
			.bits		= raw->reg.bits,
			.cost_class	= STROBE_CLASS_HARD,
			.cost_ns	= READ_NS,
		};
		ret = board_register(board, &raw->reg, &channels[i].reg);
		if (ret)
			return ret;
	}
	board->device.channels = channels;
	board->device.channel_count = count;
	return 0;
}

static int board_make_outputs(struct board *board)
{
	const struct board_blob *blob = &board->blob;
	unsigned int count = blob->header->outputs, i;
	struct strobe_output *outputs;
	int ret;

	outputs = devm_kcalloc(board->dev, count, sizeof(*outputs), GFP_KERNEL);
	if (!outputs)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct strobe_board_value *raw = &blob->outputs[i];

		outputs[i] = (struct strobe_output) {
			.name		= raw->name,
			.unit		= raw->unit,
			.text		= raw->text,
			.scale		= raw->scale,
			.offset		= raw->offset,
			.bits		= raw->reg.bits,
			.cost_ns	= WRITE_NS,
		};
		ret = board_register(board, &raw->reg, &outputs[i].reg);
		if (ret)
			return ret;
	}
	board->device.outputs = outputs;
	board->device.output_count = count;
	return 0;
}

static int board_make_writes(struct board *board)
{
	const struct board_blob *blob = &board->blob;
	unsigned int count = blob->header->writes, i;
	int ret;

	board->writes = devm_kcalloc(board->dev, count, sizeof(*board->writes), GFP_KERNEL);
	if (!board->writes)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		board->writes[i].value = blob->writes[i].value;
		board->writes[i].pending = blob->writes[i].flags & STROBE_BOARD_WRITE_PENDING;
		ret = board_register(board, &blob->writes[i].reg, &board->writes[i].reg);
		if (ret)
			return ret;
	}
	return 0;
}

static struct board_list board_list(const struct board *board, u16 first, u16 count)
{
	return (struct board_list) { .first = &board->writes[first], .count = count };
}

static int board_make_event(struct board *board, const struct strobe_board_event *raw,
			    struct board_event *own)
{
	struct board_vector *vector = &board->vectors[raw->vector];
	int ret;

	*own->event = (struct strobe_event) {
		.name	= raw->name,
		.text	= raw->text,
		.ops	= &board_event_ops,
	};
	own->silence = board_list(board, raw->silence_first, raw->silence_count);
	own->enable = board_list(board, raw->enable_first, raw->enable_count);
	own->disable = board_list(board, raw->disable_first, raw->disable_count);
	own->has_pending = raw->flags & STROBE_BOARD_PENDING;
	if (own->has_pending) {
		ret = board_register(board, &raw->pending, &own->pending);
		if (ret)
			return ret;
		own->mask = raw->mask;
		own->all_ones = ~0ULL >> (64 - 8 * raw->pending.width);
	}
	if (raw->missed) {
		const struct strobe_board_register *missed;

		missed = &board->blob.channels[raw->missed - 1].reg;
		ret = board_register(board, missed, &own->missed);
		if (ret)
			return ret;
		own->missed_mask = ~0ULL >> (64 - missed->bits);
		vector->counts = true;
		/* A message that the machine has merged with another is not seen without. */
		if (own->has_pending)
			own->event->accounting = STROBE_ACCOUNTING_EXACT;
	}
	own->next = vector->events;
	vector->events = own;
	return 0;
}

static int board_make_events(struct board *board)
{
	const struct board_blob *blob = &board->blob;
	unsigned int count = blob->header->events, i;
	struct device *dev = board->dev;
	struct strobe_event *events;
	int ret;

	events = devm_kcalloc(dev, count, sizeof(*events), GFP_KERNEL);
	board->events = devm_kcalloc(dev, count, sizeof(*board->events), GFP_KERNEL);
	board->vectors = devm_kcalloc(dev, blob->header->vectors, sizeof(*board->vectors),
				      GFP_KERNEL);
	board->irq_name = devm_kasprintf(dev, GFP_KERNEL, "strobe:%s", dev_name(board->dev));
	if (!events || !board->events || !board->vectors || !board->irq_name)
		return -ENOMEM;
	for (i = 0; i < blob->header->vectors; i++) {
		board->vectors[i].board = board;
		board_hold_init(&board->vectors[i]);
	}
	/* From the last to the first, as each becomes the head of its chain. */
	for (i = count; i--;) {
		board->events[i].event = &events[i];
		ret = board_make_event(board, &blob->events[i], &board->events[i]);
		if (ret)
			return ret;
	}
	board->device.events = events;
	board->device.event_count = count;
	return 0;
}

/**
 * board_make() - what strobe is told of the card; nothing is done to it yet.
 * @board: the board, with its registers mapped.
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int board_make(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;

	board->device.name = header->name;
	board->device.text = header->text;
	board->device.parent = board->dev;
	return board_make_channels(board) ?:
	       board_make_outputs(board) ?:
	       board_make_writes(board) ?:
	       board_make_events(board);
}

static void board_set_up(struct board *board)
{
	const struct strobe_board_header *header = board->blob.header;
	struct board_list setup = board_list(board, header->setup_first, header->setup_count);

	board_do_writes(&setup, 0);
}

/*
 * The machine wakes: the bus has restored its part of the card, the rest has to be
 * set up as at first. Nobody listens yet, so that its interrupts are off, and the
 * card is no bus master; runs go on after all devices have been resumed.
 */
static int board_resume(struct device *dev)
{
	board_set_up(dev_get_drvdata(dev));
	return 0;
}

/* Of suspend: nothing is left to do, as all runs are silent by then. */
DEFINE_SIMPLE_DEV_PM_OPS(board_pm_ops, NULL, board_resume);

/**
 * board_register_device() - sets the card up, and tells strobe of it.
 * @board: the board, which is complete.
 *
 * Context: process.
 * Return: 0 or a negative errno; the log says why.
 */
int board_register_device(struct board *board)
{
	int ret;

	board_set_up(board);
	ret = strobe_device_register(&board->device);
	if (ret)
		return dev_err_probe(board->dev, ret, "%s: strobe refuses it\n", board->file);
	return 0;
}
