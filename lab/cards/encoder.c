// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-encoder: position of an axis that turns at a constant speed.
 *
 * Position counts quadrature edges. At each multiple of RESOLUTION there is an
 * index pulse: it latches the position, raises source 0 and triggers the slaves,
 * at the instant at which the axis is there. There is none while they would come
 * faster than one a microsecond.
 *
 * The position is compared with COMPARE: when the axis comes to it, from either
 * side, source 1 is raised. The card's output, for other cards' wires, rises when
 * the axis comes to COMPARE from below, and falls when it comes from above.
 *
 * BAR 0 (after card.h; 32 bits):
 *
 *	0x40 POSITION	RW	signed; writing it sets where the axis is
 *	0x44 SPEED	RW	signed, in counts per second; 0 at first
 *	0x48 RESOLUTION	RW	counts of a revolution, 4096 at first; 0: no index
 *	0x4c INDEX	RO	index pulses
 *	0x50 LATCHED	RO	the position at the last index pulse, or trigger of
 *				the master
 *	0x54 HELD	RO	the position when HOLD was written
 *	0x58 SIGNALS	RO	bit 0: A, bit 1: B, bit 2: at an index
 *	0x5c SINCE	RO	ns, low half of the time of the last write to POSITION,
 *				SPEED or RESOLUTION. The axis has travelled
 *				|SPEED| * (time - SINCE) / 10^9 counts, rounded
 *				down, since then
 *	0x60 COMPARE	RW	signed
 *	0x64 CONTROL	RW	bit 0: it is compared
 *	0x68 MATCHES	RO	times that the axis came to COMPARE
 *	0x6c MATCHED	RO	ns, low half of the time of the last one
 *
 * CLEAR bit 1 zeroes INDEX and MATCHES.
 */
#include "card.h"

#include "qemu/module.h"

#define TYPE_LAB_ENCODER "lab-encoder"
OBJECT_DECLARE_SIMPLE_TYPE(Encoder, LAB_ENCODER)

/* ns from one index pulse to the next, at least; an axis that turns faster has none. */
#define PULSE_MIN	1000

enum {
	POSITION	= 0x40,
	SPEED		= 0x44,
	RESOLUTION	= 0x48,
	INDEX		= 0x4c,
	LATCHED		= 0x50,
	HELD		= 0x54,
	SIGNALS		= 0x58,
	SINCE		= 0x5c,
	COMPARE		= 0x60,
	CONTROL		= 0x64,
	MATCHES		= 0x68,
	MATCHED		= 0x6c,
};

struct Encoder {
	LabCard parent;
	QEMUTimer *timer;
	/* Where the axis was at "since". */
	int64_t base;
	int64_t since;
	int32_t speed;
	uint32_t resolution;
	uint32_t index;
	int32_t latched;
	int32_t held;
	/* Counts travelled at the next index pulse; 0: there is none. */
	uint64_t next;
	int32_t compare;
	bool compares;
	uint32_t matches;
	int64_t matched;
	/* Counts travelled when the axis comes to COMPARE; 0: it does not. */
	uint64_t coming;
};

static uint64_t pace(const Encoder *encoder)
{
	return encoder->speed < 0 ? -(int64_t)encoder->speed : encoder->speed;
}

static int64_t position(const Encoder *encoder, int64_t at)
{
	int64_t travelled = (__int128)pace(encoder) * (at - encoder->since) / NANOSECONDS_PER_SECOND;

	return encoder->base + (encoder->speed < 0 ? -travelled : travelled);
}

/* When the axis will have travelled so far. */
static int64_t when(const Encoder *encoder, uint64_t travelled)
{
	__int128 ns = (__int128)travelled * NANOSECONDS_PER_SECOND;

	return encoder->since + (ns + pace(encoder) - 1) / pace(encoder);
}

static void drive(Encoder *encoder, int64_t at)
{
	int64_t is = position(encoder, at) - encoder->compare;

	lab_drive(&encoder->parent, encoder->compares && (is > 0 || (!is && encoder->speed >= 0)), at);
}

/* All index pulses and the match up to now: QEMU may be late, and for more than one. */
static void catch_up(Encoder *encoder, int64_t now)
{
	int64_t pulse, match;

	for (;;) {
		pulse = encoder->next ? when(encoder, encoder->next) : INT64_MAX;
		match = encoder->coming ? when(encoder, encoder->coming) : INT64_MAX;
		if (MIN(pulse, match) > now)
			break;
		if (match <= pulse) {
			encoder->coming = 0;
			encoder->matches++;
			encoder->matched = match;
			drive(encoder, match);
			lab_raise(&encoder->parent, LAB_OWN_2);
			continue;
		}
		encoder->next += encoder->resolution;
		encoder->index++;
		encoder->latched = position(encoder, pulse);
		lab_raise(&encoder->parent, LAB_OWN);
		lab_trigger_slaves(&encoder->parent, pulse);
	}
	if (MIN(pulse, match) != INT64_MAX)
		timer_mod_ns(encoder->timer, MIN(pulse, match));
}

static void index_pulse(void *opaque)
{
	catch_up(opaque, lab_now());
}

