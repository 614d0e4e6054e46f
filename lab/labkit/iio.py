# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernel's own IIO device without hardware, `iio_dummy`, and what creates it: Debian's kernels are built without.

Their source is of the kernel's exact version. It is built beside this tree's modules, and never part of it.
"""

import re
from pathlib import Path

from .kernel import Kernel
from .stock import config, drivers

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
    return drivers("iio-dummy", kernel, "drivers/iio", PARTS, KBUILD)
