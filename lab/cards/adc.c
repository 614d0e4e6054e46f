// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-adc: four signed 16-bit channels, read at once or converted.
 *
 * What lies at the inputs at time t, in ns:
 *
 *	channel 1	a ramp, up by one each microsecond: the low 16 bits of t / 1000
 *	channel 2	a triangle of the same period, 65.536 ms, between -32768 and 32767
 *	channel 3	a square, 16384 for a millisecond, then -16384 for one
 *	channel 4	-12345
 *
 * A conversion takes what is there when it begins, and is done some time later:
 * then it is in SAMPLE, raises source 0 and triggers the slaves. It begins when
 * START is written, and at a trigger of the master; one that would begin while
 * another goes on is left out, and counted. HOLD converts in no time, and raises
 * nothing.
 *
 * BAR 0 (after card.h):
 *
 *	0x40 CH1 .. 0x46 CH4		RO	16 bits each, now
 *	0x48 SAMPLE1 .. 0x4e SAMPLE4	RO	16 bits each, of the last conversion
 *	0x50 START	RW	16 bits; any value: begins. Reads as 1 while it converts
 *	0x54 DELAY	RW	32 bits: ns of a conversion, 5000 at first
 *	0x58 CONVERSIONS RO	32 bits: how many were done
 *	0x5c OVERRUNS	RO	32 bits: how many were left out
 *	0x60 SAMPLED	RO	32 bits: ns, low half of the time of SAMPLE
 *
 *	0x64 FIFO_CONTROL RW	32 bits, bit 0: conversions go into the FIFO; bit 1: it
 *				interrupts while it is not empty. WO: bit 2: empties it
 *	0x68 FIFO_COUNT	RO	32 bits: how many are in it, 16 at the most
 *	0x6c FIFO_LOST	RO	32 bits: conversions that found it full, and are lost
 *	0x70 FIFO1 .. 0x76 FIFO4	RO	16 bits each, of the oldest conversion in it
 *	0x78 FIFO_SAMPLED RO	32 bits: ns, low half of its time
 *	0x7c FIFO_NEXT	WO	32 bits: any value: the oldest one is dropped
 *	0x80 FIFO_STATUS RW1C	32 bits, bit 2: one was lost. RO: bit 0: the FIFO is
 *				not empty; bit 1: it is full
 *
 * Two neighbours can be read by one access of 32 bits. CLEAR bit 1 zeroes
 * CONVERSIONS, OVERRUNS and FIFO_LOST, and empties the FIFO. Source 1 is raised by
 * a conversion that was lost, if none was lost since FIFO_STATUS was written. The
 * FIFO's own interrupt is bit 4 of IRQ_STATUS, and shares the vector of software;
 * by MSI-X it comes again whenever one was dropped and others are left.
 */
#include "card.h"

#include "qemu/module.h"

#define TYPE_LAB_ADC "lab-adc"
OBJECT_DECLARE_SIMPLE_TYPE(Adc, LAB_ADC)

enum {
	CH1		= 0x40,
	SAMPLE1		= 0x48,
	START		= 0x50,
	DELAY		= 0x54,
	CONVERSIONS	= 0x58,
	OVERRUNS	= 0x5c,
	SAMPLED		= 0x60,
	FIFO_CONTROL	= 0x64,
	FIFO_COUNT	= 0x68,
	FIFO_LOST	= 0x6c,
	FIFO1		= 0x70,
	FIFO_SAMPLED	= 0x78,
	FIFO_NEXT	= 0x7c,
	FIFO_STATUS	= 0x80,
};

#define DEPTH		16

/* FIFO_CONTROL. */
#define TAKES		(1U << 0)
#define INTERRUPTS	(1U << 1)
#define EMPTIES		(1U << 2)

/* FIFO_STATUS. */
#define HAS		(1U << 0)
#define FULL		(1U << 1)
#define LOST		(1U << 2)

/* Conversions that nobody has read, by their times: what was at the inputs follows. */
struct fifo {
	uint32_t control;
	bool losing;
	uint32_t lost;
	unsigned int first;
	unsigned int count;
	int64_t times[DEPTH];
};

struct Adc {
	LabCard parent;
	QEMUTimer *timer;
	bool converting;
	/* When the conversion that goes on has begun, and will be done. */
	int64_t begun;
	int64_t done;
	/* The time of which SAMPLE is. */
	int64_t sampled;
	uint32_t delay;
	uint32_t conversions;
	uint32_t overruns;
	struct fifo fifo;
};

static int16_t at_input(unsigned int channel, int64_t at)
{
	uint16_t ramp = at / 1000;

	switch (channel) {
	case 0:
		return ramp;
	case 1:
		return ramp < 0x8000 ? 2 * ramp - 0x8000 : 0x17fff - 2 * ramp;
	case 2:
		return at / 1000000 % 2 ? -16384 : 16384;
	default:
		return -12345;
	}
}

/* Whether there is an interrupt of the FIFO; and whether there is one anew. */
static void tell(Adc *adc, bool anew)
{
	bool any = (adc->fifo.control & INTERRUPTS) && adc->fifo.count;

	lab_causes(&adc->parent, any, any && anew);
}

static void put(Adc *adc, int64_t at)
{
	struct fifo *fifo = &adc->fifo;

	if (!(fifo->control & TAKES))
		return;
	if (fifo->count < DEPTH) {
		fifo->times[(fifo->first + fifo->count++) % DEPTH] = at;
		tell(adc, fifo->count == 1);
		return;
	}
	fifo->lost++;
	if (!fifo->losing)
		lab_raise(&adc->parent, LAB_OWN_2);
	fifo->losing = true;
}

