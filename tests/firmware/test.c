// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of firmware/strobe_frames.c, on the host.
 *
 * The current directory is tests/frames.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../firmware/strobe_frames.h"

static const char *sentence;

#define must(condition)	((condition) ? (void)0 : fail(__LINE__, #condition))

static void fail(int line, const char *condition)
{
	fprintf(stderr, "%s: line %d: not so: %s\n", sentence, line, condition);
	exit(1);
}

/* A remote with a buffer of exactly the right size, so that the sanitizer sees any step beyond. */
struct remote {
	struct strobe_frames	frames;
	unsigned char		*buffer;
	unsigned char		sent[STROBE_FRAMES_MTU];	/* the last message */
	size_t			length;
	unsigned int		messages;	/* that were sent */
	bool			full;		/* the transport takes nothing */
};

static bool send(void *context, const void *message, size_t length)
{
	struct remote *remote = context;

	must(length <= sizeof(remote->sent));
	if (remote->full)
		return false;
	memcpy(remote->sent, message, length);
	remote->length = length;
	remote->messages++;
	return true;
}

static void set_up(struct remote *remote, size_t bytes, size_t most)
{
	size_t size = STROBE_FRAMES_HEADER + most * bytes;

	memset(remote, 0, sizeof(*remote));
	remote->buffer = malloc(size);
	must(strobe_frames_init(&remote->frames, remote->buffer, size, bytes, most, send, remote));
}

static void tear_down(struct remote *remote)
{
	free(remote->buffer);
}

/* Bytes of a message that lies in memory of exactly its size. */
static enum strobe_frames_kind receive(struct remote *remote, const unsigned char *message,
				       size_t length)
{
	unsigned char *exact = malloc(length ? length : 1);
	enum strobe_frames_kind kind;

	memcpy(exact, message, length);
	kind = strobe_frames_receive(&remote->frames, exact, length);
	free(exact);
	return kind;
}

static enum strobe_frames_kind command(struct remote *remote, unsigned int kind,
				       unsigned int stream, uint32_t credits)
{
	unsigned char message[16] = { 'S', 'F', 1, kind, 0, stream };
	int i;

	for (i = 0; i < 4; i++)
		message[8 + i] = (unsigned char)(credits >> 8 * i);
	return receive(remote, message, kind == STROBE_FRAMES_STOP ? 8 : 16);
}

static bool add(struct remote *remote)
{
	static const unsigned char payload[STROBE_FRAMES_MAX];

	return strobe_frames_add(&remote->frames, 0, 0, payload);
}

static uint32_t sequence(const struct remote *remote, unsigned int frame)
{
	const unsigned char *at = remote->sent + 8 + frame * (size_t)remote->frames.bytes;

	must(8 + (frame + 1) * (size_t)remote->frames.bytes <= remote->length);
	return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
}

static void sizes_that_do_not_fit_together_are_refused(void)
{
	static const struct {
		size_t size, bytes, most;
		bool good;
	} tries[] = {
		{ 496, 16, 1, true }, { 496, 16, 30, true }, { 496, 488, 1, true },
		{ 4096, 32, 15, true }, { 24, 16, 1, true },
		{ 496, 16, 0, false }, { 496, 16, 31, false }, { 4096, 16, 31, false },
		{ 496, 8, 1, false }, { 496, 20, 1, false }, { 496, 496, 1, false },
		{ 23, 16, 1, false }, { 7, 16, 1, false }, { 0, 16, 1, false },
		{ 496, 16, 286, false }, { 496, 65552, 1, false },
	};
	unsigned char buffer[STROBE_FRAMES_MTU];
	struct strobe_frames frames;
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(*tries); i++)
		must(strobe_frames_init(&frames, buffer, tries[i].size, tries[i].bytes,
					tries[i].most, send, NULL) == tries[i].good);
	must(!strobe_frames_init(&frames, NULL, 496, 16, 1, send, NULL));
	must(!strobe_frames_init(&frames, buffer, 496, 16, 1, NULL, NULL));
}

