# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernels with sanitizers find what they are for: each fault is made once, on purpose."""

import subprocess
import tempfile
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parents[2]
MODULE = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/timer.h>

static char *fault = "none";
module_param(fault, charp, 0);

static unsigned long shared;
static char *lost;
static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(one);
static DEFINE_MUTEX(two);

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static void race(void)
{
	struct task_struct *threads[2];

	for (int i = 0; i < 2; i++) {
		threads[i] = kthread_create(count, NULL, "toy%d", i);
		kthread_bind(threads[i], i);
		wake_up_process(threads[i]);
	}
	msleep(3000);
	for (int i = 0; i < 2; i++)
		kthread_stop(threads[i]);
}

static void overflow(void)
{
	volatile char *bytes = kmalloc(24, GFP_KERNEL);

	bytes[24] = 1;
	kfree((void *)bytes);
}

static void leak(void)
{
	/* Many: some may be found in registers and stacks. */
	for (int i = 0; i < 50; i++)
		WRITE_ONCE(lost, kmalloc(100, GFP_KERNEL));
	WRITE_ONCE(lost, NULL);
}

static void sleep(void)
{
	spin_lock(&spin);
	msleep(1);
	spin_unlock(&spin);
}

static void deadlock(void)
{
	mutex_lock(&one);
	mutex_lock(&two);
	mutex_unlock(&two);
	mutex_unlock(&one);
	mutex_lock(&two);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&two);
}

static void shift(void)
{
	volatile int places = 40;

	WRITE_ONCE(shared, 1 << places);
}

static void never(struct timer_list *timer)
{
}

static void lifetime(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 1000 * HZ);
	kfree(timer);
}

static int __init toy_init(void)
{
	if (!strcmp(fault, "race"))
		race();
	else if (!strcmp(fault, "overflow"))
		overflow();
	else if (!strcmp(fault, "leak"))
		leak();
	else if (!strcmp(fault, "sleep"))
		sleep();
	else if (!strcmp(fault, "deadlock"))
		deadlock();
	else if (!strcmp(fault, "shift"))
		shift();
	else if (!strcmp(fault, "lifetime"))
		lifetime();
	return 0;
}

static void __exit toy_exit(void)
{
}

module_init(toy_init);
module_exit(toy_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A module with the fault that it is told to have");
"""


class Faults(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)

    def toy(self, kernel: str, name: str) -> Path:
        source = self.path / "source"
        source.mkdir(exist_ok=True)
        (source / f"{name}.c").write_text(MODULE)
        (source / "Kbuild").write_text(f"obj-m := {name}.o\n")
        subprocess.run([LAB / "kmod", "--kernel", kernel, "--source", source, "--out", self.path / "built"], check=True)
        (module,) = (self.path / "built").glob(f"*-{kernel}/kernel/{name}.ko")
        return module

    def guest(self, kernel: str, module: Path, fault: str) -> tuple[int, str]:
        done = subprocess.run([LAB / "run", "--kernel", kernel, "--no-strobe", "--module", f"{module} fault={fault}", "--", "true"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_the_debug_kernel_finds_each_fault_that_it_is_for(self) -> None:
        module = self.toy("debug", "strobe_toy")
        for fault, report in (("overflow", "BUG: KASAN: slab-out-of-bounds in "), ("leak", "new suspected memory leak"),
                              ("sleep", "BUG: scheduling while atomic|sleeping function|Invalid wait context"),
                              ("deadlock", "WARNING: possible circular locking dependency detected"),
                              ("shift", "UBSAN: shift-out-of-bounds in "), ("lifetime", "ODEBUG: free active ")):
            with self.subTest(fault):
                status, said = self.guest("debug", module, fault)
                self.assertEqual(status, 70, said)
                self.assertRegex(said, f"complains: .*({report})")

    def test_the_kcsan_kernel_finds_a_race_of_this_tree_and_sets_that_of_another_aside(self) -> None:
        status, said = self.guest("kcsan", self.toy("kcsan", "strobe_toy"), "race")
        self.assertEqual(status, 70, said)
        self.assertRegex(said, "complains: BUG: KCSAN: data-race in count ")
        status, said = self.guest("kcsan", self.toy("kcsan", "toy"), "race")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, "of itself, not counted as a fault: data-race in count ")


if __name__ == "__main__":
    unittest.main()
