# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a kernel was built of, and with."""

import re

from . import LabError
from .kernel import Kernel
from .source import source


def config(kernel: Kernel) -> str:
    return (kernel.root / "boot" / f"config-{kernel.release}").read_text()


def version(kernel: Kernel) -> str:
    """Of the packages that the kernel comes from: all of one source have the same."""
    words = (kernel.root / "packages").read_text()
    found = re.search(rf"^linux-(?:image|source)-[^=]*=({re.escape(kernel.release.partition('+')[0].partition('-')[0])}\S*)$",
                      words, re.MULTILINE)
    if not found:
        raise LabError(f"{kernel.root}/packages does not say which version it is: delete {kernel.root}, it will come back")
    return found[1]


def is_of_source(kernel: Kernel) -> bool:
    """Whether the source of the cache has exactly this kernel's version: what a driver has of its subsystem changes within a stable
    series."""
    return f"={version(kernel)}\n" in (source() / "packages").read_text() + "\n"
