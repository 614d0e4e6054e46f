# SPDX-License-Identifier: MIT OR Apache-2.0
"""What sanitizers report of the kernel itself, and what of this tree's modules."""

import unittest

from labkit.foreign import set_aside
from labkit.log import fault


MARK = "=" * 66


def race(first: str, *stack: str) -> str:
    lines = (MARK, f"BUG: KCSAN: data-race in {first}", "", "write to 0xffff888003d1c0f8 of 8 bytes by task 152 on cpu 1:",
             *(f" {line}" for line in stack), "", "Reported by Kernel Concurrency Sanitizer on:",
             "CPU: 1 UID: 0 PID: 152 Comm: strobe_thing Tainted: G O 6.12.117-kcsan #1", MARK)
    return "".join(f"[   12.345678] {line}\r\n" for line in lines)


FOREIGN = race("tick_sched / tick_nohz", "tick_sched+0x12/0x30", "tick_nohz+0x1/0x2")


class Races(unittest.TestCase):
    def test_a_race_of_the_kernel_itself_is_named_and_no_fault(self) -> None:
        rest, races = set_aside(f"[    1.0] before\n{FOREIGN}[    2.0] after\n")
        self.assertEqual((rest, races), ("[    1.0] before\n[    2.0] after", ["data-race in tick_sched / tick_nohz"]))
        self.assertIsNone(fault(rest))

    def test_a_race_with_a_module_of_this_tree_anywhere_in_a_stack_is_a_fault(self) -> None:
        for module in ("strobe", "strobe_board", "uio_dummy", "lab_gpio"):
            with self.subTest(module):
                rest, races = set_aside(FOREIGN + race("a / b", "a+0x1/0x2", f"strobe_tick+0x12/0x30 [{module}]"))
                self.assertEqual(races, ["data-race in tick_sched / tick_nohz"])
                self.assertEqual(fault(rest)[0], "BUG: KCSAN: data-race in a / b")

    def test_who_was_interrupted_by_a_race_has_no_part_in_it(self) -> None:
        stack = ("hrtimer+0x1/0x2", "asm_sysvec_apic_timer_interrupt+0x1b/0x20", "strobe_tick+0x1/0x2 [strobe]")
        self.assertEqual(len(set_aside(race("a / b", *stack))[1]), 1)
        self.assertEqual(set_aside(race("a / b", *stack, "", "read to 0xffff by task 3 on cpu 0:", "strobe_x+0x1/0x2 [strobe]"))[1], [])

    def test_a_race_that_every_caller_of_the_kernel_meets_is_known_by_both_its_functions(self) -> None:
        for first, count in (("init_file / init_file", 1), ("init_file / strobe_x", 0), ("init_file / init_filet", 0),
                             ("acpi_ns_remove_null_elements / acpi_ut_update_object_reference", 1), ("acpi_ns_x / strobe_x", 0),
                             ("give_back [lab_virtio_rpmsg] / virtqueue_get_buf_ctx_split", 1),
                             ("next_buffer [lab_virtio_rpmsg] / virtqueue_add_split", 1),
                             ("give_back [lab_virtio_rpmsg] / strobe_x", 0), ("process_one_work / queue_work_on", 1),
                             ("do_epoll_wait / ep_poll_callback", 1), ("__kernfs_remove.part.0 / kernfs_fop_open", 1),
                             ("__kernfs_remove.part.0 / kernfs_fop_release", 1),
                             ("do_epoll_wait / strobe_x", 0), ("__synchronize_hardirq / handle_irq_event", 1),
                             ("__synchronize_hardirq / strobe_x", 0),
                             ("hrtimer_wakeup / schedule_hrtimeout_range_clock", 1)):
            self.assertEqual(len(set_aside(race(first, "init_file+0x1/0x2", "strobe_open+0x1/0x2 [strobe]"))[1]), count)

    def test_a_module_of_others_is_not_ours(self) -> None:
        self.assertEqual(len(set_aside(race("a / b", "a+0x1/0x2 [uio]", "b+0x1/0x2 [xstrobe]"))[1]), 1)

    def test_another_fault_is_not_lost_with_a_report_around_it(self) -> None:
        rest, races = set_aside(race("a / b", "a+0x1/0x2", "BUG: scheduling while atomic: x/1/0x2"))
        self.assertEqual(len(races), 1)
        self.assertIsNotNone(fault(rest))

    def test_a_report_that_is_cut_short_is_a_fault(self) -> None:
        self.assertIsNotNone(fault(set_aside(FOREIGN[:-10])[0]))


