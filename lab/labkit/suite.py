# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages of Debian suites that this system does not have among its sources, for the cache.

apt is asked with a configuration of its own, which the system's does not see. What comes of a newer suite is linked with
that suite's C library: it is started by the loader that is unpacked beside it.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import LabError, cache

# Where what is newer than the system is. Each with the suite that its packages are made for, which has the libraries.
# By code name: a mirror may be slower to renew what it has under `stable-backports`.
NEWER = (("trixie", "trixie-backports"), ("sid",))
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"
WRAPPER = """\
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/{up}
exec "$root/{loader}" --library-path "$root/{libraries}" --argv0 "$0" "$root/{program}" "$@"
"""


@contextmanager
def apt(*suites: str) -> Iterator[list[str]]:
    """Options with which apt knows these suites and no other, and takes what it can from the last of them.

    Without any, apt is asked as the system has it.
    """
    if not suites:
        yield []
        return
    with tempfile.TemporaryDirectory(dir=cache.cache_dir(), prefix=".apt.") as directory:
        private = Path(directory)
        for place in ("lists/partial", "cache/archives/partial"):
            (private / place).mkdir(parents=True)
        (private / "status").touch()
        (private / "sources").write_text("".join(f"deb {mirror()} {suite} main\n" for suite in suites))
        settings = {"Dir::Etc::sourcelist": private / "sources", "Dir::Etc::sourceparts": "-",
                    "Dir::State::lists": private / "lists", "Dir::State::status": private / "status",
                    "Dir::Cache": private / "cache", "Acquire::Languages": "none",
                    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false", "APT::Default-Release": suites[-1]}
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        cache.apt_get(["update"], private, options)
        yield options


def mirror() -> str:
    """Where this system gets Debian from."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"],
                             capture_output=True, text=True)
    for line in targets.stdout.splitlines():
        uri, origin = line.split(" ", 1)
        if origin == "Debian Debian":
            return uri
    raise LabError("apt has no Debian mirror to get packages of another suite from")


def wrap(root: Path) -> None:
    """Makes each program below root one that starts with the C library of root, wherever root lies."""
    for program in [path for path in root.rglob("*") if is_program(path)]:
        real = program.with_name(f"{program.name}.elf")
        program.rename(real)
        program.write_text(WRAPPER.format(up=os.path.relpath(root, program.parent), loader=LOADER, libraries=LIBRARIES,
                                          program=real.relative_to(root)))
        program.chmod(0o755)


def is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or not os.access(path, os.X_OK):
        return False
    with open(path, "rb") as file:
        start = file.read(4096)
    return start.startswith(b"\x7fELF") and b"/lib64/ld-linux-x86-64.so.2\0" in start and path.name != Path(LOADER).name
