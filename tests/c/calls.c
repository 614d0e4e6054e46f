/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each call of libstrobe: what it promises, and what it says of bad input. The contract's header is beside it. */
#include <libstrobe.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strobe.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed;

static void check(const char *sentence, int holds)
{
	if (holds)
		return;
	printf("failed: %s (the last error: %s)\n", sentence, strobe_error() ? strobe_error() : "none");
	failed++;
}

static int says(const char *part)
{
	return strobe_error() && strstr(strobe_error(), part);
}

static void errors(void)
{
	check("without an error there is none", !strobe_error() && !strobe_error_remedy());
	check("an event that is none is refused", !strobe_run_new("timer:fast", NULL, NULL, 0) && says("timer:fast"));
	check("a channel that is not there is answered with those that are",
	      !strobe_run_new("soft", "sim.sinus", NULL, 0) && says("sine"));
	check("its object is named", !strcmp(strobe_error_object(), "channel sim.sinus"));
	check("and its reason", !strcmp(strobe_error_reason(), "no such channel"));
	check("and the remedy", strobe_error_remedy() && strstr(strobe_error_remedy(), "sim has counter"));
	check("an output without a value is refused", !strobe_run_new("soft", NULL, "sim.latch", 0) && says("OUTPUT=VALUE"));
	check("a recipe that is not there is refused", !strobe_run_of_recipe("/nonexistent.toml") && says("/nonexistent.toml"));
	check("a recipe's text that is none is refused", !strobe_run_of_text("event = 5") && says("recipe:1"));
	check("a time that is no number of rows is refused, and nothing records for ever",
	      !strobe_run_of_text("event = 'soft'\nread = ['sim.counter']\nfor = '1s'") && says("`for` gives no number of rows") &&
	      !strobe_run_of_text("event = 'timer:1kHz'\nread = ['sim.counter']\nkeep = ['sim.counter & 1']\nfor = '1s'") &&
	      says("strobe_run_stop"));
	check("a run that is not there is refused", !strobe_run_attach("user:4000000") && says("user:4000000"));
	check("a name that is no run's is refused", !strobe_run_attach("fred") && says("fred"));
	check("a recording that is not there is refused", !strobe_rows_of_file("/nonexistent.arrows") && says("/nonexistent.arrows"));
	check("what is no UTF-8 is refused", !strobe_run_new("\xff", NULL, NULL, 0) && says("UTF-8"));
	check("NULL is refused, and nothing crashes",
	      !strobe_run_new(NULL, NULL, NULL, 0) && says("event: it is NULL") && strobe_run_start(NULL) == -1 &&
	      !strobe_rows_of_run(NULL) && strobe_rows_next(NULL, 0, NULL) == STROBE_ERROR && !strobe_block_words(NULL) &&
	      !strobe_uio_open(NULL) && !strobe_catalogue_count(NULL, STROBE_RUNS));
	check("a UIO device that is not there is refused", !strobe_uio_open("no-such-card") && says("no such device"));
	strobe_run_free(NULL), strobe_rows_free(NULL), strobe_block_free(NULL), strobe_catalogue_free(NULL), strobe_uio_free(NULL);
}

static void *another(void *unused)
{
	(void)unused;
	return (void *)strobe_error();
}

static int answered_late;
static pthread_key_t key;

/* When all that is the thread's own has gone, also its last error. */
static void late(void *unused)
{
	(void)unused;
	answered_late = strobe_run_start(NULL) == -1 && !strobe_error();
}

static void *ends(void *unused)
{
	strobe_run_start(NULL);
	pthread_setspecific(key, &answered_late);
	return unused;
}

static void threads(void)
{
	pthread_t thread;
	void *error = NULL;

	if (!pthread_key_create(&key, late) && !pthread_create(&thread, NULL, ends, NULL))
		pthread_join(thread, NULL);
	check("what fails at the end of a thread is answered", answered_late);
	check("this thread has an error", strobe_error() != NULL);
	if (!pthread_create(&thread, NULL, another, NULL))
		pthread_join(thread, &error);
	check("another one has not", !error);
}

