/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs of measured rows, as instructions. */
#ifndef BENCH_PROGRAMS_H
#define BENCH_PROGRAMS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include "../../include/uapi/strobe.h"

#define INSN(c, d, s, o, i)	{ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }
#define MOV(d, i)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define SUB_X(d, s)		INSN(BPF_ALU64 | BPF_SUB | BPF_X, d, s, 0, 0)
#define AND(d, i)		INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define LOAD_WORD(d, s, o)	INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE_WORD(d, o, s)	INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define JUMP(c, d, i, o)	INSN(BPF_JMP | (c) | BPF_K, d, 0, o, i)
#define END()			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define ROW			1
#define STATE			9
/* The column behind ten channels. */
#define DERIVED			80

static const struct bpf_insn empty_insns[] = { MOV(0, 0), END() };

/* d = diff(the third channel); kept if the first one is not -1 and the second one & 1 is at most 1, as all are. */
static const struct bpf_insn gate_insns[] = {
	LOAD_WORD(2, ROW, 16),
	LOAD_WORD(3, STATE, 0),
	STORE_WORD(STATE, 0, 2),
	SUB_X(2, 3),
	LOAD_WORD(3, STATE, 8),
	JUMP(BPF_JNE, 3, 0, 1),
	MOV(2, 0),
	MOV(3, 1),
	STORE_WORD(STATE, 8, 3),
	STORE_WORD(ROW, DERIVED, 2),
	LOAD_WORD(2, ROW, 0),
	JUMP(BPF_JEQ, 2, -1, 5),
	LOAD_WORD(2, ROW, 8),
	AND(2, 1),
	JUMP(BPF_JGT, 2, 1, 2),
	MOV(0, 0),
	END(),
	MOV(0, 1),
	END(),
};

/* "empty" or "gate": the address of what STROBE_CREATE is told. */
static inline __u64 program_named(const char *name)
{
	static const struct strobe_derived derived = { .name = "d", .value = { .bits = 64 } };
	static struct strobe_program program = {
		.size = sizeof(program), .derived_size = sizeof(derived),
	};

	if (!strcmp(name, "empty")) {
		program.insns = (unsigned long)empty_insns;
		program.insn_count = sizeof(empty_insns) / sizeof(empty_insns[0]);
	} else if (!strcmp(name, "gate")) {
		program.state = 2;
		program.insns = (unsigned long)gate_insns;
		program.insn_count = sizeof(gate_insns) / sizeof(gate_insns[0]);
		program.flags = STROBE_PROGRAM_SKIPS;
		program.derived = (unsigned long)&derived;
		program.derived_count = 1;
	} else {
		fprintf(stderr, "there is no program %s\n", name);
		exit(2);
	}
	return (unsigned long)&program;
}

#endif /* BENCH_PROGRAMS_H */
