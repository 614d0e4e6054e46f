/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * strobe: on every event, read a set of channels from any devices into one
 * row, and lose nothing silently.
 *
 * This header is the whole contract between the engines, which make rows, and
 * everything that reads them. A program that includes nothing else of strobe
 * can do all that strobe can do; examples/reader.c shows it.
 *
 *   fd = open("/dev/strobe")          the control device
 *     poll                            ready when the catalogue has changed
 *     STROBE_FEATURES                 what this kernel can do
 *     STROBE_LIST                     what is here
 *     STROBE_CREATE   -> owner fd     one run; closing it ends the run
 *       STROBE_CONTROL                start, pause, resume, stop, trigger
 *       STROBE_TUNE                   set a variable of the run's program
 *       STROBE_READER -> ring fd      one reader: mmap (PROT_READ), poll, read
 *         STROBE_ARM                  poll is ready when so many rows are there
 *     STROBE_READER   -> ring fd      the same for another's run, by its id
 *     STROBE_TUNE                     the same for another run of this user, by its id
 *
 * Who opens the control device read-only may look: STROBE_FEATURES, STROBE_LIST,
 * poll, STROBE_READER of runs that he may read, and a dry run. STROBE_CREATE
 * needs it open for writing (else EBADF), since a run can write outputs; so does
 * STROBE_TUNE there.
 *
 * Rules that hold for every call:
 *  - Structures begin with their size in bytes, as the caller was compiled.
 *    A larger one is accepted if all that the kernel does not know is zero
 *    and it has at most 4096 bytes (else E2BIG); one smaller than the first
 *    version is EINVAL. The same holds for step_size. entry_size and
 *    answer_size are of what the kernel writes: EINVAL if they are beyond 4096,
 *    smaller than the first version, or not a multiple of 8; what the kernel
 *    does not know is set to zero.
 *  - Fields marked "out" are not looked at.
 *  - Unknown flags and reserved fields that are not zero are EINVAL.
 *  - Strings are NUL-terminated inside their array (else EINVAL), never cut.
 *  - A call on the wrong kind of fd is ENOTTY; a bad pointer is EFAULT.
 *  - A call that fails has changed nothing but its "out" fields.
 *  - File descriptors that are returned are close-on-exec.
 *  - The layout is the same for 32-bit and 64-bit callers. Byte order is the
 *    machine's; recorded rings are little-endian.
 */
#ifndef _UAPI_STROBE_H
#define _UAPI_STROBE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define STROBE_DEVICE_PATH	"/dev/strobe"

/*
 * Version of this contract and of the ring's layout. A reader refuses another
 * major. The minor grows when something is added.
 */
#define STROBE_RING_MAJOR	1
#define STROBE_RING_MINOR	6

/* Bytes of a full name "device.channel", its NUL included. */
#define STROBE_NAME_SIZE	64
/* Bytes of a device's name, or of a channel's without the device. */
#define STROBE_PART_SIZE	32
#define STROBE_UNIT_SIZE	16
#define STROBE_TEXT_SIZE	80

/* Steps of one run, at most. */
#define STROBE_STEPS_MAX	1024
/* Rows of one ring, at most; memory is bounded separately. */
#define STROBE_CAPACITY_MAX	(1ULL << 32)
/*
 * SCHED_FIFO priority of a run's thread: the highest, and if none is given. The
 * latter is below that of threaded interrupts, which is 50.
 */
#define STROBE_PRIORITY_MAX	99U
#define STROBE_PRIORITY_DEFAULT	45U
/* What a row and its program may cost in hard interrupt context without CAP_SYS_NICE, ns. */
#define STROBE_COST_MAX		1000000ULL
/* Shortest and longest period of the timer event, in nanoseconds. */
#define STROBE_PERIOD_MIN	1000ULL
#define STROBE_PERIOD_MAX	3600000000000ULL
/* "limit" of a run that goes on until it is stopped. */
#define STROBE_NO_LIMIT		(~0ULL)

