# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernel's own counters, and its driver that counts interrupts: Debian's kernels are built without.

Their source is of the kernel's exact version. It is built beside this tree's modules, and never part of it.
"""

import re
from pathlib import Path

from .kernel import Kernel
from .stock import config, drivers

CORE = ("counter-core", "counter-sysfs", "counter-chrdev")
FILES = (*(f"{part}.c" for part in CORE), "counter-chrdev.h", "counter-sysfs.h", "interrupt-cnt.c")
KBUILD = f"""\
# SPDX-License-Identifier: GPL-2.0-only
# Written by lab/labkit/counter.py.
obj-m := counter.o interrupt-cnt.o
counter-y := {" ".join(f"{part}.o" for part in CORE)}
"""


def sources(kernel: Kernel) -> Path | None:
    """A directory with them and a Kbuild; None if the kernel has its own, or another version than the source."""
    if re.search(r"^CONFIG_COUNTER=[ym]$", config(kernel), re.MULTILINE):
        return None
    return drivers("counter", kernel, "drivers/counter", FILES, KBUILD)
