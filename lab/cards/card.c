// SPDX-License-Identifier: GPL-2.0-only
/* The part that all cards of the lab have; card.h describes it. */
#include "card.h"

#include "hw/pci/msix.h"
#include "hw/qdev-properties.h"
#include "qapi/error.h"
#include "qemu/module.h"

enum {
	ID		= 0x00,
	IRQ_STATUS	= 0x04,
	IRQ_ENABLE	= 0x08,
	IRQ_DISABLE	= 0x0c,
	SOFTWARE	= 0x10,
	HOLD		= 0x14,
	CLEAR		= 0x18,
	TRIGGERS	= 0x1c,
	COUNTS		= 0x20,
};

#define MSIX_BAR	4
#define ALL_SOURCES	((1U << LAB_SOURCES) - 1)

static void line(LabCard *card)
{
	pci_set_irq(&card->parent, card->status && !msix_enabled(&card->parent));
}

/**
 * lab_raise() - interrupts, if that is enabled.
 * @card: the card.
 * @source: which interrupt.
 */
void lab_raise(LabCard *card, enum lab_source source)
{
	uint32_t bit = 1U << source;

	if (!(card->enabled & bit))
		return;
	card->raised[source]++;
	if (card->status & bit) {
		card->coalesced[source]++;
		return;
	}
	card->status |= bit;
	if (msix_enabled(&card->parent))
		msix_notify(&card->parent, source);
	else
		line(card);
}

/**
 * lab_trigger_slaves() - triggers the cards that have this one as their master.
 * @card: the master.
 * @at: the instant.
 */
void lab_trigger_slaves(LabCard *card, int64_t at)
{
	notifier_list_notify(&card->slaves, &at);
}

/**
 * lab_causes() - interrupts by what shares one interrupt.
 * @card: the card.
 * @any: whether there is a cause that was not acknowledged.
 * @appeared: whether one has appeared, which was not there before.
 */
void lab_causes(LabCard *card, bool any, bool appeared)
{
	card->status = any ? card->status | LAB_CAUSES : card->status & ~LAB_CAUSES;
	if (!msix_enabled(&card->parent))
		line(card);
	else if (appeared)
		msix_notify(&card->parent, LAB_CAUSES_VECTOR);
}

/* A wire's level, and when it has it. */
struct drive {
	bool level;
	int64_t at;
};

/**
 * lab_drive() - drives the card's output, to which other cards may be wired.
 * @card: the card.
 * @level: the output's level.
 * @at: the instant.
 */
void lab_drive(LabCard *card, bool level, int64_t at)
{
	struct drive drive = { .level = level, .at = at };

	if (card->level == level)
		return;
	card->level = level;
	notifier_list_notify(&card->at_output, &drive);
}

/**
 * lab_settle_wire() - lets the card at the input do what was due.
 * @card: the card.
 * @at: until then.
 */
void lab_settle_wire(LabCard *card, int64_t at)
{
	if (card->wire && LAB_CARD_GET_CLASS(card->wire)->settle)
		LAB_CARD_GET_CLASS(card->wire)->settle(card->wire, at);
}

static void driven(Notifier *wired, void *data)
{
	LabCard *card = container_of(wired, LabCard, wired);
	struct drive *drive = data;

	if (LAB_CARD_GET_CLASS(card)->wire)
		LAB_CARD_GET_CLASS(card)->wire(card, drive->level, drive->at);
}

static void triggered(Notifier *slave, void *at)
{
	LabCard *card = container_of(slave, LabCard, slave);

	card->triggers++;
	if (LAB_CARD_GET_CLASS(card)->trigger)
		LAB_CARD_GET_CLASS(card)->trigger(card, *(int64_t *)at);
	lab_raise(card, LAB_TRIGGER);
}

static uint64_t card_read(void *opaque, hwaddr offset, unsigned int size)
{
	LabCard *card = opaque;
	LabCardClass *kind = LAB_CARD_GET_CLASS(card);

	if (offset >= LAB_OWN_REGISTERS)
		return kind->read(card, offset, size);
	if (offset >= COUNTS) {
		unsigned int source = (offset - COUNTS) / 8;

		return offset % 8 ? card->coalesced[source] : card->raised[source];
	}
	switch (offset) {
	case ID:
		return 0x6c610000 | PCI_DEVICE_CLASS(kind)->device_id;
	case IRQ_STATUS:
		return card->status;
	case IRQ_ENABLE:
		return card->enabled;
	case TRIGGERS:
		return card->triggers;
	}
	return 0;
}

static void clear(LabCard *card, uint32_t what)
{
	LabCardClass *kind = LAB_CARD_GET_CLASS(card);

	if (what & 1) {
		memset(card->raised, 0, sizeof(card->raised));
		memset(card->coalesced, 0, sizeof(card->coalesced));
		card->triggers = 0;
	}
	if (what & 2 && kind->clear)
		kind->clear(card);
}

