# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stock rpmsg drivers, for kernels that are built without: Debian's for PCs are.

Their source is of the kernel's exact version, since what a driver has of its bus changes within a stable series. It is
built beside this tree's modules, and never part of it. A kernel that has rpmsg keeps its own.
"""

import re
import shutil
import subprocess
from pathlib import Path

from . import LabError, cache, say, suite
from .kernel import Kernel
from .stock import config, drivers, version

DRIVERS = ("rpmsg_core", "rpmsg_ctrl", "rpmsg_char", "rpmsg_ns", "virtio_rpmsg_bus")
FILES = (*(f"{driver}.c" for driver in DRIVERS), "rpmsg_internal.h", "rpmsg_char.h")
# Their headers have stubs that warn unless the kernel's configuration has them.
KBUILD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Written by lab/labkit/rpmsg.py.
ccflags-y := -DCONFIG_RPMSG_MODULE=1 -DCONFIG_RPMSG_CHAR_MODULE=1 -DCONFIG_RPMSG_CTRL_MODULE=1 -DCONFIG_RPMSG_NS_MODULE=1
obj-m := """ + " ".join(f"{name}.o" for name in DRIVERS) + "\n"


def sources(kernel: Kernel) -> Path | None:
    """A directory with the stock drivers and a Kbuild for them; None if the kernel has its own."""
    if re.search(r"^CONFIG_RPMSG=[ym]$", config(kernel), re.MULTILINE):
        return None
    if found := drivers("rpmsg-bus", kernel, "drivers/rpmsg", FILES, KBUILD):
        return found
    number = version(kernel)
    return cache.unpacked(f"rpmsg-bus-{number}", list, lambda root: fetch(number, root))


def fetch(number: str, root: Path) -> None:
    """The newest kernel has another source than the others."""
    name = f"linux-source-{'.'.join(number.split('.')[:2])}"
    for suites in ((), *suite.NEWER):
        with suite.apt(*suites) as options:
            if cache.package(name, number, options):
                say(f"fetching {name} {number} into {cache.cache_dir()}, for its rpmsg drivers")
                cache.download([f"{name}={number}"], root, options)
                return finish(root)
    raise LabError(f"apt has no {name} of version {number} any more: delete linux-* in {cache.cache_dir()}, "
                   "then the lab takes the kernels that it has now")


def finish(root: Path) -> None:
    """Takes the drivers out of the package, and drops the rest."""
    (archive,) = (root / "usr/src").glob("linux-source-*.tar.xz")
    wanted = [f"linux-source-*/drivers/rpmsg/{name}" for name in FILES]
    subprocess.run(["tar", "-xf", archive, "-C", root, "--strip-components=3", "--wildcards", *wanted], check=True)
    shutil.rmtree(root / "usr")
    (root / "Kbuild").write_text(KBUILD)
