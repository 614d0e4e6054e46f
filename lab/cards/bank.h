/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Six counters of a lab-counter, as boards of counters have them.
 *
 * BAR 0 of the card, counter N at 0x100 + 0x20 * N (32 bits):
 *
 *	+0x00 COUNT	RW	wraps after 0xffffffff
 *	+0x04 CONTROL	RW	bits 1:0: what is counted. 0: nothing; 1: the clock,
 *				one a microsecond; 2: rising edges at the wire;
 *				3: the timer's ends of count
 *				bits 3:2: while. 0: always; 1: OUTPUT is high;
 *				2: the wire is high; 3: the wire is low
 *				bits 5:4: when it is latched. 0: never; 1: at an end
 *				of count; 2: at the master's trigger; 3: at a rising
 *				edge of the wire
 *				bit 6: COMPARE is compared; bit 7: and a match
 *				zeroes COUNT
 *	+0x08 PRESCALER	RW	of so many and one, one is counted
 *	+0x0c COMPARE	RW	COUNT that is a match, when it is reached by counting
 *	+0x10 LATCHED	RO	COUNT when it was latched
 *	+0x14 HELD	RO	COUNT when HOLD was written
 *	+0x18 MATCHES	RO	matches; each turns the counter's output round
 *
 *	0x1c0 CAUSES	RW1C	bit N: a match of counter N; bit 8 + N: it wrapped
 *	0x1c4 ENABLE	RW1S	causes that interrupt (see card.h); others are not noted
 *	0x1c8 LEVELS	RO	bit N: the output of counter N; bit 8: the wire
 *	0x1cc SELECT	RW	what drives the card's output for other cards' wires:
 *				0: OUTPUT; 1: the end of count, a short pulse;
 *				2 + N: the output of counter N
 *	0x1d0 APPEARED	RO	causes that appeared, each with a message
 *	0x1d4 MERGED	RO	causes that were there already, not acknowledged
 *	0x1d8 DISABLE	W1C	clears bits of ENABLE
 *
 * CLEAR bit 1 zeroes MATCHES, APPEARED and MERGED, and lowers the outputs. A reset of the machine stops
 * the counters, and forgets what they were set up for. A COMPARE of 0 with bit 7
 * never matches.
 */
#ifndef LAB_BANK_H
#define LAB_BANK_H

#include "card.h"

#define BANK_FIRST	0x100
#define BANK_END	0x1e0
#define BANK_COUNTERS	6

/* What a counter may count, and be latched by. */
enum bank_pulse {
	BANK_NONE,
	BANK_CLOCK,
	BANK_WIRE,
	BANK_TIMER,
};

struct bank_counter {
	uint32_t count;
	uint32_t control;
	uint32_t prescaler;
	/* Pulses since the last one that was counted. */
	uint32_t rest;
	uint32_t compare;
	uint32_t latched;
	uint32_t held;
	uint32_t matches;
	bool output;
};

struct bank {
	LabCard *card;
	QEMUTimer *timer;
	struct bank_counter counters[BANK_COUNTERS];
	/* Up to here all pulses of the clock are counted: whole microseconds. */
	int64_t settled;
	uint32_t causes;
	uint32_t enabled;
	uint32_t select;
	uint32_t appeared;
	uint32_t merged;
	bool output;
	bool wire;
};

void bank_init(struct bank *bank, LabCard *card);
void bank_free(struct bank *bank);
void bank_reset(struct bank *bank);
void bank_clear(struct bank *bank);
void bank_settle(struct bank *bank, int64_t at);
void bank_hold(struct bank *bank, int64_t at);
void bank_trigger(struct bank *bank, int64_t at);
void bank_wire(struct bank *bank, bool level, int64_t at);
void bank_output(struct bank *bank, bool level, int64_t at);
void bank_end_of_count(struct bank *bank, int64_t at);
uint32_t bank_read(struct bank *bank, hwaddr offset, int64_t now);
void bank_write(struct bank *bank, hwaddr offset, uint32_t value, int64_t now);

#endif