static void catalogue(void)
{
	struct strobe_catalogue *here = strobe_catalogue_new();
	size_t count = strobe_catalogue_count(here, STROBE_CHANNELS), found = 0;

	for (size_t i = 0; i < count; i++) {
		const char *name = strobe_catalogue_name(here, STROBE_CHANNELS, i);

		found += !strcmp(name, "clock.late") && !strcmp(strobe_catalogue_unit(here, STROBE_CHANNELS, i), "ns") &&
			 !strcmp(strobe_catalogue_engine(here, STROBE_CHANNELS, i), "user");
	}
	check("the user engine's channels are listed, with units", found == 1);
	check("events are listed", strobe_catalogue_count(here, STROBE_EVENTS) > 0);
	check("what is not there has no name", !strobe_catalogue_name(here, STROBE_CHANNELS, count) && says("no item"));
	check("a kind that there is not has nothing", !strobe_catalogue_count(here, 77));
	check("the kernel engine is there, or it is said why not",
	      strobe_catalogue_no_kernel(here) || strobe_catalogue_count(here, STROBE_DEVICES) > 2);
	strobe_catalogue_free(here);
}

static struct strobe_block *next(struct strobe_rows *rows)
{
	struct strobe_block *block = NULL;

	check("rows come", strobe_rows_next(rows, 10000, &block) == STROBE_BLOCK);
	return block;
}

/* Its rows are made by another thread. */
static void wait_for(const struct strobe_run *run, uint64_t rows)
{
	struct strobe_account account = { .size = sizeof(account) };

	while (!strobe_run_account(run, &account) && account.rows < rows)
		poll(NULL, 0, 1);
}

static void rows(void)
{
	struct strobe_run *run = strobe_run_new("soft", "sim.counter,sim.sine,sim.counter", "sim.latch=1", 5);
	struct strobe_run *seen = strobe_run_attach(strobe_run_name(run));
	struct strobe_rows *reader = strobe_rows_of_run(run), *other = strobe_rows_of_run(seen);
	struct strobe_account account = { .size = sizeof(account) };
	struct pollfd ready = { .fd = strobe_rows_fd(reader), .events = POLLIN };
	struct strobe_block *block;
	uint64_t words[8], triggers[8];
	double values[8];
	unsigned char bad[8];

	check("a run has a name, channels and units", !strncmp(strobe_run_name(run), "user:", 5) && strobe_run_channels(run) == 3 &&
	      !strcmp(strobe_run_channel(run, 2), "sim.counter#2") && !strcmp(strobe_run_unit(run, 0), ""));
	check("a channel too many has no name", !strobe_run_channel(run, 3) && says("it has 3"));
	check("who only reads a run cannot start it", strobe_run_start(seen) == -1 && says("another program"));
	check("before its start there is nothing", strobe_rows_next(reader, 0, &block) == STROBE_NOTHING && !block);
	check("it cannot be triggered yet", strobe_run_trigger(run, 1) == -1);
	check("it starts", !strobe_run_start(run) && !strobe_run_account(run, &account) && account.state == STROBE_RUN_RUNNING);
	check("a pause, and on", !strobe_run_pause(run) && !strobe_run_resume(run));
	check("it is armed", !strobe_rows_arm(reader, 2));
	check("it is triggered", !strobe_run_trigger(run, 2));
	check("its descriptor becomes ready", poll(&ready, 1, 10000) == 1);
	wait_for(run, 2);
	block = next(reader);
	check("two rows are one block", strobe_block_rows(block) == 2 && strobe_block_first(block) == 0 && !strobe_block_lost(block) &&
	      !strobe_block_missed(block));
	check("its columns are found by name", strobe_block_column(block, "sim.sine") == 1);
	check("one that is not there is refused", strobe_block_column(block, "sim.x") == -1 && says("it has sim.counter"));
	check("values and words", strobe_block_raw(block, 0, words, 8) == 2 && words[1] == 2 && strobe_block_raw(block, 2, words, 8) == 2 &&
	      words[1] == 3 && strobe_block_values(block, 1, values, 8) == 2 && isfinite(values[0]));
	check("no value is written where there is no room", strobe_block_raw(block, 0, words, 1) == 2 && words[1] == 3);
	check("how many there are is known without room", strobe_block_raw(block, 0, NULL, 0) == 2);
	check("nothing has failed", strobe_block_failed(block, 0, bad, 8) == 2 && !bad[0] && !bad[1]);
	check("triggers are numbered", strobe_block_triggers(block, triggers, 8) == 2 && triggers[1] == 1);
	check("words are those of the contract", strobe_block_width(block) >= 7 &&
	      ((const struct strobe_row *)strobe_block_words(block))->row == 0 &&
	      strobe_block_words(block)[strobe_block_width(block)] == 1);
	check("a column too many is refused", strobe_block_raw(block, 3, words, 8) == -1 && says("it has 3"));
	strobe_block_free(block);
	check("the rest", !strobe_run_trigger(run, 3));
	wait_for(run, 5);
	block = next(reader);
	strobe_rows_free(reader);
	check("a block outlives its reader", strobe_block_rows(block) >= 1 && strobe_block_first(block) == 2);
	strobe_block_free(block);
	strobe_run_free(run);
	block = next(other);
	check("another reader has all rows, though the run is gone", strobe_block_rows(block) == 5);
	strobe_block_free(block);
	check("then comes the end", strobe_rows_next(other, 10000, &block) == STROBE_END && !block);
	account.size = 1;
	check("an account without its size is refused", strobe_rows_account(other, &account) == -1 && says("sizeof"));
	account.size = offsetof(struct strobe_account, missed);
	account.missed = 77;
	check("an older program's account is filled, and no more", !strobe_rows_account(other, &account) && account.rows == 5 &&
	      account.triggers == 5 && account.missed == 77);
	account.size = sizeof(account);
	check("the account adds up", !strobe_rows_account(other, &account) && account.state == STROBE_RUN_DONE &&
	      account.triggers == account.rows + account.missed + account.skipped && !account.lost);
	strobe_rows_free(other);
	strobe_run_free(seen);
}

