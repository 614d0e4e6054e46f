// SPDX-License-Identifier: GPL-2.0-only
/* Checking of compiled boards: names and texts in them. */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include <uapi/strobe_board.h>

#include "board/text.h"

/* Bytes of the printable character at @s; 0 if there is none. Stops at NUL. */
static unsigned int character(const unsigned char *s)
{
	unsigned int bytes, i;
	unsigned char low = 0x80, high = 0xbf;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;

	/* The second byte's bounds refuse overlong forms, surrogates, controls. */
	switch (s[0]) {
	case 0xc2:
		low = 0xa0;
		fallthrough;
	case 0xc3 ... 0xdf:
		bytes = 2;
		break;
	case 0xe0:
		low = 0xa0;
		bytes = 3;
		break;
	case 0xed:
		high = 0x9f;
		fallthrough;
	case 0xe1 ... 0xec:
	case 0xee ... 0xef:
		bytes = 3;
		break;
	case 0xf0:
		low = 0x90;
		bytes = 4;
		break;
	case 0xf4:
		high = 0x8f;
		fallthrough;
	case 0xf1 ... 0xf3:
		bytes = 4;
		break;
	default:
		return 0;
	}
	if (s[1] < low || s[1] > high)
		return 0;
	for (i = 2; i < bytes; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return bytes;
}

static bool terminated(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	return length < size && !memchr_inv(text + length, 0, size - length);
}

/**
 * board_good_text() - is it a text for people?
 * @text: bytes.
 * @size: how many.
 *
 * Context: any.
 * Return: whether it is UTF-8 without controls, ended by NUL and nothing else.
 */
bool board_good_text(const char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;

	if (!terminated(text, size))
		return false;
	while (*s) {
		unsigned int bytes = character(s);

		if (!bytes)
			return false;
		s += bytes;
	}
	return true;
}

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/**
 * board_good_name() - is it a name that a plan may use?
 * @name: STROBE_BOARD_NAME_SIZE bytes.
 *
 * Context: any.
 * Return: whether it is a letter and then letters, digits, "_" and "-".
 */
bool board_good_name(const char *name)
{
	if (!terminated(name, STROBE_BOARD_NAME_SIZE) || !letter(*name))
		return false;
	for (; *name; name++) {
		if (!letter(*name) && !(*name >= '0' && *name <= '9') &&
		    *name != '_' && *name != '-')
			return false;
	}
	return true;
}
