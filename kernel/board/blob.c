// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe_blob.ko: checking of compiled boards, every byte, before anything is
 * done with one. A module of its own, for boards of cards and boards of
 * messages need it and nothing else of each other.
 *
 * A blob was written by "strobe board install", which has said all that a
 * person can put right. What is refused here was damaged or forged, so the
 * messages only say where.
 */
#include <linux/crc32.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "board/blob.h"
#include "board/text.h"

/* The core may have to add a number to a device's name. */
#define DEVICE_NAME_MAX	27

/* A narrower counter could wrap around between two interrupts. */
#define MISSED_BITS	16

/**
 * struct place - where in the blob the check is, for the message.
 * @why: the message.
 * @room: bytes it may have.
 * @list: name of the list; NULL in the header.
 * @index: entry of the list.
 */
struct place {
	char		*why;
	size_t		room;
	const char	*list;
	unsigned int	index;
};

static int refuse(const struct place *place, const char *what)
{
	if (place->list)
		snprintf(place->why, place->room, "%s[%u]: %s",
			 place->list, place->index, what);
	else
		snprintf(place->why, place->room, "%s", what);
	return -EINVAL;
}

/* Whether the entry has the name of one before; names come first in entries. */
static bool name_again(const void *entries, size_t size, unsigned int index)
{
	const char *name = (const char *)entries + index * size;

	for (const char *other = entries; other < name; other += size)
		if (!strcmp(other, name))
			return true;
	return false;
}

static u64 all_ones(const struct strobe_board_register *reg)
{
	return ~0ULL >> (64 - 8 * reg->width);
}

static int check_register(const struct place *place, const struct board_blob *blob,
			  const struct strobe_board_register *reg)
{
	if (reg->bar >= blob->header->bars)
		return refuse(place, "register in a BAR that is not there");
	if (reg->width != 1 && reg->width != 2 && reg->width != 4 && reg->width != 8)
		return refuse(place, "register's width is not 1, 2, 4 or 8 bytes");
	if (!reg->bits || reg->shift + reg->bits > 8 * reg->width)
		return refuse(place, "field lies outside the register");
	if (reg->flags & ~(STROBE_BOARD_SIGNED | STROBE_BOARD_BIG_ENDIAN | STROBE_BOARD_FLOAT |
			   STROBE_BOARD_REREAD))
		return refuse(place, "unknown flags of the register");
	if ((reg->flags & STROBE_BOARD_BIG_ENDIAN) && reg->width == 1)
		return refuse(place, "byte order of a single byte");
	if ((reg->flags & STROBE_BOARD_FLOAT) &&
	    (reg->bits != 64 || (reg->flags & STROBE_BOARD_SIGNED)))
		return refuse(place, "f64 that is not a whole register of 64 bits");
	if (reg->reserved)
		return refuse(place, "reserved field of the register is not 0");
	if (reg->offset % reg->width)
		return refuse(place, "register's offset is not a multiple of its width");
	if ((u64)reg->offset + reg->width > blob->bars[reg->bar].size)
		return refuse(place, "register lies outside its BAR");
	/* So that a field of a frame is a field of one of its 64-bit words. */
	if (board_blob_is_frames(blob) && (reg->flags & STROBE_BOARD_BIG_ENDIAN))
		return refuse(place, "big-endian field of a frame");
	if (board_blob_is_frames(blob) && (reg->flags & STROBE_BOARD_REREAD))
		return refuse(place, "a frame cannot be read again");
	return 0;
}

static int check_whole(const struct place *place, const struct board_blob *blob,
		       const struct strobe_board_register *reg)
{
	int ret = check_register(place, blob, reg);

	if (ret)
		return ret;
	if (reg->bits != 8 * reg->width ||
	    (reg->flags & (STROBE_BOARD_SIGNED | STROBE_BOARD_FLOAT | STROBE_BOARD_REREAD)))
		return refuse(place, "not a whole, unsigned register");
	return 0;
}

static bool is_finite(u64 binary64)
{
	return (binary64 >> 52 & 0x7ff) != 0x7ff;
}

