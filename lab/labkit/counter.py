# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernel's own counters, and its driver that counts interrupts: Debian's kernels are built without.

Their source is of the kernel's exact version. It is built beside this tree's modules, and never part of it.
"""

import re
import shutil
from pathlib import Path

from . import cache
from .kernel import Kernel
from .source import source
from .stock import config, is_of_source, version

CORE = ("counter-core", "counter-sysfs", "counter-chrdev")
KBUILD = f"""\
# SPDX-License-Identifier: GPL-2.0-only
# Written by lab/labkit/counter.py.
obj-m := counter.o interrupt-cnt.o
counter-y := {" ".join(f"{part}.o" for part in CORE)}
"""


def sources(kernel: Kernel) -> Path | None:
    """A directory with them and a Kbuild; None if the kernel has its own, or another version than the source."""
    if re.search(r"^CONFIG_COUNTER=[ym]$", config(kernel), re.MULTILINE) or not is_of_source(kernel):
        return None
    return cache.unpacked(f"counter-{version(kernel)}", list, finish)


def finish(root: Path) -> None:
    drivers = source() / "drivers/counter"
    for part in (*drivers.glob("*.h"), *(drivers / f"{name}.c" for name in (*CORE, "interrupt-cnt"))):
        shutil.copy2(part, root)
    (root / "Kbuild").write_text(KBUILD)