/* ------------------------------------------------------------------------
 * The ring. It starts with a struct strobe_ring_header; rows start at its
 * data_offset.
 *
 * Rows are numbered from 0; row i lies at data_offset + (i % capacity) *
 * row_stride. One producer writes, any number of readers look on; nobody
 * waits for anybody.
 *
 *   row i is readable if and only if  oldest <= i < head, with
 *   oldest = strobe_ring_oldest(head, capacity, limit)
 *
 * (the row before "oldest" is the guard: the producer may be in it). A reader
 *
 *	1 loads state, then an acquire fence
 *	2 loads head, then an acquire fence		(C)
 *	3 counts as lost what it has not read and is older than "oldest", and
 *	  copies of the others what it wants, as 64-bit words, "row" among them
 *	4 acquire fence, loads head again		(D)
 *	5 drops what is older than "oldest" by now: those rows are lost, too; and
 *	  what strobe_row_absent() says is not there, which is lost as well
 *	6 has read all there will ever be if the state of 1 was final and its
 *	  cursor has come to the head of 2
 *
 * (its cursor starts at row 0; one that starts elsewhere counts the rows before
 * it by itself) and the producer, for row i,
 *
 *	1 write barrier					(A)
 *	2 stores row i, as 64-bit words
 *	3 stores head = i + 1 with release		(B)
 *	4 stores state with release, if this was the last row
 *
 * B pairs with C: a row that is counted is whole. A pairs with D: who has seen
 * a word of row i sees head >= i afterwards. State comes before head in a
 * reader, and after it in the producer: with the other order a reader could
 * take the run for ended and overlook its last row. See docs/design/ring.md.
 *
 * Each load and store is a single relaxed atomic access of the whole field: in
 * C __atomic_load_n(p, __ATOMIC_RELAXED), the fences __atomic_thread_fence(
 * __ATOMIC_ACQUIRE). On a mapping that is read-only, no other kind of atomic
 * load is sure to work. The 64-bit words of header and rows are loaded and
 * stored whole by 32-bit machines too (ldrexd and strexd on ARMv7); a program
 * that cannot do that, such as one for 32-bit x86 on a read-only mapping, uses
 * read() on a ring fd, and STROBE_CONTROL or STROBE_LIST for the counters.
 *
 * The account of a run:  triggers = rows + missed + skipped
 *   missed   triggers that should have made a row, and did not: a loss
 *   skipped  triggers that were left out on purpose, as by a gate: no loss
 * The account of a reader:  rows it got + lost = rows of the run
 *   lost     rows that were overwritten before this reader read them, or that a
 *	      recording which is replayed does not have
 * Between two rows that one reader got one after the other:
 *   lost     = step of "row" - 1
 *   skipped  = step of strobe_row_skipped()
 *   missed   = step of "trigger" - step of "row" - skipped
 * Before the first row there is, in thought, one with row = trigger = -1 and
 * skipped = 0; what is left to the counters of a run that has ended came after
 * its last row. Counters of a run that goes on are each of a moment of its own.
 *
 * Whose ring it is. A ring of the kernel engine is mapped from a ring fd. One of
 * the user engine is a memory file of the process that makes the rows, which
 * gives it away read-only: connect (AF_UNIX, SOCK_STREAM) to N.sock, N being
 * the number of the run, in the directory
 *	$STROBE_RUNTIME_DIR, if that is set and not empty, or else
 *	$XDG_RUNTIME_DIR/strobe, if that is set and a directory of this user, or else
 *	/run/user/UID/strobe, if /run/user/UID is there, or else
 *	/tmp/strobe-UID
 * where UID is the effective one. The directory must belong to this user, and
 * nobody else may write there. The runs are its names N.sock; one that refuses
 * the connection is left over, and its number may be used again. One line of
 * JSON comes, of at most 4 MiB, which ends with a newline; keys that are not
 * known are to be ignored, and another "version" than 2 is to be refused. Among
 * them are "event", and "channels" and "outputs": arrays in the order of the
 * fault bits, of objects with "name", and channels with "type" ("u64", "s64" or
 * "f64"), "unit", "scale" and "offset" (decimal numbers). With the first byte
 * comes the descriptor of the ring (SCM_RIGHTS), which is as long as fstat says
 * and stays so. Send the byte 'r', at any time, to be counted as a reader, and
 * the byte 'w', after the line has come, to be woken at each row: 'w' comes back,
 * and with it an eventfd, which the producer writes at each row from then on, and
 * whenever it changes "wake" (see "Waiting"), as long as the connection lasts.
 * Wait for it by its edges (EPOLLET), together with the connection; do not read
 * it, write it, or change its flags. Once 'w' has come, do steps 1 to 6 before the
 * first wait. To processes of another user but root 'w' comes without a descriptor,
 * and an older producer does not answer. Send the byte 't', then in the machine's
 * byte order 32 bits, which tunable, and 64 bits, its word, as in struct strobe_tune,
 * to tune the run: 't' comes back, and 32 bits, 0 or the negative errno of STROBE_TUNE,
 * -EACCES to processes of another user but root; since minor 5, with the key
 * "tunables": the names in their order. The connection is cut when the run is
 * given up or the process ends. Who finds it cut does steps 1 to 6 once more: a
 * state that is not final will then never change.
 *
 * Waiting. The rows of the kernel engine are waited for with poll on the ring
 * fd. Those of the user engine are looked for: its producer does not call
 * anybody while it makes rows, unless a reader asks for it. It changes the
 * header's word "wake" after head and state, with release, and wakes all who wait
 * for that word (futex, FUTEX_WAIT without FUTEX_PRIVATE_FLAG, so that the mapping
 * must be MAP_SHARED), at the end, at pause and resume, and after software
 * triggers. A reader loads wake, then an acquire fence, then does steps 1 to 6;
 * if it got nothing it calls FUTEX_WAIT with the value that it has loaded and a
 * timeout, for as long as the rows it wants will take.
 */
#define STROBE_RING_MAGIC	0x010045424F525453ULL	/* "STROBE", 0, 1 */

/**
 * enum strobe_state - where a run is; DONE and greater are final.
 * @STROBE_READY: created, not started.
 * @STROBE_RUNNING: triggers make rows.
 * @STROBE_PAUSED: triggers are not counted.
 * @STROBE_DONE: all rows of the limit were made.
 * @STROBE_STOPPED: ended by STROBE_STOP, or with the run that triggers it.
 * @STROBE_FAILED: ended by a failure; the header's error says which:
 *	-ENODEV a device is gone, -EPIPE the owner is gone; of a run that has failed
 *	with the one that triggers it, that one's.
 */
enum strobe_state {
	STROBE_READY	= 0,
	STROBE_RUNNING	= 1,
	STROBE_PAUSED	= 2,
	STROBE_DONE	= 3,
	STROBE_STOPPED	= 4,
	STROBE_FAILED	= 5,
};

/**
 * enum strobe_missed - why a trigger made no row; indexes a header's missed[].
 * @STROBE_MISSED_OVERRUN: grid points of a timer that had passed before the
 *	timer was served: the machine was late.
 * @STROBE_MISSED_BUSY: the row before was still unfinished; also a row that was
 *	given up because its values did not come before the run paused or ended,
 *	or the machine was suspended, or who had triggered it was killed.
 * @STROBE_MISSED_THROTTLED: interrupts of strobe would have taken more than
 *	their budget of this CPU.
 * @STROBE_MISSED_SOURCE: triggers that the source itself reports it could not
 *	deliver.
 * @STROBE_MISSED_SUSPENDED: grid points of a timer that passed, and software
 *	triggers that came, while the machine was suspended, or on its way there
 *	and back.
 * @STROBE_MISSED_CAUSES: room for later causes; unknown ones count as well.
 */
enum strobe_missed {
	STROBE_MISSED_OVERRUN	= 0,
	STROBE_MISSED_BUSY	= 1,
	STROBE_MISSED_THROTTLED	= 2,
	STROBE_MISSED_SOURCE	= 3,
	STROBE_MISSED_SUSPENDED	= 4,
	STROBE_MISSED_CAUSES	= 8,
};

/** enum strobe_engine - who fills a ring. */
enum strobe_engine {
	STROBE_ENGINE_KERNEL	= 1,
	STROBE_ENGINE_USER	= 2,
};

/* strobe_ring_header.incompat: words of a row behind its values, see struct strobe_row; */
#define STROBE_INCOMPAT_FAULTS	(1U << 0)	/* fault words */
#define STROBE_INCOMPAT_SKIPPED	(1U << 1)	/* a count of skipped triggers */
/* and, since minor 1, of the user engine alone: */
#define STROBE_INCOMPAT_ABSENT	(1U << 2)	/* rows may be absent: strobe_row_absent() */