static void nothing_is_sampled_before_start_and_after_stop(void)
{
	struct remote remote;

	set_up(&remote, 16, 1);
	must(!add(&remote) && remote.frames.sequence == 0);
	must(command(&remote, STROBE_FRAMES_START, 1, 0) == STROBE_FRAMES_START);
	must(add(&remote) && remote.messages == 1 && sequence(&remote, 0) == 0);
	must(command(&remote, STROBE_FRAMES_STOP, 1, 0) == STROBE_FRAMES_STOP);
	must(!add(&remote) && remote.frames.sequence == 1 && remote.messages == 1);
	tear_down(&remote);
}

static void a_message_is_sent_when_it_is_full(void)
{
	struct remote remote;

	set_up(&remote, 24, 3);
	command(&remote, STROBE_FRAMES_START, 1, 0);
	must(add(&remote) && add(&remote) && remote.messages == 0);
	must(add(&remote) && remote.messages == 1 && remote.length == 8 + 3 * 24);
	must(sequence(&remote, 0) == 0 && sequence(&remote, 2) == 2);
	must(add(&remote) && remote.messages == 1);
	tear_down(&remote);
}

static void what_waits_is_sent_by_flush(void)
{
	struct remote remote;

	set_up(&remote, 24, 3);
	command(&remote, STROBE_FRAMES_START, 1, 0);
	must(strobe_frames_flush(&remote.frames) && remote.messages == 0);
	must(add(&remote));
	must(strobe_frames_flush(&remote.frames) && remote.messages == 1);
	must(remote.length == 8 + 24 && remote.sent[4] == 1);
	remote.full = true;
	must(add(&remote) && !strobe_frames_flush(&remote.frames));
	tear_down(&remote);
}

static void a_frame_that_cannot_be_sent_takes_a_number(void)
{
	struct remote remote;

	set_up(&remote, 16, 2);
	command(&remote, STROBE_FRAMES_START, 1, 0);
	remote.full = true;
	must(add(&remote) && add(&remote));
	must(!add(&remote) && !add(&remote) && !add(&remote));
	must(remote.frames.sequence == 5 && remote.frames.missed == 3);
	remote.full = false;
	must(add(&remote) && remote.messages == 1);
	must(sequence(&remote, 0) == 0 && sequence(&remote, 1) == 1);
	must(add(&remote) && remote.messages == 2);
	must(sequence(&remote, 0) == 5 && sequence(&remote, 1) == 6);
	must(remote.frames.missed == 3);
	tear_down(&remote);
}

static void without_credit_frames_only_take_numbers(void)
{
	struct remote remote;

	set_up(&remote, 16, 1);
	command(&remote, STROBE_FRAMES_START, 1, 2);
	must(add(&remote) && add(&remote) && !add(&remote) && !add(&remote));
	must(remote.messages == 2 && remote.frames.missed == 2);
	must(command(&remote, STROBE_FRAMES_CREDIT, 1, 1) == STROBE_FRAMES_CREDIT);
	must(add(&remote) && !add(&remote));
	must(remote.messages == 3 && sequence(&remote, 0) == 4);
	must(remote.frames.sequence == 6 && remote.frames.missed == 3);
	tear_down(&remote);
}

/* Else the host waits for frames, and the remote for credit. */
static void the_last_credit_sends_what_waits(void)
{
	struct remote remote;

	set_up(&remote, 16, 8);
	command(&remote, STROBE_FRAMES_START, 1, 3);
	must(add(&remote) && add(&remote) && remote.messages == 0);
	must(add(&remote) && remote.messages == 1 && remote.sent[4] == 3);

	command(&remote, STROBE_FRAMES_START, 2, 1);
	remote.full = true;
	must(add(&remote) && remote.messages == 1);
	remote.full = false;
	must(!add(&remote) && remote.messages == 2 && sequence(&remote, 0) == 0);
	tear_down(&remote);
}

