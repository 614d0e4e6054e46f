# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports of a kernel about itself: sanitizers find faults in it that are not ours to mend.

A report is ours if a function of a module of this tree is in one of its stacks, and was not merely interrupted; or one
that has no name any more, of what was thrown away after its use or unloaded: it may have been of such a module. Data
races and lost memory without one are set aside by that rule. A warning is a fault whatever its stack, because the kernel
warns of its callers, too: those that are set aside are named one by one, as are races of the kernel that its every
caller meets.
"""

import re

from .log import FAULT, STAMP

OURS = re.compile(r"\+0x\w+/0x\w+ \[(strobe\w*|uio_dummy|uio_edu|lab_\w+)\]|^ *0x[0-9a-f]{16}$")

ENTRY = re.compile(r"^ *asm_\w*(sysvec|interrupt)\w*\+0x")

# KCSAN: two lines of this mark, the first thing it says between them, and the stacks.
MARK = "=" * 66
RACE = "BUG: KCSAN: "
KNOWN_RACES = (
    r"data-race in init_file / init_file$",  # both store the same 0: get_cred()
    r"data-race in __hrtimer_run_queues / hrtimer_active$",  # hrtimer_cancel() looks again if the sequence count moved
    r"data-race in poll_schedule_timeout(\.\w+)* / pollwake$",  # poll's own flag, which who wakes it writes plainly
    # epoll looks without its lock whether its list is empty, and once more with it.
    r"data-race in (do_epoll_wait|ep_poll)(\.\w+)* / ep_poll_callback$",
    # The bit that says that a file of sysfs goes; who opens or closes it looks at others of the same word.
    r"data-race in __kernfs_remove(\.\w+)* / kernfs_fop_(open|release)$",
    r"data-race in __synchronize_hardirq / handle_irq_event$",  # who waits for a handler's end looks at its flag plainly, then locked
    r"data-race in hrtimer_wakeup / schedule_hrtimeout_range_clock$",  # usleep_range() looks plainly who has woken it
    r"data-race in process_one_work / queue_work_on$",  # the bit that says that work waits is taken by who comes first
    # Drivers share their ring plainly with a device; here the device is a module, whose accesses KCSAN sees.
    r"data-race in (give_back|next_buffer) \[lab_virtio_rpmsg\] / (virtqueue|vring|more_used)\w*$",
    r"data-race in acpi_\w+ / acpi_\w+$",  # the table of interrupt lines is put right by whoever enables a card, without a lock
)
# WARN_ON.
CUT, END = "------------[ cut here ]------------", "---[ end trace "
KNOWN = (
    r"^do not call blocking ops when !TASK_RUNNING; .* hpet_read\+",  # copies to its reader while ready to sleep
    r"^Cannot find frame for .* in stack trace$",  # KCSAN of its own report, whose race stands in the log in any case
)
# kmemleak: how many it has found, and what lab/guest/init then shows of each.
LEAKS = re.compile(r"^kmemleak: (\d+) new suspected memory leaks?")
LEAK = "unreferenced object "
OF_LEAK = re.compile(r'^(comm "|hex dump|([0-9a-f]{2} )+|backtrace|\.\.\.|\S+\+0x|0x[0-9a-f]{16}$|\[<)')
# Lines of a report that would be a fault of their own.
PARTS = re.compile(r"Call Trace:|^WARNING: CPU: ")
LONGEST = 200


def set_aside(log: str) -> tuple[str, list[str]]:
    """The log without the reports that are the kernel's own, and what each of those is about."""
    lines = log.replace("\r", "").splitlines()
    plain = [STAMP.sub("", line) for line in lines]
    # Each leak that is shown has been counted; if more were counted than are shown, some may be ours.
    counted = sum(int(found[1]) for found in map(LEAKS.match, plain) if found)
    shown = [at for at, line in enumerate(plain) if line.startswith(LEAK)]
    leaks = [plain[at:leak_end(plain, at)] for at in shown]
    may_leak = counted <= len(leaks) and not any(map(is_ours, leaks))
    kept: list[str] = []
    aside: list[str] = []
    at = 0
    while at < len(lines):
        end = report_end(plain, at)
        if end:
            aside.append(plain[at + 1].removeprefix(RACE))
            # What others have said meanwhile; a warning of theirs has its own first line.
            kept += [line for line in plain[at + 2:end] if FAULT.search(line) and not PARTS.search(line)]
        elif may_leak and LEAKS.match(plain[at]):
            end = at + 1
        elif may_leak and at in shown:
            end = leak_end(plain, at)
            aside.append(f"memory is lost: {call_path(plain[at:end])}")
        else:
            end = at + 1
            kept.append(lines[at])
        at = end
    return "\n".join(kept), aside


def is_ours(report: list[str]) -> bool:
    """Whether one of our functions has called what the report is about."""
    interrupted = False
    for line in report:
        # The outer part of a stack, up to the next stack's head, is what an interrupt has come upon.
        interrupted = bool(ENTRY.match(line)) or interrupted and "+0x" in line
        if OURS.search(line) and not interrupted:
            return True
    return False


def report_end(plain: list[str], at: int) -> int:
    """The line after a race or a warning that begins there and is to be set aside, or 0."""
    if at + 1 == len(plain):
        return 0
    window = plain[at + 1:at + LONGEST]
    if plain[at] == MARK and window[0].startswith(RACE) and MARK in window:
        end = at + 1 + window.index(MARK)
        is_known = any(re.search(known, window[0]) for known in KNOWN_RACES)
        return 0 if is_ours(plain[at:end]) and not is_known else end + 1
    if plain[at] == CUT and any(re.search(known, window[0]) for known in KNOWN):
        # Its own lines say that it is a warning.
        return next((at + 2 + n for n, line in enumerate(window) if line.startswith(END)), 0)
    return 0


def leak_end(plain: list[str], at: int) -> int:
    end = at + 1
    while end < len(plain) and OF_LEAK.match(plain[end]):
        end += 1
    return end


def call_path(report: list[str]) -> str:
    """The functions on whose behalf memory was taken, innermost first."""
    names = [line.partition("+0x")[0] for line in report if "+0x" in line]
    return " < ".join(name for name in names if not name.startswith(("kmemleak", "__kmalloc", "kmalloc")))[:100]
