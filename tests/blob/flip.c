// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tries to break the driver's check of compiled boards, kernel/board/blob.c,
 * which is compiled into this program as it is, with the sanitizers.
 * forge.c has what takes several changes that fit together.
 *
 * Every blob that is given is cut at each length and lengthened, and each of its
 * bits is flipped, with and without a new checksum (of a large one those of each
 * eleventh byte, without --all); then many bytes at once, at random.
 * What is refused must say why; what is accepted must be harmless, which is
 * checked here in other words than there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/kernel.h>

#include "flip.h"

#define RANDOM_BLOBS	20000
/* What it takes grows with the square of the size. */
#define LARGE		10000

static const unsigned char nasty[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0x20, 0x08 };
static unsigned long refused, accepted;
static const char *file;

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", file);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

#define must(condition)	((condition) ? (void)0 : die("accepted, but not: %s", #condition))

static void must_be_text(const char *text, size_t size)
{
	must(memchr(text, 0, size));
	for (; *text; text++)
		must((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void must_be_name(const char *name)
{
	must(memchr(name, 0, STROBE_BOARD_NAME_SIZE));
	must(*name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-") == strlen(name));
}

static void must_be_register(const struct board_blob *blob,
			     const struct strobe_board_register *reg, bool whole)
{
	must(reg->bar < blob->header->bars);
	must(reg->width && 8 % reg->width == 0);
	must(reg->offset % reg->width == 0);
	must(reg->offset + (u64)reg->width <= blob->bars[reg->bar].size);
	must(reg->bits > 0);
	must(reg->shift + reg->bits <= reg->width * 8);
	if (whole)
		must(reg->shift == 0 && reg->bits == reg->width * 8);
}

static void must_be_list(const struct board_blob *blob, unsigned int first, unsigned int count,
			 bool may_be_pending)
{
	for (unsigned int i = first; i < first + count; i++) {
		must(i < blob->header->writes);
		must(may_be_pending || !(blob->writes[i].flags & STROBE_BOARD_WRITE_PENDING));
	}
}

static void must_be_frames(const struct board_blob *blob)
{
	const struct strobe_board_header *h = blob->header;

	must(h->platform && !h->vendor && !h->device);
	must(h->bars == 1 && blob->bars->number == 0);
	must(blob->bars->size >= 16 && blob->bars->size <= 488 && blob->bars->size % 8 == 0);
	must(h->events == 1 && !(blob->events->flags & STROBE_BOARD_PENDING));
	must(!blob->events->missed);
	must(!h->outputs && !h->writes && !h->setup_count);
	for (unsigned int i = 0; i < h->channels; i++) {
		must(!(blob->channels[i].reg.flags & STROBE_BOARD_BIG_ENDIAN));
		must(strcmp(blob->channels[i].name, "messages"));
		must(strcmp(blob->channels[i].name, "short"));
		must(strcmp(blob->channels[i].name, "long"));
		must(strcmp(blob->channels[i].name, "malformed"));
		must(strcmp(blob->channels[i].name, "out_of_order"));
	}
}

static void must_be_counter(const struct board_blob *blob, unsigned int channel)
{
	const struct strobe_board_register *reg = &blob->channels[channel].reg;

	must(channel < blob->header->channels && reg->bits >= 16);
	must(!(reg->flags & (STROBE_BOARD_SIGNED | STROBE_BOARD_FLOAT | STROBE_BOARD_REREAD)));
}

/* All that the driver relies on. */
static void must_be_harmless(const struct board_blob *blob, const char *end)
{
	const struct strobe_board_header *h = blob->header;

	must((const char *)&blob->writes[h->writes] == end);
	must(h->bars <= 6 && h->vectors <= 32);
	if (h->irq == STROBE_BOARD_IRQ_MESSAGE)
		must_be_frames(blob);
	else if (h->platform)
		must(h->irq == STROBE_BOARD_IRQ_NONE || h->irq == STROBE_BOARD_IRQ_LINE);
	else
		must(h->irq <= STROBE_BOARD_IRQ_MSIX);
	must_be_name(h->name);
	must_be_text(h->text, sizeof(h->text));
	for (unsigned int i = 0; i < h->bars; i++)
		must(blob->bars[i].number < 6);
	for (unsigned int i = 0; i < h->channels; i++) {
		must_be_name(blob->channels[i].name);
		must_be_text(blob->channels[i].unit, sizeof(blob->channels[i].unit));
		must_be_text(blob->channels[i].text, sizeof(blob->channels[i].text));
		must_be_register(blob, &blob->channels[i].reg, false);
		for (unsigned int k = 0; k < i; k++)
			must(strcmp(blob->channels[i].name, blob->channels[k].name));
	}
	for (unsigned int i = 0; i < h->outputs; i++) {
		must_be_name(blob->outputs[i].name);
		must_be_text(blob->outputs[i].unit, sizeof(blob->outputs[i].unit));
		must_be_text(blob->outputs[i].text, sizeof(blob->outputs[i].text));
		must_be_register(blob, &blob->outputs[i].reg, true);
		for (unsigned int k = 0; k < i; k++)
			must(strcmp(blob->outputs[i].name, blob->outputs[k].name));
	}
	for (unsigned int i = 0; i < h->events; i++) {
		const struct strobe_board_event *e = &blob->events[i];
		bool pending = e->flags & STROBE_BOARD_PENDING;

		must_be_name(e->name);
		must_be_text(e->text, sizeof(e->text));
		must(h->irq != STROBE_BOARD_IRQ_NONE && e->vector < h->vectors);
		must(pending || h->irq != STROBE_BOARD_IRQ_INTX);
		if (pending)
			must_be_register(blob, &e->pending, true);
		if (e->missed)
			must_be_counter(blob, e->missed - 1);
		must_be_list(blob, e->silence_first, e->silence_count, pending);
		must_be_list(blob, e->enable_first, e->enable_count, false);
		must_be_list(blob, e->disable_first, e->disable_count, false);
		for (unsigned int k = 0; k < i; k++)
			must(e->vector != blob->events[k].vector ||
			     (pending && (blob->events[k].flags & STROBE_BOARD_PENDING)));
	}
	for (unsigned int i = 0; i < h->writes; i++)
		must_be_register(blob, &blob->writes[i].reg, true);
	must_be_list(blob, h->setup_first, h->setup_count, false);
}

/* @bytes is of exactly @size bytes, so that the sanitizer sees any step beyond. */
bool parse(const unsigned char *bytes, size_t size)
{
	struct board_blob blob;
	char why[96] = "";

	if (board_blob_parse(&blob, bytes, size, why, sizeof(why))) {
		if (!*why)
			die("refused without a reason");
		refused++;
		return false;
	}
	must_be_harmless(&blob, (const char *)bytes + size);
	accepted++;
	return true;
}

void seal(unsigned char *bytes, size_t size)
{
	struct strobe_board_header *header = (void *)bytes;

	if (size >= sizeof(*header))
		header->crc32 = ~crc32_le(~0U, bytes + 20, size - 20);
}

static void cut_everywhere(const unsigned char *blob, size_t size)
{
	for (size_t length = 0; length < size; length++) {
		unsigned char *bytes = malloc(length ?: 1);

		memcpy(bytes, blob, length);
		if (parse(bytes, length))
			die("accepted when cut to %zu bytes", length);
		if (length >= sizeof(struct strobe_board_header)) {
			((struct strobe_board_header *)bytes)->size = length;
			seal(bytes, length);
			if (parse(bytes, length))
				die("accepted when cut to %zu bytes, and sealed", length);
		}
		free(bytes);
	}
}

/* What follows the lists belongs to nobody. */
static void lengthen(const unsigned char *blob, size_t size)
{
	for (size_t more = 1; more <= 512; more++) {
		unsigned char *bytes = calloc(1, size + more);

		memcpy(bytes, blob, size);
		((struct strobe_board_header *)bytes)->size = size + more;
		seal(bytes, size + more);
		if (parse(bytes, size + more))
			die("accepted with %zu bytes more", more);
		free(bytes);
	}
}

static void flip_everywhere(const unsigned char *blob, size_t size, size_t step)
{
	unsigned char *bytes = malloc(size);

	for (size_t at = 0; at < size; at += step) {
		/* Eight single bits, then values that mean something in some field. */
		for (size_t change = 0; change < 8 + sizeof(nasty); change++) {
			memcpy(bytes, blob, size);
			if (change < 8)
				bytes[at] ^= 1 << change;
			else
				bytes[at] = nasty[change - 8];
			if (bytes[at] == blob[at])
				continue;
			if (parse(bytes, size))
				die("accepted with byte %zu flipped", at);
			seal(bytes, size);
			parse(bytes, size);
		}
	}
	free(bytes);
}

/* xorshift64*: the same in every run. */
static u64 dice(void)
{
	static u64 x = 0x9e3779b97f4a7c15ULL;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	return x * 0x2545f4914f6cdd1dULL;
}

static void shake(const unsigned char *blob, size_t size)
{
	unsigned char *bytes = malloc(size);

	for (unsigned int n = 0; n < RANDOM_BLOBS; n++) {
		memcpy(bytes, blob, size);
		for (unsigned int changes = 1 + dice() % 4; changes; changes--) {
			/* Magic, version and size are left: they only hide the rest. */
			size_t at = 20 + dice() % (size - 20);

			bytes[at] = dice() % 2 ? nasty[dice() % sizeof(nasty)] : dice() >> 56;
		}
		seal(bytes, size);
		parse(bytes, size);
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strcmp(argv[1], "--all");

	argv += all;
	argc -= all;
	for (int i = 1; i < argc; i++) {
		static unsigned char blob[STROBE_BOARD_SIZE_MAX];
		FILE *stream = fopen(argv[i], "rb");
		unsigned char *exact;
		size_t size;

		file = argv[i];
		if (!stream)
			die("cannot be opened");
		size = fread(blob, 1, sizeof(blob), stream);
		fclose(stream);
		exact = malloc(size ?: 1);
		memcpy(exact, blob, size);
		if (!parse(exact, size))
			die("refused as it is");
		free(exact);
		cut_everywhere(blob, size);
		lengthen(blob, size);
		/* No record has a multiple of eleven bytes: of eleven like ones, each byte is damaged in one. Smaller boards are damaged whole. */
		flip_everywhere(blob, size, size > LARGE && !all ? 11 : 1);
		shake(blob, size);
		forge(blob, size);
	}
	printf("%d boards: %lu blobs refused, %lu accepted and harmless\n", argc - 1, refused, accepted);
	return argc < 2;
}
