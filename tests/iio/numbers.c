// SPDX-License-Identifier: MIT OR Apache-2.0
/* What strobe_iio.ko calculates, beside the floating-point unit and beside scans whose number is known. */
#include <stdio.h>
#include <string.h>

#include "../../kernel/iio/f64.c"
#include "../../kernel/iio/gaps.h"

static int passed, failed;

static void check(const char *sentence, bool good)
{
	passed += good;
	failed += !good;
	if (!good)
		printf("failed: %s\n", sentence);
}

static u64 dice(void)
{
	static u64 state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static u64 bits_of(double value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double of_bits(u64 bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Both are exact as binary64, so the machine's quotient is the nearest. */
static bool is_quotient(s64 number, u64 by)
{
	return iio_f64_of(number, by) == bits_of((double)number / (double)by);
}

static bool are_quotients(void)
{
	static const u64 parts[] = { 1, 1000000, 1000000000, 3, 1 << 30 };

	for (u32 i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (u32 n = 0; n < 200000; n++) {
			s64 number = (s64)(dice() >> (11 + dice() % 52));

			if (!is_quotient(number, parts[i]) || !is_quotient(-number, parts[i]))
				return false;
		}
	return is_quotient(0, 7) && is_quotient(1333, 1000000);
}

static bool are_products(void)
{
	for (u32 n = 0; n < 1000000; n++) {
		u64 a = iio_f64_of((s64)dice() >> (dice() % 60), 1 + dice() % 1000000007);
		u64 b = iio_f64_of((s64)dice() >> (dice() % 60), 1 + dice() % 1000000007);

		if (a && b && iio_f64_product(a, b) != bits_of(of_bits(a) * of_bits(b)))
			return false;
	}
	return !iio_f64_product(0, 0x3FF0000000000000ULL) && !iio_f64_product(0x3FF0000000000000ULL, 0);
}

#define PERIOD	1000000ULL
#define SCANS	100000

/*
 * Scans on a grid. Each may be late by @jitter eighths of a period, at most; of a
 * thousand so many are dropped, and @very late by more than a period; the source's
 * period is longer by a @slow-th part. Answers how far what was found is from what
 * was dropped, at most.
 */
static u64 error_of(u32 jitter, u32 drops, u32 very, u64 slow, u64 first_late)
{
	struct iio_gaps gaps = { .period = PERIOD };
	u64 period = slow ? PERIOD + PERIOD / slow : PERIOD, pending = 0, most = 0;
	s64 difference = 0;

	for (u64 scan = 0; scan < SCANS; scan++) {
		u64 late = scan ? dice() % (jitter * PERIOD / 8 + 1) : first_late;

		if (dice() % 1000 < very)
			late = PERIOD * 9 / 8;
		if (scan > 2 && dice() % 1000 < drops) {
			pending++;
			continue;
		}
		difference += iio_gaps_before(&gaps, 5 * PERIOD + scan * period + late);
		difference -= pending;
		pending = 0;
		most = max(most, (u64)abs(difference));
	}
	return most;
}

int main(void)
{
	check("a fraction is the nearest binary64", are_quotients());
	check("a product is the nearest binary64", are_products());
	check("scans on time are all there", !error_of(0, 0, 0, 0, 0));
	check("each that is dropped is found", !error_of(0, 30, 0, 0, 0));
	check("those that are late by half a period are not taken for others", !error_of(4, 30, 0, 0, 0));
	check("nor by seven eighths", !error_of(7, 30, 0, 0, 0));
	check("the first may be late by as much", !error_of(6, 30, 0, 0, PERIOD * 6 / 8));
	check("one that is later counts as the next, until the next gap", error_of(4, 30, 10, 0, 0) <= 1);
	check("the source's clock may be slow by 100 ppm", !error_of(2, 30, 0, 10000, 0));
	check("without a period nothing is claimed",
	      !iio_gaps_before(&(struct iio_gaps){ 0 }, 5 * PERIOD));
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
