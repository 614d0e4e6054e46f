/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* As much of the kernel as kernel/board/blob.c needs, for a program. */
#ifndef _SHIM_KERNEL_H
#define _SHIM_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;

#define fallthrough __attribute__((__fallthrough__))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))
#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static inline size_t size_mul(size_t a, size_t b)
{
	size_t product;

	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static inline size_t size_add(size_t a, size_t b)
{
	size_t sum;

	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

/* The first byte that is not @c; NULL if all are. */
static inline const void *memchr_inv(const void *start, int c, size_t bytes)
{
	const unsigned char *byte = start;

	for (; bytes; bytes--, byte++) {
		if (*byte != (unsigned char)c)
			return byte;
	}
	return NULL;
}

static inline int match_string(const char *const *list, size_t count, const char *string)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(list[i], string))
			return i;
	}
	return -EINVAL;
}

static inline u32 crc32_le(u32 crc, const unsigned char *byte, size_t bytes)
{
	static u32 table[256];

	if (!table[1]) {
		for (u32 i = 0; i < 256; i++) {
			u32 c = i;

			for (int bit = 0; bit < 8; bit++)
				c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
			table[i] = c;
		}
	}
	while (bytes--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 0xff];
	return crc;
}

#endif /* _SHIM_KERNEL_H */