/**
 * struct strobe_ring_header - first 256 bytes of a ring.
 *
 * Constant: written before the fd exists, never again.
 * @magic: STROBE_RING_MAGIC; byte-swapped means foreign byte order.
 * @major: STROBE_RING_MAJOR; a reader refuses another.
 * @minor: grows when fields are added; a reader ignores it.
 * @header_size: bytes of this header, 256 or more; fields beyond it do not exist.
 * @row_stride: bytes from row to row, a multiple of 64.
 * @channels: 64-bit values in a row.
 * @capacity: rows in the ring, a power of two, at least 2.
 * @limit: rows this run will make at most. Up to @capacity, nothing is ever
 *	overwritten (a linear buffer); beyond, the ring is circular.
 * @data_offset: where row 0 lies, from the start of the mapping; a multiple of
 *	64. The kernel engine has it at the second page, whatever a page is.
 * @clock: clock of all times: CLOCK_MONOTONIC (1) or CLOCK_TAI (11), as in the
 *	initial time namespace.
 * @incompat: STROBE_INCOMPAT_*, which a reader must know to understand the
 *	rows; it refuses bits that it does not know.
 * @period_ns: of a timer event; 0 for others.
 * @run: id of the run.
 * @engine: enum strobe_engine.
 * @outputs: outputs that a row writes; a row names those that failed.
 * @row_size: bytes of a row without padding, as read() gives it: 32, and 8 for
 *	each value and each word behind them; at most @row_stride.
 * @reserved0: 0.
 *
 * Start: written by the start of the run, before @state leaves READY. If an
 * event cannot be enabled, the start fails, and @state is READY again: this is 0
 * again, unless the event has triggered all the same. Then this stays, and the
 * next start begins with a row after a pause.
 * @start_time: when the run was started, on @clock.
 * @start_realtime: the same moment on CLOCK_REALTIME.
 * @start_tai: the same moment on CLOCK_TAI.
 * @first_due: when trigger 0 of a timer was due, on @clock; trigger n is due
 *	at first_due + n * period_ns, until the first pause; with CLOCK_TAI, which
 *	goes on while the machine is suspended and may be set, also until the
 *	first suspend or step of that clock. Time spent paused
 *	is not counted in triggers, though the grid goes on; so after a pause
 *	nothing here tells when a row was due, but the channel clock.late does.
 * @reserved1: 0.
 *
 * Live: written by the producer alone; ended states by who ends the run, once
 * the producer is silent.
 * @head: rows published, with those that are absent.
 * @triggers: triggers known; of these head made rows, the others were missed
 *	or skipped. This and all that follows is exact when @state is final.
 * @state: enum strobe_state, stored with release after the last @head: load
 *	it before @head, or the last row can be overlooked.
 * @error: negative errno of a FAILED run, else 0.
 * @wake: futex word of the user engine, changed after @head and @state; see
 *	"Waiting" above. 0 in the kernel engine.
 * @reserved2: 0.
 * @missed: by cause, see enum strobe_missed; with @skipped the sum is
 *	triggers - head.
 * @errors: rows in which a channel or an output failed: strobe_row_faults() is not 0.
 * @end_time: when the run ended, on @clock; 0 before.
 * @skipped: triggers that were left out on purpose.
 * @reserved3: 0.
 */
struct strobe_ring_header {
	__aligned_u64	magic;
	__u16		major;
	__u16		minor;
	__u32		header_size;
	__u32		row_stride;
	__u32		channels;
	__aligned_u64	capacity;
	__aligned_u64	limit;
	__aligned_u64	data_offset;
	__u32		clock;
	__u32		incompat;
	__aligned_u64	period_ns;
	__u32		run;
	__u32		engine;
	__u32		outputs;
	__u32		row_size;
	__aligned_u64	reserved0;

	__aligned_u64	start_time;
	__aligned_u64	start_realtime;
	__aligned_u64	start_tai;
	__aligned_u64	first_due;
	__aligned_u64	reserved1;

	__aligned_u64	head;
	__aligned_u64	triggers;
	__u32		state;
	__s32		error;
	__u32		wake;
	__u32		reserved2;
	__aligned_u64	missed[STROBE_MISSED_CAUSES];
	__aligned_u64	errors;
	__aligned_u64	end_time;
	__aligned_u64	skipped;
	__aligned_u64	reserved3;
};

/* Bits 0..31 of a row's status: flags. Unknown ones are to be ignored. */
#define STROBE_ROW_RESUMED	(1ULL << 0)	/* first row after a pause or a suspend */
#define STROBE_ROW_LATE		(1ULL << 1)	/* of a timer: a whole period late, or more */
#define STROBE_ROW_FLAGS	(STROBE_ROW_RESUMED | STROBE_ROW_LATE)
/* Bits 32..63: what failed of the first 32; see strobe_row_failed(). */
#define STROBE_ROW_FAULTS	(~0ULL << 32)

/**
 * struct strobe_row - what was read on one trigger.
 * @row: number of this row, from 0.
 * @trigger: number of its trigger, from 0.
 * @time: ns on the ring's clock, taken first thing in the handler.
 * @status: STROBE_ROW_*.
 * @value: one word a channel, in the order of the run's steps; then one for each
 *	column that its program computes. The word of a
 *	channel that failed means nothing: ask strobe_row_failed(), not the word.
 *	Signed channels are sign-extended to 64 bits.
 *
 * Behind the values come, if the header's incompat says so,
 *   fault words	(STROBE_INCOMPAT_FAULTS, set if there are any),
 *			strobe_fault_words() of them;
 *   skipped		(STROBE_INCOMPAT_SKIPPED), one word: triggers that were
 *			skipped before this row, since the start of the run.
 */
struct strobe_row {
	__aligned_u64	row;
	__aligned_u64	trigger;
	__aligned_u64	time;
	__aligned_u64	status;
	/* Not __DECLARE_FLEX_ARRAY: before Linux 6.6 that has a size of its own in C++. */
#if defined(__cplusplus)
	__aligned_u64	value[0];
#else
	__aligned_u64	value[];
#endif
};

/**
 * strobe_ring_oldest() - the oldest row that may be read.
 * @head: rows published.
 * @capacity: of the ring.
 * @limit: of the ring.
 *
 * Either the producer is about to overwrite the row before it, or that row is
 * of a part of the ring that will not be written again.
 */
static inline __u64 strobe_ring_oldest(__u64 head, __u64 capacity, __u64 limit)
{
	__u64 overwritten = head >= capacity ? head - (capacity - 1) : 0;
	__u64 last = limit >= capacity ? limit - capacity : 0;

	return overwritten < last ? overwritten : last;
}

/**
 * strobe_fault_words() - fault words of a row.
 * @channels: of the ring.
 * @outputs: of the ring.
 *
 * Channels have the first numbers, in the order of the values; then come the
 * outputs, in the order of the run's steps. The status has room for 32 of them.
 */