/* Counts to travel to the next index pulse from there; 0: there is none. */
static uint64_t to_index(const Encoder *encoder, int64_t from)
{
	int64_t resolution = encoder->resolution, beyond;

	if (!resolution || !encoder->speed ||
	    (__int128)resolution * NANOSECONDS_PER_SECOND < (__int128)pace(encoder) * PULSE_MIN)
		return 0;
	/* 0 <= beyond < resolution: how far it is beyond the multiple below. */
	beyond = (from % resolution + resolution) % resolution;
	if (encoder->speed > 0)
		return resolution - beyond;
	return beyond ? beyond : resolution;
}

/* Counts to travel from there to COMPARE; 0: the axis does not come to it. */
static uint64_t to_compare(const Encoder *encoder, int64_t from)
{
	int64_t ahead = encoder->speed < 0 ? from - encoder->compare : encoder->compare - from;

	return encoder->compares && encoder->speed ? MAX(ahead, 0) : 0;
}

/* COMPARE is another one; the axis goes on as it does. */
static void compare(Encoder *encoder, int64_t now)
{
	uint64_t travelled = llabs(position(encoder, now) - encoder->base);
	uint64_t more = to_compare(encoder, position(encoder, now));

	encoder->coming = more ? travelled + more : 0;
	drive(encoder, now);
	catch_up(encoder, now);
}

/* From where it is, the axis goes on as it was told to. */
static void go_on(Encoder *encoder, int64_t from, int64_t now)
{
	encoder->base = from;
	encoder->since = now;
	encoder->next = to_index(encoder, from);
	encoder->coming = to_compare(encoder, from);
	timer_del(encoder->timer);
	drive(encoder, now);
	catch_up(encoder, now);
}

static uint32_t signals(const Encoder *encoder, int64_t at)
{
	int64_t is = position(encoder, at);
	uint32_t a = is >> 1 & 1, b = (is + 1) >> 1 & 1;

	return a | b << 1 | (encoder->resolution && is % encoder->resolution == 0) << 2;
}

static uint64_t encoder_read(LabCard *card, hwaddr offset, unsigned int size)
{
	Encoder *encoder = LAB_ENCODER(card);
	int64_t now = lab_now();

	catch_up(encoder, now);
	switch (offset) {
	case POSITION:
		return (uint32_t)position(encoder, now);
	case SPEED:
		return (uint32_t)encoder->speed;
	case RESOLUTION:
		return encoder->resolution;
	case INDEX:
		return encoder->index;
	case LATCHED:
		return (uint32_t)encoder->latched;
	case HELD:
		return (uint32_t)encoder->held;
	case SIGNALS:
		return signals(encoder, now);
	case SINCE:
		return (uint32_t)encoder->since;
	case COMPARE:
		return (uint32_t)encoder->compare;
	case CONTROL:
		return encoder->compares;
	case MATCHES:
		return encoder->matches;
	case MATCHED:
		return (uint32_t)encoder->matched;
	}
	return 0;
}

static void encoder_write(LabCard *card, hwaddr offset, uint32_t value)
{
	Encoder *encoder = LAB_ENCODER(card);
	int64_t now = lab_now(), from;

	catch_up(encoder, now);
	from = position(encoder, now);
	switch (offset) {
	case POSITION:
		from = (int32_t)value;
		break;
	case SPEED:
		encoder->speed = (int32_t)value;
		break;
	case RESOLUTION:
		encoder->resolution = value;
		break;
	case COMPARE:
		encoder->compare = (int32_t)value;
		compare(encoder, now);
		return;
	case CONTROL:
		encoder->compares = value & 1;
		compare(encoder, now);
		return;
	default:
		return;
	}
	go_on(encoder, from, now);
}

static void trigger(LabCard *card, int64_t at)
{
	Encoder *encoder = LAB_ENCODER(card);

	catch_up(encoder, at);
	encoder->latched = position(encoder, at);
}

static void hold(LabCard *card, int64_t at)
{
	Encoder *encoder = LAB_ENCODER(card);

	catch_up(encoder, at);
	encoder->held = position(encoder, at);
}

static void clear(LabCard *card)
{
	LAB_ENCODER(card)->index = 0;
	LAB_ENCODER(card)->matches = 0;
}

static void settle(LabCard *card, int64_t at)
{
	catch_up(LAB_ENCODER(card), at);
}

static void encoder_realize(LabCard *card, Error **error)
{
	Encoder *encoder = LAB_ENCODER(card);

	encoder->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, index_pulse, encoder);
	encoder->resolution = 4096;
}

static void encoder_unrealize(LabCard *card)
{
	timer_free(LAB_ENCODER(card)->timer);
}

static void encoder_class_init(ObjectClass *class, void *data)
{
	LabCardClass *kind = LAB_CARD_CLASS(class);

	PCI_DEVICE_CLASS(class)->device_id = LAB_ENCODER_ID;
	DEVICE_CLASS(class)->desc = "The lab's quadrature encoder";
	kind->realize = encoder_realize;
	kind->unrealize = encoder_unrealize;
	kind->read = encoder_read;
	kind->write = encoder_write;
	kind->trigger = trigger;
	kind->settle = settle;
	kind->hold = hold;
	kind->clear = clear;
}

static const TypeInfo encoder_type = {
	.name		= TYPE_LAB_ENCODER,
	.parent		= TYPE_LAB_CARD,
	.instance_size	= sizeof(Encoder),
	.class_init	= encoder_class_init,
};

static void register_encoder(void)
{
	type_register_static(&encoder_type);
}

type_init(register_encoder)
