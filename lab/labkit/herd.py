# SPDX-License-Identifier: MIT OR Apache-2.0
"""herd7, the judge of litmus tests: the system's, or Debian unstable's, unpacked into the cache with its C library."""

import shutil
import subprocess
from pathlib import Path

from . import LabError, cache, say

SUITE = "sid"  # the only one that has the package
PACKAGES = ("herdtools7", "libc6", "libgmp10")
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def herd() -> list[str | Path]:
    """The words that start herd7. Raises LabError if it cannot be had."""
    if path := shutil.which("herd7"):
        return [path]
    root = cache.unpacked("herd7", list, fetch)
    libraries = root / LIBRARIES
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries,
            root / "usr/bin/herd7", "-set-libdir", root / "usr/share/herdtools7/herd"]


def fetch(root: Path) -> None:
    """Asks apt, with a configuration of its own that the system's does not see."""
    say(f"fetching herd7 into {cache.cache_dir()}")
    private = root.parent / "apt"
    for place in ("lists/partial", "cache/archives/partial"):
        (private / place).mkdir(parents=True)
    (private / "status").touch()
    (private / "sources").write_text(f"deb {mirror()} {SUITE} main\n")
    settings = {"Dir::Etc::sourcelist": private / "sources", "Dir::Etc::sourceparts": "-",
                "Dir::State::lists": private / "lists", "Dir::State::status": private / "status",
                "Dir::Cache": private / "cache", "Acquire::Languages": "none",
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    cache.apt_get(["update"], private, options)
    cache.download(list(PACKAGES), root, options)
    for program in (root / "usr/bin").iterdir():
        if program.name != "herd7":
            program.unlink()  # 200 MB of other tools


def mirror() -> str:
    """Where this system gets Debian from."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"],
                             capture_output=True, text=True)
    for line in targets.stdout.splitlines():
        uri, origin = line.split(" ", 1)
        if origin == "Debian Debian":
            return uri
    raise LabError("herd7 is not on PATH, and apt has no Debian mirror to get it from")