static void card_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
	LabCard *card = opaque;
	LabCardClass *kind = LAB_CARD_GET_CLASS(card);

	if (offset >= LAB_OWN_REGISTERS) {
		kind->write(card, offset, value);
		return;
	}
	switch (offset) {
	case IRQ_STATUS:
		card->status &= ~(value & ALL_SOURCES);
		line(card);
		break;
	case IRQ_ENABLE:
		card->enabled |= value & ALL_SOURCES;
		break;
	case IRQ_DISABLE:
		card->enabled &= ~value;
		break;
	case SOFTWARE:
		lab_raise(card, LAB_SOFTWARE);
		break;
	case HOLD:
		if (kind->hold)
			kind->hold(card, lab_now());
		break;
	case CLEAR:
		clear(card, value);
		break;
	}
}

static const MemoryRegionOps registers = {
	.read		= card_read,
	.write		= card_write,
	.endianness	= DEVICE_LITTLE_ENDIAN,
	/* 16 bits for the converter's. */
	.valid		= { .min_access_size = 2, .max_access_size = 4 },
	.impl		= { .min_access_size = 2, .max_access_size = 4 },
};

static void card_realize(PCIDevice *pci, Error **error)
{
	LabCard *card = LAB_CARD(pci);
	Error *why = NULL;
	unsigned int i;

	pci_config_set_interrupt_pin(pci->config, 1);
	memory_region_init_io(&card->registers, OBJECT(card), &registers, card, "lab-card", LAB_BAR_SIZE);
	pci_register_bar(pci, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &card->registers);
	if (msix_init_exclusive_bar(pci, LAB_SOURCES, MSIX_BAR, error) < 0)
		return;
	for (i = 0; i < LAB_SOURCES; i++)
		msix_vector_use(pci, i);
	LAB_CARD_GET_CLASS(card)->realize(card, &why);
	if (why) {
		msix_uninit_exclusive_bar(pci);
		error_propagate(error, why);
		return;
	}
	if (card->master)
		notifier_list_add(&card->master->slaves, &card->slave);
	if (card->wire)
		notifier_list_add(&card->wire->at_output, &card->wired);
}

static void card_exit(PCIDevice *pci)
{
	LabCard *card = LAB_CARD(pci);
	LabCardClass *kind = LAB_CARD_GET_CLASS(card);

	if (card->master)
		notifier_remove(&card->slave);
	if (card->wire)
		notifier_remove(&card->wired);
	if (kind->unrealize)
		kind->unrealize(card);
	pci_set_irq(pci, 0);
	msix_uninit_exclusive_bar(pci);
}

static void card_reset(DeviceState *device)
{
	LabCard *card = LAB_CARD(device);

	card->status = 0;
	card->enabled = 0;
	line(card);
	if (LAB_CARD_GET_CLASS(card)->reset)
		LAB_CARD_GET_CLASS(card)->reset(card);
}

static void card_init(Object *object)
{
	LabCard *card = LAB_CARD(object);

	notifier_list_init(&card->slaves);
	card->slave.notify = triggered;
	notifier_list_init(&card->at_output);
	card->wired.notify = driven;
}

static Property properties[] = {
	/* The link keeps the master in memory, should that be unplugged first. */
	DEFINE_PROP_LINK("master", LabCard, master, TYPE_LAB_CARD, LabCard *),
	DEFINE_PROP_LINK("wire", LabCard, wire, TYPE_LAB_CARD, LabCard *),
	DEFINE_PROP_END_OF_LIST(),
};

static void card_class_init(ObjectClass *class, void *data)
{
	PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);

	pci->realize = card_realize;
	pci->exit = card_exit;
	pci->vendor_id = LAB_VENDOR;
	pci->class_id = PCI_CLASS_OTHERS;
	set_bit(DEVICE_CATEGORY_MISC, DEVICE_CLASS(class)->categories);
	DEVICE_CLASS(class)->reset = card_reset;
	device_class_set_props(DEVICE_CLASS(class), properties);
}

static const TypeInfo card_type = {
	.name		= TYPE_LAB_CARD,
	.parent		= TYPE_PCI_DEVICE,
	.instance_size	= sizeof(LabCard),
	.instance_init	= card_init,
	.class_size	= sizeof(LabCardClass),
	.class_init	= card_class_init,
	.abstract	= true,
	.interfaces	= (InterfaceInfo[]) {
		{ INTERFACE_CONVENTIONAL_PCI_DEVICE },
		{ }
	},
};

static void register_card(void)
{
	type_register_static(&card_type);
}

type_init(register_card)
