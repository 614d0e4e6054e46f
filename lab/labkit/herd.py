# SPDX-License-Identifier: MIT OR Apache-2.0
"""herd7, the judge of litmus tests: the system's, or Debian unstable's, unpacked into the cache with its C library."""

import shutil
from pathlib import Path

from . import cache, say, suite

SUITE = "sid"  # the only one that has the package
PACKAGES = ("herdtools7", "libc6", "libgmp10")


def herd() -> list[str | Path]:
    """The words that start herd7. Raises LabError if it cannot be had."""
    if path := shutil.which("herd7"):
        return [path]
    root = cache.unpacked("herd7", list, fetch)
    return [root / suite.LOADER, "--library-path", root / suite.LIBRARIES,
            root / "usr/bin/herd7", "-set-libdir", root / "usr/share/herdtools7/herd"]


def fetch(root: Path) -> None:
    say(f"fetching herd7 into {cache.cache_dir()}")
    with suite.apt(SUITE) as options:
        cache.download(list(PACKAGES), root, options)
    for program in (root / "usr/bin").iterdir():
        if program.name != "herd7":
            program.unlink()  # 200 MB of other tools