static void loss(void)
{
	struct strobe_run *run = strobe_run_of_text("event = 'soft'\nread = ['sim.counter']\nring = 16\nengine = 'user'");
	struct strobe_rows *reader = strobe_rows_of_run(run);
	struct strobe_account account = { .size = sizeof(account) };
	struct strobe_block *block;
	uint64_t read = 0, lost = 0;

	check("it starts", !strobe_run_start(run) && !strobe_run_trigger(run, 100));
	wait_for(run, 100);
	check("it stops", !strobe_run_stop(run) && !strobe_run_stop(run));
	while (strobe_rows_next(reader, 10000, &block) == STROBE_BLOCK) {
		read += strobe_block_rows(block);
		lost += strobe_block_lost(block);
		strobe_block_free(block);
	}
	check("who reads late is told what is lost", lost > 0 && !strobe_rows_account(reader, &account) && account.lost == lost);
	check("rows read + lost are the run's rows", read + lost == account.rows);
	check("triggers = rows + missed + skipped", account.triggers == 100 &&
	      account.triggers == account.rows + account.missed + account.skipped);
	strobe_rows_free(reader);
	strobe_run_free(run);
}

static void tuned(void)
{
	struct strobe_run *run = strobe_run_of_text("event = 'soft'\nread = ['sim.counter']\nengine = 'user'\ntune = ['limit = 5']\n"
						    "derive = ['double = 2 * limit']");
	struct strobe_run *seen = strobe_run_attach(strobe_run_name(run));
	struct strobe_rows *reader = strobe_rows_of_run(run);
	struct strobe_block *block;
	double values[8] = { 0 };

	check("it starts", !strobe_run_start(run) && !strobe_run_trigger(run, 1));
	wait_for(run, 1);
	check("one's own run is tuned", !strobe_run_tune(run, "limit", "7") && !strobe_run_trigger(run, 1));
	wait_for(run, 2);
	check("and another's", !strobe_run_tune(seen, "limit", "9") && !strobe_run_trigger(run, 1));
	wait_for(run, 3);
	block = next(reader);
	check("rows show the value, and the program computes with it", strobe_block_rows(block) == 3 &&
	      strobe_block_values(block, strobe_block_column(block, "limit"), values, 8) == 3 && values[0] == 5 && values[2] == 9 &&
	      strobe_block_values(block, strobe_block_column(block, "double"), values, 8) == 3 && values[1] == 14 && values[2] == 18);
	strobe_block_free(block);
	check("a tunable that is not there is refused", strobe_run_tune(run, "limits", "7") == -1 && says("limits"));
	check("a value that is none is refused", strobe_run_tune(run, "limit", "much") == -1 && says("tune 'much'"));
	check("no name is refused", strobe_run_tune(run, NULL, "7") == -1 && strobe_run_tune(NULL, "limit", "7") == -1);
	strobe_rows_free(reader);
	strobe_run_free(seen);
	strobe_run_free(run);
}

