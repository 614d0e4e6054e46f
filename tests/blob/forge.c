// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Boards for the frames of a co-processor with what such a board cannot have,
 * each right in all else: none may be accepted.
 */
#include <stdlib.h>

#include "flip.h"

/* A copy to be changed, with room for what is put in. */
struct forged {
	unsigned char	*bytes;
	size_t		size;
};

static struct strobe_board_header *header(const struct forged *forged)
{
	return (struct strobe_board_header *)forged->bytes;
}

static struct strobe_board_bar *frame(const struct forged *forged)
{
	return (struct strobe_board_bar *)(header(forged) + 1);
}

static struct strobe_board_value *channels(const struct forged *forged)
{
	return (struct strobe_board_value *)(frame(forged) + header(forged)->bars);
}

static struct strobe_board_event *event(const struct forged *forged)
{
	const struct strobe_board_header *h = header(forged);

	return (struct strobe_board_event *)(channels(forged) + h->channels + h->outputs);
}

/* Makes room for @size zeros at @at. */
static void insert(struct forged *forged, void *at, size_t size)
{
	size_t behind = forged->bytes + forged->size - (unsigned char *)at;

	memmove((unsigned char *)at + size, at, behind);
	memset(at, 0, size);
	forged->size += size;
}

/* Drops the first channel. */
static void drop_channel(struct forged *forged)
{
	struct strobe_board_value *first = channels(forged);
	unsigned char *end = forged->bytes + forged->size;

	memmove(first, first + 1, end - (unsigned char *)(first + 1));
	header(forged)->channels--;
	forged->size -= sizeof(*first);
}

static void whole_register(struct strobe_board_register *reg)
{
	reg->width = 4;
	reg->bits = 32;
}

static void pending(struct forged *forged)
{
	event(forged)->flags = STROBE_BOARD_PENDING;
	event(forged)->mask = 1;
	whole_register(&event(forged)->pending);
}

static void frame_of_8_bytes(struct forged *forged)
{
	while (header(forged)->channels)
		drop_channel(forged);
	frame(forged)->size = 8;
}

static void no_frame(struct forged *forged)
{
	size_t size = sizeof(*frame(forged));

	while (header(forged)->channels)
		drop_channel(forged);
	memmove(frame(forged), frame(forged) + 1, forged->size - sizeof(*header(forged)) - size);
	header(forged)->bars = 0;
	forged->size -= size;
}

static void two_frames(struct forged *forged)
{
	insert(forged, frame(forged) + 1, sizeof(*frame(forged)));
	header(forged)->bars++;
	frame(forged)[1].number = 1;
	frame(forged)[1].size = 16;
}

static void no_event(struct forged *forged)
{
	forged->size -= sizeof(struct strobe_board_event);
	header(forged)->events = 0;
}

/* The last channel of the test's board is a whole register. */
static void output(struct forged *forged)
{
	header(forged)->channels--;
	header(forged)->outputs++;
}

static void write(struct forged *forged)
{
	struct strobe_board_write *end = (void *)(forged->bytes + forged->size);

	insert(forged, end, sizeof(*end));
	whole_register(&end->reg);
	header(forged)->writes++;
}

static void setup(struct forged *forged)
{
	write(forged);
	header(forged)->setup_count = 1;
}

static void card(struct forged *forged)
{
	header(forged)->platform = 0;
	header(forged)->vendor = 0x1234;
	header(forged)->device = 0x11e8;
}

static void missed(struct forged *forged)
{
	event(forged)->missed = 1;
}

static void nothing(struct forged *forged)
{
	(void)forged;
}

void forge(const unsigned char *blob, size_t size)
{
	static const struct {
		const char *what;
		void (*change)(struct forged *forged);
		bool good;
	} forgeries[] = {
		/* Or the others would be refused for another reason. */
		{ "nothing", nothing, true },
		{ "fewer channels", drop_channel, true },
		{ "a pending register", pending, false },
		{ "a counter of what was missed", missed, false },
		{ "a frame of 8 bytes", frame_of_8_bytes, false },
		{ "no frame", no_frame, false },
		{ "two frames", two_frames, false },
		{ "no event", no_event, false },
		{ "an output", output, false },
		{ "a write", write, false },
		{ "a setup", setup, false },
		{ "the ids of a card", card, false },
	};

	if (((const struct strobe_board_header *)blob)->irq != STROBE_BOARD_IRQ_MESSAGE)
		return;
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(*forgeries); i++) {
		struct forged forged = { .bytes = calloc(1, size + 512), .size = size };
		unsigned char *exact;

		memcpy(forged.bytes, blob, size);
		forgeries[i].change(&forged);
		exact = malloc(forged.size);
		memcpy(exact, forged.bytes, forged.size);
		((struct strobe_board_header *)exact)->size = forged.size;
		seal(exact, forged.size);
		if (parse(exact, forged.size) != forgeries[i].good)
			die("%s with %s", forgeries[i].good ? "refused" : "accepted", forgeries[i].what);
		free(exact);
		free(forged.bytes);
	}
}
