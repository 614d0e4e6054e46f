// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether instructions are a program: one look at each, in their order.
 *
 * What this has to make sure of, for whoever wrote them:
 *  - they end: jumps lead forward only, and there are no calls;
 *  - they read and write the row and the state of this run alone: R1 and R9 never
 *    change, offsets are constant or cut by a mask right before, and no jump, not
 *    even one that a processor guesses, leads past the mask;
 *  - what was in a register before is never seen: each is set on every way to
 *    where it is used, also on one that goes straight on behind a JA, which a
 *    processor may guess;
 *  - no address is seen: R1 and R9 are bases and nothing else, and a register that
 *    has an address in a sequence has no value after it;
 *  - nothing divides by 0.
 * The kernel's compiler takes what passes as it takes what its verifier has passed.
 * Its interpreter is not trusted with it: see computer.c.
 */
#include <linux/slab.h>

#include "computer/computer.h"

#define ROW	BPF_REG_1
#define STATE	BPF_REG_9

/* checking.set[]: nothing has led here so far. No set of registers looks like this. */
#define NO_WAY	0xffff

/* Rough time, ns: of a division, of any other instruction, and of 64 bytes of the state. */
#define DIVISION_NS	40
#define OTHER_NS	1
#define LINE_NS		50

/**
 * struct checking - a program that is looked at.
 * @insns: its instructions.
 * @count: how many.
 * @channels: words of the row that it may only read.
 * @columns: words of the row.
 * @state: words of the state.
 * @set: by instruction: registers that are set on every way to it; or NO_WAY. One
 *	more than there are instructions.
 */
struct checking {
	const struct bpf_insn	*insns;
	u32			count;
	u32			channels;
	u32			columns;
	u32			state;
	u16			*set;
};

/* Of those that a program may change. */
static bool is_free(u8 reg)
{
	return reg <= BPF_REG_8 && reg != ROW;
}

static bool is_set(const struct checking *checking, u32 i, u8 reg)
{
	return is_free(reg) && checking->set[i] & BIT(reg);
}

static bool is_insn(const struct bpf_insn *insn, u8 code, u8 dst, u8 src, s16 off, s32 imm)
{
	return insn->code == code && insn->dst_reg == dst && insn->src_reg == src &&
	       insn->off == off && insn->imm == imm;
}

/* Whether so many instructions follow this one, and are come to by no other way. */
static bool stand_together(const struct checking *checking, u32 i, u32 more)
{
	if (more >= checking->count - i)
		return false;
	for (u32 n = 1; n <= more; n++)
		if (checking->set[i + n] != NO_WAY)
			return false;
	return true;
}

/* Whether the words from @first on, bytes @off on from there, are among @words. */
static bool is_inside(s16 off, u64 first, u64 words)
{
	return off >= 0 && !(off % 8) && first + off / 8 < words;
}

/* The second operand of this one, a register or a number; what is not used is 0. */
static bool operand(const struct checking *checking, u32 i, bool is_jump)
{
	const struct bpf_insn *insn = &checking->insns[i];

	if (!is_jump && insn->off)
		return false;
	if (BPF_SRC(insn->code) == BPF_X)
		return is_set(checking, i, insn->src_reg) && !insn->imm;
	return !insn->src_reg;
}

static bool arithmetic(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];
	bool by_number = BPF_SRC(insn->code) == BPF_K;

	if (!is_free(insn->dst_reg) || !operand(checking, i, false))
		return false;
	switch (BPF_OP(insn->code)) {
	case BPF_MOV:
		return true;
	case BPF_ADD:
	case BPF_SUB:
	case BPF_MUL:
	case BPF_AND:
	case BPF_OR:
	case BPF_XOR:
		return is_set(checking, i, insn->dst_reg);
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		return is_set(checking, i, insn->dst_reg) && (!by_number || (u32)insn->imm < 64);
	case BPF_NEG:
		return is_set(checking, i, insn->dst_reg) && by_number && !insn->imm;
	case BPF_DIV:
	case BPF_MOD:
		/* By a register only in a sequence: see division(). */
		return is_set(checking, i, insn->dst_reg) && by_number && insn->imm;
	default:
		return false;
	}
}

