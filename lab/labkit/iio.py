# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernel's own IIO device without hardware, `iio_dummy`, and what creates it: Debian's kernels are built without.

Their source is of the kernel's exact version. It is built beside this tree's modules, and never part of it.
"""

import re
import shutil
from pathlib import Path

from . import cache
from .kernel import Kernel
from .source import source
from .stock import config, is_of_source, version

PARTS = ("industrialio-sw-device.c", "dummy/iio_simple_dummy.c", "dummy/iio_simple_dummy.h", "dummy/iio_simple_dummy_buffer.c")
KBUILD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Written by lab/labkit/iio.py.
ccflags-y := -DCONFIG_IIO_SIMPLE_DUMMY_BUFFER=1
obj-m := industrialio-sw-device.o iio_dummy.o
iio_dummy-y := iio_simple_dummy.o iio_simple_dummy_buffer.o
"""


def sources(kernel: Kernel) -> Path | None:
    """A directory with the dummy and a Kbuild for it; None if the kernel has no IIO, or another version than the source."""
    settings = config(kernel)
    if not re.search(r"^CONFIG_IIO=[ym]$", settings, re.MULTILINE) or not re.search(r"^CONFIG_IIO_CONFIGFS=[ym]$", settings, re.MULTILINE):
        return None
    return cache.unpacked(f"iio-dummy-{version(kernel)}", list, finish) if is_of_source(kernel) else None


def finish(root: Path) -> None:
    for part in PARTS:
        shutil.copy2(source() / "drivers/iio" / part, root)
    (root / "Kbuild").write_text(KBUILD)
