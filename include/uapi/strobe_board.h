/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * Compiled boards: what "strobe board install" makes of a board's TOML file,
 * and strobe_board.ko, or strobe_frames.ko, loads as firmware when it finds the
 * hardware.
 *
 *   strobe/pci-VVVV-DDDD-SSSS-UUUU.board	with subsystem ids, tried first
 *   strobe/pci-VVVV-DDDD.board			without
 *   strobe/platform-NAME.board			of a platform device
 *   strobe/rpmsg-SERVICE.board			of a co-processor that sends frames
 *
 * (ids in four lower-case hexadecimal digits.) A blob is
 *
 *	struct strobe_board_header
 *	struct strobe_board_bar		bars[header.bars]
 *	struct strobe_board_value	channels[header.channels]
 *	struct strobe_board_value	outputs[header.outputs]
 *	struct strobe_board_event	events[header.events]
 *	struct strobe_board_write	writes[header.writes]
 *
 * without gaps, little-endian, exactly header.size bytes. The driver checks
 * every byte; unknown flags and reserved fields that are not zero are refused.
 */
#ifndef _UAPI_STROBE_BOARD_H
#define _UAPI_STROBE_BOARD_H

#include <linux/types.h>

#define STROBE_BOARD_MAGIC	0x4452414F42525453ULL	/* "STRBOARD" */
#define STROBE_BOARD_VERSION	1
#define STROBE_BOARD_SIZE_MAX	(1U << 20)
#define STROBE_BOARD_VALUES_MAX	1024	/* channels, and outputs, each */
#define STROBE_BOARD_EVENTS_MAX	32
#define STROBE_BOARD_WRITES_MAX	256
#define STROBE_BOARD_VECTORS_MAX 32
#define STROBE_BOARD_NAME_SIZE	32
#define STROBE_BOARD_UNIT_SIZE	16
#define STROBE_BOARD_TEXT_SIZE	80
#define STROBE_BOARD_ANY_ID	0xFFFF
#define STROBE_BOARD_FRAME_MIN	16	/* bytes of a frame */
#define STROBE_BOARD_FRAME_MAX	488

/** enum strobe_board_irq - how the board raises its interrupts. */
enum strobe_board_irq {
	STROBE_BOARD_IRQ_NONE	= 0,
	STROBE_BOARD_IRQ_INTX	= 1,	/* level, possibly shared */
	STROBE_BOARD_IRQ_MSI	= 2,
	STROBE_BOARD_IRQ_MSIX	= 3,
	STROBE_BOARD_IRQ_LINE	= 4,	/* of a platform device, its own */
	STROBE_BOARD_IRQ_MESSAGE = 5,	/* none: frames of a co-processor */
};

/**
 * struct strobe_board_header - first in the blob.
 * @magic: STROBE_BOARD_MAGIC.
 * @version: STROBE_BOARD_VERSION.
 * @size: bytes of the whole blob.
 * @crc32: CRC-32 (as in zlib) of all bytes after this field.
 * @irq: enum strobe_board_irq.
 * @vendor: PCI vendor; 0 unless it is PCI.
 * @device: PCI device; 0 unless it is PCI.
 * @subvendor: PCI subsystem vendor, or STROBE_BOARD_ANY_ID.
 * @subdevice: PCI subsystem id, or STROBE_BOARD_ANY_ID.
 * @bars: entries of bars[].
 * @channels: entries of channels[].
 * @outputs: entries of outputs[].
 * @events: entries of events[].
 * @writes: entries of writes[].
 * @vectors: MSI or MSI-X vectors to ask for, or lines; 1 for INTx and for
 *	messages, 0 without interrupt.
 * @setup_first: first entry of writes[] that is done when the board is probed.
 * @setup_count: how many.
 * @platform: CRC-32 (as in zlib) of the NAME of a platform device, or of the
 *	SERVICE of a co-processor; 0 for PCI.
 * @reserved: 0.
 * @name: of the device; letters, digits, '_' and '-', begins with a letter.
 * @text: description for people.
 *
 * With STROBE_BOARD_IRQ_MESSAGE there are no outputs, no writes and no setup,
 * one event, without pending or missed, and one entry of bars[], which is the
 * frame.
 */
struct strobe_board_header {
	__aligned_u64	magic;
	__u32		version;
	__u32		size;
	__u32		crc32;
	__u32		irq;
	__u16		vendor;
	__u16		device;
	__u16		subvendor;
	__u16		subdevice;
	__u16		bars;
	__u16		channels;
	__u16		outputs;
	__u16		events;
	__u16		writes;
	__u16		vectors;
	__u16		setup_first;
	__u16		setup_count;
	__u32		platform;
	__u32		reserved;
	char		name[STROBE_BOARD_NAME_SIZE];
	char		text[STROBE_BOARD_TEXT_SIZE];
};

