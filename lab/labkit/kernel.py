# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernels of the lab: Debian's own, unpacked into the cache with their headers, and those with sanitizers."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import BUILD, LabError, cache, sanitizer, say, tool

# Debian 12 carries 6.12 beside its own kernel, under a name with the number; from Debian 13 on it is the kernel.
IMAGES = {
    "amd64": ("linux-image-6.12-amd64", "linux-image-amd64"),
    "rt": ("linux-image-6.12-rt-amd64", "linux-image-rt-amd64"),
}
KERNELS = (*IMAGES, *sanitizer.FLAVOURS)
OLDEST = (6, 12)
PARTS = r"linux-(image|binary|modules|headers|kbuild)-"


@dataclass(frozen=True)
class Needs:
    """What a kernel asks of those who run it."""

    slowness: int = 1  # times, roughly, that a guest takes longer: bounds in seconds are multiplied by it
    memory: int = 1024  # MB
    cpu: str = "max"
    append: tuple[str, ...] = ()  # to its command line


# la57=off: with 5-level addresses KASAN reports what is no fault, before any module is there. kasan_multi_shot: else it
# is silent after its first report. early_enable: else KCSAN waits to be switched on, and finds nothing.
PATIENT = ("rcupdate.rcu_cpu_stall_timeout=120", "watchdog_thresh=60")
NEEDS = {
    "debug": Needs(8, 2048, "max,la57=off", ("kasan_multi_shot", *PATIENT)),
    "kcsan": Needs(8, 1024, "max,la57=off", ("kcsan.early_enable=1", *PATIENT)),
}


@dataclass(frozen=True)
class Kernel:
    """One kernel, below `root` as its packages would lie below /."""

    flavour: str
    root: Path

    @property
    def needs(self) -> Needs:
        return NEEDS.get(self.flavour, Needs())

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


def slowness(flavour: str) -> int:
    """How many times slower than a stock kernel, roughly."""
    return NEEDS.get(flavour, Needs()).slowness


def kernel(flavour: str) -> Kernel:
    """The kernel of a flavour, downloaded, or built, if the cache lacks it.

    Its version is chosen then, and stays until it is deleted from the cache: so builds and runs agree.
    """
    if flavour in sanitizer.FLAVOURS:
        return Kernel(flavour, sanitizer.built(flavour))
    if flavour not in IMAGES:
        raise LabError(f"no kernel is called {flavour!r}; there are {', '.join(KERNELS)}")
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
