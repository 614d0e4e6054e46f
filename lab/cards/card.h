/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the lab's cards have in common. They are devices of QEMU, compiled
 * against its headers and loaded into it: see docs/decisions/0014.
 *
 * BAR 0, little-endian, 32 bits each:
 *
 *	0x00 ID			RO	0x6c61_0000 | PCI device id
 *	0x04 IRQ_STATUS		RW1C	bit N: source N was raised, not acknowledged
 *	0x08 IRQ_ENABLE		RW1S	bit N: source N may interrupt
 *	0x0c IRQ_DISABLE	W1C	clears bits of IRQ_ENABLE
 *	0x10 SOFTWARE		WO	any value: raises source 3
 *	0x14 HOLD		WO	any value: all HELD registers, at this instant
 *	0x18 CLEAR		WO	bit 0: zeroes RAISED, COALESCED and TRIGGERS;
 *					bit 1: statistics of the card, if it has any
 *	0x1c TRIGGERS		RO	triggers that came from the master
 *	0x20 + 8 * N RAISED	RO	times that source N was raised while enabled
 *	0x24 + 8 * N COALESCED	RO	how many of those found their bit still in
 *					IRQ_STATUS, and so sent nothing
 *	0x40 ...			the card's own
 *
 * An interrupt that is enabled sets its bit in IRQ_STATUS. If it was clear, a
 * message goes out: with MSI-X, source N is vector N; without, the INTx line is
 * up as long as any bit is set. So each message is one that software can answer,
 * and RAISED = messages + COALESCED.
 *
 * Sources: 0 and 1 are the card's own, 2 is the trigger from the master, 3 is
 * SOFTWARE. "master=ID" makes another lab card the master: what triggers that
 * (a counter's end of count, an encoder's index, a conversion that is done)
 * triggers this one at the same instant.
 *
 * "wire=ID" puts a wire from another lab card's output to this card's input: a
 * lab-counter counts its pulses, and has gates and latches by it. A card's head
 * says what drives its output.
 *
 * A card may have causes besides: several that share one interrupt. IRQ_STATUS
 * bit 4 is set for as long as any of them is; each that appears sends the message
 * of vector 3. They are enabled and acknowledged in the card's own registers.
 *
 * All time is QEMU_CLOCK_VIRTUAL, in nanoseconds. Reads have no effects. A reset
 * of the machine, as when it wakes from suspend to RAM, disables a card's
 * interrupts, and a counter forgets what it was set up for. Counts stay.
 */
#ifndef LAB_CARD_H
#define LAB_CARD_H

#include "qemu/osdep.h"
#if __has_include("hw/pci/pci_device.h")
#include "hw/pci/pci_device.h"
#else
#include "hw/pci/pci.h"
#endif
#include "qemu/notify.h"
#include "qemu/timer.h"

#define LAB_VENDOR	0x1234
#define LAB_COUNTER_ID	0x1ab1
#define LAB_ENCODER_ID	0x1ab2
#define LAB_ADC_ID		0x1ab3
#define LAB_STOP_ID		0x1ab4

#define TYPE_LAB_CARD "lab-card"
OBJECT_DECLARE_TYPE(LabCard, LabCardClass, LAB_CARD)

enum lab_source {
	LAB_OWN,
	LAB_OWN_2,
	LAB_TRIGGER,
	LAB_SOFTWARE,
	LAB_SOURCES,
};

/* What shares one interrupt; IRQ_STATUS has it, and the card's own registers say what it is. */
#define LAB_CAUSES		(1U << LAB_SOURCES)
#define LAB_CAUSES_VECTOR	LAB_SOFTWARE

/* First of a card's own registers, and bytes of BAR 0. */
#define LAB_OWN_REGISTERS	0x40
#define LAB_BAR_SIZE		0x1000

/*
 * Timers and accesses run under QEMU's global lock, so nothing here needs another.
 */
struct LabCard {
	PCIDevice parent;
	MemoryRegion registers;
	uint32_t status;
	uint32_t enabled;
	uint32_t raised[LAB_SOURCES];
	uint32_t coalesced[LAB_SOURCES];
	uint32_t triggers;
	/* Whose triggers this card follows; NULL: nobody's. */
	LabCard *master;
	/* Our place in the master's list, and our own list. */
	Notifier slave;
	NotifierList slaves;
	/* The card whose output is our input; NULL: nothing is at the input. */
	LabCard *wire;
	/* Our place in its list, those at our output, and the output's level. */
	Notifier wired;
	NotifierList at_output;
	bool level;
};

/*
 * What a kind of card adds. "at" is the instant that is meant, which the clock
 * may have passed meanwhile; all but realize may be NULL.
 */
struct LabCardClass {
	PCIDeviceClass parent;
	void (*realize)(LabCard *card, Error **error);
	void (*unrealize)(LabCard *card);
	uint64_t (*read)(LabCard *card, hwaddr offset, unsigned int size);
	void (*write)(LabCard *card, hwaddr offset, uint32_t value);
	/* The master was triggered. */
	void (*trigger)(LabCard *card, int64_t at);
	/* What is at the input has this level from now on. */
	void (*wire)(LabCard *card, bool level, int64_t at);
	/* Does all that was due by then. */
	void (*settle)(LabCard *card, int64_t at);
	/* HOLD was written. */
	void (*hold)(LabCard *card, int64_t at);
	/* CLEAR was written with bit 1. */
	void (*clear)(LabCard *card);
	/* The machine was reset. */
	void (*reset)(LabCard *card);
};

/* The time. */
static inline int64_t lab_now(void)
{
	return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

void lab_raise(LabCard *card, enum lab_source source);
void lab_trigger_slaves(LabCard *card, int64_t at);
void lab_drive(LabCard *card, bool level, int64_t at);
void lab_settle_wire(LabCard *card, int64_t at);
void lab_causes(LabCard *card, bool any, bool appeared);

#endif
