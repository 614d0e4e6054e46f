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

/*
 * Nine tenths of all that these tests compute. So eight bytes are taken at once, and the sanitizers, which would look at
 * each, see only the ends.
 */
__attribute__((no_sanitize("address", "undefined")))
static u32 crc32_of(u32 crc, const unsigned char *byte, size_t bytes)
{
	/* table[n][b]: what b does to the sum when n zeros come after it. */
	static u32 table[8][256];

	if (!table[0][1]) {
		for (u32 b = 0; b < 256; b++) {
			u32 c = b;

			for (int bit = 0; bit < 8; bit++)
				c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
			table[0][b] = c;
		}
		for (int n = 1; n < 8; n++) {
			for (u32 b = 0; b < 256; b++)
				table[n][b] = table[n - 1][b] >> 8 ^ table[0][table[n - 1][b] & 0xff];
		}
	}
	for (; bytes >= 8; byte += 8, bytes -= 8) {
		u64 word;

		__builtin_memcpy(&word, byte, 8);
		word ^= crc;
		crc = 0;
		for (int n = 0; n < 8; n++)
			crc ^= table[7 - n][word >> 8 * n & 0xff];
	}
	while (bytes--)
		crc = crc >> 8 ^ table[0][(crc ^ *byte++) & 0xff];
	return crc;
}

static inline u32 crc32_le(u32 crc, const unsigned char *byte, size_t bytes)
{
	if (bytes) {
		(void)*(const volatile unsigned char *)byte;
		(void)*(const volatile unsigned char *)(byte + bytes - 1);
	}
	return crc32_of(crc, byte, bytes);
}

#endif /* _SHIM_KERNEL_H */