static void drop(Adc *adc)
{
	struct fifo *fifo = &adc->fifo;

	if (!fifo->count)
		return;
	fifo->count--;
	fifo->first = (fifo->first + 1) % DEPTH;
	tell(adc, true);
}

static uint32_t status(const struct fifo *fifo)
{
	return (fifo->count ? HAS : 0) | (fifo->count == DEPTH ? FULL : 0) | (fifo->losing ? LOST : 0);
}

static void catch_up(Adc *adc, int64_t now)
{
	if (!adc->converting || now < adc->done)
		return;
	adc->converting = false;
	adc->sampled = adc->begun;
	adc->conversions++;
	put(adc, adc->begun);
	timer_del(adc->timer);
	lab_raise(&adc->parent, LAB_OWN);
	lab_trigger_slaves(&adc->parent, adc->done);
}

static void is_done(void *opaque)
{
	catch_up(opaque, lab_now());
}

static void convert(LabCard *card, int64_t at)
{
	Adc *adc = LAB_ADC(card);

	catch_up(adc, at);
	if (adc->converting) {
		adc->overruns++;
		return;
	}
	adc->converting = true;
	adc->begun = at;
	adc->done = at + adc->delay;
	timer_mod_ns(adc->timer, adc->done);
}

static void hold(LabCard *card, int64_t at)
{
	catch_up(LAB_ADC(card), at);
	LAB_ADC(card)->sampled = at;
}

/* 0 of an empty FIFO. */
static uint16_t channel_read(const Adc *adc, hwaddr offset, int64_t now)
{
	const struct fifo *fifo = &adc->fifo;

	if (offset >= FIFO1)
		return fifo->count ? at_input(offset % 8 / 2, fifo->times[fifo->first]) : 0;
	return at_input(offset % 8 / 2, offset < SAMPLE1 ? now : adc->sampled);
}

static uint64_t adc_read(LabCard *card, hwaddr offset, unsigned int size)
{
	Adc *adc = LAB_ADC(card);
	int64_t now = lab_now();
	uint32_t next;

	catch_up(adc, now);
	if (offset < START || (offset >= FIFO1 && offset < FIFO_SAMPLED)) {
		next = size == 4 ? channel_read(adc, offset + 2, now) : 0;
		return channel_read(adc, offset, now) | next << 16;
	}
	switch (offset) {
	case START:
		return adc->converting;
	case DELAY:
		return adc->delay;
	case CONVERSIONS:
		return adc->conversions;
	case OVERRUNS:
		return adc->overruns;
	case SAMPLED:
		return (uint32_t)adc->sampled;
	case FIFO_CONTROL:
		return adc->fifo.control;
	case FIFO_COUNT:
		return adc->fifo.count;
	case FIFO_LOST:
		return adc->fifo.lost;
	case FIFO_SAMPLED:
		return adc->fifo.count ? (uint32_t)adc->fifo.times[adc->fifo.first] : 0;
	case FIFO_STATUS:
		return status(&adc->fifo);
	}
	return 0;
}

static void adc_write(LabCard *card, hwaddr offset, uint32_t value)
{
	Adc *adc = LAB_ADC(card);

	switch (offset) {
	case START:
		convert(card, lab_now());
		break;
	case DELAY:
		adc->delay = value;
		break;
	case FIFO_CONTROL:
		catch_up(adc, lab_now());
		adc->fifo.control = value & (TAKES | INTERRUPTS);
		if (value & EMPTIES)
			adc->fifo.count = 0;
		tell(adc, true);
		break;
	case FIFO_NEXT:
		catch_up(adc, lab_now());
		drop(adc);
		break;
	case FIFO_STATUS:
		if (value & LOST)
			adc->fifo.losing = false;
		break;
	}
}

static void clear(LabCard *card)
{
	Adc *adc = LAB_ADC(card);

	adc->conversions = 0;
	adc->overruns = 0;
	adc->fifo = (struct fifo) { .control = adc->fifo.control };
	tell(adc, false);
}

static void reset(LabCard *card)
{
	LAB_ADC(card)->fifo.control &= ~INTERRUPTS;
}

static void adc_realize(LabCard *card, Error **error)
{
	Adc *adc = LAB_ADC(card);

	adc->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, is_done, adc);
	adc->delay = 5000;
}

static void adc_unrealize(LabCard *card)
{
	timer_free(LAB_ADC(card)->timer);
}

static void adc_class_init(ObjectClass *class, void *data)
{
	LabCardClass *kind = LAB_CARD_CLASS(class);

	PCI_DEVICE_CLASS(class)->device_id = LAB_ADC_ID;
	DEVICE_CLASS(class)->desc = "The lab's analogue to digital converter";
	kind->realize = adc_realize;
	kind->unrealize = adc_unrealize;
	kind->read = adc_read;
	kind->write = adc_write;
	kind->trigger = convert;
	kind->hold = hold;
	kind->clear = clear;
	kind->reset = reset;
}

static const TypeInfo adc_type = {
	.name		= TYPE_LAB_ADC,
	.parent		= TYPE_LAB_CARD,
	.instance_size	= sizeof(Adc),
	.class_init	= adc_class_init,
};

static void register_adc(void)
{
	type_register_static(&adc_type);
}

type_init(register_adc)
