/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * strobe frames, version 1: the sending side, for the firmware of a
 * co-processor. docs/reference/frames.md is the protocol.
 *
 * C99 without a library: no allocation, no recursion, no globals, no division
 * but one at the start. Any byte order. The firmware gives a buffer and a
 * function that sends a message; it calls
 *
 *	strobe_frames_init()	once
 *	strobe_frames_receive()	for each message from the host
 *	strobe_frames_add()	for each sample
 *	strobe_frames_flush()	now and then, if several frames share a message
 *
 * None of them may interrupt another of the same struct: call them from one
 * context, or keep interrupts off around them.
 */
#ifndef STROBE_FRAMES_H
#define STROBE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STROBE_FRAMES_MTU	496	/* of rpmsg with buffers of 512 bytes */
#define STROBE_FRAMES_HEADER	8	/* bytes before the frames of a message */
#define STROBE_FRAMES_MIN	16	/* bytes of a frame without payload */
#define STROBE_FRAMES_MAX	488	/* bytes of the longest frame */

/* What a message is. */
enum strobe_frames_kind {
	STROBE_FRAMES_OTHER	= 0,	/* not of this protocol, or not for the remote */
	STROBE_FRAMES_FRAMES	= 1,	/* remote to host */
	STROBE_FRAMES_START	= 16,	/* host to remote, as the next ones */
	STROBE_FRAMES_STOP	= 17,
	STROBE_FRAMES_CREDIT	= 18
};

/*
 * Sends one message to the host, to where START has come from. Must not wait.
 * Returns whether it was sent; if not, it is asked again with the next frame.
 */
typedef bool strobe_frames_send(void *context, const void *message, size_t length);

/* All that is known. Fields are to be read only; strobe_frames.c writes them. */
struct strobe_frames {
	uint8_t			*message;	/* the caller's buffer */
	strobe_frames_send	*send;
	void			*context;	/* for send */
	uint32_t		sequence;	/* of the next frame; frames sampled since START */
	uint32_t		credits;	/* frames that may still be added, if limited */
	uint32_t		missed;		/* of those sampled since START, not added */
	uint16_t		bytes;		/* of a frame */
	uint8_t			most;		/* frames that a message may have */
	uint8_t			count;		/* frames that the message has */
	uint8_t			stream;		/* START's, for the host to know old frames by */
	bool			limited;	/* credits count */
	bool			running;	/* between START and STOP */
};

/*
 * bytes: of a frame, 16 (no payload) to 488, a multiple of 8.
 * most: frames a message, up to what fits; 1 sends each at once.
 * buffer, size: where a message is made; STROBE_FRAMES_MTU at most is used.
 * Returns false if that does not fit together; nothing else may be called then.
 */
bool strobe_frames_init(struct strobe_frames *frames, void *buffer, size_t size,
			size_t bytes, size_t most,
			strobe_frames_send *send, void *context);

/*
 * A message from the host. Returns which one it was: after START the firmware
 * begins to sample, after STOP it ends. STROBE_FRAMES_OTHER changes nothing.
 */
enum strobe_frames_kind strobe_frames_receive(struct strobe_frames *frames,
					      const void *message, size_t length);

/*
 * One sample: time is the remote's own, in its ticks; status is 0 if all is
 * well; the payload has bytes - 16 bytes, little-endian. Returns whether it is
 * on its way; if not, it has only a number, by which the host knows that it is
 * missing. Before START and after STOP nothing is sampled: false, and no number.
 */
bool strobe_frames_add(struct strobe_frames *frames, uint64_t time, uint32_t status,
		       const void *payload);

/*
 * Sends what has waited for its message to be full. Returns whether nothing
 * waits any more. STOP does it, too; if a message still waits then, call this.
 */
bool strobe_frames_flush(struct strobe_frames *frames);

#ifdef __cplusplus
}
#endif

#endif /* STROBE_FRAMES_H */