static int check_value(const struct place *place, const struct strobe_board_value *value)
{
	if (!board_good_name(value->name))
		return refuse(place, "name");
	if (!board_good_text(value->unit, sizeof(value->unit)))
		return refuse(place, "unit");
	if (!board_good_text(value->text, sizeof(value->text)))
		return refuse(place, "description");
	if (!(value->scale << 1) || !is_finite(value->scale) || !is_finite(value->offset))
		return refuse(place, "scale or offset");
	return 0;
}

static bool good_frame(const struct strobe_board_bar *frame)
{
	return !frame->number && frame->size >= STROBE_BOARD_FRAME_MIN &&
	       frame->size <= STROBE_BOARD_FRAME_MAX && !(frame->size % 8);
}

static int check_bars(struct place place, const struct board_blob *blob)
{
	unsigned int seen = 0, i;

	place.list = "bars";
	for (i = 0; i < blob->header->bars; i++) {
		const struct strobe_board_bar *bar = &blob->bars[i];

		place.index = i;
		if (bar->number >= BOARD_BARS_MAX || (seen & 1U << bar->number))
			return refuse(&place, "number");
		if (bar->reserved)
			return refuse(&place, "reserved field is not 0");
		if (!bar->size || (board_blob_is_frames(blob) && !good_frame(bar)))
			return refuse(&place, "size");
		seen |= 1U << bar->number;
	}
	return 0;
}

/* What the provider of frames counts, and gives each such device as channels. */
static bool is_counter(const char *name)
{
	static const char * const counters[] = {
		"messages", "short", "long", "malformed", "out_of_order",
	};

	return match_string(counters, ARRAY_SIZE(counters), name) >= 0;
}

static int check_channels(struct place place, const struct board_blob *blob)
{
	unsigned int i;
	int ret;

	place.list = "channels";
	for (i = 0; i < blob->header->channels; i++) {
		place.index = i;
		ret = check_value(&place, &blob->channels[i]) ?:
		      check_register(&place, blob, &blob->channels[i].reg);
		if (ret)
			return ret;
		if (name_again(blob->channels, sizeof(*blob->channels), i))
			return refuse(&place, "name of another channel");
		if (board_blob_is_frames(blob) && is_counter(blob->channels[i].name))
			return refuse(&place, "name of a counter");
	}
	return 0;
}

static int check_outputs(struct place place, const struct board_blob *blob)
{
	unsigned int i;
	int ret;

	place.list = "outputs";
	for (i = 0; i < blob->header->outputs; i++) {
		place.index = i;
		ret = check_value(&place, &blob->outputs[i]) ?:
		      check_whole(&place, blob, &blob->outputs[i].reg);
		if (ret)
			return ret;
		if (name_again(blob->outputs, sizeof(*blob->outputs), i))
			return refuse(&place, "name of another output");
	}
	return 0;
}

static int check_writes(struct place place, const struct board_blob *blob)
{
	unsigned int i;
	int ret;

	place.list = "writes";
	for (i = 0; i < blob->header->writes; i++) {
		const struct strobe_board_write *write = &blob->writes[i];

		place.index = i;
		ret = check_whole(&place, blob, &write->reg);
		if (ret)
			return ret;
		if (write->flags & ~STROBE_BOARD_WRITE_PENDING)
			return refuse(&place, "unknown flags");
		if (write->reserved)
			return refuse(&place, "reserved field is not 0");
		if (write->value > all_ones(&write->reg))
			return refuse(&place, "value does not fit the register");
		if ((write->flags & STROBE_BOARD_WRITE_PENDING) && write->value)
			return refuse(&place, "value beside what is pending");
	}
	return 0;
}

/* One of the lists of writes; @pending: it may store what was pending. */
static int check_list(const struct place *place, const struct board_blob *blob,
		      unsigned int first, unsigned int count, bool pending)
{
	if (first + count > blob->header->writes)
		return refuse(place, "list of writes lies outside");
	for (unsigned int i = first; i < first + count; i++)
		if ((blob->writes[i].flags & STROBE_BOARD_WRITE_PENDING) && !pending)
			return refuse(place, "write of what is pending, where nothing is");
	return 0;
}

