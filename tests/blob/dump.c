// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints a compiled board (standard input) field by field, as the C header
 * understands it: crates/strobe-board/tests/board.rs compares that with the board.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/strobe_board.h>

static void reg(const struct strobe_board_register *r)
{
	printf(" bar=%u width=%u shift=%u bits=%u flags=%u reserved=%u offset=%u",
	       r->bar, r->width, r->shift, r->bits, r->flags, r->reserved, r->offset);
}

static void value(const char *kind, const struct strobe_board_value *v)
{
	printf("%s name=%s unit=%s text=%s scale=%016llx offset=%016llx", kind, v->name, v->unit,
	       v->text, (unsigned long long)v->scale, (unsigned long long)v->offset);
	reg(&v->reg);
	putchar('\n');
}

static const void *take(const char **at, size_t size)
{
	const void *here = *at;

	*at += size;
	return here;
}

int main(void)
{
	static _Alignas(8) char blob[STROBE_BOARD_SIZE_MAX];
	size_t size = fread(blob, 1, sizeof(blob), stdin);
	const char *at = blob;
	const struct strobe_board_header *h = take(&at, sizeof(*h));

	printf("magic=%d version=%u size=%u whole=%d covered=%zu irq=%u\n",
	       h->magic == STROBE_BOARD_MAGIC, h->version, h->size, h->size == size,
	       offsetof(struct strobe_board_header, irq), h->irq);
	printf("ids=%04x:%04x:%04x:%04x counts=%u,%u,%u,%u,%u vectors=%u setup=%u+%u reserved=%llu\n",
	       h->vendor, h->device, h->subvendor, h->subdevice, h->bars, h->channels, h->outputs,
	       h->events, h->writes, h->vectors, h->setup_first, h->setup_count,
	       (unsigned long long)h->reserved);
	printf("name=%s text=%s\n", h->name, h->text);
	for (unsigned int i = 0; i < h->bars; i++) {
		const struct strobe_board_bar *b = take(&at, sizeof(*b));

		printf("bar number=%u reserved=%u size=%llu\n", b->number, b->reserved,
		       (unsigned long long)b->size);
	}
	for (unsigned int i = 0; i < h->channels; i++)
		value("channel", take(&at, sizeof(struct strobe_board_value)));
	for (unsigned int i = 0; i < h->outputs; i++)
		value("output", take(&at, sizeof(struct strobe_board_value)));
	for (unsigned int i = 0; i < h->events; i++) {
		const struct strobe_board_event *e = take(&at, sizeof(*e));

		printf("event name=%s text=%s flags=%u vector=%u missed=%u", e->name, e->text,
		       e->flags, e->vector, e->missed);
		reg(&e->pending);
		printf(" mask=%llu silence=%u+%u enable=%u+%u disable=%u+%u reserved=%u\n",
		       (unsigned long long)e->mask, e->silence_first, e->silence_count,
		       e->enable_first, e->enable_count, e->disable_first, e->disable_count,
		       e->reserved2);
	}
	for (unsigned int i = 0; i < h->writes; i++) {
		const struct strobe_board_write *w = take(&at, sizeof(*w));

		printf("write");
		reg(&w->reg);
		printf(" flags=%u reserved=%u value=%llu\n", w->flags, w->reserved,
		       (unsigned long long)w->value);
	}
	printf("end=%d\n", at == blob + size);
	return 0;
}