static void recordings(const char *folder)
{
	char file[256], text[256];
	const char *sinks[] = { file, text };
	struct strobe_account account = { .size = sizeof(account) };
	struct strobe_run *run = strobe_run_new("timer:1kHz", "sim.counter", NULL, 50);
	struct strobe_rows *reader;
	struct strobe_block *block;
	uint64_t read = 0;
	int whole;

	snprintf(file, sizeof(file), "%s/scan.arrows", folder);
	snprintf(text, sizeof(text), "%s/scan.csv", folder);
	check("flags that there are not are refused", strobe_run_record(run, sinks, 2, 64, NULL) == -1 && says("0x40"));
	whole = strobe_run_record(run, sinks, 2, 0, &account);
	check("a run is recorded", whole >= 0 && account.rows == 50 && account.state == STROBE_RUN_DONE);
	check("whether it is whole is what the account says", !whole == !(account.missed || account.lost || account.errors));
	check("triggers = rows + missed + skipped", account.triggers == account.rows + account.missed + account.skipped);
	strobe_run_free(run);
	run = strobe_run_new("soft", "sim.counter", NULL, 1);
	check("a file that exists is not replaced", strobe_run_record(run, sinks, 2, 0, NULL) == -1 && says("exist"));
	strobe_run_free(run);
	reader = strobe_rows_of_file(file);
	check("a recording has no descriptor", strobe_rows_fd(reader) == -1 && says("no descriptor"));
	while (strobe_rows_next(reader, 0, &block) == STROBE_BLOCK) {
		read += strobe_block_rows(block);
		strobe_block_free(block);
	}
	check("the recording has its rows", !strobe_rows_account(reader, &account) && read + account.lost == account.rows);
	strobe_rows_free(reader);
}

static void *stops(void *run)
{
	wait_for(run, 3);
	strobe_run_stop(run);
	return NULL;
}

static void stopped(void)
{
	struct strobe_account account = { .size = sizeof(account) };
	struct strobe_run *run = strobe_run_new("timer:100Hz", "sim.counter", NULL, 0);
	struct strobe_run *seen = strobe_run_attach(strobe_run_name(run));
	pthread_t thread;
	int whole;

	check("a thread that stops it", !pthread_create(&thread, NULL, stops, run));
	whole = strobe_run_record(run, NULL, 0, 0, &account);
	pthread_join(thread, NULL);
	check("a run that was stopped says so", whole >= 0 && account.rows >= 3 && account.state == STROBE_RUN_STOPPED);
	check("that is no loss", !whole == !(account.missed || account.lost || account.errors));
	whole = strobe_run_record(seen, NULL, 0, 0, &account);
	check("nor is it for who only reads it", !whole == !(account.missed || account.lost || account.errors) &&
	      account.state == STROBE_RUN_STOPPED && account.triggers == account.rows + account.missed + account.skipped);
	strobe_run_free(seen);
	strobe_run_free(run);
}

/* As who polls does: arm, take what is there, wait, and again. */
static void polled(void)
{
	int to[2], tries = 0, answer = STROBE_NOTHING;
	char name[64] = "";
	struct strobe_rows *rows;
	struct strobe_run *seen;
	struct strobe_block *block;
	struct pollfd ready = { .events = POLLIN };
	pid_t owner;

	if (pipe(to) || (owner = fork()) < 0) {
		check("another process", 0);
		return;
	}
	if (!owner) {
		struct strobe_run *run = strobe_run_new("soft", "sim.counter", NULL, 0);

		strobe_run_start(run);
		strobe_run_trigger(run, 3);
		wait_for(run, 3);
		if (write(to[1], strobe_run_name(run), strlen(strobe_run_name(run)) + 1) > 0)
			pause();
		_exit(1);
	}
	check("it has a run", read(to[0], name, sizeof(name) - 1) > 0);
	seen = strobe_run_attach(name);
	rows = strobe_rows_of_run(seen);
	ready.fd = strobe_rows_fd(rows);
	block = next(rows);
	check("its rows are seen", strobe_block_rows(block) == 3);
	strobe_block_free(block);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	while (answer == STROBE_NOTHING && tries++ < 1000) {
		strobe_rows_arm(rows, 1);
		answer = strobe_rows_next(rows, 0, &block);
		if (answer == STROBE_NOTHING)
			poll(&ready, 1, 100);
	}
	check("who polls is told that the owner was killed", answer == STROBE_ERROR && says("ended or closed it"));
	strobe_rows_free(rows);
	strobe_run_free(seen);
	close(to[0]), close(to[1]);
}

int main(int argc, char **argv)
{
	errors();
	threads();
	catalogue();
	rows();
	loss();
	tuned();
	stopped();
	polled();
	recordings(argc > 1 ? argv[1] : ".");
	printf("%s of libstrobe %s\n", failed ? "not all" : "all calls", strobe_version());
	return failed != 0;
}
