# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a kernel was built of, and with; and drivers of its source that it was built without."""

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from . import LabError, cache
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


def drivers(name: str, kernel: Kernel, folder: str, files: Sequence[str], kbuild: str) -> Path | None:
    """A directory with these files of the kernel's source, and a Kbuild for them; None if the cache has another kernel's source."""
    if not is_of_source(kernel):
        return None
    of_these = hashlib.sha256("\n".join([*files, kbuild]).encode()).hexdigest()[:12]

    def finish(root: Path) -> None:
        for file in files:
            shutil.copy2(source() / folder / file, root)
        (root / "Kbuild").write_text(kbuild)

    return cache.unpacked(f"{name}-{version(kernel)}-{of_these}", list, finish)
