/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * strobe frames, version 1: see strobe_frames.h.
 *
 * Numbers are written byte by byte: the buffer may lie anywhere, and the
 * processor may have any byte order.
 */
#include "strobe_frames.h"

#define MAGIC	0x4653U	/* "SF" */
#define VERSION	1U

static void put(uint8_t *at, uint64_t value, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get(const uint8_t *at, size_t size)
{
	uint32_t value = 0;
	size_t i;

	for (i = 0; i < size; i++)
		value |= (uint32_t)at[i] << (8 * i);
	return value;
}

bool strobe_frames_init(struct strobe_frames *frames, void *buffer, size_t size,
			size_t bytes, size_t most,
			strobe_frames_send *send, void *context)
{
	static const struct strobe_frames none;

	if (!buffer || !send || bytes < STROBE_FRAMES_MIN || bytes > STROBE_FRAMES_MAX ||
	    bytes % 8)
		return false;
	if (size > STROBE_FRAMES_MTU)
		size = STROBE_FRAMES_MTU;
	if (!most || size < STROBE_FRAMES_HEADER || most > (size - STROBE_FRAMES_HEADER) / bytes)
		return false;
	*frames = none;
	frames->message = buffer;
	frames->send = send;
	frames->context = context;
	frames->bytes = (uint16_t)bytes;
	frames->most = (uint8_t)most;
	return true;
}

bool strobe_frames_flush(struct strobe_frames *frames)
{
	uint8_t *header = frames->message;

	if (!frames->count)
		return true;
	put(header, MAGIC, 2);
	put(header + 2, VERSION, 1);
	put(header + 3, STROBE_FRAMES_FRAMES, 1);
	put(header + 4, frames->count, 1);
	put(header + 5, frames->stream, 1);
	put(header + 6, frames->bytes, 2);
	if (!frames->send(frames->context, header,
			  STROBE_FRAMES_HEADER + (size_t)frames->count * frames->bytes))
		return false;
	frames->count = 0;
	return true;
}

static void start(struct strobe_frames *frames, uint8_t stream, uint32_t credits)
{
	frames->sequence = 0;
	frames->missed = 0;
	frames->credits = credits;
	frames->limited = credits != 0;
	/* What waits is of the stream before, of which nobody wants to know any more. */
	frames->count = 0;
	frames->stream = stream;
	frames->running = true;
}

enum strobe_frames_kind strobe_frames_receive(struct strobe_frames *frames,
					      const void *message, size_t length)
{
	const uint8_t *header = message;
	bool has_body = length == STROBE_FRAMES_HEADER + 8;
	uint8_t stream;

	if (length != STROBE_FRAMES_HEADER && !has_body)
		return STROBE_FRAMES_OTHER;
	if (get(header, 2) != MAGIC || header[2] != VERSION || header[4] || get(header + 6, 2))
		return STROBE_FRAMES_OTHER;
	if (has_body && get(header + 12, 4))
		return STROBE_FRAMES_OTHER;
	stream = header[5];
	if (header[3] == STROBE_FRAMES_START && has_body) {
		start(frames, stream, get(header + 8, 4));
		return STROBE_FRAMES_START;
	}
	if (header[3] == STROBE_FRAMES_CREDIT && has_body) {
		/* Set, not added: credits of a message that was lost come back so. */
		if (frames->running && stream == frames->stream)
			frames->credits = get(header + 8, 4);
		return STROBE_FRAMES_CREDIT;
	}
	if (header[3] == STROBE_FRAMES_STOP && !has_body) {
		frames->running = false;
		strobe_frames_flush(frames);
		return STROBE_FRAMES_STOP;
	}
	return STROBE_FRAMES_OTHER;
}

static bool is_broke(const struct strobe_frames *frames)
{
	return frames->limited && !frames->credits;
}

/* Also without credit: the host grants more only for what it has got. */
static bool is_due(const struct strobe_frames *frames)
{
	return frames->count == frames->most || is_broke(frames);
}

bool strobe_frames_add(struct strobe_frames *frames, uint64_t time, uint32_t status,
		       const void *payload)
{
	const uint8_t *from = payload;
	uint32_t sequence;
	uint8_t *to;
	size_t i;

	if (!frames->running)
		return false;
	/* The number is taken in any case: a gap tells the host what is missing. */
	sequence = frames->sequence++;
	/* What could not be sent before comes first. */
	if (is_due(frames))
		strobe_frames_flush(frames);
	if (frames->count == frames->most || is_broke(frames)) {
		frames->missed++;
		return false;
	}

	to = frames->message + STROBE_FRAMES_HEADER + (size_t)frames->count * frames->bytes;
	put(to, sequence, 4);
	put(to + 4, status, 4);
	put(to + 8, time, 8);
	for (i = STROBE_FRAMES_MIN; i < frames->bytes; i++)
		to[i] = from[i - STROBE_FRAMES_MIN];
	frames->count++;
	if (frames->limited)
		frames->credits--;
	if (is_due(frames))
		strobe_frames_flush(frames);
	return true;
}
