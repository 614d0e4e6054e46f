/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was dropped, by time stamps of a source that has a period.
 *
 * A stamp may be late, as when a thread takes it, but never early. So it belongs
 * to the point of the grid before it, and one that is early by what was thought
 * shows that the stamp before it was late: then the grid begins anew with it, and
 * what was found missing before that late one was not.
 */
#ifndef _STROBE_IIO_GAPS_H
#define _STROBE_IIO_GAPS_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct iio_gaps - what is known by the last stamp.
 * @period: ns; 0: not known, and nothing is found.
 * @at: point of the grid that the last stamp belongs to.
 * @found: what seemed to be missing before the last stamp.
 * @debt: what was found missing and then seen not to be.
 * @is_begun: there was a stamp.
 */
struct iio_gaps {
	u64	period;
	u64	at;
	u64	found;
	u64	debt;
	bool	is_begun;
};

/**
 * iio_gaps_before() - how many were dropped before this one.
 * @gaps: what is known.
 * @stamp: its stamp.
 *
 * A stamp may be late by seven eighths of a period. More than one that is later
 * makes the account wrong by one, until the next gap.
 *
 * Return: how many, as far as is known now; over time the sum is right.
 */
static inline u64 iio_gaps_before(struct iio_gaps *gaps, u64 stamp)
{
	u64 slack = gaps->period / 8, steps, missing, paid;
	s64 since = stamp - gaps->at;

	if (!gaps->period)
		return 0;
	steps = since + (s64)slack > 0 ? div64_u64(since + slack, gaps->period) : 0;
	if (!gaps->is_begun || !steps) {
		if (gaps->is_begun && gaps->found)
			gaps->debt++;
		gaps->is_begun = true;
		gaps->found = 0;
		gaps->at = stamp;
		return 0;
	}
	gaps->at += steps * gaps->period;
	since = stamp - gaps->at;
	/* The two clocks are not quite the same: the grid follows, slowly if stamps are late. */
	gaps->at += since < 0 ? since : since / 16;
	missing = steps - 1;
	gaps->found = missing;
	paid = min(missing, gaps->debt);
	gaps->debt -= paid;
	return missing - paid;
}

#endif /* _STROBE_IIO_GAPS_H */
