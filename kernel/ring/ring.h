/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring: memory of the rows, ring fds, and how their readers are woken. It
 * knows nothing of runs: who makes rows embeds a struct strobe_ring and is
 * told by its operations what it has to know.
 */
#ifndef _STROBE_RING_H
#define _STROBE_RING_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <uapi/strobe.h>

struct file;
struct page;
struct seq_file;
struct strobe_ring;
struct strobe_user;
struct vm_area_struct;

/**
 * struct strobe_ring_ops - what the owner of a ring is told.
 * @ended: the header's state is final by the doing of the producer, which has
 *	queued @wake; or the run has ended that triggers this one. Hard interrupt, or
 *	a thread on PREEMPT_RT.
 * @show: lines for the fdinfo of a ring fd. Process.
 * @release: nobody has the ring any more: free it, and what it is embedded in.
 *	Process.
 */
struct strobe_ring_ops {
	void (*ended)(struct strobe_ring *ring);
	void (*show)(struct seq_file *m, struct strobe_ring *ring);
	void (*release)(struct strobe_ring *ring);
};

/**
 * struct strobe_ring - a ring and its readers.
 *
 * Constant while rows are made:
 * @header: first page; also what user space maps. The producer writes it, and
 *	never reads back what user space could see.
 * @slots: row 0.
 * @mask: capacity - 1.
 * @stride: of a row, in words.
 * @row_size: of a row without padding, in bytes.
 * @limit: rows there will be at most.
 *
 * @wake_at: rows at which somebody wants to be woken; written under @lock,
 *	read by the producer; barriers E and F, see wake.c.
 * @wake: wakes readers, queued by the producer.
 *
 * @lock: protects @readers, @waiting, @reader_count, and what they want; @payer
 *	and @is_left.
 * @readers: struct strobe_reader; all of them, for the end of the run.
 * @waiting: those of them that want to be woken at a row.
 * @reader_count: how many there are.
 * @payer: who it is charged to; a reference. The owner at first.
 * @is_left: there is nobody who makes rows any more.
 *
 * Constant:
 * @ops: see above.
 * @owner: who has made it; a reference.
 * @charged: bytes that are charged, with what it is embedded in.
 * @kref: one for who makes the rows, one for each ring fd and each run that follows.
 * @pages: all pages.
 * @page_count: how many.
 * @bytes: what is mapped.
 */
struct strobe_ring {
	struct strobe_ring_header	*header;
	u64				*slots;
	u64				mask;
	u32				stride;
	u32				row_size;
	u64				limit;

	u64				wake_at;
	struct irq_work			wake;

	spinlock_t			lock;	/* see above */
	struct list_head		readers;
	struct list_head		waiting;
	u32				reader_count;
	struct strobe_user		*payer;
	bool				is_left;

	const struct strobe_ring_ops	*ops;
	struct strobe_user		*owner;
	u64				charged;
	struct kref			kref;
	struct page			**pages;
	unsigned int			page_count;
	size_t				bytes;
};

/**
 * struct strobe_sleeper - a reader, as who wakes it sees it; under ring->lock.
 * @entry: in ring->readers.
 * @user: whose it is; a reference. Constant.
 * @waiting: in ring->waiting.
 * @wanted: least head at which to wake somebody.
 * @queue: who sleeps here.
 * @woken: of a reader in the kernel, instead of waking @queue: its row is there,
 *	or the run has ended. Returns the head at which it wants to be woken next;
 *	U64_MAX: not again; at the end nobody asks. Under @lock of the ring; hard, or a
 *	thread on PREEMPT_RT, or process. NULL: a file. Constant.
 */
struct strobe_sleeper {
	struct list_head	entry;
	struct strobe_user	*user;
	struct list_head	waiting;
	u64			wanted;
	wait_queue_head_t	queue;
	u64			(*woken)(struct strobe_sleeper *sleeper, u64 head);
};

/* ring.c */
void strobe_ring_init(struct strobe_ring *ring, const struct strobe_ring_ops *ops);
void strobe_ring_get(struct strobe_ring *ring);
void strobe_ring_put(struct strobe_ring *ring);
unsigned long strobe_ring_bytes_max(void);
bool strobe_ring_fits(size_t bytes);
int strobe_ring_pay(struct strobe_ring *ring, u64 bytes);
void strobe_ring_unpay(struct strobe_ring *ring);
int strobe_ring_alloc(struct strobe_ring *ring, size_t bytes);
void strobe_ring_free(struct strobe_ring *ring);
size_t strobe_ring_size(u64 capacity, u32 stride);
int strobe_ring_mmap(struct strobe_ring *ring, struct vm_area_struct *vma);

/* reader.c */
struct file *strobe_reader_open(struct strobe_ring *ring, struct strobe_user *user, u64 first,
				bool nonblock);

/* wake.c */
void strobe_ring_leave(struct strobe_ring *ring);
int strobe_wake_join(struct strobe_ring *ring, struct strobe_sleeper *sleeper);
void strobe_wake_forget(struct strobe_ring *ring, struct strobe_sleeper *sleeper);
void strobe_wake_leave(struct strobe_ring *ring, struct strobe_sleeper *sleeper);
bool strobe_wake_want(struct strobe_ring *ring, struct strobe_sleeper *sleeper, u64 row);
bool strobe_wake_reached_or_want(struct strobe_ring *ring, struct strobe_sleeper *sleeper,
				 u64 row);
void strobe_wake_waiting(struct irq_work *work);
void strobe_wake_all(struct strobe_ring *ring);

/* Has the run ended? */
static inline bool strobe_ring_is_final(const struct strobe_ring *ring)
{
	/* G: before head is looked at, or the last row is overlooked. */
	return smp_load_acquire(&ring->header->state) >= STROBE_DONE;
}

/* Rows that were published. */
static inline u64 strobe_ring_head(const struct strobe_ring *ring)
{
	/* C, pairs with B in strobe_publish(): the rows counted are whole. */
	return smp_load_acquire(&ring->header->head);
}

#endif /* _STROBE_RING_H */
