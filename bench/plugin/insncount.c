// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A plugin of QEMU's translator that counts the guest's instructions exactly.
 *
 *   qemu-system-x86_64 ... -plugin insncount.so,out=FILE
 *
 * The guest talks to it by marks: no-ops that no compiler makes, so that they
 * may stand in a module as well as in a program, and cost nothing here:
 *
 *   nopl 0x5eed00NN(%rax,%rax,1)		0f 1f 84 00 NN 00 ed 5e
 *
 *   NN = 01		a window begins: all counters are zero
 *   NN = 02		the window ends: all counters are written to FILE
 *   NN = 10 + 2k	span k begins, k = 0..7
 *   NN = 11 + 2k	span k ends; ends that had no beginning are ignored
 *
 * Counters are not atomic: one CPU only, which is what "lab/run --icount" has.
 * Every instruction has a counter of its own, because a block of them may be
 * left in its middle: by a fault, or by an access to a device.
 * A "rep" instruction counts once for each turn.
 *
 * FILE, numbers in decimal but addresses in hexadecimal:
 *   window NUMBER INSTRUCTIONS
 *   span K COUNT SUM LEAST MOST
 *   at ADDRESS EXECUTIONS INSIDE	INSIDE: in one span 0 or 1
 *   end NUMBER
 *
 * What is needed of QEMU's plugin interface, version 1, is declared here,
 * because Debian ships the plugins' support without its header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;

enum { INLINE_ADD_U64 = 0, NO_REGISTERS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*translate)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						void *counter, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*execute)(unsigned int, void *),
					    int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;

enum { MARK_BEGIN = 0x01, MARK_END = 0x02, MARK_SPANS = 0x10 };

/* One instruction of the guest. Lives for ever: translated code points to it. */
struct place {
	uint64_t	address;
	uint64_t	executions;
	uint64_t	before;		/* executions when the sampled span began */
	uint64_t	inside;		/* executions in it */
	struct place	*next;
};

struct span {
	bool		open;
	uint64_t	begin;
	uint64_t	count;
	uint64_t	sum;
	uint64_t	least;
	uint64_t	most;
};

#define BUCKET_BITS	18
#define BUCKETS		(1u << BUCKET_BITS)
#define SPANS		8
/* The occurrence of a span that is looked into: neither the first nor a round one. */
#define SAMPLE		100

static struct place *places[BUCKETS];
static struct span spans[SPANS];
static uint64_t executed;
static unsigned int windows;
static FILE *out;

static struct place *place_of(uint64_t address)
{
	struct place **bucket = &places[(address * 0x9e3779b97f4a7c15u) >> (64 - BUCKET_BITS)];
	struct place *place;

	for (place = *bucket; place; place = place->next)
		if (place->address == address)
			return place;
	place = calloc(1, sizeof(*place));
	if (!place)
		abort();
	place->address = address;
	place->next = *bucket;
	*bucket = place;
	return place;
}

/* Calls what is given for every instruction that was ever translated. */
static void for_all_places(void (*what)(struct place *))
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct place *place = places[i]; place; place = place->next)
			what(place);
}

static void forget(struct place *place)
{
	place->executions = 0;
	place->inside = 0;
}

static void enter(struct place *place)
{
	place->before = place->executions;
}

static void leave(struct place *place)
{
	place->inside = place->executions - place->before;
}

static void print(struct place *place)
{
	if (place->executions)
		fprintf(out, "at %" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
			place->address, place->executions, place->inside);
}

static void begin_window(void)
{
	for_all_places(forget);
	memset(spans, 0, sizeof(spans));
	executed = 0;
}

static void end_window(void)
{
	fprintf(out, "window %u %" PRIu64 "\n", windows, executed);
	for (unsigned int k = 0; k < SPANS; k++)
		if (spans[k].count)
			fprintf(out, "span %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", k,
				spans[k].count, spans[k].sum, spans[k].least, spans[k].most);
	for_all_places(print);
	fprintf(out, "end %u\n", windows++);
	fflush(out);
}

static bool is_sampled(const struct span *span)
{
	return span < &spans[2] && span->count == SAMPLE;
}

static void begin_span(struct span *span)
{
	span->open = true;
	span->begin = executed;
	if (is_sampled(span))
		for_all_places(enter);
}

static void end_span(struct span *span)
{
	uint64_t length = executed - span->begin;

	if (!span->open)
		return;
	if (is_sampled(span))
		for_all_places(leave);
	span->open = false;
	if (!span->count || length < span->least)
		span->least = length;
	if (length > span->most)
		span->most = length;
	span->sum += length;
	span->count++;
}

static void on_mark(unsigned int cpu, void *data)
{
	unsigned int mark = (uintptr_t)data;

	(void)cpu;
	if (mark == MARK_BEGIN)
		begin_window();
	else if (mark == MARK_END)
		end_window();
	else if (mark >= MARK_SPANS && mark < MARK_SPANS + 2 * SPANS)
		(mark & 1 ? end_span : begin_span)(&spans[(mark - MARK_SPANS) / 2]);
}

/* The mark that an instruction is, or 0. */
static unsigned int mark_of(const struct qemu_plugin_insn *insn)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);

	if (qemu_plugin_insn_size(insn) != 8 || memcmp(code, "\x0f\x1f\x84\x00", 4) ||
	    memcmp(code + 5, "\x00\xed\x5e", 3))
		return 0;
	return code[4];
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct place *place = place_of(qemu_plugin_insn_vaddr(insn));
		unsigned int mark = mark_of(insn);

		if (mark) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGISTERS,
							       (void *)(uintptr_t)mark);
			continue;
		}
		qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &executed, 1);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64,
							   &place->executions, 1);
	}
}

EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "insncount: exactly one argument is needed: out=FILE\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