static void credit_of_another_stream_or_after_stop_is_void(void)
{
	struct remote remote;

	set_up(&remote, 16, 1);
	command(&remote, STROBE_FRAMES_START, 7, 1);
	command(&remote, STROBE_FRAMES_CREDIT, 6, 100);
	must(remote.frames.credits == 1);
	command(&remote, STROBE_FRAMES_STOP, 7, 0);
	command(&remote, STROBE_FRAMES_CREDIT, 7, 100);
	must(remote.frames.credits == 1);
	tear_down(&remote);
}

static void credit_is_set_and_not_added(void)
{
	struct remote remote;

	set_up(&remote, 16, 1);
	command(&remote, STROBE_FRAMES_START, 1, 3);
	must(add(&remote) && remote.frames.credits == 2);
	command(&remote, STROBE_FRAMES_CREDIT, 1, 3);
	must(remote.frames.credits == 3);
	command(&remote, STROBE_FRAMES_CREDIT, 1, 3);
	must(remote.frames.credits == 3);
	command(&remote, STROBE_FRAMES_CREDIT, 1, 1);
	must(add(&remote) && !add(&remote));
	tear_down(&remote);
}

static void without_a_limit_credit_makes_none(void)
{
	struct remote remote;

	set_up(&remote, 16, 1);
	command(&remote, STROBE_FRAMES_START, 1, 0);
	command(&remote, STROBE_FRAMES_CREDIT, 1, 1);
	must(add(&remote) && add(&remote) && add(&remote));
	tear_down(&remote);
}

/* Its frames have taken their credits before, and are not taken for new ones. */
static void a_frame_that_waits_for_its_message_has_its_credit_already(void)
{
	struct remote remote;

	set_up(&remote, 16, 4);
	command(&remote, STROBE_FRAMES_START, 1, 2);
	must(add(&remote) && remote.frames.count == 1);
	command(&remote, STROBE_FRAMES_CREDIT, 1, 2);
	must(add(&remote) && remote.messages == 0);
	must(add(&remote) && remote.messages == 1 && remote.sent[4] == 3);
	must(!add(&remote));
	tear_down(&remote);
}

static void start_begins_anew_and_throws_away_what_waits(void)
{
	struct remote remote;

	set_up(&remote, 16, 2);
	command(&remote, STROBE_FRAMES_START, 1, 1);
	remote.full = true;
	must(add(&remote) && !add(&remote) && remote.frames.missed == 1);
	remote.full = false;
	command(&remote, STROBE_FRAMES_START, 2, 0);
	must(remote.frames.sequence == 0 && remote.frames.missed == 0 && !remote.frames.limited);
	must(add(&remote) && add(&remote) && remote.messages == 1);
	must(sequence(&remote, 0) == 0 && sequence(&remote, 1) == 1 && remote.sent[5] == 2);
	tear_down(&remote);
}

static void stop_sends_what_waits(void)
{
	struct remote remote;

	set_up(&remote, 16, 4);
	command(&remote, STROBE_FRAMES_START, 1, 0);
	must(add(&remote));
	remote.full = true;
	command(&remote, STROBE_FRAMES_STOP, 1, 0);
	must(remote.messages == 0);
	remote.full = false;
	must(strobe_frames_flush(&remote.frames) && remote.messages == 1);
	command(&remote, STROBE_FRAMES_START, 2, 0);
	must(add(&remote));
	command(&remote, STROBE_FRAMES_STOP, 2, 0);
	must(remote.messages == 2 && remote.sent[5] == 2);
	tear_down(&remote);
}

