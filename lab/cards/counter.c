// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-counter: a timer, a free-running counter, and a watched digital output.
 *
 * The timer counts a period again and again. At each end of count (EOC) it
 * latches all counters, raises source 0 and triggers the slaves. Ends of count
 * lie on a grid that software cannot shift: one that QEMU comes to late has the
 * instant at which it was due. The free-running counter counts nanoseconds since
 * the machine was made; all lab-counters of a machine agree. Software raises and
 * lowers the output; each rising edge raises source 1, and the time since the
 * edge before is judged.
 *
 * BAR 0 (after card.h; 32 bits, times in ns):
 *
 *	0x40 PERIOD	RW	1000 at least; taken over when the timer starts
 *	0x44 LIMIT	RW	the timer stops after so many ends of count; 0: never
 *	0x48 RUN	RW	1: INDEX = 0, the timer starts; 0: it stops. Reads
 *				as 0 when it has stopped
 *	0x4c INDEX	RO	ends of count since the timer was started
 *	0x50 COUNT	RO	the counter, low half
 *	0x54 ELAPSED	RO	since the timer's last end of count, or its start
 *	0x58 LATCHED	RO	the counter at the last EOC, low half; on a card with
 *				a master, at the master's trigger too
 *	0x5c LATCHED_EDGES RO	EDGES at the same instant
 *	0x60 HELD	RO	the counter when HOLD was written, low half
 *	0x64 HELD_INDEX	RO	INDEX at the same instant
 *	0x68 HELD_ELAPSED RO	ELAPSED at the same instant
 *	0x6c HELD_EDGES	RO	EDGES at the same instant
 *	0x70 OUTPUT	RW	bit 0
 *	0x74 NOMINAL	RW	a period of the output as it should be
 *	0x78 TOLERANCE	RW	and how far from it still counts as in range
 *	0x7c EDGES	RO	rising edges
 *	0x80 IN_RANGE	RO	periods between two rising edges: in range,
 *	0x84 OVER	RO	longer,
 *	0x88 UNDER	RO	shorter;
 *	0x8c LONGEST	RO	the longest (0xffffffff: that, or longer),
 *	0x90 SHORTEST	RO	the shortest; both are 0 without any
 *
 * From 0x100 on there are six counters more; bank.h describes them.
 *
 * CLEAR bit 1 zeroes EDGES to SHORTEST; the next edge has none before it.
 *
 * BAR 2 (prefetchable, of a 64-bit address, 64 bits each):
 *
 *	0x00 COUNT	RO
 *	0x08 LATCHED	RO
 *	0x10 HELD	RO
 *	0x18 PERIOD	RW	the same register as in BAR 0, of which that has the
 *				low half; up to 2^62
 *	0x20 START	RO	the counter when the timer was started: whenever it
 *				runs, HELD = START + HELD_INDEX * PERIOD + HELD_ELAPSED
 */
#include "bank.h"
#include "watch.h"

#include "qemu/module.h"

#define TYPE_LAB_COUNTER "lab-counter"
OBJECT_DECLARE_SIMPLE_TYPE(Counter, LAB_COUNTER)

/* QEMU's own timers are not finer. */
#define PERIOD_MIN	1000
#define PERIOD_MAX	(1ULL << 62)
#define WIDE_SIZE	0x1000

enum {
	PERIOD		= 0x40,
	LIMIT		= 0x44,
	RUN		= 0x48,
	INDEX		= 0x4c,
	COUNT		= 0x50,
	ELAPSED		= 0x54,
	LATCHED		= 0x58,
	LATCHED_EDGES	= 0x5c,
	HELD		= 0x60,
	HELD_INDEX	= 0x64,
	HELD_ELAPSED	= 0x68,
	HELD_EDGES	= 0x6c,
	OUTPUT		= 0x70,
	NOMINAL		= 0x74,
	TOLERANCE	= 0x78,
	EDGES		= 0x7c,
	IN_RANGE	= 0x80,
	OVER		= 0x84,
	UNDER		= 0x88,
	LONGEST		= 0x8c,
	SHORTEST	= 0x90,
};

enum {
	WIDE_COUNT	= 0x00,
	WIDE_LATCHED	= 0x08,
	WIDE_HELD	= 0x10,
	WIDE_PERIOD	= 0x18,
	WIDE_START	= 0x20,
};

