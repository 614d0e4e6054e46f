/* SPDX-License-Identifier: GPL-2.0-only */
/* The observed output of a lab-counter: its rising edges, and whether they come as they should. */
#ifndef LAB_WATCH_H
#define LAB_WATCH_H

#include "card.h"

struct watch {
	bool level;
	/* Of the last rising edge; meant if there was one. */
	int64_t edge;
	uint32_t nominal;
	uint32_t tolerance;
	uint32_t edges;
	uint32_t in_range;
	uint32_t over;
	uint32_t under;
	uint32_t longest;
	uint32_t shortest;
};

bool watch_drive(struct watch *watch, bool level, int64_t now);
void watch_clear(struct watch *watch);

#endif