static inline __u32 strobe_fault_words(__u32 channels, __u32 outputs)
{
	__u32 steps = channels + outputs;

	return steps > 32 ? (steps - 32 + 63) / 64 : 0;
}

/**
 * strobe_row_failed() - has a channel or an output failed in this row?
 * @row: a copy of a row.
 * @channels: of the ring.
 * @index: of the channel; or @channels plus that of the output.
 */
static inline int strobe_row_failed(const struct strobe_row *row, __u32 channels, __u32 index)
{
	if (index < 32)
		return row->status >> (32 + index) & 1;
	index -= 32;
	return row->value[channels + index / 64] >> (index % 64) & 1;
}

/**
 * strobe_row_faults() - how many channels and outputs have failed in this row?
 * @row: a copy of a row.
 * @channels: of the ring.
 * @outputs: of the ring.
 */
static inline __u32 strobe_row_faults(const struct strobe_row *row, __u32 channels, __u32 outputs)
{
	__u32 words = strobe_fault_words(channels, outputs), count = 0, i;
	__u64 word;

	for (word = row->status & STROBE_ROW_FAULTS; word; word &= word - 1)
		count++;
	for (i = 0; i < words; i++)
		for (word = row->value[channels + i]; word; word &= word - 1)
			count++;
	return count;
}

/**
 * strobe_row_skipped() - triggers that were skipped before this row.
 * @header: of its ring.
 * @row: a copy of a row.
 */
static inline __u64 strobe_row_skipped(const struct strobe_ring_header *header,
				       const struct strobe_row *row)
{
	if (!(header->incompat & STROBE_INCOMPAT_SKIPPED))
		return 0;
	return row->value[header->channels +
			  strobe_fault_words(header->channels, header->outputs)];
}

/**
 * strobe_row_absent() - is this row not there, though it is readable?
 * @header: of its ring.
 * @row: a copy of the words in its place, which step 5 has not dropped.
 * @number: of the row.
 *
 * A recording may lack rows, which its recorder had lost. Where it is replayed
 * they keep their numbers, and @head and @triggers of the header count them, but
 * their places keep older rows. A producer goes on from row i by n such rows by
 *
 *	1 write barrier					(A)
 *	2 stores ~0 as the word "row" of row i: a row that was begun and given up,
 *	  or memory that was never written, could have its number
 *	3 stores head = i + n with release		(B)
 *
 * in memory that was 0 before the first row.
 */
static inline int strobe_row_absent(const struct strobe_ring_header *header,
				    const struct strobe_row *row, __u64 number)
{
	return header->incompat & STROBE_INCOMPAT_ABSENT && row->row != number;
}

/* ------------------------------------------------------------------------
 * STROBE_FEATURES: what this kernel can do.
 */

/* strobe_features.features: rows can have a program: struct strobe_program; since minor 3. */
#define STROBE_FEATURE_PROGRAMS	(1ULL << 0)
/* A program can have outputs written: STROBE_OP_ACT; since minor 4. */
#define STROBE_FEATURE_ACT	(1ULL << 1)
/* Variables of a program can be set while the run goes on: STROBE_TUNE; since minor 5. */
#define STROBE_FEATURE_TUNE	(1ULL << 2)
/* Runs can follow others: strobe_create.event; since minor 6. */
#define STROBE_FEATURE_FOLLOW	(1ULL << 3)

/**
 * struct strobe_features - argument of STROBE_FEATURES.
 * @size: sizeof(struct strobe_features).
 * @flags: 0.
 * @major: out: STROBE_RING_MAJOR of the kernel.
 * @minor: out: STROBE_RING_MINOR of the kernel.
 * @create_flags: out: flags of STROBE_CREATE that it knows.
 * @reader_flags: out: flags of STROBE_READER that it knows.
 * @incompat: out: STROBE_INCOMPAT_* that its rings may have.
 * @causes: out: bit n is set if rows can be missed for cause n.
 * @steps_max: out: steps of one run, at most.
 * @features: out: STROBE_FEATURE_*: abilities that have no other sign.
 */
struct strobe_features {
	__u32		size;
	__u32		flags;
	__u16		major;
	__u16		minor;
	__u32		create_flags;
	__u32		reader_flags;
	__u32		incompat;
	__u32		causes;
	__u32		steps_max;
	__aligned_u64	features;
};

/* ------------------------------------------------------------------------
 * STROBE_LIST: the catalogue.
 *
 * poll on the control device is ready (POLLIN) when the catalogue is another
 * than that which this open file has got by its last STROBE_LIST with run 0; a
 * file that has got none yet is ready at once.
 */

/** enum strobe_kind - what an entry of the catalogue is. */
enum strobe_kind {
	STROBE_KIND_DEVICE	= 1,
	STROBE_KIND_CHANNEL	= 2,
	STROBE_KIND_OUTPUT	= 3,
	STROBE_KIND_EVENT	= 4,
	STROBE_KIND_RUN		= 5,
};

/** enum strobe_type - how the 64-bit word of a channel is to be understood. */
enum strobe_type {
	STROBE_TYPE_U64	= 0,
	STROBE_TYPE_S64	= 1,
	STROBE_TYPE_F64	= 2,
};

/**
 * enum strobe_class - what it takes to read a channel.
 * @STROBE_CLASS_HARD: may be read in hard interrupt context.
 * @STROBE_CLASS_SLEEP: may sleep.
 * @STROBE_CLASS_ASYNC: its value arrives later.
 */
enum strobe_class {
	STROBE_CLASS_HARD	= 0,
	STROBE_CLASS_SLEEP	= 1,
	STROBE_CLASS_ASYNC	= 2,
};

/* strobe_entry.flags: a run uses this device, channel, output or event. */
#define STROBE_ENTRY_IN_USE	(1U << 0)
/* Events: a period must be given (STROBE_CREATE, period_ns). */
#define STROBE_ENTRY_PERIODIC	(1U << 1)
/* Runs: STROBE_SHARED. */
#define STROBE_ENTRY_SHARED	(1U << 2)
/*
 * Events, and of runs their event: what is known of occurrences that its source
 * has dropped before strobe heard of them. Contract 1.2; neither of the two bits:
 * nothing, or the module is older.
 *
 * EXACT: each is counted as missed, or the source cannot drop any.
 * BY_TIME: the source has a period and time stamps; gaps between stamps are
 * counted as missed by that period.
 */
#define STROBE_ENTRY_EXACT	(1U << 3)
#define STROBE_ENTRY_BY_TIME	(1U << 4)
/* Derived columns of a run: STROBE_TUNE sets what it shows. Since minor 5. */
#define STROBE_ENTRY_TUNABLE	(1U << 5)