static bool memory(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];
	bool is_store = BPF_CLASS(insn->code) == BPF_STX;
	u8 base = is_store ? insn->dst_reg : insn->src_reg;
	u8 word = is_store ? insn->src_reg : insn->dst_reg;

	if (insn->code != (BPF_CLASS(insn->code) | BPF_MEM | BPF_DW) || insn->imm)
		return false;
	if (is_store ? !is_set(checking, i, word) : !is_free(word))
		return false;
	if (base == STATE)
		return is_inside(insn->off, 0, checking->state);
	/* What channels have given stays as it is. */
	return base == ROW && is_inside(insn->off, 0, checking->columns) &&
	       !(is_store && insn->off / 8 < checking->channels);
}

static bool jump(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];

	if (insn->off < 0 || insn->off >= checking->count - i - 1)
		return false;
	if (insn->code == (BPF_JMP | BPF_JA))
		return is_insn(insn, BPF_JMP | BPF_JA, 0, 0, insn->off, 0);
	if (!is_set(checking, i, insn->dst_reg) || !operand(checking, i, true))
		return false;
	switch (BPF_OP(insn->code)) {
	case BPF_JEQ:
	case BPF_JNE:
	case BPF_JGT:
	case BPF_JGE:
	case BPF_JLT:
	case BPF_JLE:
	case BPF_JSGT:
	case BPF_JSGE:
	case BPF_JSLT:
	case BPF_JSLE:
		return true;
	default:
		return false;
	}
}

/* A number of 64 bits: the second instruction has nothing but its upper half. */
static u32 number(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];

	if (insn->code != (BPF_LD | BPF_IMM | BPF_DW) || insn->src_reg || insn->off ||
	    !is_free(insn->dst_reg) || !stand_together(checking, i, 1) ||
	    !is_insn(insn + 1, 0, 0, 0, 0, insn[1].imm))
		return 0;
	return 2;
}

/*
 * JNE r, 0, +1; MOV r, 1; DIV or MOD by r. Returns its length, or 0 if it is
 * none: then the jump may be another one.
 */
static u32 division(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];
	u8 by = insn->dst_reg;

	if (!is_insn(insn, BPF_JMP | BPF_JNE | BPF_K, by, 0, 1, 0) || !is_set(checking, i, by) ||
	    !stand_together(checking, i, 2) ||
	    !is_insn(insn + 1, BPF_ALU64 | BPF_MOV | BPF_K, by, 0, 0, 1))
		return 0;
	insn += 2;
	if (!is_insn(insn, BPF_ALU64 | BPF_DIV | BPF_X, insn->dst_reg, by, 0, 0) &&
	    !is_insn(insn, BPF_ALU64 | BPF_MOD | BPF_X, insn->dst_reg, by, 0, 0))
		return 0;
	return is_set(checking, i, insn->dst_reg) ? 3 : 0;
}

/*
 * AND r, mask; LSH r, 3; ADD r, R9; load or store by r. Returns its length, or 0
 * if it is none. A processor that guesses has nothing to guess here.
 */
static u32 element(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];
	u8 at = insn->dst_reg;
	s32 mask = insn->imm;

	if (!is_insn(insn, BPF_ALU64 | BPF_AND | BPF_K, at, 0, 0, mask) || mask < 0 ||
	    !is_set(checking, i, at) || !stand_together(checking, i, 3) ||
	    !is_insn(insn + 1, BPF_ALU64 | BPF_LSH | BPF_K, at, 0, 0, 3) ||
	    !is_insn(insn + 2, BPF_ALU64 | BPF_ADD | BPF_X, at, STATE, 0, 0))
		return 0;
	insn += 3;
	if (insn->imm || !is_inside(insn->off, mask, checking->state))
		return 0;
	if (insn->code == (BPF_LDX | BPF_MEM | BPF_DW))
		return insn->src_reg == at && is_free(insn->dst_reg) ? 4 : 0;
	/* What is stored must not be the address. */
	if (insn->code == (BPF_STX | BPF_MEM | BPF_DW))
		return insn->dst_reg == at && insn->src_reg != at &&
		       is_set(checking, i, insn->src_reg) ? 4 : 0;
	return 0;
}

