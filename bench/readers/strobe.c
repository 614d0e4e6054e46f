// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Readers of strobe: a run on the timer, processes that map its ring and sleep
 * until 64 more rows are there.
 *
 *   strobe PERIOD_NS ROWS READERS CHANNEL...
 *
 * The window is the steady state of the first reader. Without readers it is
 * that of a process which sleeps meanwhile.
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "common.h"

/* What a reader has taken. */
struct tally {
	uint64_t	next;
	uint64_t	lost;
	uint64_t	sum;
};

/* Adds up every word of every row that is there: the least that a reader does. */
static void take(const struct strobe_ring_header *h, struct tally *tally)
{
	const char *rows = (const char *)h + h->data_offset;
	uint64_t mask = h->capacity - 1, stride = h->row_stride;
	uint64_t first = tally->next, head = LOAD(h->head), edge;
	uint32_t words = h->channels;

	FENCE();						/* C */
	for (uint64_t i = first; i < head; i++) {
		const struct strobe_row *row = (const void *)(rows + (i & mask) * stride);

		for (uint32_t w = 0; w < words; w++)
			tally->sum += LOAD(row->value[w]);
	}
	FENCE();						/* D */
	edge = strobe_ring_oldest(LOAD(h->head), h->capacity, h->limit);
	if (edge > first)
		tally->lost += (edge < head ? edge : head) - first;
	tally->next = head;
}

static const struct strobe_ring_header *map_ring(int owner, int *ring)
{
	struct strobe_reader reader = { .size = sizeof(reader) };
	const struct strobe_ring_header *h;

	if (ioctl(owner, STROBE_READER, &reader))
		fail("STROBE_READER");
	h = mmap(NULL, reader.ring_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, reader.fd, 0);
	if (h == MAP_FAILED)
		fail("mmap");
	*ring = reader.fd;
	return h;
}

/* Until head is at the next multiple of the watermark: all readers are due at the same rows. */
static void wait_for_rows(int ring, uint64_t next)
{
	struct strobe_arm arm = { .size = sizeof(arm), .rows = (next / WATERMARK + 1) * WATERMARK };
	struct pollfd pollfd = { .fd = ring, .events = POLLIN };

	if (ioctl(ring, STROBE_ARM, &arm))
		fail("STROBE_ARM");
	if (poll(&pollfd, 1, TIMEOUT_MS) != 1) {
		fprintf(stderr, "strobe: no rows for %d ms\n", TIMEOUT_MS);
		exit(1);
	}
}

/* Another reader, which ends with this process. */
static void fork_reader(int owner)
{
	struct tally tally = { 0 };
	pid_t pid = fork();
	const struct strobe_ring_header *h;
	int ring;

	if (pid < 0)
		fail("fork");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	h = map_ring(owner, &ring);
	for (;;) {
		wait_for_rows(ring, tally.next);
		take(h, &tally);
	}
}

static void sleep_for(uint64_t ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&time, NULL);
}

static void sleep_through(int owner, uint64_t period, uint64_t rows)
{
	control(owner, STROBE_START);
	sleep_for(WARM_UP * period);
	MARK_WINDOW_BEGIN();
	sleep_for(rows * period);
	MARK_WINDOW_END();
}

static void read_through(int owner, uint64_t rows, struct tally *tally)
{
	int ring;
	const struct strobe_ring_header *h = map_ring(owner, &ring);

	control(owner, STROBE_START);
	while (tally->next < WARM_UP) {
		wait_for_rows(ring, tally->next);
		take(h, tally);
	}
	rows += tally->next;
	MARK_WINDOW_BEGIN();
	while (tally->next < rows) {
		wait_for_rows(ring, tally->next);
		take(h, tally);
	}
	MARK_WINDOW_END();
}

int main(int argc, char **argv)
{
	struct tally tally = { 0 };
	struct strobe_control end;
	uint64_t period, rows;
	int readers, owner;

	if (argc < 5)
		return 2;
	period = strtoull(argv[1], NULL, 0);
	rows = strtoull(argv[2], NULL, 0);
	readers = atoi(argv[3]);
	owner = create_run("timer", period, argv + 4);
	for (int i = 1; i < readers; i++)
		fork_reader(owner);
	/* Time for all of them to be asleep before the first row. */
	sleep_for(100000000);
	if (readers)
		read_through(owner, rows, &tally);
	else
		sleep_through(owner, period, rows);
	end = control(owner, STROBE_STOP);
	printf("rows %llu missed %llu lost %llu\n", (unsigned long long)end.head,
	       (unsigned long long)(end.triggers - end.head - end.skipped),
	       (unsigned long long)tally.lost);
	return 0;
}
