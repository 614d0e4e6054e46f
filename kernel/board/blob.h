/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checking of compiled boards. Nothing here knows of PCI or of hardware, so
 * that tests/blob compiles it as a program and tries to break it.
 */
#ifndef _STROBE_BOARD_BLOB_H
#define _STROBE_BOARD_BLOB_H

#include <linux/types.h>

#include <uapi/strobe_board.h>

/* PCI has six BARs. */
#define BOARD_BARS_MAX	6

/**
 * struct board_blob - a blob that was found to be right.
 * @header: its start.
 * @bars: header->bars of them, and so on.
 * @channels: what can be read.
 * @outputs: what can be written.
 * @events: what can be waited for.
 * @writes: all lists of writes, one after the other.
 *
 * All of it points into the blob.
 */
struct board_blob {
	const struct strobe_board_header	*header;
	const struct strobe_board_bar		*bars;
	const struct strobe_board_value		*channels;
	const struct strobe_board_value		*outputs;
	const struct strobe_board_event		*events;
	const struct strobe_board_write		*writes;
};

/* Whether it is for a co-processor that sends frames, which has no registers. */
static inline bool board_blob_is_frames(const struct board_blob *blob)
{
	return blob->header->irq == STROBE_BOARD_IRQ_MESSAGE;
}

int board_blob_parse(struct board_blob *blob, const void *data, size_t size,
		     char *why, size_t why_size);

#endif /* _STROBE_BOARD_BLOB_H */
