# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds in a kernel's log what a healthy kernel never says."""

import re

# Searched in a line without its time stamp. Each kind is there with an example in tests/test_log.py.
FAULTS = (
    r"^WARNING: ",  # WARN_ON, and most reports of lockdep and RCU
    r"^------------\[ cut here \]",
    r"\bBUG: ",  # page faults, KASAN, KCSAN, KFENCE, soft lockups, scheduling while atomic
    r"^kernel BUG at ",
    r"\bOops\b",
    r"general protection fault",
    r"^Kernel panic ",
    r"^UBSAN: ",
    r"^INFO: (possible|trying to register|lockdep is turned off|suspicious)",
    r"DEBUG_LOCKS_WARN_ON",
    r"^(INFO: )?task \S+ blocked (for more than|on)|blocked for more than \d+ seconds",
    r"^rcu: INFO: |rcu_\w+ (self-)?detected (expedited )?stall",
    r"scheduling while atomic",
    r"sleeping function called from invalid context",
    r"\bCall Trace:",
    r"^(list_add|list_del) corruption",
    r"^refcount_t: ",
    r"^ODEBUG: ",
    r"\bBad page (state|map)",
    r"irq \d+: nobody cared",
    r"sysfs: cannot create duplicate filename",
    r"kmemleak: \d+ new suspected memory leak",
    r"^Out of memory: ",
)
FAULT = re.compile("|".join(FAULTS))
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")


# A report of KCSAN: two lines of this mark, the first thing it says between them, and the stacks.
MARK = "=" * 66
RACE = "BUG: KCSAN: "
# In a stack, a function of a module of this tree.
OURS = re.compile(r"\+0x\w+/0x\w+ \[(strobe\w*|uio_dummy|lab_\w+)\]")


def without_foreign_races(log: str) -> tuple[str, list[str]]:
    """The log without KCSAN's reports in whose stacks no module of this tree is, and the first line of each of those.

    The kernel itself is not free of data races, many known and harmless; they are not ours to mend.
    """
    lines = log.replace("\r", "").splitlines()
    plain = [STAMP.sub("", line) for line in lines]
    kept: list[str] = []
    races: list[str] = []
    at = 0
    while at < len(lines):
        end = report_end(plain, at)
        report = plain[at + 1:end]
        if report and not any(OURS.search(line) for line in report):
            races.append(report[0].removeprefix(RACE))
            kept += [line for line in report[1:] if FAULT.search(line)]  # said by others meanwhile
        else:
            end = at
            kept.append(lines[at])
        at = end + 1
    return "\n".join(kept), races


def report_end(plain: list[str], at: int) -> int:
    """Where KCSAN's report that begins there ends; `at` itself if there is none."""
    if plain[at] == MARK and plain[at + 1:at + 2] and plain[at + 1].startswith(RACE) and MARK in plain[at + 1:at + 100]:
        return plain.index(MARK, at + 1)
    return at


def fault(log: str) -> tuple[str, str] | None:
    """The first line that names a fault, and what follows it, or None if the kernel is well."""
    lines = log.replace("\r", "").splitlines()
    for number, line in enumerate(lines):
        if FAULT.search(STAMP.sub("", line)):
            named = lines[number + 1] if "cut here" in line and number + 1 < len(lines) else line
            return STAMP.sub("", named), "\n".join(lines[number:number + 60])
    return None
