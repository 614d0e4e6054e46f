// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab-axi-timer: the AXI Timer of AMD (Xilinx), as its product guide PG079 says,
 * with a clock of 100 MHz. It has two timers of 32 bits; of their modes it has
 * the generate mode, without cascade, and neither capture nor PWM.
 *
 *	0x00 TCSR0	control and status of timer 0; timer 1 is at 0x10
 *	0x04 TLR0	what is loaded
 *	0x08 TCR0	the counter, read-only
 *
 * TCSR: bit 1 counts down; bit 4 loads again after a rollover, else the counter
 * holds; bit 5 loads the counter for as long as it is set; bit 6 enables the
 * interrupt; bit 7 enables the timer; bit 8 is the interrupt, cleared by writing
 * a one; bit 10 enables both timers. From one rollover to the next it takes
 * TLR + 2 clocks when counting down, 2^32 - 1 - TLR + 2 when counting up.
 */
#include "axi.h"

#include "qemu/module.h"

#define TYPE_AXI_TIMER "lab-axi-timer"
OBJECT_DECLARE_SIMPLE_TYPE(AxiTimer, AXI_TIMER)

#define CLOCK_NS	10
#define STRIDE		0x10

enum {
	TCSR	= 0x00,
	TLR	= 0x04,
	TCR	= 0x08,
};

#define DOWN		(1U << 1)
#define RELOADS		(1U << 4)
#define LOADS		(1U << 5)
#define INTERRUPTS	(1U << 6)
#define ENABLED		(1U << 7)
#define INTERRUPT	(1U << 8)
#define ENABLES_ALL	(1U << 10)
#define TCSR_BITS	0xfffU

struct half {
	AxiTimer *timer;
	QEMUTimer *due;
	uint32_t control;
	uint32_t load;
	/* The counter at the clock "since". */
	uint32_t count;
	int64_t since;
	/* It has rolled over, and the next clock loads it. */
	bool rolled;
	/* It has rolled over, and holds. */
	bool holds;
};

struct AxiTimer {
	PCIDevice parent;
	MemoryRegion registers;
	struct half halves[2];
	bool interrupt;
};

static void interrupt(AxiTimer *timer)
{
	const struct half *half = timer->halves;
	bool is = false;

	for (; half < timer->halves + 2; half++)
		is |= half->control & INTERRUPTS && half->control & INTERRUPT;
	axi_interrupt(&timer->parent, &timer->interrupt, is);
}

static bool counts(const struct half *half)
{
	return half->control & ENABLED && !(half->control & LOADS) && !half->holds;
}

/* Clocks from this count to the one before the rollover. */
static uint64_t span(const struct half *half, uint32_t count)
{
	return half->control & DOWN ? count : UINT32_MAX - count;
}

/* Counts so many clocks. */
static void advance(struct half *half, uint64_t clocks)
{
	bool down = half->control & DOWN;
	uint64_t period = span(half, half->load) + 2, left;

	while (clocks) {
		if (half->rolled) {
			half->rolled = false;
			half->count = half->load;
			clocks--;
			/* Whole periods only roll over again. */
			if (clocks >= period)
				half->control |= INTERRUPT;
			clocks %= period;
			continue;
		}
		left = span(half, half->count);
		if (clocks <= left) {
			half->count = down ? half->count - clocks : half->count + clocks;
			return;
		}
		clocks -= left + 1;
		half->count = down ? UINT32_MAX : 0;
		half->control |= INTERRUPT;
		half->rolled = half->control & RELOADS;
		half->holds = !half->rolled;
		if (half->holds)
			return;
	}
}

static void settle(struct half *half, int64_t now)
{
	int64_t clocks = now / CLOCK_NS - half->since;

	half->since += clocks;
	if (counts(half) && clocks > 0)
		advance(half, clocks);
}

/* The next rollover. */
static void arm(struct half *half)
{
	uint64_t clocks = span(half, half->count) + 1;

	if (half->rolled)
		clocks = span(half, half->load) + 2;
	if (counts(half) && half->control & INTERRUPTS)
		timer_mod_ns(half->due, (half->since + (int64_t)clocks) * CLOCK_NS);
	else
		timer_del(half->due);
}

