/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a provider of devices needs to know of strobe: kernel/providers/samples/sample.c is a
 * complete provider to copy.
 *
 * A provider fills in a struct strobe_device with arrays of channels, outputs
 * and events and registers it. All of it stays the provider's memory, and must
 * stay until strobe_device_unregister() has returned; the fields marked
 * "private" are strobe's.
 *
 * Contexts. "Hard" means hard interrupt context, interrupts off, also on
 * PREEMPT_RT: no lock but raw_spinlock_t, no allocation, no wake-up, no
 * printing. "Process" means that the callback may sleep; strobe's registry
 * lock is held, so it must not call back into registration.
 */
#ifndef _STROBE_H
#define _STROBE_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

#include <uapi/strobe.h>

struct device;
struct module;
struct strobe_channel;
struct strobe_event;
struct strobe_output;

/* 1.0 as the bits of an IEEE 754 binary64. */
#define STROBE_F64_ONE	0x3FF0000000000000ULL

/**
 * enum strobe_access - how a register is reached.
 * @STROBE_ACCESS_CALL: not a register: by the provider's own function.
 * @STROBE_ACCESS_MEM64: a u64 in memory.
 * @STROBE_ACCESS_MMIO8: memory-mapped, 8 bits.
 * @STROBE_ACCESS_MMIO16: 16 bits, little-endian.
 * @STROBE_ACCESS_MMIO32: 32 bits, little-endian.
 * @STROBE_ACCESS_MMIO64: 64 bits, little-endian; 64-bit machines only.
 * @STROBE_ACCESS_MMIO16BE: 16 bits, big-endian.
 * @STROBE_ACCESS_MMIO32BE: 32 bits, big-endian.
 * @STROBE_ACCESS_MMIO64BE: 64 bits, big-endian; 64-bit machines only.
 * @STROBE_ACCESS_IO8: a cookie of pci_iomap(), which may be an I/O port, 8 bits.
 * @STROBE_ACCESS_IO16: the same, 16 bits, little-endian.
 * @STROBE_ACCESS_IO32: the same, 32 bits, little-endian.
 *
 * The hard path has a switch for these, so that a register costs no indirect
 * call.
 */
enum strobe_access {
	STROBE_ACCESS_CALL = 0,
	STROBE_ACCESS_MEM64,
	STROBE_ACCESS_MMIO8,
	STROBE_ACCESS_MMIO16,
	STROBE_ACCESS_MMIO32,
	STROBE_ACCESS_MMIO64,
	STROBE_ACCESS_MMIO16BE,
	STROBE_ACCESS_MMIO32BE,
	STROBE_ACCESS_MMIO64BE,
	STROBE_ACCESS_IO8,
	STROBE_ACCESS_IO16,
	STROBE_ACCESS_IO32,
};

/**
 * struct strobe_register - a field of a register.
 * @access: how it is reached.
 * @shift: lowest bit of the field.
 * @bits: bits of the field; 0 means the whole register.
 * @is_signed: the field is two's complement.
 * @reread: each step reads it anew. Else the channels of one register that stand
 *	in one row are cut from one access, unless an output is written between.
 * @io: address, for MMIO and IO.
 * @mem: address, for MEM64.
 */
struct strobe_register {
	enum strobe_access	access;
	u8			shift;
	u8			bits;
	bool			is_signed;
	bool			reread;
	union {
		void __iomem	*io;
		u64		*mem;
	};
};

/**
 * struct strobe_channel_ops - what a channel can do. All but @read optional; of
 * class ASYNC all but @begin.
 * @prepare: a run wants to use the channel, once, however often it is in a row
 *	(of class ASYNC: for each time, for all may be under way at once): set the
 *	hardware up, or refuse with an errno (-EBUSY if another run
 *	excludes it). It may set the channel's scale and offset anew. Process.
 * @unprepare: undo one @prepare that did not refuse: @lock did, or the use has
 *	ended, after @unlock. Process.
 * @lock: the channel is in use from now on: once for each @prepare. An errno
 *	refuses, too. Process.
 * @unlock: one use less. Of class ASYNC a value may still be under way, which
 *	nobody awaits: @begin and @fetch are not called any more. Process.
 * @read: fetch the value; not used for channels that are registers, nor for
 *	those of class ASYNC. An errno is a fault of the row, which has no value then.
 *	Runs that share the channel may call it on several CPUs at once. Hard; of
 *	class SLEEP: in the thread of the run, and may sleep, but not for good:
 *	who stops the run waits for it, and so does strobe_device_unregister().
 *	It must not wait for a lock that is held around one of these.
 * @begin: class ASYNC: let the hardware fetch the value, which arrives by
 *	strobe_complete() with this ticket, at once or at any time later. An errno
 *	is a fault of the row. Several CPUs, as of @read. Hard.
 * @fetch: class ASYNC, for hardware that does not say when it is ready: fetch
 *	the value that was begun; called before the next row, or when the run
 *	pauses or ends. The ticket is 0 then, and what @begin returns does not
 *	matter: errno of this one, as of @read. Hard.
 */
