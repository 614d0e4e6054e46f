# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernels of the lab: Debian's own, unpacked into the cache with their headers."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import BUILD, LabError, cache, say

# Debian 12 carries 6.12 beside its own kernel, under a name with the number; from Debian 13 on it is the kernel.
IMAGES = {
    "amd64": ("linux-image-6.12-amd64", "linux-image-amd64"),
    "rt": ("linux-image-6.12-rt-amd64", "linux-image-rt-amd64"),
}
LATER = ("debug", "kcsan")
OLDEST = (6, 12)
PARTS = r"linux-(image|binary|modules|headers|kbuild)-"


@dataclass(frozen=True)
class Kernel:
    """One kernel, below `root` as its packages would lie below /."""

    flavour: str
    root: Path

    @property
    def release(self) -> str:
        return next(path.name for path in (self.root / "lib/modules").iterdir())

    @property
    def image(self) -> Path:
        return self.root / "boot" / f"vmlinuz-{self.release}"

    @property
    def modules(self) -> Path:
        return self.root / "lib/modules" / self.release

    @property
    def headers(self) -> Path:
        """What `make -C` wants in order to build a module."""
        return self.modules / "build"

    @property
    def built(self) -> Path:
        """Where this tree's modules for the kernel are built."""
        return BUILD / "kernel" / self.release


def kernel(flavour: str) -> Kernel:
    """The kernel of a flavour, downloaded if the cache lacks it.

    Its version is chosen then, and stays until it is deleted from the cache: so builds and runs agree.
    """
    if flavour in LATER:
        raise LabError(f"the {flavour} kernel is not built yet; use --kernel amd64 or rt")
    if flavour not in IMAGES:
        raise LabError(f"no kernel is called {flavour!r}; there are {', '.join(IMAGES)}")
    return Kernel(flavour, cache.unpacked(f"linux-{flavour}", lambda: packages(flavour), finish))


def packages(flavour: str) -> list[str]:
    """The packages of the newest kernel that apt knows: image, modules, headers, build programs."""
    for image in IMAGES[flavour]:
        fields = cache.package(image)
        if fields and version(fields["Version"]) >= OLDEST:
            found = cache.closure([image, image.replace("image", "headers", 1)], PARTS)
            say(f"fetching {image} {fields['Version']} into {cache.cache_dir()}")
            return found
    raise LabError(f"apt knows none of {', '.join(IMAGES[flavour])} with Linux {OLDEST[0]}.{OLDEST[1]} or newer: "
                   "run `apt-get update` as root; on Debian 12 the suite bookworm-security must be among its sources")


def version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def finish(root: Path) -> None:
    """Makes the unpacked tree usable where it lies: no path leads to /usr, and modules.dep exists."""
    (modules,) = (root / "lib/modules").iterdir()
    for link in ("build", "source"):
        target = os.readlink(modules / link)
        (modules / link).unlink()
        (modules / link).symlink_to(Path("../../..") / target.lstrip("/"))
    makefile = modules / "build/Makefile"
    makefile.write_text(makefile.read_text().replace(
        "include /usr/src/", "include $(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)/"))
    subprocess.run([tool("depmod"), "-b", root, modules.name], check=True)


def tool(name: str) -> str:
    """A program that Debian keeps out of the PATH of ordinary users."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise LabError(f"{name} is not installed: run `make setup`")
    return path
