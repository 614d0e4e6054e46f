/* SPDX-License-Identifier: GPL-2.0-only */
/* What scan.c and sample.c know of the scans of a device. */
#ifndef _STROBE_IIO_SCAN_H
#define _STROBE_IIO_SCAN_H

#include <linux/iio/buffer_impl.h>
#include <linux/iio/iio.h>
#include <linux/spinlock.h>

#include "iio/gaps.h"
#include "iio/iio.h"

/**
 * struct iio_sample - a channel of a scan.
 * @spec: what IIO has.
 * @type: how it is stored.
 * @at: its place in the scan, while @is_on.
 * @is_on: the scan has it.
 * @users: runs that read it.
 * @value: of the last scan.
 */
struct iio_sample {
	const struct iio_chan_spec	*spec;
	struct iio_scan_type		type;
	u32				at;
	bool				is_on;
	u32				users;
	u64				value;
};

/**
 * struct iio_scan - scans of a device.
 * @buffer: IIO's view; counts the references.
 * @unit: the device.
 * @stamp_spec: its time stamps; NULL: it has none.
 * @stamp_at: their place in a scan.
 * @last_index: IIO's index of the last sample that is on.
 * @lock: of who hands a scan over, against a driver that does so twice at once, or
 *	after it was told to stop.
 * @is_on: scans are wanted; changed under @lock, too.
 * @is_stamped: the last scan came with its time stamp.
 * @stamp: of the last scan.
 * @scans: scans since they were wanted; 0: there is none to read.
 * @gaps: finds those that were dropped; no period: it cannot.
 * @is_even: @stamp can be converted.
 * @count: samples that a scan can have.
 * @samples: these, in the order of their places.
 *
 * @users and @is_on are changed under strobe's registry lock, all else that
 * changes by who hands a scan over; rows read it.
 */
struct iio_scan {
	struct iio_buffer		buffer;
	struct iio_unit			*unit;
	const struct iio_chan_spec	*stamp_spec;
	u32				stamp_at;
	u32				last_index;
	raw_spinlock_t			lock;
	bool				is_on;
	bool				is_stamped;
	u64				stamp;
	u64				scans;
	struct iio_gaps			gaps;
	bool				is_even;
	u32				count;
	struct iio_sample		samples[] __counted_by(count);
};

#endif /* _STROBE_IIO_SCAN_H */