struct Counter {
	LabCard parent;
	MemoryRegion wide;
	QEMUTimer *timer;
	/* As it was written, and as the timer that runs has taken it over. */
	uint64_t wanted;
	uint64_t period;
	uint32_t limit;
	uint32_t index;
	bool running;
	/* When the timer was started, and when its last period began. */
	int64_t start;
	int64_t begin;
	int64_t latched;
	uint32_t latched_edges;
	int64_t held;
	uint32_t held_index;
	uint32_t held_elapsed;
	uint32_t held_edges;
	struct watch watch;
	struct bank bank;
};

static void latch(Counter *counter, int64_t at)
{
	counter->latched = at;
	counter->latched_edges = counter->watch.edges;
}

static void arm(Counter *counter)
{
	if (counter->running)
		timer_mod_ns(counter->timer, counter->begin + counter->period);
	else
		timer_del(counter->timer);
}

/* All ends of count up to now: QEMU may be late, and for more than one. */
static void catch_up(Counter *counter, int64_t now)
{
	if (!counter->running || now - counter->begin < (int64_t)counter->period)
		return;
	do {
		counter->begin += counter->period;
		counter->index++;
		if (counter->index == counter->limit)
			counter->running = false;
		latch(counter, counter->begin);
		bank_end_of_count(&counter->bank, counter->begin);
		lab_raise(&counter->parent, LAB_OWN);
		lab_trigger_slaves(&counter->parent, counter->begin);
	} while (counter->running && now - counter->begin >= (int64_t)counter->period);
	arm(counter);
}

static void end_of_count(void *opaque)
{
	catch_up(opaque, lab_now());
}

static void run(Counter *counter, bool on)
{
	int64_t now = lab_now();

	catch_up(counter, now);
	counter->running = on;
	if (on) {
		counter->period = counter->wanted;
		counter->index = 0;
		counter->start = counter->begin = now;
	}
	arm(counter);
}

static uint32_t elapsed(const Counter *counter, int64_t now)
{
	return counter->running ? now - counter->begin : 0;
}

static void hold(LabCard *card, int64_t at)
{
	Counter *counter = LAB_COUNTER(card);

	catch_up(counter, at);
	counter->held = at;
	counter->held_index = counter->index;
	counter->held_elapsed = elapsed(counter, at);
	counter->held_edges = counter->watch.edges;
	bank_hold(&counter->bank, at);
}

static void trigger(LabCard *card, int64_t at)
{
	Counter *counter = LAB_COUNTER(card);

	catch_up(counter, at);
	latch(counter, at);
	bank_trigger(&counter->bank, at);
}

static void wire(LabCard *card, bool level, int64_t at)
{
	Counter *counter = LAB_COUNTER(card);

	catch_up(counter, at);
	bank_wire(&counter->bank, level, at);
}

static void settle(LabCard *card, int64_t at)
{
	Counter *counter = LAB_COUNTER(card);

	catch_up(counter, at);
	bank_settle(&counter->bank, at);
}

static void set_output(Counter *counter, bool level)
{
	int64_t now = lab_now();

	catch_up(counter, now);
	bank_output(&counter->bank, level, now);
	if (watch_drive(&counter->watch, level, now))
		lab_raise(&counter->parent, LAB_OWN_2);
}

static void clear(LabCard *card)
{
	watch_clear(&LAB_COUNTER(card)->watch);
	bank_clear(&LAB_COUNTER(card)->bank);
}

static uint64_t counter_read(LabCard *card, hwaddr offset, unsigned int size)
{
	Counter *counter = LAB_COUNTER(card);
	struct watch *watch = &counter->watch;
	int64_t now = lab_now();

	catch_up(counter, now);
	if (offset >= BANK_FIRST && offset < BANK_END)
		return bank_read(&counter->bank, offset, now);
	switch (offset) {
	case PERIOD:
		return (uint32_t)counter->wanted;
	case LIMIT:
		return counter->limit;
	case RUN:
		return counter->running;
	case INDEX:
		return counter->index;
	case COUNT:
		return (uint32_t)now;
	case ELAPSED:
		return elapsed(counter, now);
	case LATCHED:
		return (uint32_t)counter->latched;
	case LATCHED_EDGES:
		return counter->latched_edges;
	case HELD:
		return (uint32_t)counter->held;
	case HELD_INDEX:
		return counter->held_index;
	case HELD_ELAPSED:
		return counter->held_elapsed;
	case HELD_EDGES:
		return counter->held_edges;
	case OUTPUT:
		return watch->level;
	case NOMINAL:
		return watch->nominal;
	case TOLERANCE:
		return watch->tolerance;
	case EDGES:
		return watch->edges;
	case IN_RANGE:
		return watch->in_range;
	case OVER:
		return watch->over;
	case UNDER:
		return watch->under;
	case LONGEST:
		return watch->longest;
	case SHORTEST:
		return watch->shortest;
	}
	return 0;
}