/**
 * struct strobe_board_bar - a BAR that is mapped.
 * @number: 0..5; of a platform device, which of its memory resources; 0 for a
 *	frame.
 * @reserved: 0.
 * @size: bytes the board file says it has; the hardware's may be larger, not
 *	smaller. A frame has exactly so many: a multiple of 8, 16..488.
 */
struct strobe_board_bar {
	__u32		number;
	__u32		reserved;
	__aligned_u64	size;
};

/* strobe_board_register.flags */
#define STROBE_BOARD_SIGNED	(1U << 0)	/* the field is two's complement */
#define STROBE_BOARD_BIG_ENDIAN	(1U << 1)	/* else little-endian */
#define STROBE_BOARD_FLOAT	(1U << 2)	/* IEEE 754 binary64; 64 bits */
#define STROBE_BOARD_REREAD	(1U << 3)	/* each channel of a row reads it anew */

/**
 * struct strobe_board_register - a field of a register.
 * @bar: index into bars[], not the BAR's number.
 * @width: bytes of one access: 1, 2, 4 or 8.
 * @shift: lowest bit of the field.
 * @bits: bits of the field; shift + bits <= 8 * width.
 * @flags: STROBE_BOARD_SIGNED, _BIG_ENDIAN (not in a frame), _FLOAT, _REREAD
 *	(of a channel that is not in a frame).
 * @reserved: 0.
 * @offset: of the register in the BAR, a multiple of width.
 */
struct strobe_board_register {
	__u8		bar;
	__u8		width;
	__u8		shift;
	__u8		bits;
	__u32		flags;
	__u32		reserved;
	__u32		offset;
};

/**
 * struct strobe_board_value - a channel or an output.
 * @name: without the device; as in the header.
 * @unit: of value * scale + offset; "" if none.
 * @text: description for people.
 * @scale: IEEE 754 binary64, as bits.
 * @offset: IEEE 754 binary64, as bits.
 * @reg: where. An output is a whole register (shift 0, bits 8 * width) and
 *	neither signed nor float.
 */
struct strobe_board_value {
	char		name[STROBE_BOARD_NAME_SIZE];
	char		unit[STROBE_BOARD_UNIT_SIZE];
	char		text[STROBE_BOARD_TEXT_SIZE];
	__aligned_u64	scale;
	__aligned_u64	offset;
	struct strobe_board_register reg;
};

/* strobe_board_event.flags: an interrupt is ours if (pending & mask) != 0. */
#define STROBE_BOARD_PENDING	(1U << 0)

/**
 * struct strobe_board_event - an interrupt of the board.
 * @name: without the device; as in the header.
 * @text: description for people.
 * @flags: STROBE_BOARD_PENDING; required for INTx, which may be shared, and
 *	where two events share a vector.
 * @vector: 0..vectors-1.
 * @missed: which of channels[], counted from 1, counts triggers that the card
 *	lost; unsigned, of 16 bits or more, without STROBE_BOARD_REREAD; 0: none.
 * @pending: a whole register (shift 0, unsigned); all zero without
 *	STROBE_BOARD_PENDING.
 * @mask: bits of @pending that mean this event; not 0 with
 *	STROBE_BOARD_PENDING, else 0.
 * @silence_first: first entry of writes[] that withdraws the interrupt, in the
 *	handler, after the row was read.
 * @silence_count: how many.
 * @enable_first: first entry done when the event's first run starts.
 * @enable_count: how many.
 * @disable_first: first entry done when its last run has ended.
 * @disable_count: how many.
 * @reserved2: 0.
 */
struct strobe_board_event {
	char		name[STROBE_BOARD_NAME_SIZE];
	char		text[STROBE_BOARD_TEXT_SIZE];
	__u32		flags;
	__u16		vector;
	__u16		missed;
	struct strobe_board_register pending;
	__aligned_u64	mask;
	__u16		silence_first;
	__u16		silence_count;
	__u16		enable_first;
	__u16		enable_count;
	__u16		disable_first;
	__u16		disable_count;
	__u32		reserved2;
};

/* strobe_board_write.flags: write what was read from pending, & mask. */
#define STROBE_BOARD_WRITE_PENDING	(1U << 0)

/**
 * struct strobe_board_write - store a value into a register.
 * @reg: a whole register (shift 0, bits 8 * width, unsigned).
 * @flags: STROBE_BOARD_WRITE_PENDING: only in an event's silence list, only if
 *	the event has STROBE_BOARD_PENDING; @value is 0 then.
 * @reserved: 0.
 * @value: what to store; fits the register.
 */
struct strobe_board_write {
	struct strobe_board_register reg;
	__u32		flags;
	__u32		reserved;
	__aligned_u64	value;
};

#endif /* _UAPI_STROBE_BOARD_H */