/**
 * struct strobe_value - part of an entry: a channel or an output.
 * @type: enum strobe_type.
 * @cost_class: enum strobe_class.
 * @unit: of value * scale + offset, whatever the type; "" if it has none.
 * @scale: IEEE 754 binary64, as bits.
 * @offset: IEEE 754 binary64, as bits.
 * @bits: significant bits of the word.
 * @cost_ns: rough time one access takes.
 */
struct strobe_value {
	__u32		type;
	__u32		cost_class;
	char		unit[STROBE_UNIT_SIZE];
	__aligned_u64	scale;
	__aligned_u64	offset;
	__u32		bits;
	__u32		cost_ns;
};

/**
 * struct strobe_run_info - part of an entry: a run.
 * @state: enum strobe_state.
 * @error: negative errno when FAILED.
 * @channels: values in a row.
 * @readers: ring fds that are open.
 * @uid: who owns it (initial user namespace).
 * @pid: process that created it (initial pid namespace).
 * @capacity: rows in its ring.
 * @limit: rows it will make at most.
 * @head: rows made.
 * @triggers: triggers known.
 * @period_ns: of its timer; 0 for other events.
 * @elapsed_ns: since its start, or from start to end; 0 before the start.
 * @skipped: triggers left out on purpose.
 * @errors: rows in which something failed.
 * @outputs: outputs that a row writes.
 * @reserved: 0.
 */
struct strobe_run_info {
	__u32		state;
	__s32		error;
	__u32		channels;
	__u32		readers;
	__u32		uid;
	__s32		pid;
	__aligned_u64	capacity;
	__aligned_u64	limit;
	__aligned_u64	head;
	__aligned_u64	triggers;
	__aligned_u64	period_ns;
	__aligned_u64	elapsed_ns;
	__aligned_u64	skipped;
	__aligned_u64	errors;
	__u32		outputs;
	__u32		reserved;
};

/**
 * struct strobe_entry - one thing that is here.
 * @kind: enum strobe_kind.
 * @id: number of this entry, among runs or among all else; a run's id is what
 *	STROBE_READER takes. Not used again while the module is loaded; 0 for the
 *	events "timer" and "soft".
 * @parent: id of the device of a channel, output or event; else 0.
 * @flags: STROBE_ENTRY_*; 0 for the steps of a run; of its derived columns at most
 *	STROBE_ENTRY_TUNABLE.
 * @name: "device", "device.channel", ..., of letters, digits, '_' and '-' around
 *	one dot; of a run: the name of its event; of a derived column: as its program
 *	has named it.
 * @text: description for people; of a run: the name of its program.
 * @value: channels and outputs.
 * @run: runs.
 * @reserved: room for what is said of other kinds; 0.
 */
struct strobe_entry {
	__u32		kind;
	__u32		id;
	__u32		parent;
	__u32		flags;
	char		name[STROBE_NAME_SIZE];
	char		text[STROBE_TEXT_SIZE];
	union {
		struct strobe_value	value;
		struct strobe_run_info	run;
		__aligned_u64		reserved[16];
	};
};

/**
 * struct strobe_list - argument of STROBE_LIST.
 * @size: sizeof(struct strobe_list).
 * @flags: 0.
 * @run: 0 for the whole catalogue. Else a run's id: the run itself and then
 *	its steps in their order, then derived columns, so that its channels are
 *	named in the order of the columns; also after their devices are gone. ENOENT if there is
 *	no such run: it is listed, and takes new readers, until its owner fd is
 *	closed. Who reads its ring on asks for the names before.
 * @entry_size: sizeof(struct strobe_entry).
 * @buffer: address of an array of entries; may be 0 if @room is.
 * @room: entries that fit.
 * @count: out: entries there are. Greater than @room: not all were stored;
 *	call again with more room.
 * @generation: out: changes whenever a device, a channel, an output, an event
 *	or a run comes or goes.
 */
struct strobe_list {
	__u32		size;
	__u32		flags;
	__u32		run;
	__u32		entry_size;
	__aligned_u64	buffer;
	__u32		room;
	__u32		count;
	__aligned_u64	generation;
};

/* ------------------------------------------------------------------------
 * STROBE_CREATE: a run.
 */

/**
 * enum strobe_op - what a step does.
 * @STROBE_OP_READ: reads a channel.
 * @STROBE_OP_WRITE: writes an output.
 * @STROBE_OP_ACT: writes an output, of class HARD, in rows for which the program's
 *	answer has a bit. Such steps stand behind all others. Since minor 4.
 */
enum strobe_op {
	STROBE_OP_READ	= 1,
	STROBE_OP_WRITE	= 2,
	STROBE_OP_ACT	= 3,
};

/**
 * struct strobe_step - one step of a row; steps are done in their order.
 * @op: enum strobe_op.
 * @flags: of STROBE_OP_ACT the number of the bit, 1 to 31; else 0.
 * @value: what to write; 0 for a read.
 * @name: "device.channel" or "device.output".
 */
struct strobe_step {
	__u32		op;
	__u32		flags;
	__aligned_u64	value;
	char		name[STROBE_NAME_SIZE];
};

/*
 * strobe_create.flags: answer all, change nothing, return no fd. Providers are
 * not asked: what only they can refuse (STROBE_WHY_BUSY of a channel,
 * STROBE_WHY_PROVIDER) shows when the run is made.
 */
#define STROBE_DRY_RUN		(1U << 0)
/* Any process that may open the control device may read the run's ring. */
#define STROBE_SHARED		(1U << 1)

/* strobe_create.fault_step: no step is at fault. */
#define STROBE_NO_STEP		(~0U)

