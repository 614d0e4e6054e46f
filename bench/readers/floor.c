// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reader of the floor module: maps its ring and sleeps until 64 more rows are
 * there. It does with a row what strobe.c does.
 *
 *   floor PERIOD_NS ROWS
 */
#include <poll.h>

#include "../floor/floor.h"
#include "common.h"

static uint64_t taken, sum;

static void wait_for_rows(int fd, struct floor_header *h)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	__atomic_store_n(&h->wake_at, taken + WATERMARK, __ATOMIC_RELAXED);
	__atomic_store_n(&h->tail, taken, __ATOMIC_RELEASE);
	if (poll(&pollfd, 1, TIMEOUT_MS) != 1) {
		fprintf(stderr, "floor: no rows for %d ms\n", TIMEOUT_MS);
		exit(1);
	}
}

static void take(struct floor_header *h)
{
	const uint64_t *rows = (const uint64_t *)((const char *)h + FLOOR_DATA);
	uint64_t head = __atomic_load_n(&h->head, __ATOMIC_ACQUIRE);

	for (; taken < head; taken++) {
		const uint64_t *row = rows + (taken & (FLOOR_ROWS - 1)) * FLOOR_WORDS;

		for (uint32_t w = 0; w < FLOOR_WORDS; w++)
			sum += LOAD(row[w]);
	}
}

int main(int argc, char **argv)
{
	struct floor_header *h;
	__u64 period;
	uint64_t rows;
	int fd;

	if (argc != 3)
		return 2;
	period = strtoull(argv[1], NULL, 0);
	rows = strtoull(argv[2], NULL, 0);
	fd = open("/dev/floor", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail("/dev/floor");
	h = mmap(NULL, FLOOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (h == MAP_FAILED)
		fail("mmap");
	if (ioctl(fd, FLOOR_START, &period))
		fail("FLOOR_START");
	while (taken < WARM_UP) {
		wait_for_rows(fd, h);
		take(h);
	}
	rows += taken;
	MARK_WINDOW_BEGIN();
	while (taken < rows) {
		wait_for_rows(fd, h);
		take(h);
	}
	MARK_WINDOW_END();
	if (ioctl(fd, FLOOR_STOP))
		fail("FLOOR_STOP");
	printf("rows %llu missed %llu lost 0\n", (unsigned long long)h->head,
	       (unsigned long long)(h->missed + h->full));
	return 0;
}