static void set_period(Counter *counter, uint64_t value)
{
	counter->wanted = MIN(MAX(value, PERIOD_MIN), PERIOD_MAX);
}

static void counter_write(LabCard *card, hwaddr offset, uint32_t value)
{
	Counter *counter = LAB_COUNTER(card);

	if (offset >= BANK_FIRST && offset < BANK_END) {
		catch_up(counter, lab_now());
		bank_write(&counter->bank, offset, value, lab_now());
		return;
	}
	switch (offset) {
	case PERIOD:
		set_period(counter, value);
		break;
	case LIMIT:
		counter->limit = value;
		break;
	case RUN:
		run(counter, value & 1);
		break;
	case OUTPUT:
		set_output(counter, value & 1);
		break;
	case NOMINAL:
		counter->watch.nominal = value;
		break;
	case TOLERANCE:
		counter->watch.tolerance = value;
		break;
	}
}

static uint64_t wide_read(void *opaque, hwaddr offset, unsigned int size)
{
	Counter *counter = opaque;
	int64_t now = lab_now();

	catch_up(counter, now);
	switch (offset) {
	case WIDE_COUNT:
		return now;
	case WIDE_LATCHED:
		return counter->latched;
	case WIDE_HELD:
		return counter->held;
	case WIDE_PERIOD:
		return counter->wanted;
	case WIDE_START:
		return counter->start;
	}
	return 0;
}

static void wide_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
	if (offset == WIDE_PERIOD)
		set_period(opaque, value);
}

static const MemoryRegionOps wide = {
	.read		= wide_read,
	.write		= wide_write,
	.endianness	= DEVICE_LITTLE_ENDIAN,
	.valid		= { .min_access_size = 8, .max_access_size = 8 },
	.impl		= { .min_access_size = 8, .max_access_size = 8 },
};

static void counter_realize(LabCard *card, Error **error)
{
	Counter *counter = LAB_COUNTER(card);

	counter->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, end_of_count, counter);
	bank_init(&counter->bank, card);
	memory_region_init_io(&counter->wide, OBJECT(card), &wide, counter, "lab-counter-wide", WIDE_SIZE);
	pci_register_bar(&card->parent, 2, PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 |
			 PCI_BASE_ADDRESS_MEM_PREFETCH, &counter->wide);
}

static void counter_unrealize(LabCard *card)
{
	timer_free(LAB_COUNTER(card)->timer);
	bank_free(&LAB_COUNTER(card)->bank);
}

static void counter_reset(LabCard *card)
{
	Counter *counter = LAB_COUNTER(card);

	run(counter, false);
	counter->wanted = NANOSECONDS_PER_SECOND;
	counter->limit = 0;
	counter->watch.level = false;
	counter->watch.nominal = 0;
	counter->watch.tolerance = 0;
	bank_output(&counter->bank, false, lab_now());
	bank_reset(&counter->bank);
}

static void counter_class_init(ObjectClass *class, void *data)
{
	LabCardClass *kind = LAB_CARD_CLASS(class);

	PCI_DEVICE_CLASS(class)->device_id = LAB_COUNTER_ID;
	DEVICE_CLASS(class)->desc = "The lab's counter, timer and watched output";
	kind->realize = counter_realize;
	kind->unrealize = counter_unrealize;
	kind->read = counter_read;
	kind->write = counter_write;
	kind->trigger = trigger;
	kind->wire = wire;
	kind->settle = settle;
	kind->hold = hold;
	kind->clear = clear;
	kind->reset = counter_reset;
}

static const TypeInfo counter_type = {
	.name		= TYPE_LAB_COUNTER,
	.parent		= TYPE_LAB_CARD,
	.instance_size	= sizeof(Counter),
	.class_init	= counter_class_init,
};

static void register_counter(void)
{
	type_register_static(&counter_type);
}

type_init(register_counter)
