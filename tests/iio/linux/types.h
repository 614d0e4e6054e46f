/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What kernel/iio/f64.c and gaps.h need of the kernel, for a program. */
#ifndef _TEST_TYPES_H
#define _TEST_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;

#define BIT_ULL(n)		(1ULL << (n))
#define abs(x)			((x) < 0 ? -(x) : (x))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (unsigned __int128)a * b >> shift;
}

#endif
