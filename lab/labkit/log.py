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
# What stands before the text of a line.
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")


def fault(log: str) -> tuple[str, str] | None:
    """The first line that names a fault, and what follows it, or None if the kernel is well."""
    lines = log.replace("\r", "").splitlines()
    for number, line in enumerate(lines):
        if FAULT.search(STAMP.sub("", line)):
            # Another CPU may say something between the line and what it announces.
            after = [each for each in lines[number + 1:number + 9] if FAULT.search(STAMP.sub("", each))]
            named = after[0] if "cut here" in line and after else line
            return STAMP.sub("", named), "\n".join(lines[number:number + 60])
    return None
