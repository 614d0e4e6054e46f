// SPDX-License-Identifier: GPL-2.0-only
/* STROBE_CREATE of a run with a program: what is wrong with it, and the run gets it. */
#include "computer/computer.h"
#include "core/internal.h"

/* It ends, and can be a line of text, or a part of one. */
static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if ((u8)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return length < size;
}

static bool is_column(const struct strobe_derived *derived)
{
	const struct strobe_value *value = &derived->value;

	return derived->name[0] && is_text(derived->name, sizeof(derived->name)) &&
	       is_text(value->unit, sizeof(value->unit)) &&
	       (value->type == STROBE_TYPE_U64 || value->type == STROBE_TYPE_S64) &&
	       value->cost_class == STROBE_CLASS_HARD && !value->cost_ns &&
	       value->bits && value->bits <= 64;
}

/**
 * strobe_program_size() - how much there is of a program.
 * @about: what its user has said of it; it may be empty.
 * @steps: of its run.
 * @answer: is told what is wrong.
 *
 * The first thing to ask: its arrays are here only if it is not too much.
 *
 * Return: 0 or an errno.
 */
int strobe_program_size(const struct strobe_program *about, u32 steps,
			struct strobe_created *answer)
{
	if (!about->size)
		return 0;
	if (!strobe_programs_allowed())
		return strobe_refuse(answer, STROBE_WHY_PROGRAM, -EPERM);
	if (about->derived_count > STROBE_STEPS_MAX - steps)
		return strobe_refuse(answer, STROBE_WHY_DERIVED, -EINVAL);
	if (!about->insn_count || about->insn_count > STROBE_PROGRAM_INSNS ||
	    about->state > STROBE_PROGRAM_STATE || about->tunables > STROBE_TUNABLES_MAX ||
	    about->tunables > about->state || about->tunables > about->derived_count)
		return strobe_refuse(answer, STROBE_WHY_PROGRAM, -EINVAL);
	return 0;
}

/**
 * strobe_program_is_good() - everything else that can be wrong with it, but for its
 * run and for what the kernel's compiler says.
 * @given: the program; it may be empty.
 * @answer: has the number of channels, and is told what is wrong.
 *
 * Context: process; before any lock is taken, for it may take long.
 * Return: 0 or an errno.
 */
int strobe_program_is_good(const struct strobe_given *given, struct strobe_created *answer)
{
	const struct strobe_program *about = &given->about;
	u32 wrong;

	if (!about->size)
		return 0;
	for (u32 i = 0; i < about->derived_count; i++) {
		if (is_column(&given->derived[i]))
			continue;
		answer->fault_step = i;
		return strobe_refuse(answer, STROBE_WHY_DERIVED, -EINVAL);
	}
	wrong = strobe_program_check(given, answer->channels - about->derived_count);
	if (wrong == U32_MAX)
		return -ENOMEM;
	if (wrong == about->insn_count)
		return 0;
	answer->fault_step = wrong;
	return strobe_refuse(answer, STROBE_WHY_PROGRAM, -EINVAL);
}

/**
 * strobe_program_take() - the run gets its program, compiled.
 * @run: the run.
 * @given: the program, which was found good; it may be empty.
 * @answer: is told what is wrong.
 *
 * Context: process; before any lock is taken, for it may take long.
 * Return: 0 or an errno.
 */
int strobe_program_take(struct strobe_run *run, const struct strobe_given *given,
			struct strobe_created *answer)
{
	struct strobe_computer *computer;

	if (!given->about.size)
		return 0;
	computer = strobe_computer_new(given);
	if (!IS_ERR(computer)) {
		run->computer = computer;
		return 0;
	}
	if (PTR_ERR(computer) == -ENOMEM)
		return -ENOMEM;
	return strobe_refuse(answer, STROBE_WHY_PROGRAM, PTR_ERR(computer));
}

/* The first step of a class that is not HARD; there is one. */
static u32 first_slow(const struct strobe_run *run)
{
	u32 i;

	for (i = 0; i < run->step_count; i++)
		if (strobe_target_class(&run->targets[i]) != STROBE_CLASS_HARD)
			break;
	return i;
}

/**
 * strobe_program_fits() - may this run have a program?
 * @run: the run, with its steps compiled.
 * @given: the program; it may be empty.
 * @answer: is told which step makes its rows incomplete when the program would run.
 *
 * Return: 0 or -EOPNOTSUPP.
 */
int strobe_program_fits(const struct strobe_run *run, const struct strobe_given *given,
			struct strobe_created *answer)
{
	if (!run->is_slow || !given->about.size)
		return 0;
	answer->fault_step = first_slow(run);
	return strobe_refuse(answer, STROBE_WHY_PROGRAM, -EOPNOTSUPP);
}