/**
 * enum strobe_why - what is wrong with a STROBE_CREATE, beyond its errno.
 * @STROBE_WHY_NONE: nothing, or the errno says all. EAGAIN: the run has a thread,
 *	and the user as many processes and threads as RLIMIT_NPROC allows.
 * @STROBE_WHY_EVENT: there is no such event (ENOENT). Of a run that is to be followed:
 *	the caller may not read it (EACCES), or it has too many readers (EUSERS).
 * @STROBE_WHY_PERIOD: period outside the bounds, missing, or given for an
 *	event that has none (EINVAL).
 * @STROBE_WHY_STEPS: more than STROBE_STEPS_MAX steps (EINVAL).
 * @STROBE_WHY_STEP: none of enum strobe_op, a value or flag where none belongs;
 *	an ACT without a program, or with a bit that is none; or another step behind
 *	an ACT (EINVAL); @fault_step.
 * @STROBE_WHY_NAME: no such channel or output (ENOENT), or as of STROBE_WHY_EVENT;
 *	@fault_step.
 * @STROBE_WHY_BUSY: another run's use of the channel or output excludes this
 *	one (EBUSY), @fault_step; or 64 runs have this event already.
 * @STROBE_WHY_VALUE: value wider than the output (ERANGE); @fault_step.
 * @STROBE_WHY_DUE: clock.late on an event that is never due (EOPNOTSUPP);
 *	@fault_step.
 * @STROBE_WHY_CAPACITY: not a power of two, below 2 or beyond
 *	STROBE_CAPACITY_MAX (EINVAL).
 * @STROBE_WHY_CLOCK: neither CLOCK_MONOTONIC nor CLOCK_TAI (EINVAL).
 * @STROBE_WHY_MEMORY: all rings together would exceed the bound of the module
 *	parameter ring_bytes_max, or those of one user half of it, or what this
 *	user may lock in memory: the module parameter user_bytes_free and
 *	RLIMIT_MEMLOCK (ENOSPC).
 * @STROBE_WHY_PROVIDER: the channel's provider refused; the errno is its own;
 *	@fault_step.
 * @STROBE_WHY_PRIORITY: priority beyond STROBE_PRIORITY_MAX (EINVAL), or beyond
 *	STROBE_PRIORITY_DEFAULT and RLIMIT_RTPRIO without CAP_SYS_NICE (EPERM).
 * @STROBE_WHY_COST: the steps and the program cost more than STROBE_COST_MAX in hard interrupt
 *	context, without CAP_SYS_NICE (EPERM).
 * @STROBE_WHY_RUNS: the user has as many runs as one may have (EUSERS).
 * @STROBE_WHY_ASYNC: all runs together would have more than 1024 async channels
 *	(EUSERS).
 * @STROBE_WHY_PROGRAM: the program is not one: its instruction @fault_step may
 *	not stand where it is, or @fault_step is STROBE_NO_STEP and it is empty, too
 *	long, or has too much state or more tunables than it can have (EINVAL). Or step
 *	@fault_step is of another class than HARD (EOPNOTSUPP); or, with STROBE_NO_STEP,
 *	this kernel does not compile it, which a dry run does not find out. Or programs
 *	are not allowed here: the module parameter programs (EPERM).
 * @STROBE_WHY_DERIVED: derived column @fault_step has no name, or one that does not
 *	end or has control characters, or the same of its unit, or is of another type
 *	than U64 and S64, or of no bits or more than 64; or, with STROBE_NO_STEP, they
 *	are more than STROBE_STEPS_MAX together with the steps (EINVAL).
 */
enum strobe_why {
	STROBE_WHY_NONE		= 0,
	STROBE_WHY_EVENT	= 1,
	STROBE_WHY_PERIOD	= 2,
	STROBE_WHY_STEPS	= 3,
	STROBE_WHY_STEP		= 4,
	STROBE_WHY_NAME		= 5,
	STROBE_WHY_BUSY		= 6,
	STROBE_WHY_VALUE	= 7,
	STROBE_WHY_DUE		= 8,
	STROBE_WHY_CAPACITY	= 9,
	STROBE_WHY_CLOCK	= 10,
	STROBE_WHY_MEMORY	= 11,
	STROBE_WHY_PROVIDER	= 12,
	STROBE_WHY_PRIORITY	= 13,
	STROBE_WHY_COST		= 14,
	STROBE_WHY_RUNS		= 15,
	STROBE_WHY_ASYNC	= 16,
	STROBE_WHY_PROGRAM	= 17,
	STROBE_WHY_DERIVED	= 18,
};

/*
 * A program runs on each trigger, after the steps of the row, in the context in
 * which they are done. It computes columns from the values of the row, and says
 * whether the row is left out. A row in which something failed it does not see:
 * that row is kept, and its derived columns have failed, too. Outputs of steps WRITE
 * are written before, also by rows that are left out; those of steps ACT after it.
 *
 * It is an array of eBPF instructions in the machine's byte order (struct bpf_insn
 * of <linux/bpf.h>), of these alone:
 *  - ALU64 with a register or a number: MOV, ADD, SUB, MUL, AND, OR, XOR, LSH, RSH,
 *    ARSH (a number of these three is 0..63; of a register the lowest 6 bits count),
 *    NEG; DIV and MOD without a sign;
 *  - LDX and STX, MEM, DW: whole words of the row, of which only the derived columns
 *    may be stored, and of the state;
 *  - JMP: JA, and JEQ, JNE, JGT, JGE, JLT, JLE, JSGT, JSGE, JSLT, JSLE with a register
 *    or a number, by 0 or more instructions forward, to one of the program; and EXIT;
 *  - LD, IMM, DW: a number of 64 bits, in two instructions.
 * A number of 32 bits is extended with its sign, for all of them. Fields that an
 * instruction does not use are 0: the source with a number, the number with a
 * register and in loads and stores, the offset but in loads, stores and jumps, all
 * of NEG but its register, all of JA but its offset, all of EXIT, and of the second
 * instruction of LD all but its number.
 *
 * At the start R1 is the address of the row's values, those of the channels first
 * and then the derived columns, and R9 that of the state, whose words are 0 when
 * the run is made, and stay what they are over pauses and rows that were not seen.
 * These two are only bases of loads and stores, with constant offsets, multiples of
 * 8, inside of the row or state. R0 and R2 to R8 are free. Each is set before it is
 * used, on every way there, whatever the conditions on it are, and on the one that
 * goes on behind a JA or EXIT to the next instruction, though nothing takes that.
 * R0 is used by EXIT.
 *
 * A DIV or MOD by a number is not by 0; one by a register r is the third of
 *	JNE r, 0, +1;  MOV r, 1;  DIV or MOD by r
 * A word of the state whose place is not constant is reached by
 *	AND r, mask;  LSH r, 3;  ADD r, R9;  load or store with r as its base
 * with a mask that is not negative, and mask + offset / 8 < words of the state. What
 * is stored is another register than r. Behind it r is not set, but by the load. No
 * jump leads into these, nor to the second instruction of LD, but to their first
 * instruction. Every instruction can be reached, and the last one is EXIT.
 *
 * The answer is the lowest 32 bits of R0. Bit 0: 0 keeps the row; 1 leaves it out, and
 * its trigger counts as skipped. Another bit that is 1: the steps ACT of this number are
 * done, before the row is there for readers, and also if it is left out. If one of them
 * fails the row is kept, and its derived columns have failed, too. Bits of no step mean
 * nothing. A derived column that was not stored has the word of an older row of this
 * run, or 0.
 */

