/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of this directory share. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../include/uapi/strobe.h"
#include "mark.h"
#include "programs.h"

#define WATERMARK	64
#define WARM_UP		256	/* rows before the window begins */
#define TIMEOUT_MS	20000	/* without a row, nothing is to be hoped for */
#define RING_ROWS	1024
#define STEPS_MAX	64
#define EDU_VENDOR	0x1234	/* the guest has no other card of it */

#define LOAD(p)		__atomic_load_n(&(p), __ATOMIC_RELAXED)
#define FENCE()		__atomic_thread_fence(__ATOMIC_ACQUIRE)

static inline void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A run of strobe that reads the channels of @names, which ends with NULL; "=NAME" is a program. Its owner fd. */
static inline int create_run(const char *event, uint64_t period, char **names)
{
	static struct strobe_step steps[STEPS_MAX];
	struct strobe_created made = { .fd = -1 };
	struct strobe_create c = {
		.size = sizeof(c), .period_ns = period, .capacity = RING_ROWS,
		.steps = (uintptr_t)steps, .step_size = sizeof(steps[0]),
		.answer = (uintptr_t)&made, .answer_size = sizeof(made),
	};
	int device = open(STROBE_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	if (device < 0)
		fail(STROBE_DEVICE_PATH);
	snprintf(c.event, sizeof(c.event), "%s", event);
	for (; *names && c.step_count < STEPS_MAX; names++) {
		struct strobe_step *step = &steps[c.step_count];

		if (**names == '=') {
			c.program = program_named(*names + 1);
			continue;
		}
		c.step_count++;
		step->op = STROBE_OP_READ;
		snprintf(step->name, sizeof(step->name), "%s", *names);
	}
	if (ioctl(device, STROBE_CREATE, &c)) {
		fprintf(stderr, "step %d, reason %u: ", (int)made.fault_step, made.why);
		fail("STROBE_CREATE");
	}
	close(device);
	return made.fd;
}

static inline struct strobe_control control(int owner, uint32_t op)
{
	struct strobe_control c = { .size = sizeof(c), .op = op };

	if (ioctl(owner, STROBE_CONTROL, &c))
		fail("STROBE_CONTROL");
	return c;
}

/* The registers of QEMU's card "edu", as 32-bit words. Whoever drives it: root may map them. */
static inline volatile uint32_t *map_edu(void)
{
	void *registers = MAP_FAILED;
	glob_t cards;

	if (!glob("/sys/bus/pci/devices/*", 0, NULL, &cards)) {
		for (size_t i = 0; i < cards.gl_pathc; i++) {
			char path[256], ids[16] = "";
			FILE *vendor;
			int fd;

			snprintf(path, sizeof(path), "%s/vendor", cards.gl_pathv[i]);
			vendor = fopen(path, "r");
			if (!vendor || !fgets(ids, sizeof(ids), vendor))
				fail(path);
			fclose(vendor);
			if (strtoul(ids, NULL, 16) != EDU_VENDOR)
				continue;
			snprintf(path, sizeof(path), "%s/resource0", cards.gl_pathv[i]);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				fail(path);
			registers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			close(fd);
		}
		globfree(&cards);
	}
	if (registers == MAP_FAILED)
		fail("the card edu");
	return registers;
}

#endif /* BENCH_COMMON_H */
