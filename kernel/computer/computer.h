/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program of a run: instructions of its user, which run in the hard path.
 *
 *   check.c     whether they are a program: what makes them safe
 *   computer.c  a program with its state: made, compiled by the kernel, given back
 *   tune.c      words of the state that somebody sets while the run goes on
 *
 * The contract says what a program may be: include/uapi/strobe.h. It comes from
 * users without any capability, and the kernel's verifier does not see it: see
 * docs/design/programs.md.
 */
#ifndef _STROBE_COMPUTER_H
#define _STROBE_COMPUTER_H

#include <linux/filter.h>

#include <uapi/strobe.h>

/**
 * struct strobe_given - a program as its user gave it, in memory of the kernel.
 * @about: what was said of it; @about.size is 0 if there is none.
 * @insns: its instructions.
 * @derived: its columns.
 */
struct strobe_given {
	struct strobe_program	about;
	struct bpf_insn		*insns;
	struct strobe_derived	*derived;
};

/**
 * struct strobe_computer - the program of a run.
 * @func: what a row calls: @prog's machine code, or what takes new values before it.
 *	The first is set by the producer, or in process context while there is none, the
 *	latter by STROBE_TUNE in process context, all under @tuning; the producer looks
 *	at it without that.
 * @prog: compiled; it has the address of @state in it.
 * @state: words that it keeps from row to row; only the producer reads and writes them.
 * @tuned: bit n is set if word n of @state is to become @tune[n]. Set by STROBE_TUNE,
 *	cleared by who takes the values: the producer, or a process while there is none;
 *	all under @tuning.
 * @skip: what of its answer leaves the row out: 1, or 0 if it may not.
 * @tunables: words of @tune.
 * @tuning: for @func, @tuned and @tune. The producer never waits for it, and who holds
 *	it has interrupts off.
 * @tune: written by STROBE_TUNE, read by who takes the values; under @tuning.
 *
 * Constant from the run's creation to its end, but for what is said to be written.
 */
struct strobe_computer {
	bpf_func_t	func;
	struct bpf_prog	*prog;
	u64		*state;
	u64		tuned;
	u32		skip;
	u32		tunables;
	raw_spinlock_t	tuning;		/* see above */
	u64		tune[] __counted_by(tunables);
};

/* check.c */
u32 strobe_program_check(const struct strobe_given *given, u32 channels);
u64 strobe_program_cost(const struct strobe_given *given);

/* computer.c */
bool strobe_programs_allowed(void);
int strobe_given_copy(struct strobe_given *given, u64 address);
void strobe_given_free(struct strobe_given *given);
u64 strobe_given_bytes(const struct strobe_given *given);
struct strobe_computer *strobe_computer_new(const struct strobe_given *given);
void strobe_computer_free(struct strobe_computer *computer);

/* tune.c */
void strobe_computer_tune(struct strobe_computer *computer, u32 tunable, u64 value);
void strobe_computer_settle(struct strobe_computer *computer);

/**
 * strobe_compute() - run the program on a row in which nothing has failed.
 * @computer: the program.
 * @values: the row's values; those of the channels are there.
 *
 * As bpf_prog_run(), which besides takes the program's time if somebody asks for that,
 * and hands over the instructions, for an interpreter. Here these are @computer: who
 * takes new values needs it, and the program cannot see it. The kernel's wrapper makes
 * the call, for not every compiler of programs leaves what CFI checks.
 *
 * Context: interrupts off; the caller is the only producer.
 * Return: its answer: if it and @computer->skip have a bit in common, the row is left
 * out; else its derived columns are there.
 */
static inline u32 strobe_compute(struct strobe_computer *computer, u64 *values)
{
	/* A look without the lock: what comes too late for this row is there for the next. */
	return bpf_dispatcher_nop_func(values, (const struct bpf_insn *)computer,
				       READ_ONCE(computer->func));
}

#endif /* _STROBE_COMPUTER_H */