static void is_due(void *opaque)
{
	struct half *half = opaque;

	settle(half, lab_now());
	interrupt(half->timer);
	arm(half);
}

static uint64_t registers_read(void *opaque, hwaddr offset, unsigned int size)
{
	AxiTimer *timer = opaque;
	struct half *half = &timer->halves[offset / STRIDE % 2];

	if (offset >= 2 * STRIDE)
		return 0;
	settle(half, lab_now());
	switch (offset % STRIDE) {
	case TCSR:
		return half->control;
	case TLR:
		return half->load;
	case TCR:
		return half->count;
	}
	return 0;
}

static void control(struct half *half, uint32_t value)
{
	uint32_t kept = half->control & INTERRUPT & ~value;

	/* A timer that was not enabled, or that is loaded, counts again. */
	if (!(half->control & ENABLED) || value & LOADS)
		half->holds = false;
	half->control = (value & TCSR_BITS & ~INTERRUPT) | kept;
	if (value & LOADS) {
		half->count = half->load;
		half->rolled = false;
	}
}

static void registers_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
	AxiTimer *timer = opaque;
	int64_t now = lab_now();
	struct half *half;

	if (offset >= 2 * STRIDE)
		return;
	for (half = timer->halves; half < timer->halves + 2; half++)
		settle(half, now);
	half = &timer->halves[offset / STRIDE];
	if (offset % STRIDE == TCSR) {
		control(half, value);
		for (half = timer->halves; half < timer->halves + 2; half++) {
			if (value & ENABLES_ALL)
				half->control |= ENABLED | ENABLES_ALL;
			else
				half->control &= ~ENABLES_ALL;
		}
	} else if (offset % STRIDE == TLR) {
		half->load = value;
		if (half->control & LOADS)
			half->count = value;
	}
	interrupt(timer);
	for (half = timer->halves; half < timer->halves + 2; half++)
		arm(half);
}

static const MemoryRegionOps registers = {
	.read		= registers_read,
	.write		= registers_write,
	.endianness	= DEVICE_LITTLE_ENDIAN,
	.valid		= { .min_access_size = 4, .max_access_size = 4 },
	.impl		= { .min_access_size = 4, .max_access_size = 4 },
};

static void axi_timer_realize(PCIDevice *card, Error **error)
{
	AxiTimer *timer = AXI_TIMER(card);
	unsigned int i;

	if (!axi_realize(card, &timer->registers, &registers, TYPE_AXI_TIMER, error))
		return;
	for (i = 0; i < 2; i++) {
		timer->halves[i].timer = timer;
		timer->halves[i].due = timer_new_ns(QEMU_CLOCK_VIRTUAL, is_due, &timer->halves[i]);
	}
}

static void axi_timer_exit(PCIDevice *card)
{
	AxiTimer *timer = AXI_TIMER(card);

	timer_free(timer->halves[0].due);
	timer_free(timer->halves[1].due);
	axi_exit(card);
}

static void axi_timer_class_init(ObjectClass *class, void *data)
{
	PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);

	pci->realize = axi_timer_realize;
	pci->exit = axi_timer_exit;
	pci->vendor_id = LAB_VENDOR;
	pci->device_id = LAB_AXI_TIMER_ID;
	pci->class_id = PCI_CLASS_OTHERS;
	set_bit(DEVICE_CATEGORY_MISC, DEVICE_CLASS(class)->categories);
	DEVICE_CLASS(class)->desc = "An AXI Timer (PG079) behind PCI";
}

static const TypeInfo axi_timer_type = {
	.name		= TYPE_AXI_TIMER,
	.parent		= TYPE_PCI_DEVICE,
	.instance_size	= sizeof(AxiTimer),
	.class_init	= axi_timer_class_init,
	.interfaces	= (InterfaceInfo[]) {
		{ INTERFACE_CONVENTIONAL_PCI_DEVICE },
		{ }
	},
};

static void register_axi_timer(void)
{
	type_register_static(&axi_timer_type);
}

type_init(register_axi_timer)