def leak(*stack: str) -> str:
    lines = ('unreferenced object 0xffff8880040f5d40 (size 32):', 'comm "a_channel", pid 81, jiffies 4294901515',
             "hex dump (first 8 bytes):", "73 74 72 6f 62 65 00 ff  strobe..", "backtrace (crc bde6084a):",
             *stack, "do_syscall_64+0x5f/0x100")
    return "".join(f"[  197.8] {line}\n" for line in lines)


LOST = "[  197.4] kmemleak: {} new suspected memory leaks (see /sys/kernel/debug/kmemleak)\n"
LABEL = leak("kmemleak_alloc+0x24/0x30", "__kmalloc_noprof+0x1/0x2", "desc_set_label+0x2c/0xa0", "gpio_ioctl+0x1/0x2")


class Leaks(unittest.TestCase):
    def test_memory_that_the_kernel_itself_has_lost_is_named_and_no_fault(self) -> None:
        rest, aside = set_aside(LOST.format(2) + LABEL + LABEL + "[  198.0] after\n")
        self.assertEqual((rest, aside), ("[  198.0] after", ["memory is lost: desc_set_label < gpio_ioctl < do_syscall_64"] * 2))

    def test_memory_that_was_taken_under_a_module_of_this_tree_is_a_fault(self) -> None:
        ours = leak("kmemleak_alloc+0x24/0x30", "kobject_add+0x1/0x2", "strobe_ioctl_create+0x1/0x2 [strobe]")
        rest, _ = set_aside(LOST.format(2) + LABEL + ours)
        self.assertIn("2 new suspected", fault(rest)[0])

    def test_memory_that_was_taken_by_a_function_without_a_name_is_a_fault(self) -> None:
        gone = leak("kmemleak_alloc+0x24/0x30", "0xffffffffa0022390", "do_one_initcall+0xe3/0x420")
        rest, _ = set_aside(LOST.format(2) + LABEL + gone)
        self.assertIn("2 new suspected", fault(rest)[0])

    def test_what_is_counted_and_not_shown_is_a_fault(self) -> None:
        self.assertIsNotNone(fault(set_aside(LOST.format(2) + LABEL)[0]))
        self.assertIsNotNone(fault(set_aside(LOST.format(1) + LABEL + LOST.format(1))[0]))

    def test_a_fault_after_a_leak_is_not_lost_with_it(self) -> None:
        self.assertIsNotNone(fault(set_aside(LOST.format(1) + LABEL + "[  198.0] BUG: x\n")[0]))


def warning(head: str) -> str:
    lines = ("------------[ cut here ]------------", head, "WARNING: CPU: 1 PID: 81 at kernel/sched/core.c:8654 __might_sleep+0xc6/0xd0",
             "Call Trace:", " hpet_read+0x2f0/0x320", "---[ end trace 0000000000000000 ]---")
    return "".join(f"[   41.2] {line}\n" for line in lines)


class Warnings(unittest.TestCase):
    HPET = "do not call blocking ops when !TASK_RUNNING; state=1 set at [<00000000ce0ccca3>] hpet_read+0x15b/0x320"

    def test_a_known_warning_of_the_kernel_itself_is_named_and_no_fault(self) -> None:
        for head in (self.HPET, "Cannot find frame for count+0x1c/0x50 [toy] in stack trace"):
            rest, aside = set_aside(f"[    1.0] before\n{warning(head)}[   42.0] after\n")
            self.assertEqual((rest, aside), ("[    1.0] before\n[   42.0] after", [head]))

    def test_any_other_warning_is_a_fault(self) -> None:
        for head in (self.HPET.replace("hpet_read", "strobe_read"), "WARNING: CPU: 0 at x.c:9"):
            self.assertIsNotNone(fault(set_aside(warning(self.HPET) + warning(head))[0]))

    def test_a_warning_that_is_cut_short_is_a_fault(self) -> None:
        self.assertIsNotNone(fault(set_aside(warning(self.HPET)[:-50])[0]))


if __name__ == "__main__":
    unittest.main()