struct strobe_channel_ops {
	int  (*prepare)(struct strobe_channel *channel);
	void (*unprepare)(struct strobe_channel *channel);
	int  (*lock)(struct strobe_channel *channel);
	void (*unlock)(struct strobe_channel *channel);
	int  (*read)(struct strobe_channel *channel, u64 *value);
	int  (*begin)(struct strobe_channel *channel, u64 ticket);
	int  (*fetch)(struct strobe_channel *channel, u64 *value);
};

/**
 * struct strobe_channel - one scalar source.
 * @name: without the device; letters, digits, '_' and '-', at most 31.
 * @unit: of value * scale + offset, at most 15 characters; NULL: none.
 * @text: description for people; NULL: none.
 * @scale: IEEE 754 binary64, as bits; 0 means 1.0.
 * @offset: IEEE 754 binary64, as bits.
 * @type: enum strobe_type.
 * @bits: significant bits; 0 means those of the register, or 64.
 * @cost_class: enum strobe_class; registers are STROBE_CLASS_HARD.
 * @cost_ns: rough time of one read.
 * @reg: the register, if the channel is one.
 * @ops: operations; NULL if the register needs none.
 * @device: private: whose it is.
 * @id: private: id in the catalogue.
 * @users: private: runs that use it; under the registry lock.
 */
struct strobe_channel {
	const char			*name;
	const char			*unit;
	const char			*text;
	u64				scale;
	u64				offset;
	u32				type;
	u32				bits;
	u32				cost_class;
	u32				cost_ns;
	struct strobe_register		reg;
	const struct strobe_channel_ops	*ops;

	struct strobe_device		*device;
	u32				id;
	u32				users;
};

/**
 * struct strobe_output_ops - what an output needs to be used; both optional.
 * @prepare: a step of a run is to write the output, once for each such step: set
 *	the hardware up, or refuse with an errno (-EBUSY if another run or a
 *	channel excludes it). Process.
 * @unprepare: undo one @prepare that did not refuse. Process.
 */
struct strobe_output_ops {
	int  (*prepare)(struct strobe_output *output);
	void (*unprepare)(struct strobe_output *output);
};

/**
 * struct strobe_output - a register that a row may write.
 * @name: as of a channel.
 * @unit: as of a channel.
 * @text: as of a channel.
 * @scale: as of a channel.
 * @offset: as of a channel.
 * @type: enum strobe_type.
 * @bits: bits that a value may have; 0 means all of the register, or 64. Of a
 *	signed one the bits above them repeat the highest.
 * @cost_class: STROBE_CLASS_HARD, or STROBE_CLASS_SLEEP if @write may sleep.
 * @cost_ns: rough time of one write.
 * @reg: the register, if the output is one; always a whole one.
 * @write: store a value; not used for outputs that are registers. An errno is a
 *	fault of the row. Hard; of class SLEEP as of a channel's read.
 * @ops: operations; may be NULL.
 * @device: private: whose it is.
 * @id: private: id in the catalogue.
 * @users: private: runs that use it; under the registry lock.
 */
struct strobe_output {
	const char		*name;
	const char		*unit;
	const char		*text;
	u64			scale;
	u64			offset;
	u32			type;
	u32			bits;
	u32			cost_class;
	u32			cost_ns;
	struct strobe_register	reg;
	int			(*write)(struct strobe_output *output, u64 value);
	const struct strobe_output_ops *ops;

	struct strobe_device	*device;
	u32			id;
	u32			users;
};

