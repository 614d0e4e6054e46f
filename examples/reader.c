/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A complete reader of strobe, with nothing but the contract: creates a run on
 * a timer, maps its ring, polls, prints rows and losses.
 *
 *   reader [PERIOD_NS [ROWS [CHANNEL...]]]
 *   cc -O2 -Iinclude/uapi -o reader examples/reader.c
 */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "strobe.h"

#define LOAD(p)		__atomic_load_n(&(p), __ATOMIC_RELAXED)
#define FENCE()		__atomic_thread_fence(__ATOMIC_ACQUIRE)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The one rule of the ring: row i is readable if oldest <= i < head. */
static uint64_t oldest(const struct strobe_ring_header *h, uint64_t head)
{
	return strobe_ring_oldest(head, h->capacity, h->limit);
}

/* Copy row i; 0 if it was overwritten meanwhile. */
static int copy_row(const struct strobe_ring_header *h, uint64_t i, uint64_t *to)
{
	const uint64_t *from = (const void *)((const char *)h + h->data_offset +
					      i % h->capacity * h->row_stride);

	for (uint32_t w = 0; w < h->row_size / 8; w++)
		to[w] = LOAD(from[w]);
	FENCE();					/* D */
	return i >= oldest(h, LOAD(h->head));
}

static void print_row(const struct strobe_ring_header *h, const struct strobe_row *row)
{
	printf("%llu,%llu,%llu,%#llx", (unsigned long long)row->row,
	       (unsigned long long)row->trigger, (unsigned long long)row->time,
	       (unsigned long long)row->status);
	for (uint32_t c = 0; c < h->channels; c++) {
		if (strobe_row_failed(row, h->channels, c))
			printf(",failed");
		else
			printf(",%llu", (unsigned long long)row->value[c]);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct strobe_step steps[16] = { 0 };
	struct strobe_created run = { 0 };
	struct strobe_create create = {
		.size = sizeof(create), .event = "timer", .period_ns = 1000000, .limit = 10,
		.steps = (uintptr_t)steps, .step_size = sizeof(steps[0]),
		.answer = (uintptr_t)&run, .answer_size = sizeof(run),
	};
	struct strobe_control start = { .size = sizeof(start), .op = STROBE_START };
	struct strobe_reader reader = { .size = sizeof(reader) };
	uint64_t next = 0, lost = 0, *buffer;
	const struct strobe_ring_header *h;
	int control;

	if (argc > 1)
		create.period_ns = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		create.limit = strtoull(argv[2], NULL, 0);
	for (int i = 3; i < argc && create.step_count < 16; i++) {
		struct strobe_step *step = &steps[create.step_count++];

		step->op = STROBE_OP_READ;
		snprintf(step->name, sizeof(step->name), "%s", argv[i]);
	}
	if (argc < 4) {
		create.step_count = 2;
		steps[0] = (struct strobe_step){ .op = STROBE_OP_READ, .name = "sim.counter" };
		steps[1] = (struct strobe_step){ .op = STROBE_OP_READ, .name = "clock.late" };
	}

	control = open(STROBE_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (control < 0)
		fail(STROBE_DEVICE_PATH);
	if (ioctl(control, STROBE_CREATE, &create)) {
		fprintf(stderr, "step %d, reason %u: ", (int)run.fault_step, run.why);
		fail("STROBE_CREATE");
	}
	if (ioctl(run.fd, STROBE_READER, &reader))
		fail("STROBE_READER");
	h = mmap(NULL, reader.ring_bytes, PROT_READ, MAP_SHARED, reader.fd, 0);
	if (h == MAP_FAILED)
		fail("mmap");
	if (h->magic != STROBE_RING_MAGIC || h->major != STROBE_RING_MAJOR ||
	    h->incompat & ~(STROBE_INCOMPAT_FAULTS | STROBE_INCOMPAT_SKIPPED)) {
		fprintf(stderr, "this ring is of another version\n");
		return 1;
	}
	buffer = calloc(1, h->row_size);
	if (!buffer)
		fail("calloc");
	if (ioctl(run.fd, STROBE_CONTROL, &start))
		fail("STROBE_START");

	for (;;) {
		/* State before head: what is not there now will never come. */
		uint32_t state = LOAD(h->state);
		uint64_t head;

		FENCE();
		head = LOAD(h->head);
		FENCE();				/* C */
		while (next < head) {
			if (next < oldest(h, LOAD(h->head)) || !copy_row(h, next, buffer)) {
				uint64_t to = oldest(h, LOAD(h->head));

				lost += to - next;	/* this reader was too slow */
				next = to;
				continue;
			}
			print_row(h, (const struct strobe_row *)buffer);
			next++;
		}
		if (state >= STROBE_DONE)
			break;

		struct strobe_arm arm = { .size = sizeof(arm), .rows = next + 1 };
		struct pollfd pollfd = { .fd = reader.fd, .events = POLLIN };

		if (ioctl(reader.fd, STROBE_ARM, &arm))
			fail("STROBE_ARM");
		poll(&pollfd, 1, 100);
	}
	fprintf(stderr, "rows %llu, missed %llu, skipped %llu, lost %llu, state %u\n",
		(unsigned long long)h->head,
		(unsigned long long)(h->triggers - h->head - h->skipped),
		(unsigned long long)h->skipped, (unsigned long long)lost, h->state);
	return 0;
}
