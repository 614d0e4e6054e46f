// SPDX-License-Identifier: GPL-2.0-only
/* Six counters of a lab-counter; bank.h describes them. */
#include "bank.h"

#define CLOCK_NS	1000
#define STRIDE		0x20

enum {
	COUNT		= 0x00,
	CONTROL		= 0x04,
	PRESCALER	= 0x08,
	COMPARE		= 0x0c,
	LATCHED		= 0x10,
	HELD		= 0x14,
	MATCHES		= 0x18,
};

enum {
	CAUSES		= 0x1c0,
	ENABLE		= 0x1c4,
	LEVELS		= 0x1c8,
	SELECT		= 0x1cc,
	APPEARED	= 0x1d0,
	MERGED		= 0x1d4,
	DISABLE		= 0x1d8,
};

#define INPUT(control)		((control) & 3)
#define GATE(control)		((control) >> 2 & 3)
#define LATCH(control)		((control) >> 4 & 3)
#define COMPARES		(1U << 6)
#define ZEROES			(1U << 7)
#define CONTROL_BITS		0xffU

#define WRAPPED(number)		(1U << (8 + (number)))
#define MATCHED(number)		(1U << (number))
#define CAUSE_BITS		0x3f3fU

/* What SELECT may say. */
#define SELECT_OUTPUT		0
#define SELECT_TIMER		1
#define SELECT_COUNTER		2

static void cause(struct bank *bank, uint32_t bit)
{
	if (!(bank->enabled & bit))
		return;
	if (bank->causes & bit) {
		bank->merged++;
		return;
	}
	bank->causes |= bit;
	bank->appeared++;
	lab_causes(bank->card, true, true);
}

static bool is_open(const struct bank *bank, const struct bank_counter *counter)
{
	switch (GATE(counter->control)) {
	case 0:
		return true;
	case 1:
		return bank->output;
	case 2:
		return bank->wire;
	default:
		return !bank->wire;
	}
}

/* So many more make a match; 0: none does. */
static uint64_t to_match(const struct bank_counter *counter)
{
	uint32_t more = counter->compare - counter->count;

	if (!(counter->control & COMPARES) || (counter->control & ZEROES && !counter->compare))
		return 0;
	return more ? more : 1ULL << 32;
}

static void match(struct bank *bank, unsigned int number, int64_t at)
{
	struct bank_counter *counter = &bank->counters[number];

	if (counter->control & ZEROES)
		counter->count = 0;
	counter->matches++;
	counter->output = !counter->output;
	cause(bank, MATCHED(number));
	if (bank->select == SELECT_COUNTER + number)
		lab_drive(bank->card, counter->output, at);
}

/*
 * Counts so many pulses, the last of which is at this instant, and which are this
 * far apart. There are at most 2^32 between two matches or wraps.
 */
static void pulses(struct bank *bank, unsigned int number, uint64_t count, int64_t last, int64_t apart)
{
	struct bank_counter *counter = &bank->counters[number];
	uint64_t each = (uint64_t)counter->prescaler + 1;
	uint64_t steps = (counter->rest + count) / each;
	int64_t after;

	counter->rest = (counter->rest + count) % each;
	while (steps) {
		uint64_t wrap = (1ULL << 32) - counter->count, matches = to_match(counter);
		uint64_t next = matches ? MIN(wrap, matches) : wrap;

		if (steps < next) {
			counter->count += steps;
			break;
		}
		steps -= next;
		counter->count += next;
		after = counter->rest + steps * each;
		if (next == wrap)
			cause(bank, WRAPPED(number));
		if (next == matches)
			match(bank, number, last - after * apart);
	}
}

/* When the next match or wrap by the clock is due. */
static void arm(struct bank *bank)
{
	int64_t due = INT64_MAX;
	unsigned int i;

	for (i = 0; i < BANK_COUNTERS; i++) {
		const struct bank_counter *counter = &bank->counters[i];
		uint64_t next = (1ULL << 32) - counter->count, matches = to_match(counter);
		__int128 when;

		if (INPUT(counter->control) != BANK_CLOCK || !is_open(bank, counter))
			continue;
		if (matches)
			next = MIN(next, matches);
		when = bank->settled + ((__int128)next * ((uint64_t)counter->prescaler + 1) - counter->rest) * CLOCK_NS;
		due = MIN(when, due);
	}
	if (due == INT64_MAX)
		timer_del(bank->timer);
	else
		timer_mod_ns(bank->timer, due);
}

