// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A co-processor: firmware/strobe_frames.c as it is, behind /dev/lab_remote of
 * lab_rpmsg.
 *
 *	coprocessor BYTES MOST SAMPLES [PERIOD_US]
 *
 * At START it takes so many samples, of BYTES each and MOST a message; says
 * "sampled N missed M" when it has, and ends at STOP, or when the bus is gone.
 * Word k of the payload of sample n is 1000003 * n + k; the time is in ns.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../firmware/strobe_frames.h"

#define HEAD	8	/* the addresses of who sends and of who gets it */

static struct strobe_frames frames;
static int remote;
/* Of the last START: its addresses, the other way round. */
static unsigned char answer[HEAD];

static void fail(const char *what)
{
	fprintf(stderr, "coprocessor: %s: %s\n", what, strerror(errno));
	exit(1);
}

static bool send(void *context, const void *message, size_t length)
{
	unsigned char whole[HEAD + STROBE_FRAMES_MTU];

	(void)context;
	memcpy(whole, answer, HEAD);
	memcpy(whole + HEAD, message, length);
	return write(remote, whole, HEAD + length) == (ssize_t)(HEAD + length);
}

/* Takes a command if there is one within so many ms; false: it was STOP, or nobody is there any more. */
static bool listen(int patience)
{
	struct pollfd ready = { .fd = remote, .events = POLLIN };
	unsigned char message[HEAD + STROBE_FRAMES_MTU];
	ssize_t length;

	if (poll(&ready, 1, patience) <= 0)
		return true;
	length = read(remote, message, sizeof(message));
	if (length < HEAD)
		return errno == EAGAIN;
	switch (strobe_frames_receive(&frames, message + HEAD, (size_t)length - HEAD)) {
	case STROBE_FRAMES_START:
		memcpy(answer, message + 4, 4);
		memcpy(answer + 4, message, 4);
		return true;
	case STROBE_FRAMES_STOP:
		return false;
	default:
		return true;
	}
}

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return 1000000000ULL * (unsigned long long)time.tv_sec + (unsigned long long)time.tv_nsec;
}

static void sample(void)
{
	unsigned long long payload[STROBE_FRAMES_MAX / 8];
	size_t k;

	for (k = 0; k < (frames.bytes - STROBE_FRAMES_MIN) / 8U; k++)
		payload[k] = 1000003ULL * frames.sequence + k;
	strobe_frames_add(&frames, now(), 0, payload);
}

int main(int argc, char **argv)
{
	static unsigned char buffer[STROBE_FRAMES_MTU];
	unsigned long samples, period;
	unsigned long long due;

	if (argc < 4)
		return 2;
	samples = strtoul(argv[3], NULL, 0);
	period = argc > 4 ? strtoul(argv[4], NULL, 0) : 0;
	if (!strobe_frames_init(&frames, buffer, sizeof(buffer), strtoul(argv[1], NULL, 0),
				strtoul(argv[2], NULL, 0), send, NULL)) {
		fprintf(stderr, "coprocessor: BYTES and MOST do not fit together\n");
		return 2;
	}
	remote = open("/dev/lab_remote", O_RDWR | O_NONBLOCK);
	if (remote < 0)
		fail("/dev/lab_remote");
	puts("ready");
	fflush(stdout);
	while (!frames.running)
		listen(-1);
	due = now();
	while (frames.sequence < samples) {
		if (!listen(0))
			return 0;
		sample();
		due += 1000ULL * period;
		while (period && now() < due) {
			if (!listen(1))
				return 0;
		}
	}
	while (!strobe_frames_flush(&frames)) {
		if (!listen(1))
			return 0;
	}
	printf("sampled %lu missed %lu\n", (unsigned long)frames.sequence,
	       (unsigned long)frames.missed);
	fflush(stdout);
	while (listen(1000))
		;
	return 0;
}
