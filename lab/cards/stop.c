// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-stop: makes the machine's CPU stand still, as a host does that gives the
 * time of a virtual CPU to others: time passes, and no instruction is executed.
 *
 * BAR 0 (after card.h; 32 bits):
 *
 *	0x40 LENGTH	RW	ns that the CPU stands still, 300000 at first
 *	0x44 AFTER	WO	so many ns later it does, once
 *	0x48 STOPS	RO	times that it did
 *
 * For machines with -icount and shift=0 only, where an instruction is a
 * nanosecond: so many are accounted for as if they had been executed. Elsewhere
 * time is the host's, which nobody can make jump.
 */
#include "card.h"

#include "hw/core/cpu.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "sysemu/cpu-timers.h"

#define TYPE_LAB_STOP "lab-stop"
OBJECT_DECLARE_SIMPLE_TYPE(Stop, LAB_STOP)

enum {
	LENGTH		= 0x40,
	AFTER		= 0x44,
	STOPS		= 0x48,
};

struct Stop {
	LabCard parent;
	QEMUTimer *timer;
	uint32_t length;
	uint32_t stops;
};

/*
 * The CPU was given a budget of instructions, of which those that are left over
 * are not executed yet: what is added to the budget alone counts as executed.
 */
static void stand_still(void *opaque)
{
	Stop *stop = opaque;
	CPUState *cpu = first_cpu;

	cpu->icount_budget += stop->length;
	icount_update(cpu);
	stop->stops++;
}

static uint64_t stop_read(LabCard *card, hwaddr offset, unsigned int size)
{
	switch (offset) {
	case LENGTH:
		return LAB_STOP(card)->length;
	case STOPS:
		return LAB_STOP(card)->stops;
	}
	return 0;
}

static void stop_write(LabCard *card, hwaddr offset, uint32_t value)
{
	switch (offset) {
	case LENGTH:
		LAB_STOP(card)->length = value;
		break;
	case AFTER:
		timer_mod_ns(LAB_STOP(card)->timer, lab_now() + value);
		break;
	}
}

static void stop_realize(LabCard *card, Error **error)
{
	Stop *stop = LAB_STOP(card);

	if (!icount_enabled() || icount_to_ns(1) != 1) {
		error_setg(error, "lab-stop: the machine's time can be made to jump with -icount shift=0 only");
		return;
	}
	stop->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, stand_still, stop);
	stop->length = 300000;
}

static void stop_unrealize(LabCard *card)
{
	timer_free(LAB_STOP(card)->timer);
}

static void stop_class_init(ObjectClass *class, void *data)
{
	LabCardClass *kind = LAB_CARD_CLASS(class);

	PCI_DEVICE_CLASS(class)->device_id = LAB_STOP_ID;
	DEVICE_CLASS(class)->desc = "The lab's host that takes the CPU away";
	kind->realize = stop_realize;
	kind->unrealize = stop_unrealize;
	kind->read = stop_read;
	kind->write = stop_write;
}

static const TypeInfo stop_type = {
	.name		= TYPE_LAB_STOP,
	.parent		= TYPE_LAB_CARD,
	.instance_size	= sizeof(Stop),
	.class_init	= stop_class_init,
};

static void register_stop(void)
{
	type_register_static(&stop_type);
}

type_init(register_stop)
