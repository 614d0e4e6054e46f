// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers that can be reached in two ways: by a mapping of /dev/lab_ioctl, and
 * by an ioctl for each access, which is what a driver of its own would offer.
 *
 * They are words of a page of memory, so that the way is all that costs. An
 * ioctl here does the least that one can do: it copies the request, checks it,
 * makes the access and copies the answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "lab_ioctl.h"

static u32 *page;

static bool is_register(u32 offset, u32 count)
{
	return !(offset % sizeof(u32)) && count <= LAB_REGISTERS &&
	       offset <= PAGE_SIZE - count * sizeof(u32);
}

static long read_one(struct lab_register __user *user)
{
	struct lab_register reg;

	if (copy_from_user(&reg, user, sizeof(reg)))
		return -EFAULT;
	if (!is_register(reg.offset, 1))
		return -EINVAL;
	reg.value = READ_ONCE(page[reg.offset / sizeof(u32)]);
	return put_user(reg.value, &user->value);
}

static long write_one(const struct lab_register __user *user)
{
	struct lab_register reg;

	if (copy_from_user(&reg, user, sizeof(reg)))
		return -EFAULT;
	if (!is_register(reg.offset, 1))
		return -EINVAL;
	WRITE_ONCE(page[reg.offset / sizeof(u32)], reg.value);
	return 0;
}

static long read_many(struct lab_registers __user *user)
{
	struct lab_registers regs;

	if (copy_from_user(&regs, user, offsetof(struct lab_registers, values)))
		return -EFAULT;
	if (!is_register(regs.offset, regs.count))
		return -EINVAL;
	for (u32 i = 0; i < regs.count; i++)
		regs.values[i] = READ_ONCE(page[regs.offset / sizeof(u32) + i]);
	if (copy_to_user(user->values, regs.values, regs.count * sizeof(u32)))
		return -EFAULT;
	return 0;
}

static long lab_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (command) {
	case LAB_READ:
		return read_one(user);
	case LAB_WRITE:
		return write_one(user);
	case LAB_READ_MANY:
		return read_many(user);
	default:
		return -ENOTTY;
	}
}

static int lab_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;
	return vm_insert_page(vma, vma->vm_start, virt_to_page(page));
}

static const struct file_operations lab_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= lab_ioctl,
	.mmap		= lab_mmap,
};

static struct miscdevice device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "lab_ioctl",
	.fops	= &lab_fops,
};

static int __init lab_init(void)
{
	int err;

	page = (u32 *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	err = misc_register(&device);
	if (err)
		free_page((unsigned long)page);
	return err;
}

static void __exit lab_exit(void)
{
	misc_deregister(&device);
	free_page((unsigned long)page);
}

module_init(lab_init);
module_exit(lab_exit);

MODULE_DESCRIPTION("Registers to be accessed by a mapping and by ioctl");
MODULE_LICENSE("GPL");