/* The stream and the credits may be anything, and one bit makes START and CREDIT of each other. */
static void a_damaged_command_changes_nothing(void)
{
	static const unsigned char good[3][16] = {
		{ 'S', 'F', 1, STROBE_FRAMES_START, 0, 9, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0 },
		{ 'S', 'F', 1, STROBE_FRAMES_CREDIT, 0, 9, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0 },
		{ 'S', 'F', 1, STROBE_FRAMES_STOP, 0, 9, 0, 0 },
	};
	struct strobe_frames before;
	unsigned char message[32];
	size_t i, length, bit;
	struct remote remote;

	set_up(&remote, 16, 4);
	command(&remote, STROBE_FRAMES_START, 9, 7);
	must(add(&remote));
	before = remote.frames;
	for (i = 0; i < 3; i++) {
		size_t right = good[i][3] == STROBE_FRAMES_STOP ? 8 : 16;

		for (length = 0; length <= sizeof(message); length++) {
			if (length == right)
				continue;
			memset(message, 0, sizeof(message));
			memcpy(message, good[i], 16);
			must(receive(&remote, message, length) == STROBE_FRAMES_OTHER);
			must(!memcmp(&before, &remote.frames, sizeof(before)));
		}
		for (bit = 0; bit < 8 * right; bit++) {
			if (bit / 8 == 5 || (bit / 8 >= 8 && bit / 8 < 12) ||
			    (bit == 25 && right == 16))
				continue;
			memset(message, 0, sizeof(message));
			memcpy(message, good[i], 16);
			message[bit / 8] ^= 1 << bit % 8;
			must(receive(&remote, message, right) == STROBE_FRAMES_OTHER);
			must(!memcmp(&before, &remote.frames, sizeof(before)));
		}
	}
	tear_down(&remote);
}

static size_t from_hex(const char *hex, unsigned char *bytes)
{
	size_t length = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		bytes[length++] = (unsigned char)byte;
	return length;
}

/* tests/frames/commands.txt is what the Rust side sends. */
static void the_commands_of_the_host_are_understood(void)
{
	char line[256], name[16], hex[128];
	unsigned int stream, commands = 0;
	struct remote remote;
	FILE *file = fopen("commands.txt", "r");

	must(file);
	while (fgets(line, sizeof(line), file)) {
		unsigned char message[64];
		unsigned long credits;
		size_t length;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		must(sscanf(line, "%15s %u %lu %127s", name, &stream, &credits, hex) == 4);
		length = from_hex(hex, message);
		set_up(&remote, 16, 1);
		if (!strcmp(name, "start")) {
			must(receive(&remote, message, length) == STROBE_FRAMES_START);
			must(remote.frames.running && remote.frames.stream == stream);
			must(remote.frames.credits == credits);
			must(remote.frames.limited == (credits != 0));
		} else if (!strcmp(name, "credit")) {
			command(&remote, STROBE_FRAMES_START, stream, 1);
			must(receive(&remote, message, length) == STROBE_FRAMES_CREDIT);
			must(remote.frames.credits == credits);
		} else {
			must(!strcmp(name, "stop") && !credits);
			command(&remote, STROBE_FRAMES_START, stream, 0);
			must(receive(&remote, message, length) == STROBE_FRAMES_STOP);
			must(!remote.frames.running);
		}
		tear_down(&remote);
		commands++;
	}
	fclose(file);
	must(commands >= 6);
}

#define TEST(name)	{ #name, name }

static const struct {
	const char *name;
	void (*test)(void);
} tests[] = {
	TEST(sizes_that_do_not_fit_together_are_refused),
	TEST(nothing_is_sampled_before_start_and_after_stop),
	TEST(a_message_is_sent_when_it_is_full),
	TEST(what_waits_is_sent_by_flush),
	TEST(a_frame_that_cannot_be_sent_takes_a_number),
	TEST(without_credit_frames_only_take_numbers),
	TEST(the_last_credit_sends_what_waits),
	TEST(credit_of_another_stream_or_after_stop_is_void),
	TEST(credit_is_set_and_not_added),
	TEST(without_a_limit_credit_makes_none),
	TEST(a_frame_that_waits_for_its_message_has_its_credit_already),
	TEST(start_begins_anew_and_throws_away_what_waits),
	TEST(stop_sends_what_waits),
	TEST(a_damaged_command_changes_nothing),
	TEST(the_commands_of_the_host_are_understood),
};

int main(void)
{
	size_t i, count = sizeof(tests) / sizeof(*tests);

	for (i = 0; i < count; i++) {
		sentence = tests[i].name;
		tests[i].test();
		printf("ok %s\n", sentence);
	}
	return 0;
}