/* strobe_program.flags: it may leave rows out; without it, bit 0 of the answer is nothing. */
#define STROBE_PROGRAM_SKIPS	(1U << 0)
/* Instructions of a program, and words of its state, at most. */
#define STROBE_PROGRAM_INSNS	4096U
#define STROBE_PROGRAM_STATE	4096U
/* Words of its state that STROBE_TUNE may set, at most. */
#define STROBE_TUNABLES_MAX	64U

/**
 * struct strobe_derived - a column that a program computes.
 * @name: what it is called; of any characters but control characters.
 * @value: what it is, as for a channel: type (not F64), unit, scale, offset, bits;
 *	cost_class STROBE_CLASS_HARD; cost_ns 0.
 */
struct strobe_derived {
	char			name[STROBE_NAME_SIZE];
	struct strobe_value	value;
};

/**
 * struct strobe_program - the program of a run.
 * @size: sizeof(struct strobe_program).
 * @flags: STROBE_PROGRAM_SKIPS.
 * @insns: address of an array of struct bpf_insn.
 * @insn_count: instructions in it.
 * @state: words of its state.
 * @derived: address of an array of struct strobe_derived; may be 0 if there is
 *	none.
 * @derived_count: columns in it. They follow the channels in a row, and count as
 *	channels everywhere: in the header, the answers, the fault bits and LIST,
 *	where they are the last entries of a run, of kind CHANNEL, with no id and
 *	parent.
 * @derived_size: sizeof(struct strobe_derived).
 * @tunables: the first words of the state, which STROBE_TUNE may set; at most
 *	STROBE_TUNABLES_MAX, @state and @derived_count. The first derived columns
 *	show them, in this order: so the row says with what it was computed. The
 *	program sees to that. Since minor 5.
 * @reserved: 0.
 */
struct strobe_program {
	__u32		size;
	__u32		flags;
	__aligned_u64	insns;
	__u32		insn_count;
	__u32		state;
	__aligned_u64	derived;
	__u32		derived_count;
	__u32		derived_size;
	__u32		tunables;
	__u32		reserved;
};

/**
 * struct strobe_created - what STROBE_CREATE answers.
 * @fd: owner fd; -1 if none was made.
 * @run: id of the run; 0 if none was made.
 * @fault_step: index of the step that is wrong, or of what @why says; or
 *	STROBE_NO_STEP.
 * @why: enum strobe_why.
 * @channels: values in a row.
 * @outputs: outputs that a row writes.
 * @row_size: bytes of a row without padding.
 * @row_stride: bytes from row to row.
 * @capacity: rows in the ring.
 * @ring_bytes: what a reader maps, header included.
 * @cost_ns: rough time the steps of one row take, and its program.
 *
 * Written on success, and as far as known on failure.
 */
struct strobe_created {
	__s32		fd;
	__u32		run;
	__u32		fault_step;
	__u32		why;
	__u32		channels;
	__u32		outputs;
	__u32		row_size;
	__u32		row_stride;
	__aligned_u64	capacity;
	__aligned_u64	ring_bytes;
	__aligned_u64	cost_ns;
};

/**
 * struct strobe_create - argument of STROBE_CREATE; nothing in it is written.
 * @size: sizeof(struct strobe_create).
 * @flags: STROBE_DRY_RUN, STROBE_SHARED.
 * @event: name of the event: "timer", "soft" or "device.event"; since minor 6 also
 *	"run:ID.row", each row of another run, or "run:ID.row:N", of which 0, N, 2N ...
 *	Steps may then, and with any other event, read "run:ID.row", "run:ID.time" and
 *	"run:ID.CHANNEL" of runs that the caller may read.
 * @period_ns: period of "timer"; 0 for other events.
 * @capacity: rows in the ring, a power of two; 0: one second of rows or 1024,
 *	whichever is more, rounded up (8192 for events without a period).
 * @limit: rows to make; 0 or STROBE_NO_LIMIT: until stopped.
 * @steps: address of an array of struct strobe_step; may be 0 if there is none.
 * @step_count: steps in it; rows without a channel are allowed.
 * @step_size: sizeof(struct strobe_step).
 * @clock: CLOCK_MONOTONIC (1) or CLOCK_TAI (11); 0 means CLOCK_MONOTONIC.
 * @priority: SCHED_FIFO priority of the thread that a run with sleep channels
 *	has; 0: STROBE_PRIORITY_DEFAULT.
 * @answer: address of a struct strobe_created.
 * @answer_size: sizeof(struct strobe_created).
 * @reserved: 0.
 * @program: address of a struct strobe_program; 0: none. Since minor 3.
 */
struct strobe_create {
	__u32		size;
	__u32		flags;
	char		event[STROBE_NAME_SIZE];
	__aligned_u64	period_ns;
	__aligned_u64	capacity;
	__aligned_u64	limit;
	__aligned_u64	steps;
	__u32		step_count;
	__u32		step_size;
	__u32		clock;
	__u32		priority;
	__aligned_u64	answer;
	__u32		answer_size;
	__u32		reserved;
	__aligned_u64	program;
};

/* ------------------------------------------------------------------------
 * STROBE_CONTROL: on the owner fd.
 */

/**
 * enum strobe_control_op - what to do with a run.
 * @STROBE_STATUS: nothing but fill in the answer.
 * @STROBE_START: READY becomes RUNNING.
 * @STROBE_PAUSE: RUNNING becomes PAUSED; no row is made after the return.
 * @STROBE_RESUME: PAUSED becomes RUNNING; a timer goes on with the next point
 *	of its grid.
 * @STROBE_STOP: any state becomes STOPPED; nothing if the run has ended.
 * @STROBE_TRIGGER: @count triggers of the event "soft", one after the other;
 *	each waits for the sleep channels of the row before, not for async ones.
 *
 * Errors: EALREADY the run is in that state; EBUSY not possible in this state;
 * ESHUTDOWN the run has ended; EOPNOTSUPP a trigger for an event that is not
 * "soft"; ENODEV the device that raises the event refused (@cause) or is gone;
 * EUSERS for START and RESUME: this CPU has as many timers as it may.
 */
enum strobe_control_op {
	STROBE_STATUS	= 0,
	STROBE_START	= 1,
	STROBE_PAUSE	= 2,
	STROBE_RESUME	= 3,
	STROBE_STOP	= 4,
	STROBE_TRIGGER	= 5,
};