/**
 * enum strobe_accounting - what is known of occurrences that an event's source
 * has dropped before it called strobe_event_trigger().
 * @STROBE_ACCOUNTING_NONE: nothing; as of interrupts, which merge without a trace.
 * @STROBE_ACCOUNTING_EXACT: each is reported as missed, or none can be dropped.
 * @STROBE_ACCOUNTING_BY_TIME: gaps between the source's time stamps are reported
 *	as missed, by its period.
 */
enum strobe_accounting {
	STROBE_ACCOUNTING_NONE = 0,
	STROBE_ACCOUNTING_EXACT,
	STROBE_ACCOUNTING_BY_TIME,
};

/**
 * struct strobe_event_ops - what an event can do; all optional.
 * @enable: the first run listens: let the hardware raise the event. Process.
 * @disable: nobody listens any more. After it has returned the event must
 *	not be triggered, nor may a handler still be at it. Process.
 * @accounting: enum strobe_accounting, if it depends on how the source is set up
 *	now. Process.
 */
struct strobe_event_ops {
	int  (*enable)(struct strobe_event *event);
	void (*disable)(struct strobe_event *event);
	enum strobe_accounting (*accounting)(struct strobe_event *event);
};

/**
 * struct strobe_event - a source of triggers.
 * @name: as of a channel.
 * @text: as of a channel.
 * @has_due: strobe_event_trigger() is told when the trigger was due.
 * @may_skip: strobe_event_skip() is called, too: rows have a word for it.
 * @accounting: unless @ops has a function for it.
 * @ops: operations; may be NULL.
 * @device: private: whose it is.
 * @id: private: id in the catalogue.
 * @users: private: runs that have chosen it; under the registry lock.
 * @listeners: private: runs that listen; changed under the registry lock,
 *	walked in hard context under RCU.
 * @listening: private: how many; under the registry lock.
 * @silent: private: disabled for good; under the registry lock.
 */
struct strobe_event {
	const char			*name;
	const char			*text;
	bool				has_due;
	bool				may_skip;
	enum strobe_accounting		accounting;
	const struct strobe_event_ops	*ops;

	struct strobe_device		*device;
	u32				id;
	u32				users;
	struct list_head		listeners;
	u32				listening;
	bool				silent;
};

/**
 * struct strobe_device - a unit of hardware, or of software.
 * @name: name wanted, letters, digits, '_' and '-', at most 27, not "run" with
 *	or without a number; a second one of the same name becomes "name2", a
 *	third one "name3".
 * @text: description for people; NULL: none.
 * @parent: for sysfs; may be NULL.
 * @channels: array of @channel_count.
 * @outputs: array of @output_count.
 * @events: array of @event_count.
 * @is_there: whether the hardware is still there; asked when a register of a
 *	channel has read as all ones, which may be a value, or what the bus
 *	answers where nothing is any more: then the run ends. Hard, on several
 *	CPUs at once. NULL: it cannot go without a word.
 * @channel_count: channels it has.
 * @output_count: outputs it has.
 * @event_count: events it has.
 * @owner: private: module that is pinned while a run uses the device.
 * @full_name: private: the name it has got.
 * @id: private: id in the catalogue.
 * @users: private: runs that use it; under the registry lock.
 * @gone: private: it is being unregistered; under the registry lock.
 * @entry: private: in the list of devices; under the registry lock.
 * @sysfs: private: its directory in /sys/class/strobe.
 */
struct strobe_device {
	const char		*name;
	const char		*text;
	struct device		*parent;
	struct strobe_channel	*channels;
	struct strobe_output	*outputs;
	struct strobe_event	*events;
	bool			(*is_there)(const struct strobe_device *device);
	u32			channel_count;
	u32			output_count;
	u32			event_count;

	struct module		*owner;
	char			full_name[STROBE_PART_SIZE];
	u32			id;
	u32			users;
	bool			gone;
	struct list_head	entry;
	struct device		*sysfs;
};

int __strobe_device_register(struct strobe_device *device, struct module *owner);
/* Make a device known; see __strobe_device_register(). */
#define strobe_device_register(device) \
	__strobe_device_register(device, THIS_MODULE)
void strobe_device_unregister(struct strobe_device *device);

bool strobe_complete(u64 ticket, u64 value, int error);

u64 strobe_event_trigger(struct strobe_event *event, u64 now, u64 due, u64 missed);

void strobe_event_skip(struct strobe_event *event, u64 count);

u64 strobe_register_read(const struct strobe_register *reg);
void strobe_register_write(const struct strobe_register *reg, u64 value);

#endif /* _STROBE_H */
