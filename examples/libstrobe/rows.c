/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes a run with libstrobe, prints its rows, and accounts for all of them: rows [ROWS]
 *
 *	cc rows.c $(pkg-config --cflags --libs strobe) -o rows
 */
#include <inttypes.h>
#include <libstrobe.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void)
{
	fprintf(stderr, "%s\n", strobe_error());
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 100, read = 0;
	struct strobe_account account = { .size = sizeof(account) };
	struct strobe_run *run = strobe_run_new("timer:100Hz", "sim.counter,sim.sine", NULL, wanted);
	struct strobe_rows *rows = run ? strobe_rows_of_run(run) : NULL;
	struct strobe_block *block;
	int found;

	if (!rows || strobe_run_start(run))
		return fail();
	while ((found = strobe_rows_next(rows, -1, &block)) == STROBE_BLOCK) {
		size_t count = strobe_block_rows(block);
		ptrdiff_t sine = strobe_block_column(block, "sim.sine");
		uint64_t *times = calloc(count + 1, sizeof(*times));
		double *values = calloc(count + 1, sizeof(*values));

		if (sine < 0 || !times || !values || strobe_block_times(block, times, count) < 0 ||
		    strobe_block_values(block, (size_t)sine, values, count) < 0)
			return fail();
		for (size_t i = 0; i < count; i++)
			printf("%" PRIu64 ": %" PRIu64 " ns, %f\n", strobe_block_first(block) + i, times[i], values[i]);
		read += count;
		free(times);
		free(values);
		strobe_block_free(block);
	}
	if (found == STROBE_ERROR || strobe_rows_account(rows, &account))
		return fail();
	printf("%" PRIu64 " triggers = %" PRIu64 " rows + %" PRIu64 " missed + %" PRIu64 " skipped; %" PRIu64 " read, %" PRIu64
	       " lost\n", account.triggers, account.rows, account.missed, account.skipped, read, account.lost);
	strobe_rows_free(rows);
	strobe_run_free(run);
	return account.triggers != account.rows + account.missed + account.skipped || read + account.lost != account.rows;
}