/* Triggers of one STROBE_TRIGGER, at most. */
#define STROBE_TRIGGER_MAX	1000000U

/**
 * struct strobe_control - argument of STROBE_CONTROL.
 * @size: sizeof(struct strobe_control).
 * @op: enum strobe_control_op.
 * @flags: 0.
 * @count: triggers for STROBE_TRIGGER, 1..STROBE_TRIGGER_MAX; else 0.
 *	A signal ends it early; the answer says how many triggers there were.
 * @state: out: enum strobe_state.
 * @error: out: negative errno when FAILED.
 * @head: out: rows made.
 * @triggers: out: triggers known; those of an unfinished row, and what was
 *	missed meanwhile, become known with the row.
 * @skipped: out: triggers left out on purpose.
 * @cause: out: after a START or RESUME that failed with ENODEV, the negative
 *	errno that the event's provider gave; else 0.
 * @reserved: 0.
 *
 * The answer is written on failure, too, but for a question that cannot be
 * understood (EINVAL, E2BIG, EFAULT).
 */
struct strobe_control {
	__u32		size;
	__u32		op;
	__u32		flags;
	__u32		count;
	__u32		state;
	__s32		error;
	__aligned_u64	head;
	__aligned_u64	triggers;
	__aligned_u64	skipped;
	__s32		cause;
	__u32		reserved;
};

/* ------------------------------------------------------------------------
 * STROBE_READER: a reader; STROBE_ARM: when to wake it.
 *
 * A ring fd offers
 *   mmap  PROT_READ, MAP_SHARED, from offset 0, ring_bytes long or shorter;
 *   poll  POLLIN when so many rows are there as STROBE_ARM has said; POLLIN and
 *         POLLHUP when the run has ended. If nothing is armed, POLLIN when
 *         read() would return rows: since a reader that maps the ring does not
 *         move the cursor of read(), it must arm, or poll is always ready;
 *   read  whole rows of row_size bytes from a cursor of its own, the oldest
 *         rows first; 0 when the run has ended and all was read. Rows that were
 *         overwritten meanwhile are left out: "row" shows it. EINVAL if not even
 *         one row fits, EAGAIN on a non-blocking fd without rows.
 * Rows stay readable for as long as a ring fd is open, also after the end.
 * Descriptors that were made of one ring fd, by dup() or SCM_RIGHTS, are one
 * reader: they share its cursor and what is armed.
 */

/* strobe_reader.flags: the fd is non-blocking from the start. */
#define STROBE_NONBLOCK		(1U << 0)
/* strobe_reader.first: read() starts with the next row to come. */
#define STROBE_FROM_NOW		(~0ULL)

/**
 * struct strobe_reader - argument of STROBE_READER.
 * @size: sizeof(struct strobe_reader).
 * @flags: STROBE_NONBLOCK.
 * @run: on the control device: id of a run. Its owner's user may read it, and
 *	CAP_SYS_ADMIN; anybody if it is STROBE_SHARED (else EACCES; ENOENT if
 *	there is no such run). On an owner fd: 0. EUSERS if the caller's user
 *	has as many ring fds of the run as he may: 16, if it is another's, and
 *	256 are all.
 * @reserved: 0.
 * @first: number of the row with which read() starts; 0: the oldest there is;
 *	STROBE_FROM_NOW. Rows from it on that are overwritten already are lost:
 *	the number of the first row that is read shows how many. mmap readers
 *	keep a cursor of their own.
 * @fd: out: ring fd.
 * @channels: out: values in a row.
 * @outputs: out: outputs that a row writes.
 * @row_size: out: bytes of a row, as read() gives it.
 * @ring_bytes: out: what to map; a multiple of the page size.
 */
struct strobe_reader {
	__u32		size;
	__u32		flags;
	__u32		run;
	__u32		reserved;
	__aligned_u64	first;
	__s32		fd;
	__u32		channels;
	__u32		outputs;
	__u32		row_size;
	__aligned_u64	ring_bytes;
};

/**
 * struct strobe_arm - argument of STROBE_ARM, on a ring fd.
 * @size: sizeof(struct strobe_arm).
 * @flags: 0.
 * @rows: poll is ready when head >= @rows: when the run has made so many rows,
 *	or has ended; 0 disarms. Stays until it is set anew.
 */
struct strobe_arm {
	__u32		size;
	__u32		flags;
	__aligned_u64	rows;
};

/* ------------------------------------------------------------------------
 * STROBE_TUNE: a variable of a run's program gets a new value. Since minor 5.
 */

/**
 * struct strobe_tune - argument of STROBE_TUNE.
 * @size: sizeof(struct strobe_tune).
 * @flags: 0.
 * @run: on the control device, which must be open for writing (else EBADF): id of a
 *	run. Its owner's user may tune it, and CAP_SYS_ADMIN (else EACCES; ENOENT if
 *	there is no such run). On an owner fd: 0.
 * @tunable: which one: number of the derived column that shows it, from 0. EINVAL
 *	if the run has no such tunable.
 * @value: its word; ERANGE if it is beyond the type and bits of that column.
 *
 * The program of a row that begins after the return sees the value; the first row
 * after START or RESUME in any case. Another row sees it with the next one if something
 * in it failed, for then the program does not run, or if it begins at the moment at
 * which another value of the run is being set. Of several values that come before the
 * program runs it sees the last one. What the program itself stores there later
 * replaces it. ESHUTDOWN if the run has ended.
 */
struct strobe_tune {
	__u32		size;
	__u32		flags;
	__u32		run;
	__u32		tunable;
	__aligned_u64	value;
};

/*
 * The size of an argument is in the argument, not in the number, so that a
 * number never changes.
 */
#define STROBE_IOC_MAGIC	0xDA

#define STROBE_LIST	_IO(STROBE_IOC_MAGIC, 0x00)	/* struct strobe_list */
#define STROBE_CREATE	_IO(STROBE_IOC_MAGIC, 0x01)	/* struct strobe_create */
#define STROBE_CONTROL	_IO(STROBE_IOC_MAGIC, 0x02)	/* struct strobe_control */
#define STROBE_READER	_IO(STROBE_IOC_MAGIC, 0x03)	/* struct strobe_reader */
#define STROBE_ARM	_IO(STROBE_IOC_MAGIC, 0x04)	/* struct strobe_arm */
#define STROBE_FEATURES	_IO(STROBE_IOC_MAGIC, 0x05)	/* struct strobe_features */
#define STROBE_TUNE	_IO(STROBE_IOC_MAGIC, 0x06)	/* struct strobe_tune */

#endif /* _UAPI_STROBE_H */
