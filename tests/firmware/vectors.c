// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints tests/frames/frames.txt: messages that firmware/strobe_frames.c has
 * made, and what was put into them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../firmware/strobe_frames.h"

/* What was put into messages that were not sent yet: a line for each frame, to be printed with its message. */
static struct {
	char		lines[32][1100];
	unsigned int	count;
	uint32_t	expected;	/* the host's, for what is missing before a frame */
	bool		full;
} vector;

static bool print(void *context, const void *message, size_t length)
{
	const unsigned char *bytes = message;
	unsigned int frames = bytes[4], i;

	(void)context;
	if (vector.full)
		return false;
	printf("message ");
	while (length--)
		printf("%02x", *bytes++);
	printf("\n");
	if (frames > vector.count)
		abort();
	for (i = 0; i < frames; i++)
		printf("%s\n", vector.lines[i]);
	vector.count -= frames;
	memmove(vector.lines, vector.lines[frames], vector.count * sizeof(*vector.lines));
	return true;
}

/* A frame with a payload that is different in every byte of every frame. */
static void sample(struct strobe_frames *frames, uint64_t time, uint32_t status)
{
	unsigned char payload[STROBE_FRAMES_MAX];
	uint32_t number = frames->sequence;
	char *at = vector.lines[vector.count++];
	size_t i;

	at += sprintf(at, "frame %lu %lu %lu %016llx ", (unsigned long)(uint32_t)(number - vector.expected),
		      (unsigned long)number, (unsigned long)status, (unsigned long long)time);
	for (i = 0; i + STROBE_FRAMES_MIN < frames->bytes; i++) {
		payload[i] = (unsigned char)(37 * number + 11 * i + 1);
		at += sprintf(at, "%02x", payload[i]);
	}
	if (!i)
		sprintf(at, "-");
	if (strobe_frames_add(frames, time, status, payload))
		vector.expected = number + 1;
	else
		/* Only a number: the next frame has it in what is missing. */
		vector.count--;
}

static void begin(struct strobe_frames *frames, const char *name, size_t bytes, size_t most,
		  unsigned int stream, uint32_t credits)
{
	static unsigned char buffer[STROBE_FRAMES_MTU];
	unsigned char start[16] = { 'S', 'F', 1, STROBE_FRAMES_START, 0, stream, 0, 0, credits };

	memset(&vector, 0, sizeof(vector));
	if (!strobe_frames_init(frames, buffer, sizeof(buffer), bytes, most, print, NULL) ||
	    strobe_frames_receive(frames, start, sizeof(start)) != STROBE_FRAMES_START)
		abort();
	printf("\ncase %s\nbytes %zu\nstream %u\n", name, bytes, stream);
}

int main(void)
{
	static const unsigned char credit[16] = { 'S', 'F', 1, STROBE_FRAMES_CREDIT, 0, 1, 0, 0, 2 };
	static const unsigned char stop[8] = { 'S', 'F', 1, STROBE_FRAMES_STOP, 0, 1 };
	struct strobe_frames frames;
	int i;

	printf("# SPDX-License-Identifier: MIT OR Apache-2.0\n"
	       "# Messages that firmware/strobe_frames.c has made, and what the host finds in each:\n"
	       "# frame MISSED-BEFORE SEQUENCE STATUS TIME(hex) PAYLOAD(hex, - for none)\n"
	       "# Written by tests/firmware/run --update; checked there and by crates/strobe-board/tests/frames.rs.\n");

	begin(&frames, "a frame without payload", 16, 1, 0, 0);
	sample(&frames, 1, 0);

	begin(&frames, "one frame a message", 32, 1, 1, 0);
	for (i = 0; i < 3; i++)
		sample(&frames, 0x0102030405060708ULL + (unsigned int)i, 0);

	begin(&frames, "three frames a message, and the rest by flush", 24, 3, 2, 0);
	for (i = 0; i < 7; i++)
		sample(&frames, 1000ULL * (unsigned int)i, i == 4 ? 0xdeadbeefU : 0);
	strobe_frames_flush(&frames);

	begin(&frames, "the longest frame, all ones", 488, 1, 255, 0);
	sample(&frames, UINT64_MAX, UINT32_MAX);

	begin(&frames, "as many frames as a message can have", 16, 30, 1, 0);
	for (i = 0; i < 30; i++)
		sample(&frames, (unsigned int)i, 0);

	begin(&frames, "frames that could not be sent", 24, 2, 1, 0);
	for (i = 0; i < 12; i++) {
		vector.full = i >= 3 && i < 9;
		sample(&frames, (unsigned int)i, 0);
	}

	begin(&frames, "frames without credit", 24, 4, 1, 6);
	for (i = 0; i < 20; i++) {
		/* Credits are set, so the second makes one more of them, not two. */
		if (i == 10 || i == 11)
			strobe_frames_receive(&frames, credit, sizeof(credit));
		sample(&frames, (unsigned int)i, 0);
	}

	begin(&frames, "what waited at stop", 24, 4, 1, 0);
	sample(&frames, 5, 0);
	strobe_frames_receive(&frames, stop, sizeof(stop));

	/* Two gaps, each as long as a gap can be, lead to where the numbers wrap. */
	begin(&frames, "the sequence wraps", 16, 1, 1, 0);
	sample(&frames, 0, 0);
	frames.sequence = 0x80000000U;
	sample(&frames, 1, 0);
	frames.sequence = 0xfffffffeU;
	for (i = 0; i < 4; i++)
		sample(&frames, (unsigned int)i, 0);
	return 0;
}
