// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers of IIO as IEEE 754 binary64, rounded to the nearest, without the
 * floating-point unit. All of them are far from the ends of its range.
 */
#include <linux/bits.h>
#include <linux/math64.h>

#include "iio/iio.h"

#define BIAS		1023
#define FRACTION	52
#define SIGN		BIT_ULL(63)
/* A number is worked on with two bits more than it has, and the rest. */
#define WORKED		(FRACTION + 2)

/* @number * 2^@exponent, and a little more if @rest. */
static u64 round_off(bool negative, u64 number, bool rest, int exponent)
{
	u64 tail;

	while (number >> (WORKED + 1)) {
		rest |= number & 1;
		number >>= 1;
		exponent++;
	}
	tail = number & 3;
	number >>= 2;
	exponent += 2;
	/* A half goes to the even one. */
	if (tail == 3 || (tail == 2 && (rest || number & 1)))
		number++;
	if (number >> (FRACTION + 1)) {
		number >>= 1;
		exponent++;
	}
	return (negative ? SIGN : 0) | (u64)(exponent + FRACTION + BIAS) << FRACTION |
	       (number & (BIT_ULL(FRACTION) - 1));
}

/**
 * iio_f64_of() - a fraction.
 * @number: what is divided.
 * @by: by what; from 1 to 2^62.
 *
 * Return: the bits of the nearest binary64.
 */
u64 iio_f64_of(s64 number, u64 by)
{
	u64 rest, quotient = div64_u64_rem(abs(number), by, &rest);
	int exponent = 0;

	if (!number)
		return 0;
	while (!(quotient >> WORKED)) {
		rest <<= 1;
		quotient = quotient << 1 | (rest >= by);
		if (rest >= by)
			rest -= by;
		exponent--;
	}
	return round_off(number < 0, quotient, rest, exponent);
}

static u64 fraction(u64 bits)
{
	return (bits & (BIT_ULL(FRACTION) - 1)) | BIT_ULL(FRACTION);
}

static int exponent_of(u64 bits)
{
	return (int)(bits >> FRACTION & 0x7ff) - BIAS - FRACTION;
}

/**
 * iio_f64_product() - two numbers, multiplied.
 * @a: bits of a binary64: 0, or a normal number.
 * @b: another.
 *
 * Return: the bits of the nearest binary64.
 */
u64 iio_f64_product(u64 a, u64 b)
{
	/* Of 105 or 106 bits those that are worked on, or one more. */
	const unsigned int drop = 2 * FRACTION - WORKED;
	u64 low = fraction(a) * fraction(b);

	if (!(a << 1) || !(b << 1))
		return 0;
	return round_off((a ^ b) & SIGN, mul_u64_u64_shr(fraction(a), fraction(b), drop),
			 low & (BIT_ULL(drop) - 1), exponent_of(a) + exponent_of(b) + drop);
}
