# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parts of the kernel's source that no headers package has: checkpatch, the memory model, drivers to build."""

import hashlib
import subprocess
from pathlib import Path

from . import LabError, cache, say

PACKAGES = ("linux-source-6.12", "linux-source")
WANTED = ("scripts", "tools/memory-model", "drivers/counter", "drivers/gpio", "drivers/iio", "drivers/rpmsg", "drivers/uio",
          "kernel/irq")


def source() -> Path:
    """A directory with the WANTED parts of the kernel's tree."""
    of_these = hashlib.sha256(" ".join(WANTED).encode()).hexdigest()[:12]
    return cache.unpacked(f"linux-source-{of_these}", package, finish)


def package() -> list[str]:
    for name in PACKAGES:
        if fields := cache.package(name):
            say(f"fetching {name} {fields['Version']} into {cache.cache_dir()}")
            return cache.closure([name], r"linux-source-[\d.]+$")
    raise LabError(f"apt knows none of {', '.join(PACKAGES)}: run `apt-get update` as root")


def finish(root: Path) -> None:
    """Takes out what is wanted, and drops the rest: it is more than a gigabyte."""
    (archive,) = (root / "usr/src").glob("linux-source-*.tar.xz")
    subprocess.run(["tar", "-xf", archive, "-C", root, "--strip-components=1", "--wildcards",
                    *(f"linux-source-*/{part}" for part in WANTED)], check=True)
    archive.unlink()
