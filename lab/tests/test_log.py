# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the lab takes for a fault of the kernel, and what not."""

import re
import unittest

from labkit.log import FAULTS, fault

# One example at least of each kind, as a kernel says it.
BAD = (
    "WARNING: CPU: 0 PID: 151 at kernel/toy.c:9 toy_init+0x26/0xff0 [toy]",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "WARNING: inconsistent lock state",
    "------------[ cut here ]------------",
    "BUG: unable to handle page fault for address: ffffffffc0000000",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "BUG: KASAN: slab-out-of-bounds in strobe_push+0x12/0x30 [strobe]",
    "BUG: KCSAN: data-race in strobe_push / strobe_poll",
    "BUG: KFENCE: use-after-free read in strobe_push+0x12/0x30",
    "BUG: scheduling while atomic: strobe/123/0x00000002",
    "BUG: sleeping function called from invalid context at kernel/locking/spinlock_rt.c:48",
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [strobe:123]",
    "kernel BUG at kernel/strobe.c:12!",
    "Oops: int3: 0000 [#1] PREEMPT SMP",
    "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
    "general protection fault, maybe for address 0x0: 0000 [#1] SMP",
    "Kernel panic - not syncing: Fatal exception in interrupt",
    "UBSAN: array-index-out-of-bounds in kernel/strobe.c:12:3",
    "INFO: possible recursive locking detected",
    "INFO: trying to register non-static key.",
    "INFO: lockdep is turned off.",
    "DEBUG_LOCKS_WARN_ON(lock->magic != lock)",
    "INFO: task strobe:123 blocked for more than 60 seconds.",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "bad: scheduling while atomic!",
    "sleeping function called from invalid context",
    " Call Trace:",
    "list_add corruption. next->prev should be prev (ffff), but was 0000",
    "list_del corruption, ffff888004c97000->next is LIST_POISON1",
    "refcount_t: underflow; use-after-free.",
    "ODEBUG: free active (active state 0) object: ffff object type: hrtimer hint: strobe_tick",
    "BUG: Bad page state in process strobe  pfn:03f4a",
    "Bad page map in process strobe pte:800000 pmd:04fb",
    "irq 23: nobody cared (try booting with the \"irqpoll\" option)",
    "sysfs: cannot create duplicate filename '/class/strobe'",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "Out of memory: Killed process 123 (strobe) total-vm:1000kB",
)
HARMLESS = (
    "toy: loading out-of-tree module taints kernel.",
    "toy: module verification failed: signature and/or required key missing - tainting kernel",
    "hrtimer: interrupt took 3218730 ns",
    "perf: interrupt took too long (2508 > 2500), lowering kernel.perf_event_max_sample_rate to 79000",
    "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible!",
    "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:",
    "NOHZ tick-stop error: local softirq work is pending, handler #08!!!",
    "kfence: initialized - using 2097152 bytes for 255 objects",
    "rcu: Preemptible hierarchical RCU implementation.",
    "rcu: \tRCU debug extended QS entry/exit.",
    "mce: CPU0: Thermal monitoring enabled (TM1)",
    "x86/fpu: Supporting XSAVE feature 0x001: 'x87 floating point registers'",
    "ACPI: PM: Preparing to enter system sleep state S5",
    "debug: [drm] BUGS are not what this line is about",
    "Kernel command line: console=ttyS0 oops=panic panic=-1",
    "uio_pci_generic 0000:00:01.0: No IRQ assigned to device: no support for interrupts?",
    "sched: RT throttling activated",
)


class Faults(unittest.TestCase):
    def test_each_kind_of_fault_is_caught(self) -> None:
        for line in BAD:
            with self.subTest(line):
                self.assertIsNotNone(fault(f"[    0.1] all is well\n[    2.049433] {line}\n"))

    def test_each_pattern_has_an_example(self) -> None:
        for pattern in FAULTS:
            with self.subTest(pattern):
                self.assertTrue(any(re.search(pattern, line) for line in BAD))

    def test_a_healthy_log_is_not_suspected(self) -> None:
        self.assertIsNone(fault("\n".join(f"[   12.345678] {line}" for line in HARMLESS)))

    def test_stamps_levels_callers_and_carriage_returns_do_not_hide_a_fault(self) -> None:
        for line in ("[    1.5][    T1] WARNING: x\r", "<4>[    1.5] WARNING: x", "[12345.678901][   C0] WARNING: x"):
            with self.subTest(line):
                self.assertIsNotNone(fault(line))

    def test_the_line_named_is_the_one_that_says_what_happened(self) -> None:
        found = fault("[    1.0] ok\n[    2.0] ------------[ cut here ]------------\n[    2.0] WARNING: CPU: 0 at x.c:9\n")
        assert found
        self.assertEqual(found[0], "WARNING: CPU: 0 at x.c:9")
        self.assertTrue(found[1].startswith("[    2.0] ----"))

    def test_an_empty_log_is_healthy(self) -> None:
        self.assertIsNone(fault(""))


if __name__ == "__main__":
    unittest.main()
