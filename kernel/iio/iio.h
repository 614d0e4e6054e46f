/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices of the Industrial I/O subsystem: strobe_iio.ko. See module.c. */
#ifndef _STROBE_IIO_H
#define _STROBE_IIO_H

#include <linux/list.h>

#include "provider.h"

struct iio_chan_spec;
struct iio_dev;
struct iio_scan;

/**
 * struct iio_unit - an IIO device.
 * @entry: in the list of units.
 * @indio: the device, with a reference.
 * @device: as strobe knows it.
 * @event: its scans, if it has a buffer.
 * @channels: values that are asked for, then samples of scans.
 * @values: what each of the channels is, in their order.
 * @outputs: values that are set.
 * @sets: what each of the outputs is.
 * @scan: its scans; NULL if it has no buffer that can be shared.
 * @asking: uses by runs of values that are asked for; under strobe's registry lock.
 * @name: name that is wanted for it.
 * @text: description for people.
 */
struct iio_unit {
	struct list_head	entry;
	struct iio_dev		*indio;
	struct strobe_device	device;
	struct strobe_event	event;
	struct strobe_channel	*channels;
	struct iio_value	*values;
	struct strobe_output	*outputs;
	struct iio_value	*sets;
	struct iio_scan		*scan;
	u32			asking;
	char			name[STROBE_PART_SIZE - 4];
	char			text[STROBE_TEXT_SIZE];
};

/**
 * struct iio_value - a channel or an output.
 * @spec: what IIO has.
 * @place: of a sample: its place in the scan.
 * @name: its name.
 */
struct iio_value {
	const struct iio_chan_spec	*spec;
	u32				place;
	char				name[STROBE_PART_SIZE];
};

/* Number of samples of a scan, at most. */
#define IIO_SAMPLES_MAX	128
/* Channels of a scan besides its samples: its time stamp and its number. */
#define IIO_SCAN_EXTRA	2

/* unit.c */
struct iio_unit *iio_unit_add(struct iio_dev *indio);
void iio_unit_remove(struct iio_unit *unit);

/* value.c */
int iio_value_scale(struct iio_unit *unit, const struct iio_chan_spec *spec, u64 *scale,
		    u64 *offset);
u32 iio_values_make(struct iio_unit *unit);
u32 iio_sets_make(struct iio_unit *unit);

/* name.c */
const char *iio_name_unit(const struct iio_chan_spec *spec);
bool iio_name_value(char *name, const char *before, const struct iio_chan_spec *spec);
bool iio_name_is_taken(const struct iio_value *values, u32 last);
void iio_name_device(char *name, size_t room, const struct iio_dev *indio);

/* scan.c */
struct iio_scan *iio_scan_make(struct iio_unit *unit);
void iio_scan_free(struct iio_scan *scan);
extern const struct strobe_event_ops iio_scan_event_ops;

/* sample.c */
u32 iio_scan_channels(struct iio_unit *unit, u32 first);

/* period.c */
void iio_period_trigger_gone(void);
u64 iio_period_of(struct iio_dev *indio);
bool iio_clock_offset(struct iio_dev *indio, u64 *offset);

/* f64.c */
u64 iio_f64_of(s64 number, u64 by);
u64 iio_f64_product(u64 a, u64 b);

#endif /* _STROBE_IIO_H */
