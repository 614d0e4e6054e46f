// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of kernel/row/budget.c, on the host: what runs of one CPU are told, when
 * the clock goes on as it should and when it steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "row/budget.h"

#define must(condition)	((condition) ? (void)0 : fail(__LINE__, #condition))

#define HOUR		(3600ULL * 1000 * NSEC_PER_MSEC)
/* What a look at the clock takes, and what an interrupt takes from who looks. */
#define LOOK		10
#define INTERRUPT	2000
/* A run that is never satisfied, and how many there are. */
#define ROW		(300ULL * NSEC_PER_USEC)
#define RUNS		5

static const char *sentence;
static u64 clock_now;
static struct hrtimer *timer;

static void fail(int line, const char *condition)
{
	fprintf(stderr, "%s: line %d: not so: %s\n", sentence, line, condition);
	exit(1);
}

u64 get_cycles(void)
{
	clock_now += LOOK;
	if (timer && clock_now >= timer->due) {
		clock_now += INTERRUPT;
		if (timer->function(timer) == HRTIMER_NORESTART)
			timer = NULL;
	}
	return clock_now;
}

void hrtimer_start(struct hrtimer *started, u64 after, enum hrtimer_mode mode)
{
	(void)mode;
	started->due = clock_now + after;
	timer = started;
}

void hrtimer_cancel(struct hrtimer *cancelled)
{
	if (timer == cancelled)
		timer = NULL;
}

/* What a run keeps: how often it was refused since its last row, and when it is to come again. */
struct run {
	u32	waits;
	u64	next;
	u64	rows;
};

/* A trigger, as the rest of the kernel's code asks; true if it makes a row. */
static bool trigger(struct run *run)
{
	struct strobe_budget *budget = &strobe_budget;
	u64 start = clock_now;

	if (!strobe_budget_admits(budget, start) &&
	    !strobe_budget_admits_late(budget, start, run->waits)) {
		run->waits = min(run->waits + 1, STROBE_WAITS);
		run->next = start + strobe_budget_turn_away(budget, start, strobe_rates.overhead,
							    ROW);
		return false;
	}
	run->waits = 0;
	clock_now += ROW;
	strobe_budget_charge(budget, start, ROW + strobe_rates.overhead);
	run->rows++;
	run->next = clock_now;
	return true;
}

static struct run *first(struct run *runs)
{
	struct run *it = runs;

	for (struct run *other = runs; other < runs + RUNS; other++)
		if (other->next < it->next)
			it = other;
	return it;
}

/* All of them for so long, each triggered as soon as it may be: the time that rows took. */
static u64 crowd(struct run *runs, u64 ns)
{
	u64 end = clock_now + ns, work = 0;

	for (;;) {
		struct run *run = first(runs);

		clock_now = max(clock_now, run->next) + strobe_rates.overhead;
		if (clock_now >= end)
			return work;
		if (trigger(run))
			work += ROW;
	}
}

/* A CPU of which more is wanted than there is, with everybody's times laid out. */
static void overload(struct run *runs)
{
	memset(&strobe_budget, 0, sizeof(strobe_budget));
	memset(runs, 0, RUNS * sizeof(*runs));
	clock_now = 10 * HOUR;
	strobe_budget.busy = clock_now;
	strobe_budget.tail = clock_now;
	for (struct run *run = runs; run < runs + RUNS; run++)
		run->next = clock_now;
	crowd(runs, 100 * NSEC_PER_MSEC);
}

static void the_probe_finds_what_an_interrupt_takes(void)
{
	must(strobe_rates.overhead >= INTERRUPT);
	must(strobe_rates.overhead <= INTERRUPT + 10 * LOOK);
	must(strobe_budget_ns(strobe_budget_ticks(HOUR)) <= HOUR);
	must(strobe_budget_ns(strobe_budget_ticks(HOUR)) >= HOUR - HOUR / 500);
}

static void runs_that_want_all_of_a_cpu_share_what_the_budget_is(void)
{
	struct run runs[RUNS];
	u64 work, least = UINT64_MAX, most = 0;

	overload(runs);
	work = crowd(runs, 1000 * NSEC_PER_MSEC);
	/* In percent, with a row and a burst beyond. */
	must(work <= 802 * NSEC_PER_MSEC + 2 * ROW);
	must(work >= 700 * NSEC_PER_MSEC);
	for (struct run *run = runs; run < runs + RUNS; run++) {
		least = min(least, run->rows);
		most = max(most, run->rows);
	}
	must(least > 0 && most <= 2 * least);
}

/* Timers are on another clock: they come after as long as they were told. */
static void step(struct run *runs, s64 ns)
{
	for (struct run *run = runs; run < runs + RUNS; run++)
		run->next += ns;
	clock_now += ns;
}

static void nobody_waits_for_a_clock_that_has_stepped_back(void)
{
	/* The debt that is kept, and others before. */
	u64 longest = strobe_rates.deepest + RUNS * 4 * ROW;
	struct run runs[RUNS];

	for (u64 back = NSEC_PER_USEC; back <= 9 * HOUR; back *= 3) {
		overload(runs);
		step(runs, -back);
		for (struct run *run = runs; run < runs + RUNS; run++)
			run->rows = 0;
		for (unsigned int times = 0; times < 1000; times++) {
			struct run *run = first(runs);

			clock_now = max(clock_now, run->next) + strobe_rates.overhead;
			if (!trigger(run))
				must(run->next - clock_now <= longest);
		}
		for (struct run *run = runs; run < runs + RUNS; run++)
			must(run->rows > 0);
		must(crowd(runs, 100 * NSEC_PER_MSEC) >= 60 * NSEC_PER_MSEC);
	}
}

static void a_clock_that_has_stepped_forward_has_paid_all_debts(void)
{
	struct run runs[RUNS];

	overload(runs);
	step(runs, HOUR);
	must(trigger(runs));
	must(crowd(runs, 1000 * NSEC_PER_MSEC) <= 802 * NSEC_PER_MSEC + 3 * ROW);
}

#define TEST(name)	{ #name, name }

int main(void)
{
	static const struct {
		const char	*sentence;
		void		(*test)(void);
	} tests[] = {
		TEST(the_probe_finds_what_an_interrupt_takes),
		TEST(runs_that_want_all_of_a_cpu_share_what_the_budget_is),
		TEST(nobody_waits_for_a_clock_that_has_stepped_back),
		TEST(a_clock_that_has_stepped_forward_has_paid_all_debts),
	};

	must(!strobe_budget_init());
	for (unsigned int i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		sentence = tests[i].sentence;
		tests[i].test();
		printf("ok %s\n", sentence);
	}
	return 0;
}
