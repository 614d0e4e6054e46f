// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the rows: pages that the kernel sees as one piece and readers map
 * read-only. Charged to the memory cgroup and to the user of who creates the run,
 * and bounded for all rings together by a module parameter.
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>

#include "ring/ring.h"
#include "ring/user.h"

static unsigned long ring_bytes_max;
module_param(ring_bytes_max, ulong, 0644);
MODULE_PARM_DESC(ring_bytes_max, "bytes that all rings together may take; 0: a quarter of the memory (default)");

static atomic_long_t ring_bytes;

/**
 * strobe_ring_init() - a ring without memory yet.
 * @ring: to be filled in; the caller has the first reference.
 * @ops: what its owner wants to be told.
 */
void strobe_ring_init(struct strobe_ring *ring, const struct strobe_ring_ops *ops)
{
	ring->ops = ops;
	ring->wake_at = U64_MAX;
	kref_init(&ring->kref);
	spin_lock_init(&ring->lock);
	INIT_LIST_HEAD(&ring->readers);
	INIT_LIST_HEAD(&ring->waiting);
	init_irq_work(&ring->wake, strobe_wake_waiting);
}

/**
 * strobe_ring_get() - keep a ring.
 * @ring: the ring.
 */
void strobe_ring_get(struct strobe_ring *ring)
{
	kref_get(&ring->kref);
}

static void ring_release(struct kref *kref)
{
	struct strobe_ring *ring = container_of(kref, struct strobe_ring, kref);

	ring->ops->release(ring);
}

/**
 * strobe_ring_put() - let go of a ring.
 * @ring: the ring; its owner is told when that was the last reference.
 *
 * Context: process.
 */
void strobe_ring_put(struct strobe_ring *ring)
{
	kref_put(&ring->kref, ring_release);
}

/**
 * strobe_ring_bytes_max() - bytes that all rings together may take.
 */
unsigned long strobe_ring_bytes_max(void)
{
	return READ_ONCE(ring_bytes_max) ?: (totalram_pages() << PAGE_SHIFT) / 4;
}

/**
 * strobe_ring_fits() - would there be room, as things are now?
 * @bytes: from strobe_ring_size().
 */
bool strobe_ring_fits(size_t bytes)
{
	unsigned long max = strobe_ring_bytes_max(), used = atomic_long_read(&ring_bytes);

	return bytes <= max && used <= max - bytes;
}

static bool reserve(size_t bytes)
{
	if (!strobe_ring_fits(bytes))
		return false;
	/* Others may have been faster. */
	if (atomic_long_add_return(bytes, &ring_bytes) <= strobe_ring_bytes_max())
		return true;
	atomic_long_sub(bytes, &ring_bytes);
	return false;
}

static void free_pages_of(struct strobe_ring *ring)
{
	while (ring->page_count) {
		__free_page(ring->pages[--ring->page_count]);
		cond_resched();
	}
	kvfree(ring->pages);
	ring->pages = NULL;
}

/**
 * strobe_ring_pay() - charge a ring to the caller.
 * @ring: the ring; it has no memory yet.
 * @bytes: what it will take, with what it is embedded in.
 *
 * Context: process.
 * Return: 0, -ENOMEM, -EUSERS for too many, -ENOSPC for too much.
 */
int strobe_ring_pay(struct strobe_ring *ring, u64 bytes)
{
	int ret;

	ring->owner = strobe_user_get();
	if (!ring->owner)
		return -ENOMEM;
	ret = strobe_user_charge(ring->owner, bytes);
	if (ret)
		return ret;
	ring->payer = strobe_user_hold(ring->owner);
	ring->charged = bytes;
	return 0;
}

/**
 * strobe_ring_unpay() - undo strobe_ring_pay(), which may have failed.
 * @ring: the ring; nobody has it any more.
 *
 * Context: process.
 */
void strobe_ring_unpay(struct strobe_ring *ring)
{
	if (ring->payer)
		strobe_user_uncharge(ring->payer, ring->charged);
	strobe_user_put(ring->payer);
	strobe_user_put(ring->owner);
}

/**
 * strobe_ring_size() - bytes of a ring.
 * @capacity: rows.
 * @stride: bytes from row to row.
 *
 * Return: what a reader maps, or SIZE_MAX if no machine has that much.
 */
size_t strobe_ring_size(u64 capacity, u32 stride)
{
	u64 bytes;

	if (check_mul_overflow(capacity, (u64)stride, &bytes) ||
	    bytes > (u64)S32_MAX << PAGE_SHIFT)
		return SIZE_MAX;
	return PAGE_SIZE + PAGE_ALIGN(bytes);
}

/**
 * strobe_ring_alloc() - get zeroed memory.
 * @ring: to be filled in.
 * @bytes: from strobe_ring_size().
 *
 * Context: process.
 * Return: 0, -ENOSPC beyond the bound, -ENOMEM, -EINTR if killed meanwhile.
 */
int strobe_ring_alloc(struct strobe_ring *ring, size_t bytes)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	unsigned int count = bytes >> PAGE_SHIFT;
	int ret = -ENOMEM;

	if (!reserve(bytes))
		return -ENOSPC;
	ring->pages = kvcalloc(count, sizeof(*ring->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!ring->pages)
		goto unreserve;
	while (ring->page_count < count) {
		struct page *page = alloc_page(gfp);

		if (!page)
			goto free;
		ring->pages[ring->page_count++] = page;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			goto free;
		}
		cond_resched();
	}
	ring->header = vmap(ring->pages, count, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	if (!ring->header)
		goto free;
	ring->slots = (u64 *)((char *)ring->header + PAGE_SIZE);
	ring->bytes = bytes;
	return 0;

free:
	free_pages_of(ring);
unreserve:
	atomic_long_sub(bytes, &ring_bytes);
	return ret;
}

/**
 * strobe_ring_free() - give the memory back.
 * @ring: from strobe_ring_alloc(); nothing happens if that has failed.
 *
 * Context: process. Mappings keep their pages.
 */
void strobe_ring_free(struct strobe_ring *ring)
{
	if (!ring->header)
		return;
	vunmap(ring->header);
	ring->header = NULL;
	free_pages_of(ring);
	atomic_long_sub(ring->bytes, &ring_bytes);
}

/**
 * strobe_ring_mmap() - map for a reader.
 * @ring: the ring.
 * @vma: the mapping; read-only, from offset 0.
 *
 * Return: 0, -EACCES if it could be written, -EINVAL outside the ring.
 */
int strobe_ring_mmap(struct strobe_ring *ring, struct vm_area_struct *vma)
{
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start > ring->bytes)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	return remap_vmalloc_range(vma, ring->header, 0);
}