/* How many instructions from this one on are good together; 0: none. */
static u32 good(const struct checking *checking, u32 i)
{
	const struct bpf_insn *insn = &checking->insns[i];
	u32 length;

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU64:
		length = element(checking, i);
		return length ?: arithmetic(checking, i);
	case BPF_LDX:
	case BPF_STX:
		return memory(checking, i);
	case BPF_LD:
		return number(checking, i);
	case BPF_JMP:
		if (BPF_OP(insn->code) == BPF_EXIT)
			return is_insn(insn, BPF_JMP | BPF_EXIT, 0, 0, 0, 0) &&
			       is_set(checking, i, BPF_REG_0);
		length = division(checking, i);
		return length ?: jump(checking, i);
	default:
		return 0;
	}
}

/* Registers that are set behind @length instructions from this one on. */
static u16 set_after(const struct checking *checking, u32 i, u32 length)
{
	const struct bpf_insn *insn = &checking->insns[i], *last = insn + length - 1;
	u16 set = checking->set[i];

	/* An element: its register has had an address. */
	if (length == 4)
		set &= ~BIT(insn->dst_reg);
	/* The second half of a number says nothing of its register. */
	if (length == 2)
		last = insn;
	switch (BPF_CLASS(last->code)) {
	case BPF_ALU64:
	case BPF_LDX:
	case BPF_LD:
		return set | BIT(last->dst_reg);
	default:
		return set;
	}
}

/* Whether the next instruction never follows on this one. */
static bool never_goes_on(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_EXIT) || insn->code == (BPF_JMP | BPF_JA);
}

/* The first instruction that may not stand where it is; @count: none. */
static u32 first_wrong(struct checking *checking)
{
	u32 i, length;

	for (i = 0; i < checking->count; i += length) {
		const struct bpf_insn *insn = &checking->insns[i];
		u16 after;

		if (checking->set[i] == NO_WAY)
			return i;
		length = good(checking, i);
		if (!length)
			return i;
		after = set_after(checking, i, length);
		if (length == 1 && BPF_CLASS(insn->code) == BPF_JMP &&
		    BPF_OP(insn->code) != BPF_EXIT)
			checking->set[i + 1 + insn->off] &= after;
		/*
		 * A processor may guess that it goes on behind a JA or EXIT, too: then
		 * it must find nothing there that was not set on this way. But that is
		 * not a way to it.
		 */
		if (length > 1 || !never_goes_on(insn) || checking->set[i + 1] != NO_WAY)
			checking->set[i + length] &= after;
	}
	/* It must not go on behind its last one. */
	return checking->set[i] == NO_WAY ? i : checking->count - 1;
}

/**
 * strobe_program_check() - look at a program.
 * @given: the program.
 * @channels: values that its rows have before the derived columns.
 *
 * Context: process.
 * Return: the index of the first instruction that may not stand where it is; how
 * many there are, if all may; U32_MAX without memory.
 */
u32 strobe_program_check(const struct strobe_given *given, u32 channels)
{
	struct checking checking = {
		.insns = given->insns,
		.count = given->about.insn_count,
		.channels = channels,
		.columns = channels + given->about.derived_count,
		.state = given->about.state,
	};
	u32 wrong;

	checking.set = kvmalloc_array(checking.count + 1, sizeof(*checking.set), GFP_KERNEL);
	if (!checking.set)
		return U32_MAX;
	memset(checking.set, 0xff, (checking.count + 1) * sizeof(*checking.set));
	checking.set[0] = 0;
	wrong = first_wrong(&checking);
	kvfree(checking.set);
	return wrong;
}

/**
 * strobe_program_cost() - rough time of a program.
 * @given: the program.
 *
 * Return: ns, if each of its instructions were done.
 */
u64 strobe_program_cost(const struct strobe_given *given)
{
	u64 cost = given->about.state / 8 * LINE_NS;

	for (u32 i = 0; i < given->about.insn_count; i++) {
		u8 code = given->insns[i].code, op = BPF_OP(code);

		cost += BPF_CLASS(code) == BPF_ALU64 && (op == BPF_DIV || op == BPF_MOD) ?
			DIVISION_NS : OTHER_NS;
	}
	return cost;
}
