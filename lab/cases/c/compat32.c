// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A 32-bit program on a 64-bit kernel: every call of the contract once. The
 * answers must be those that a 64-bit program gets. Exit status 0 if they are;
 * what is wrong is on stderr.
 *
 *	gcc -m32 -std=gnu11 -O2 -Wall -Wextra -static -Iinclude/uapi -o compat32 lab/cases/c/compat32.c
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "strobe.h"

_Static_assert(sizeof(void *) == 4, "build with -m32");
_Static_assert(sizeof(struct strobe_ring_header) == 256, "header");
_Static_assert(sizeof(struct strobe_entry) == 288, "entry");
_Static_assert(sizeof(struct strobe_list) == 40, "list");
_Static_assert(sizeof(struct strobe_step) == 80, "step");
_Static_assert(sizeof(struct strobe_create) == 144, "create");
_Static_assert(sizeof(struct strobe_created) == 56, "created");
_Static_assert(sizeof(struct strobe_features) == 40, "features");
_Static_assert(sizeof(struct strobe_control) == 56, "control");
_Static_assert(sizeof(struct strobe_reader) == 48, "reader");
_Static_assert(sizeof(struct strobe_arm) == 16, "arm");

static int wrong;

static void check(int is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "compat32: not so: %s (errno %s)\n", what, strerror(errno));
	wrong = 1;
}

static __u64 address_of(const void *p)
{
	return (unsigned long)p;
}

static int control(int owner, __u32 op, __u32 count, struct strobe_control *answer)
{
	*answer = (struct strobe_control){ .size = sizeof(*answer), .op = op, .count = count };
	return ioctl(owner, STROBE_CONTROL, answer);
}

static void read_rows(int ring)
{
	__u64 row[10][6] = { };
	ssize_t bytes = read(ring, row, sizeof(row));

	check(bytes == 5 * 48, "read() returns five rows of two channels");
	for (int i = 0; i < 5; i++)
		check(row[i][0] == (__u64)i && row[i][1] == (__u64)i && row[i][4] == (__u64)i,
		      "rows, triggers and sim.counter count from 0");
	check(row[4][5] >= row[4][2] && row[4][5] - row[4][2] < 1000000000, "64-bit words are whole");
}

static void use_ring(int owner, __u64 ring_bytes)
{
	struct strobe_reader reader = { .size = sizeof(reader), .flags = STROBE_NONBLOCK };
	struct strobe_arm arm = { .size = sizeof(arm), .rows = 5 };
	const struct strobe_ring_header *header;
	struct strobe_control state;
	struct pollfd poll_in;

	check(!ioctl(owner, STROBE_READER, &reader) && reader.fd >= 0, "READER on the owner");
	check(reader.ring_bytes == ring_bytes, "both answers agree on ring_bytes");
	check(reader.channels == 2 && reader.outputs == 0 && reader.row_size == 48, "a row");
	header = mmap(NULL, reader.ring_bytes, PROT_READ, MAP_SHARED, reader.fd, 0);
	if (header == MAP_FAILED) {
		check(0, "a small ring can be mapped");
		return;
	}
	poll_in = (struct pollfd){ .fd = reader.fd, .events = POLLIN };
	check(!ioctl(reader.fd, STROBE_ARM, &arm), "ARM");
	check(!control(owner, STROBE_START, 0, &state) && state.state == STROBE_RUNNING, "START");
	check(!control(owner, STROBE_TRIGGER, 4, &state) && state.head == 4, "TRIGGER");
	check(poll(&poll_in, 1, 0) == 0, "not ready before row 5");
	check(!control(owner, STROBE_TRIGGER, 1, &state) && state.head == 5, "TRIGGER again");
	check(poll(&poll_in, 1, 0) == 1 && poll_in.revents == POLLIN, "ready");
	check(header->head == 5 && header->magic == STROBE_RING_MAGIC, "the header");
	read_rows(reader.fd);
	check(read(reader.fd, &arm, sizeof(arm)) < 0 && errno == EINVAL, "no room for a row");
	check(!control(owner, STROBE_STOP, 0, &state) && state.state == STROBE_STOPPED, "STOP");
	check(ioctl(reader.fd, STROBE_LIST, &arm) < 0 && errno == ENOTTY, "LIST is not for a ring");
}

int main(void)
{
	struct strobe_step steps[2] = {
		{ .op = STROBE_OP_READ, .name = "sim.counter" },
		{ .op = STROBE_OP_READ, .name = "clock.time" },
	};
	struct strobe_features features = { .size = sizeof(features) };
	struct strobe_created made = { };
	struct strobe_create create = {
		.size = sizeof(create), .event = "soft", .capacity = 8,
		.steps = address_of(steps), .step_count = 2, .step_size = sizeof(steps[0]),
		.answer = address_of(&made), .answer_size = sizeof(made),
	};
	struct strobe_entry entries[3] = { };
	struct strobe_list list = {
		.size = sizeof(list), .entry_size = sizeof(entries[0]),
		.buffer = address_of(entries), .room = 3,
	};
	struct strobe_tune tune = { .size = sizeof(tune) };
	int fd = open(STROBE_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	check(fd >= 0, "the control device opens");
	check(!ioctl(fd, STROBE_FEATURES, &features) && features.major == STROBE_RING_MAJOR &&
	      features.steps_max == STROBE_STEPS_MAX, "FEATURES");
	check(!ioctl(fd, STROBE_CREATE, &create) && made.fd >= 0, "CREATE");
	check(made.channels == 2 && made.row_size == 48 && made.ring_bytes == 8192,
	      "what CREATE answers");
	list.run = made.run;
	check(!ioctl(fd, STROBE_LIST, &list) && list.count == 3, "LIST");
	check(!strcmp(entries[0].name, "soft") && !strcmp(entries[2].name, "clock.time"), "names");
	check(entries[0].run.capacity == 8, "numbers");
	check(ioctl(made.fd, STROBE_TUNE, &tune) < 0 && errno == EINVAL, "TUNE: no program");
	check(ioctl(made.fd, 0xDA07, &list) < 0 && errno == ENOTTY, "no such call");
	use_ring(made.fd, made.ring_bytes);
	/* An address with something in its upper half is not one of ours. */
	create.steps |= 1ULL << 32;
	check(ioctl(fd, STROBE_CREATE, &create) < 0 && errno == EFAULT, "no address is cut");
	create.steps = address_of(steps);
	create.answer |= 1ULL << 32;
	check(ioctl(fd, STROBE_CREATE, &create) < 0 && errno == EFAULT, "nor that of the answer");
	return wrong;
}
