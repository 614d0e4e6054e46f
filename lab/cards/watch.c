// SPDX-License-Identifier: GPL-2.0-only
/* The observed output of a lab-counter; counter.c has its registers. */
#include "watch.h"

static void judge(struct watch *watch, uint64_t period)
{
	uint32_t narrow = MIN(period, UINT32_MAX);

	if (period > (uint64_t)watch->nominal + watch->tolerance)
		watch->over++;
	else if (period + watch->tolerance < watch->nominal)
		watch->under++;
	else
		watch->in_range++;
	watch->longest = MAX(watch->longest, narrow);
	watch->shortest = watch->edges == 1 ? narrow : MIN(watch->shortest, narrow);
}

/**
 * watch_drive() - the output is driven.
 * @watch: the output.
 * @level: its level.
 * @now: the time.
 *
 * Return: whether it rises. Then the period since the edge before is judged.
 */
bool watch_drive(struct watch *watch, bool level, int64_t now)
{
	bool rises = level && !watch->level;

	watch->level = level;
	if (!rises)
		return false;
	if (watch->edges)
		judge(watch, now - watch->edge);
	watch->edge = now;
	watch->edges++;
	return true;
}

/**
 * watch_clear() - forgets what was counted.
 * @watch: the output.
 */
void watch_clear(struct watch *watch)
{
	*watch = (struct watch) {
		.level		= watch->level,
		.nominal	= watch->nominal,
		.tolerance	= watch->tolerance,
	};
}
