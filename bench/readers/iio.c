// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reader of IIO: the dummy device on the hrtimer trigger, both with the names
 * that bench/run has given them, read in blocks of 64 at a watermark of 64.
 *
 *   iio PERIOD_NS ROWS
 *
 * IIO counts no loss. What is printed as missed is worked out from the times.
 */
#include <string.h>

#include "common.h"

#define DEVICE	"/sys/bus/iio/devices/iio:device0/"

/* All that the dummy device offers: four 16-bit values, and the time. */
struct scan {
	int16_t		value[4];
	int64_t		time;
};

static struct scan scans[WATERMARK];
static uint64_t taken;
static int64_t first, last, sum;

static void set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

static void set_up(uint64_t period)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long)(1000000000 / period),
		 (unsigned long long)(1000000000 % period * 1000000 / period));
	set("/sys/bus/iio/devices/trigger0/sampling_frequency", text);
	set(DEVICE "current_timestamp_clock", "monotonic");
	set(DEVICE "trigger/current_trigger", "bench");
	set(DEVICE "scan_elements/in_voltage0_en", "1");
	set(DEVICE "scan_elements/in_voltage1-voltage2_en", "1");
	set(DEVICE "scan_elements/in_voltage3-voltage4_en", "1");
	set(DEVICE "scan_elements/in_accel_x_en", "1");
	set(DEVICE "scan_elements/in_timestamp_en", "1");
	set(DEVICE "buffer/length", "1024");
	set(DEVICE "buffer/watermark", "64");
}

static void take(int fd)
{
	ssize_t got = read(fd, scans, sizeof(scans));

	if (got <= 0)
		fail("read");
	for (size_t i = 0; i < got / sizeof(scans[0]); i++) {
		for (int w = 0; w < 4; w++)
			sum += scans[i].value[w];
		last = scans[i].time;
		if (!taken++)
			first = last;
	}
}

int main(int argc, char **argv)
{
	uint64_t period, rows, due;
	int fd;

	if (argc != 3)
		return 2;
	period = strtoull(argv[1], NULL, 0);
	rows = strtoull(argv[2], NULL, 0);
	set_up(period);
	fd = open("/dev/iio:device0", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail("/dev/iio:device0");
	set(DEVICE "buffer/enable", "1");
	while (taken < WARM_UP)
		take(fd);
	taken = 0;
	MARK_WINDOW_BEGIN();
	while (taken < rows)
		take(fd);
	MARK_WINDOW_END();
	set(DEVICE "buffer/enable", "0");
	due = (last - first + period / 2) / period + 1;
	printf("rows %llu missed %llu lost 0\n", (unsigned long long)taken,
	       (unsigned long long)(due > taken ? due - taken : 0));
	return 0;
}
