// SPDX-License-Identifier: GPL-2.0-only
/* A program with its state: copied from its user, compiled by the kernel, given back. */
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "computer/computer.h"
#include "uabi.h"

/* What an instruction takes when it is compiled, and what a program does; at most about. */
#define MACHINE_BYTES	64
#define PROGRAM_BYTES	(PAGE_SIZE + 2048)

static bool programs = true;
module_param(programs, bool, 0644);
MODULE_PARM_DESC(programs, "users may give runs programs, which are checked and compiled (default on)");

/**
 * strobe_programs_allowed() - may a run have a program?
 */
bool strobe_programs_allowed(void)
{
	return READ_ONCE(programs);
}

/**
 * strobe_given_copy() - copy a program from its user.
 * @given: filled in; to be freed after success.
 * @address: of a struct strobe_program; 0: none.
 *
 * Context: process; user memory may be slow, so no lock is held.
 * Return: 0; -EINVAL, -E2BIG or -EFAULT for what is not a struct strobe_program;
 * -ENOMEM.
 */
int strobe_given_copy(struct strobe_given *given, u64 address)
{
	struct strobe_program *about = &given->about;
	void *array;
	int ret;

	if (!address)
		return 0;
	ret = strobe_copy_struct(about, sizeof(*about), u64_to_user_ptr(address),
				 offsetof(struct strobe_program, tunables));
	if (ret)
		return ret;
	if (about->flags & ~STROBE_PROGRAM_SKIPS || about->reserved)
		return -EINVAL;
	if (about->derived_count && about->derived_size < sizeof(struct strobe_derived))
		return -EINVAL;
	if (about->derived_size > STROBE_SIZE_MAX)
		return -E2BIG;
	/* What is too much is refused before anything of it is looked at. */
	if (about->insn_count > STROBE_PROGRAM_INSNS || about->derived_count > STROBE_STEPS_MAX)
		return 0;
	array = strobe_copy_array(about->insns, about->insn_count, sizeof(struct bpf_insn),
				  sizeof(struct bpf_insn));
	if (IS_ERR(array))
		return PTR_ERR(array);
	given->insns = array;
	array = strobe_copy_array(about->derived, about->derived_count,
				  sizeof(struct strobe_derived), about->derived_size);
	if (IS_ERR(array)) {
		strobe_given_free(given);
		return PTR_ERR(array);
	}
	given->derived = array;
	return 0;
}

/**
 * strobe_given_free() - forget it.
 * @given: may be empty.
 */
void strobe_given_free(struct strobe_given *given)
{
	kvfree(given->insns);
	kvfree(given->derived);
	*given = (struct strobe_given){ };
}

/**
 * strobe_given_bytes() - memory that its run will take for it.
 * @given: may be empty.
 */
u64 strobe_given_bytes(const struct strobe_given *given)
{
	u64 insn = sizeof(struct bpf_insn) + MACHINE_BYTES;

	if (!given->about.size)
		return 0;
	return PROGRAM_BYTES + given->about.insn_count * insn +
	       (given->about.state + given->about.tunables) * sizeof(u64) +
	       given->about.derived_count * sizeof(struct strobe_entry);
}

/*
 * Before the first instruction of the user, R9 becomes the address of the state, if
 * there is one.
 *
 * The type stays "unspecified", as that of a filter of sockets: so the compiler
 * knows that any user may have written this, and does all that it does against such.
 * An interpreter would have the registers in memory, and a jump between any two
 * instructions: there a processor has enough to guess. So there is none.
 */
static struct bpf_prog *compile(const struct strobe_given *given, u64 *state)
{
	const struct bpf_insn start[] = { BPF_LD_IMM64(BPF_REG_9, (unsigned long)state) };
	u32 first = given->about.state ? ARRAY_SIZE(start) : 0;
	u32 count = given->about.insn_count;
	struct bpf_prog *prog;
	int error = 0;

	prog = bpf_prog_alloc(bpf_prog_size(first + count), 0);
	if (!prog)
		return ERR_PTR(-ENOMEM);
	prog->len = first + count;
	memcpy(prog->insnsi, start, first * sizeof(*start));
	memcpy(prog->insnsi + first, given->insns, count * sizeof(*given->insns));
	prog = bpf_prog_select_runtime(prog, &error);
	if (error || !prog->jited) {
		bpf_prog_free(prog);
		return ERR_PTR(error == -ENOMEM ? -ENOMEM : -EOPNOTSUPP);
	}
	return prog;
}

/**
 * strobe_computer_new() - compile a program that was found good.
 * @given: the program.
 *
 * Context: process.
 * Return: for strobe_computer_free(); -ENOMEM; -EOPNOTSUPP if the kernel does not
 * compile it.
 */
struct strobe_computer *strobe_computer_new(const struct strobe_given *given)
{
	u32 tunables = given->about.tunables;
	struct strobe_computer *computer;
	struct bpf_prog *prog;

	computer = kzalloc(struct_size(computer, tune, tunables), GFP_KERNEL_ACCOUNT);
	if (!computer)
		return ERR_PTR(-ENOMEM);
	computer->tunables = tunables;
	raw_spin_lock_init(&computer->tuning);
	/* One word more, for there is none of no size. */
	computer->state = kvcalloc(given->about.state + 1, sizeof(u64), GFP_KERNEL_ACCOUNT);
	prog = computer->state ? compile(given, computer->state) : ERR_PTR(-ENOMEM);
	if (IS_ERR(prog)) {
		kvfree(computer->state);
		kfree(computer);
		return ERR_CAST(prog);
	}
	computer->func = prog->bpf_func;
	computer->prog = prog;
	computer->skip = given->about.flags & STROBE_PROGRAM_SKIPS ? 1 : 0;
	return computer;
}

/**
 * strobe_computer_free() - give it back.
 * @computer: nothing runs it any more; or NULL.
 *
 * Context: process.
 */
void strobe_computer_free(struct strobe_computer *computer)
{
	if (!computer)
		return;
	bpf_prog_free(computer->prog);
	kvfree(computer->state);
	kfree(computer);
}