static int check_pending(const struct place *place, const struct board_blob *blob,
			 const struct strobe_board_event *event)
{
	int ret;

	if (!(event->flags & STROBE_BOARD_PENDING)) {
		if (memchr_inv(&event->pending, 0, sizeof(event->pending)) || event->mask)
			return refuse(place, "pending register without its flag");
		if (blob->header->irq == STROBE_BOARD_IRQ_INTX)
			return refuse(place, "no pending register on a shared line");
		return 0;
	}
	if (board_blob_is_frames(blob))
		return refuse(place, "pending register of a frame");
	ret = check_whole(place, blob, &event->pending);
	if (ret)
		return ret;
	if (!event->mask || event->mask > all_ones(&event->pending))
		return refuse(place, "mask");
	return 0;
}

/* A channel, which has been checked as such. */
static int check_missed(const struct place *place, const struct board_blob *blob,
			const struct strobe_board_event *event)
{
	const struct strobe_board_register *reg;

	if (!event->missed)
		return 0;
	if (board_blob_is_frames(blob))
		return refuse(place, "counter of what a frame's sender lost");
	if (event->missed > blob->header->channels)
		return refuse(place, "counter of what was missed is no channel");
	reg = &blob->channels[event->missed - 1].reg;
	if (reg->bits < MISSED_BITS ||
	    (reg->flags & (STROBE_BOARD_SIGNED | STROBE_BOARD_FLOAT | STROBE_BOARD_REREAD)))
		return refuse(place, "channel that cannot count what was missed");
	return 0;
}

static int check_events(struct place place, const struct board_blob *blob)
{
	const struct strobe_board_header *header = blob->header;
	unsigned int i, k;
	int ret;

	place.list = "events";
	for (i = 0; i < header->events; i++) {
		const struct strobe_board_event *event = &blob->events[i];
		bool pending = event->flags & STROBE_BOARD_PENDING;

		place.index = i;
		if (!board_good_name(event->name))
			return refuse(&place, "name");
		if (name_again(blob->events, sizeof(*event), i))
			return refuse(&place, "name of another event");
		if (!board_good_text(event->text, sizeof(event->text)))
			return refuse(&place, "description");
		if (event->flags & ~STROBE_BOARD_PENDING)
			return refuse(&place, "unknown flags");
		if (event->reserved2)
			return refuse(&place, "reserved field is not 0");
		if (event->vector >= header->vectors)
			return refuse(&place, "vector");
		ret = check_pending(&place, blob, event) ?:
		      check_missed(&place, blob, event) ?:
		      check_list(&place, blob, event->silence_first,
				 event->silence_count, pending) ?:
		      check_list(&place, blob, event->enable_first,
				 event->enable_count, false) ?:
		      check_list(&place, blob, event->disable_first,
				 event->disable_count, false);
		if (ret)
			return ret;
		for (k = 0; k < i; k++) {
			if (blob->events[k].vector == event->vector &&
			    !(blob->events[k].flags & event->flags & STROBE_BOARD_PENDING))
				return refuse(&place, "not told apart from another of its vector");
		}
	}
	return 0;
}

static bool good_vectors(const struct strobe_board_header *header)
{
	switch (header->irq) {
	case STROBE_BOARD_IRQ_NONE:
		return !header->vectors && !header->events;
	case STROBE_BOARD_IRQ_INTX:
		return header->vectors == 1;
	case STROBE_BOARD_IRQ_MESSAGE:
		return header->vectors == 1 && header->events == 1 && header->bars == 1 &&
		       !header->outputs && !header->writes;
	case STROBE_BOARD_IRQ_MSI:
	case STROBE_BOARD_IRQ_MSIX:
	case STROBE_BOARD_IRQ_LINE:
		return header->vectors && header->vectors <= STROBE_BOARD_VECTORS_MAX;
	default:
		return false;
	}
}

/*
 * A platform device and a co-processor have no ids, and neither of PCI's
 * interrupts; a card has no line and no messages.
 */
