// SPDX-License-Identifier: GPL-2.0-only
/*
 * What makes rows late, on demand: interrupts that are off, and a page that is
 * not there.
 *
 * In /sys/devices/platform/lab_stall:
 *
 *   left    stalls still to be made; writing a number starts them. In each the
 *           thread "lab_stall" keeps interrupts off on CPU cpu for off_us
 *   drop    writing takes the page away
 *
 * The UIO device "lab_stall" has one map, a page of zeros. Whoever touches it
 * for the first time, or after it was taken away, waits for it for fault_us.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/timekeeping.h>
#include <linux/uio_driver.h>
#include <linux/version.h>
#include <linux/wait.h>

static unsigned int off_us = 300;
module_param(off_us, uint, 0644);
MODULE_PARM_DESC(off_us, "how long interrupts are off in a stall");

static unsigned int every_ms = 50;
module_param(every_ms, uint, 0644);
MODULE_PARM_DESC(every_ms, "from a stall to the next");

static unsigned int fault_us = 300;
module_param(fault_us, uint, 0644);
MODULE_PARM_DESC(fault_us, "how long the page takes to come");

static int cpu;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "where interrupts are off");

static atomic_t left = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(asked);
static struct task_struct *thread;

/* The page, and the mappings it is taken away from; set before anyone maps it. */
static struct page *page;
static struct address_space *mappings;

static noinline void lab_stall_interrupts_off(void)
{
	unsigned long flags;
	u64 end;

	local_irq_save(flags);
	end = ktime_get_ns() + (u64)READ_ONCE(off_us) * NSEC_PER_USEC;
	while (ktime_get_ns() < end)
		cpu_relax();
	local_irq_restore(flags);
}

static int stall_thread(void *unused)
{
	for (;;) {
		wait_event_idle(asked, kthread_should_stop() || atomic_read(&left) > 0);
		if (kthread_should_stop())
			return 0;
		lab_stall_interrupts_off();
		/* The next one is no sooner, also if it is asked for at once. */
		if (atomic_dec_if_positive(&left) > 0)
			msleep(READ_ONCE(every_ms));
	}
}

static ssize_t left_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", atomic_read(&left));
}

static ssize_t left_store(struct device *dev, struct device_attribute *attr,
			  const char *text, size_t length)
{
	u16 count;
	int err = kstrtou16(text, 0, &count);

	if (err)
		return err;
	atomic_set(&left, count);
	wake_up(&asked);
	return length;
}
static DEVICE_ATTR_RW(left);

static ssize_t drop_store(struct device *dev, struct device_attribute *attr,
			  const char *text, size_t length)
{
	struct address_space *from = READ_ONCE(mappings);

	if (from)
		unmap_mapping_range(from, 0, PAGE_SIZE, 1);
	return length;
}
static DEVICE_ATTR_WO(drop);

static struct attribute *stall_attrs[] = {
	&dev_attr_left.attr, &dev_attr_drop.attr, NULL
};
ATTRIBUTE_GROUPS(stall);

static vm_fault_t stall_fault(struct vm_fault *vmf)
{
	if (vmf->pgoff)
		return VM_FAULT_SIGBUS;
	fsleep(READ_ONCE(fault_us));
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct stall_pages = {
	.fault = stall_fault,
};

/* What is taken away is that of the device's file, which lives as long as the device. */
#if KERNEL_VERSION(7, 2, 0) > LINUX_VERSION_CODE
static int stall_mmap(struct uio_info *info, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &stall_pages;
	WRITE_ONCE(mappings, vma->vm_file->f_mapping);
	return 0;
}
#else
/* As 7.2 and newer want it: before there is a mapping. */
#define mmap mmap_prepare
static int stall_mmap(struct uio_info *info, struct vm_area_desc *desc)
{
	if (desc->pgoff || vma_desc_size(desc) != PAGE_SIZE)
		return -EINVAL;
	vma_desc_set_flags(desc, VMA_DONTEXPAND_BIT, VMA_DONTDUMP_BIT);
	desc->vm_ops = &stall_pages;
	WRITE_ONCE(mappings, desc->file->f_mapping);
	return 0;
}
#endif

static struct uio_info stall_uio = {
	.name		= "lab_stall",
	.version	= "1",
	.irq		= UIO_IRQ_NONE,
	.mmap		= stall_mmap,
	.mem[0]		= {
		.name		= "page",
		.memtype	= UIO_MEM_LOGICAL,
		.size		= PAGE_SIZE,
	},
};

static struct platform_device *device;

static int __init stall_init(void)
{
	int err = -ENOMEM;

	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return err;
	device = platform_device_register_simple("lab_stall", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device)) {
		err = PTR_ERR(device);
		goto no_device;
	}
	err = device_add_groups(&device->dev, stall_groups);
	if (err)
		goto no_groups;
	thread = kthread_create_on_cpu(stall_thread, NULL, cpu, "lab_stall");
	if (IS_ERR(thread)) {
		err = PTR_ERR(thread);
		goto no_thread;
	}
	wake_up_process(thread);
	stall_uio.mem[0].addr = (phys_addr_t)(uintptr_t)page_address(page);
	err = uio_register_device(&device->dev, &stall_uio);
	if (!err)
		return 0;
	kthread_stop(thread);
no_thread:
	device_remove_groups(&device->dev, stall_groups);
no_groups:
	platform_device_unregister(device);
no_device:
	__free_page(page);
	return err;
}

static void __exit stall_exit(void)
{
	uio_unregister_device(&stall_uio);
	kthread_stop(thread);
	device_remove_groups(&device->dev, stall_groups);
	platform_device_unregister(device);
	__free_page(page);
}

module_init(stall_init);
module_exit(stall_exit);

MODULE_DESCRIPTION("Interrupts that are off and a page that is not there, on demand");
MODULE_LICENSE("GPL");