/**
 * bank_settle() - counts all pulses of the clock until then.
 * @bank: the counters.
 * @at: the instant.
 */
void bank_settle(struct bank *bank, int64_t at)
{
	uint64_t count = MAX(at - bank->settled, 0) / CLOCK_NS;
	unsigned int i;

	lab_settle_wire(bank->card, at);
	if (!count)
		return;
	bank->settled += count * CLOCK_NS;
	for (i = 0; i < BANK_COUNTERS; i++) {
		if (INPUT(bank->counters[i].control) == BANK_CLOCK && is_open(bank, &bank->counters[i]))
			pulses(bank, i, count, bank->settled, CLOCK_NS);
	}
}

static void is_due(void *opaque)
{
	struct bank *bank = opaque;
	int64_t now = lab_now();

	/* The card's ends of count come first. */
	LAB_CARD_GET_CLASS(bank->card)->settle(bank->card, now);
	bank_settle(bank, now);
	arm(bank);
}

/* One pulse of this kind, at this instant: who is latched by it has what was before. */
static void pulse(struct bank *bank, enum bank_pulse kind, unsigned int latch, int64_t at)
{
	unsigned int i;

	for (i = 0; i < BANK_COUNTERS; i++) {
		struct bank_counter *counter = &bank->counters[i];

		if (LATCH(counter->control) == latch)
			counter->latched = counter->count;
	}
	for (i = 0; i < BANK_COUNTERS; i++) {
		if (kind != BANK_NONE && INPUT(bank->counters[i].control) == kind && is_open(bank, &bank->counters[i]))
			pulses(bank, i, 1, at, 0);
	}
}

/**
 * bank_wire() - the wire at the input has another level.
 * @bank: the counters.
 * @level: its level.
 * @at: the instant.
 */
void bank_wire(struct bank *bank, bool level, int64_t at)
{
	bool rises = level && !bank->wire;

	bank_settle(bank, at);
	/* An edge that opens a gate is counted, one that closes it is not. */
	bank->wire = level;
	if (rises)
		pulse(bank, BANK_WIRE, 3, at);
	arm(bank);
}

/**
 * bank_output() - the card's OUTPUT has this level.
 * @bank: the counters.
 * @level: its level.
 * @at: the instant.
 */
void bank_output(struct bank *bank, bool level, int64_t at)
{
	bank_settle(bank, at);
	bank->output = level;
	if (bank->select == SELECT_OUTPUT)
		lab_drive(bank->card, level, at);
	arm(bank);
}

/**
 * bank_end_of_count() - the card's timer is at the end of its count.
 * @bank: the counters.
 * @at: the instant.
 */
void bank_end_of_count(struct bank *bank, int64_t at)
{
	bank_settle(bank, at);
	pulse(bank, BANK_TIMER, 1, at);
	if (bank->select == SELECT_TIMER) {
		lab_drive(bank->card, true, at);
		lab_drive(bank->card, false, at);
	}
	arm(bank);
}

/**
 * bank_trigger() - the card's master has triggered.
 * @bank: the counters.
 * @at: the instant.
 */
void bank_trigger(struct bank *bank, int64_t at)
{
	bank_settle(bank, at);
	pulse(bank, BANK_NONE, 2, at);
}

/**
 * bank_hold() - holds all counts.
 * @bank: the counters.
 * @at: the instant.
 */
void bank_hold(struct bank *bank, int64_t at)
{
	unsigned int i;

	bank_settle(bank, at);
	for (i = 0; i < BANK_COUNTERS; i++)
		bank->counters[i].held = bank->counters[i].count;
}

static uint32_t levels(const struct bank *bank)
{
	uint32_t levels = bank->wire ? 1U << 8 : 0;
	unsigned int i;

	for (i = 0; i < BANK_COUNTERS; i++)
		levels |= (uint32_t)bank->counters[i].output << i;
	return levels;
}

