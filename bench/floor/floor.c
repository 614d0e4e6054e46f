// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor: the least a module can do to bring ten 64-bit words from a timer
 * to a process. No configuration, no checks, one reader; what strobe does beyond
 * this is its price.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "floor.h"
#include "row/marks.h"

static struct hrtimer timer;
static ktime_t period;
static struct floor_header *header;
static u64 *rows;
static u64 head;
static u64 registers[FLOOR_WORDS];
static DECLARE_WAIT_QUEUE_HEAD(queue);

static void wake(struct irq_work *work)
{
	wake_up_interruptible(&queue);
}

static struct irq_work wake_work = IRQ_WORK_INIT(wake);

static void make_row(void)
{
	u64 *row = rows + (head & (FLOOR_ROWS - 1)) * FLOOR_WORDS;

	if (head - READ_ONCE(header->tail) >= FLOOR_ROWS) {
		header->full++;
		return;
	}
	row[0] = head;
	row[1] = ktime_get_ns();
	for (int i = 2; i < FLOOR_WORDS; i++)
		row[i] = READ_ONCE(registers[i]);
	head++;
	smp_store_release(&header->head, head);	/* the row is whole */
	if (head >= READ_ONCE(header->wake_at) && wq_has_sleeper(&queue))
		irq_work_queue(&wake_work);
}

static enum hrtimer_restart fire(struct hrtimer *t)
{
	strobe_mark(0x10);
	make_row();
	header->missed += hrtimer_forward_now(t, period) - 1;
	strobe_mark(0x11);
	return HRTIMER_RESTART;
}

static long floor_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u64 ns;

	hrtimer_cancel(&timer);
	irq_work_sync(&wake_work);
	if (cmd == FLOOR_STOP)
		return 0;
	if (cmd != FLOOR_START)
		return -ENOTTY;
	if (copy_from_user(&ns, (void __user *)arg, sizeof(ns)))
		return -EFAULT;
	if (!ns)
		return -EINVAL;
	memset(header, 0, sizeof(*header));
	head = 0;
	period = ns_to_ktime(ns);
	hrtimer_start(&timer, period, HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static __poll_t floor_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &queue, wait);
	/* Pairs with the store of head: who is woken sees the row. */
	if (smp_load_acquire(&header->head) >= READ_ONCE(header->wake_at))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}

static int floor_mmap(struct file *file, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, header, vma->vm_pgoff);
}

static int floor_release(struct inode *inode, struct file *file)
{
	return floor_ioctl(file, FLOOR_STOP, 0);
}

static const struct file_operations floor_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= floor_ioctl,
	.poll		= floor_poll,
	.mmap		= floor_mmap,
	.release	= floor_release,
};

static struct miscdevice floor_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "floor",
	.fops	= &floor_fops,
};

static int __init floor_init(void)
{
	int ret;

	header = vmalloc_user(PAGE_ALIGN(FLOOR_BYTES));
	if (!header)
		return -ENOMEM;
	rows = (void *)header + FLOOR_DATA;
	hrtimer_setup(&timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	ret = misc_register(&floor_device);
	if (ret)
		vfree(header);
	return ret;
}

static void __exit floor_exit(void)
{
	misc_deregister(&floor_device);
	vfree(header);
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_DESCRIPTION("Floor of the cost of a row, to compare with strobe");
MODULE_LICENSE("GPL");
