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
 * @found: what seemed to be missing, and was not seen not to be.
 * @debt: what was found missing and then seen not to be.
 * @least: how late the stamps of this window were, at least.
 * @window: stamps in it.
 * @is_begun: there was a stamp.
 */
struct iio_gaps {
	u64	period;
	u64	at;
	u64	found;
	u64	debt;
	u64	least;
	u32	window;
	bool	is_begun;
};

#define IIO_GAPS_WINDOW	64

/*
 * The clocks of the source and of its stamps are not quite the same. If no stamp
 * of a window was on time, the grid is moved. One that seems to be early moves it
 * by a little at once: it may be one that is late by nearly a period.
 */
static inline void iio_gaps_follow(struct iio_gaps *gaps, s64 late)
{
	gaps->least = gaps->window++ ? min_t(u64, gaps->least, max(late, 0)) : max(late, 0);
	if (late < 0)
		gaps->at -= min_t(u64, -late, gaps->period / IIO_GAPS_WINDOW);
	if (gaps->window < IIO_GAPS_WINDOW)
		return;
	gaps->at += gaps->least;
	gaps->window = 0;
}

/**
 * iio_gaps_before() - how many were dropped before this one.
 * @gaps: what is known.
 * @stamp: its stamp.
 *
 * A stamp may be late by seven eighths of a period, once the grid is known: by the
 * second stamp at the latest. One that is later counts as one of the next period,
 * until the next gap, which is that much smaller.
 *
 * Return: how many, as far as is known now; over time the sum is right to one.
 */
static inline u64 iio_gaps_before(struct iio_gaps *gaps, u64 stamp)
{
	u64 slack = gaps->period / 8, steps, missing, paid;
	s64 since = stamp - gaps->at;

	if (!gaps->period)
		return 0;
	steps = since + (s64)slack > 0 ? div64_u64(since + slack, gaps->period) : 0;
	if (!gaps->is_begun || !steps) {
		/*
		 * In the point of the grid that the one before was thought to be in: one less
		 * was missing, or so late was the grid.
		 */
		if (!gaps->is_begun || since < 0 || !gaps->found)
			gaps->at = stamp;
		gaps->is_begun = true;
		if (gaps->found) {
			gaps->found--;
			gaps->debt++;
		}
		return 0;
	}
	gaps->at += steps * gaps->period;
	iio_gaps_follow(gaps, stamp - gaps->at);
	missing = steps - 1;
	gaps->found += missing;
	paid = min(missing, gaps->debt);
	gaps->debt -= paid;
	return missing - paid;
}

#endif /* _STROBE_IIO_GAPS_H */