/* What drives the card's output now. */
static bool selected(const struct bank *bank)
{
	if (bank->select >= SELECT_COUNTER)
		return bank->counters[bank->select - SELECT_COUNTER].output;
	return bank->select == SELECT_OUTPUT && bank->output;
}

static uint32_t counter_read(const struct bank_counter *counter, hwaddr offset)
{
	switch (offset) {
	case COUNT:
		return counter->count;
	case CONTROL:
		return counter->control;
	case PRESCALER:
		return counter->prescaler;
	case COMPARE:
		return counter->compare;
	case LATCHED:
		return counter->latched;
	case HELD:
		return counter->held;
	case MATCHES:
		return counter->matches;
	}
	return 0;
}

/**
 * bank_read() - reads a register.
 * @bank: the counters.
 * @offset: of the register in BAR 0.
 * @now: the time.
 *
 * Return: its value.
 */
uint32_t bank_read(struct bank *bank, hwaddr offset, int64_t now)
{
	bank_settle(bank, now);
	if (offset < CAUSES)
		return counter_read(&bank->counters[(offset - BANK_FIRST) / STRIDE], offset % STRIDE);
	switch (offset) {
	case CAUSES:
		return bank->causes;
	case ENABLE:
		return bank->enabled;
	case LEVELS:
		return levels(bank);
	case SELECT:
		return bank->select;
	case APPEARED:
		return bank->appeared;
	case MERGED:
		return bank->merged;
	}
	return 0;
}

static void counter_write(struct bank_counter *counter, hwaddr offset, uint32_t value)
{
	switch (offset) {
	case COUNT:
		counter->count = value;
		counter->rest = 0;
		break;
	case CONTROL:
		counter->control = value & CONTROL_BITS;
		counter->rest = 0;
		break;
	case PRESCALER:
		counter->prescaler = value;
		counter->rest = 0;
		break;
	case COMPARE:
		counter->compare = value;
		break;
	}
}

/**
 * bank_write() - writes a register.
 * @bank: the counters.
 * @offset: of the register in BAR 0.
 * @value: what to write.
 * @now: the time.
 */
void bank_write(struct bank *bank, hwaddr offset, uint32_t value, int64_t now)
{
	bank_settle(bank, now);
	if (offset < CAUSES)
		counter_write(&bank->counters[(offset - BANK_FIRST) / STRIDE], offset % STRIDE, value);
	switch (offset) {
	case CAUSES:
		bank->causes &= ~value;
		lab_causes(bank->card, bank->causes, false);
		break;
	case ENABLE:
		bank->enabled |= value & CAUSE_BITS;
		break;
	case DISABLE:
		bank->enabled &= ~value;
		break;
	case SELECT:
		bank->select = MIN(value, SELECT_COUNTER + BANK_COUNTERS - 1);
		lab_drive(bank->card, selected(bank), now);
		break;
	}
	arm(bank);
}

/**
 * bank_clear() - zeroes what is counted of matches and causes, and lowers the outputs.
 * @bank: the counters.
 */
void bank_clear(struct bank *bank)
{
	unsigned int i;

	for (i = 0; i < BANK_COUNTERS; i++) {
		bank->counters[i].matches = 0;
		bank->counters[i].output = false;
	}
	bank->appeared = 0;
	bank->merged = 0;
	lab_drive(bank->card, selected(bank), lab_now());
}

/**
 * bank_reset() - the machine was reset.
 * @bank: the counters.
 */
void bank_reset(struct bank *bank)
{
	unsigned int i;

	bank_settle(bank, lab_now());
	for (i = 0; i < BANK_COUNTERS; i++) {
		bank->counters[i].control = 0;
		bank->counters[i].prescaler = 0;
		bank->counters[i].rest = 0;
		bank->counters[i].compare = 0;
	}
	bank->causes = 0;
	bank->enabled = 0;
	bank->select = SELECT_OUTPUT;
	lab_causes(bank->card, false, false);
	timer_del(bank->timer);
}

/**
 * bank_init() - makes the counters of a card.
 * @bank: the counters.
 * @card: the card.
 */
void bank_init(struct bank *bank, LabCard *card)
{
	bank->card = card;
	bank->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, is_due, bank);
}

/**
 * bank_free() - the card goes.
 * @bank: the counters.
 */
void bank_free(struct bank *bank)
{
	timer_free(bank->timer);
}
