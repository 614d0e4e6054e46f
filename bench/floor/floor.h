/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What bench/floor/floor.c and its reader agree on. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FLOOR_WORDS	10	/* of a row: number, time, eight registers */
#define FLOOR_ROWS	1024	/* in the ring; a power of two */
#define FLOOR_DATA	4096	/* where the rows begin */
#define FLOOR_BYTES	(FLOOR_DATA + FLOOR_ROWS * FLOOR_WORDS * 8)

/* First page of the ring, which the reader maps writable. */
struct floor_header {
	__u64	head;		/* rows made */
	__u64	missed;		/* periods that had passed before the timer was served */
	__u64	full;		/* rows not made because the ring was full */
	__u64	tail;		/* by the reader: rows taken */
	__u64	wake_at;	/* by the reader: head at which to wake it */
};

#define FLOOR_START	_IOW('F', 1, __u64)	/* period in ns */
#define FLOOR_STOP	_IO('F', 2)

#endif /* BENCH_FLOOR_H */
