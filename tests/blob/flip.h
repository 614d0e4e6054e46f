/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What flip.c and forge.c have of each other. */
#ifndef _FLIP_H
#define _FLIP_H

#include <linux/kernel.h>

#include "../../kernel/board/blob.h"

/* Ends the program, and says of which file. */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);

/* Whether a blob of exactly this size is accepted; if so, it is harmless. */
bool parse(const unsigned char *bytes, size_t size);

/* Gives it the right checksum. */
void seal(unsigned char *bytes, size_t size);

/* Does nothing with a board that is not for frames. */
void forge(const unsigned char *blob, size_t size);

#endif /* _FLIP_H */