static bool good_match(const struct strobe_board_header *header)
{
	if (!header->platform)
		return header->vendor != STROBE_BOARD_ANY_ID &&
		       header->device != STROBE_BOARD_ANY_ID &&
		       header->irq != STROBE_BOARD_IRQ_LINE &&
		       header->irq != STROBE_BOARD_IRQ_MESSAGE;
	return !header->vendor && !header->device &&
	       header->subvendor == STROBE_BOARD_ANY_ID &&
	       header->subdevice == STROBE_BOARD_ANY_ID &&
	       (header->irq == STROBE_BOARD_IRQ_NONE || header->irq == STROBE_BOARD_IRQ_LINE ||
		header->irq == STROBE_BOARD_IRQ_MESSAGE);
}

static int check_header(const struct place *place, const struct board_blob *blob, size_t size)
{
	const struct strobe_board_header *header = blob->header;
	const size_t covered = offsetofend(struct strobe_board_header, crc32);
	const u8 *bytes = (const u8 *)header;

	if (size < sizeof(*header))
		return refuse(place, "shorter than its header");
	if (size > STROBE_BOARD_SIZE_MAX)
		return refuse(place, "longer than 1 MiB");
	if (header->magic != STROBE_BOARD_MAGIC)
		return refuse(place, "not a compiled board");
	if (header->version != STROBE_BOARD_VERSION)
		return refuse(place, "of another version; install the board again");
	if (header->size != size)
		return refuse(place, "not as long as it says");
	if ((crc32_le(~0U, bytes + covered, size - covered) ^ ~0U) != header->crc32)
		return refuse(place, "damaged: wrong checksum");
	if (!good_match(header))
		return refuse(place, "vendor, device or platform");
	if (header->bars > BOARD_BARS_MAX ||
	    header->channels > STROBE_BOARD_VALUES_MAX ||
	    header->outputs > STROBE_BOARD_VALUES_MAX ||
	    header->events > STROBE_BOARD_EVENTS_MAX ||
	    header->writes > STROBE_BOARD_WRITES_MAX)
		return refuse(place, "too many of something");
	if (!good_vectors(header))
		return refuse(place, "interrupt");
	if (header->reserved)
		return refuse(place, "reserved field is not 0");
	if (!board_good_name(header->name) || strlen(header->name) > DEVICE_NAME_MAX)
		return refuse(place, "name");
	if (!board_good_text(header->text, sizeof(header->text)))
		return refuse(place, "description");
	return 0;
}

/* A list that lies at *@at, which is moved behind it. */
static const void *take(const void *data, size_t *at, size_t count, size_t size)
{
	const void *list = data + *at;

	*at = size_add(*at, size_mul(count, size));
	return list;
}

/**
 * board_blob_parse() - check a compiled board.
 * @blob: filled in; not to be used if the blob is refused.
 * @data: bytes of the blob, aligned to 8; must not change afterwards.
 * @size: how many.
 * @why: if it is refused, where it is wrong, for the log.
 * @why_size: bytes of @why.
 *
 * Return: 0 or -EINVAL.
 */
int board_blob_parse(struct board_blob *blob, const void *data, size_t size,
		     char *why, size_t why_size)
{
	const struct place place = { .why = why, .room = why_size };
	const struct strobe_board_header *header = data;
	size_t at = sizeof(*header);
	int ret;

	blob->header = header;
	ret = check_header(&place, blob, size);
	if (ret)
		return ret;

	blob->bars = take(data, &at, header->bars, sizeof(*blob->bars));
	blob->channels = take(data, &at, header->channels, sizeof(*blob->channels));
	blob->outputs = take(data, &at, header->outputs, sizeof(*blob->outputs));
	blob->events = take(data, &at, header->events, sizeof(*blob->events));
	blob->writes = take(data, &at, header->writes, sizeof(*blob->writes));
	if (at != size)
		return refuse(&place, "not as long as its lists");

	return check_bars(place, blob) ?:
	       check_channels(place, blob) ?:
	       check_outputs(place, blob) ?:
	       check_writes(place, blob) ?:
	       check_events(place, blob) ?:
	       check_list(&place, blob, header->setup_first,
			  header->setup_count, false);
}
EXPORT_SYMBOL_GPL(board_blob_parse);

MODULE_DESCRIPTION("Checking of compiled boards, for strobe");
MODULE_LICENSE("GPL");
