/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A complete driver in userspace, of the device uio_dummy: finds it, maps its page, waits for its interrupts,
 * reads what the device says of each, and accounts for all of them: uio_driver [LINES]
 */
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* What sysfs says of map 0: its size, or where in its first page the device begins. */
static size_t map0(int number, const char *what)
{
	size_t value;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/uio/uio%d/maps/map0/%s", number, what);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%zx", &value) != 1)
		fail(path);
	fclose(file);
	return value;
}

/* The number N of /dev/uioN. */
static int find(const char *wanted)
{
	char name[64];
	glob_t all;
	int number = -1;

	if (glob("/sys/class/uio/uio*/name", 0, NULL, &all))
		return -1;
	for (size_t i = 0; i < all.gl_pathc && number < 0; i++) {
		FILE *file = fopen(all.gl_pathv[i], "r");

		if (file && fscanf(file, "%63s", name) == 1 && !strcmp(name, wanted))
			sscanf(all.gl_pathv[i], "/sys/class/uio/uio%d", &number);
		if (file)
			fclose(file);
	}
	globfree(&all);
	return number;
}

int main(int argc, char **argv)
{
	long lines = argc > 1 ? atol(argv[1]) : 10;
	int number = find("uio_dummy"), fd;
	volatile uint64_t *page;
	uint32_t on = 1, count, last = 0, missed = 0;
	char path[32], *map;

	if (number < 0)
		return fprintf(stderr, "no uio_dummy: modprobe uio_dummy\n"), 1;
	snprintf(path, sizeof(path), "/dev/uio%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	/* Map N: at offset N * sysconf(_SC_PAGESIZE), which is no place in a file but a number. */
	map = mmap(NULL, map0(number, "size"), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || write(fd, &on, sizeof(on)) != sizeof(on))
		fail("map or enable");
	page = (volatile uint64_t *)(map + map0(number, "offset"));
	for (long i = 0; i < lines; i++) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t sequence, time, events;

		if (poll(&ready, 1, 5000) != 1 || read(fd, &count, sizeof(count)) != sizeof(count))
			fail("no interrupt in 5 s");
		missed += i ? count - last - 1 : 0;
		last = count;
		do {	/* the sequence is odd while the device writes the others */
			sequence = page[0];
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			time = page[1], events = page[2];
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
		} while (sequence % 2 || page[0] != sequence);
		printf("interrupt %" PRIu32 ": the device is at %" PRIu64 ", at %" PRIu64 " ns\n", count, events, time);
	}
	printf("%ld interrupts, %" PRIu32 " missed\n", lines, missed);
	return 0;
}
