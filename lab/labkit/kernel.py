# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernels of the lab: Debian's own, its newest, unpacked into the cache with headers, and those with sanitizers."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import BUILD, LabError, cache, sanitizer, say, suite, tool, vmlinux

# Debian 12 carries 6.12 beside its own kernel, under a name with the number; from Debian 13 on it is the kernel.
IMAGES = {
    "amd64": ("linux-image-6.12-amd64", "linux-image-amd64"),
    "rt": ("linux-image-6.12-rt-amd64", "linux-image-rt-amd64"),
}
KERNELS = (*IMAGES, "newest", *sanitizer.FLAVOURS)
OLDEST = (6, 12)
PARTS = r"linux-(image|binary|modules|headers|kbuild|base)-"
# The compiler that the headers ask for, what else makes modules, and the libraries of all of them.
TOOLS = r"|(gcc|cpp)-\d+|binutils|pahole$|lib|zlib1g$"


@dataclass(frozen=True)
class Needs:
    """What a kernel asks of those who run it."""

    slowness: int = 1  # times, roughly, that a guest takes longer: bounds in seconds are multiplied by it
    memory: int = 1024  # MB
    cpu: str = "max"
    append: tuple[str, ...] = ()  # to its command line


# la57=off: with 5-level addresses KASAN reports what is no fault, before any module is there. kasan_multi_shot: else it
# is silent after its first report. early_enable: else KCSAN waits to be switched on, and finds nothing.
NEEDS = {
    "debug": Needs(8, 2048, "max,la57=off", ("kasan_multi_shot",)),
    "kcsan": Needs(8, 1024, "max,la57=off", ("kcsan.early_enable=1",)),
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
        """What QEMU starts: the unpacked one, if there is one."""
        unpacked = self.root / "boot" / f"vmlinux-{self.release}"
        return unpacked if unpacked.exists() else self.packed

    @property
    def packed(self) -> Path:
        return self.root / "boot" / f"vmlinuz-{self.release}"

    @property
    def modules(self) -> Path:
        return self.root / "lib/modules" / self.release

    @property
    def headers(self) -> Path:
        """What `make -C` wants in order to build a module."""
        return self.modules / "build"

    @property
    def environment(self) -> dict[str, str]:
        """For `make`: the newest kernel has compiler and tools of its own suite."""
        return os.environ | {"PATH": f"{self.root}/usr/bin:{os.environ['PATH']}"} if self.flavour == "newest" else dict(os.environ)

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
    found = Kernel(flavour, root_of(flavour))
    vmlinux.unpack(found.packed)
    return found


def root_of(flavour: str) -> Path:
    if flavour in sanitizer.FLAVOURS:
        return sanitizer.built(flavour)
    if flavour == "newest":
        return cache.unpacked("linux-newest", list, newest)
    if flavour not in IMAGES:
        raise LabError(f"no kernel is called {flavour!r}; there are {', '.join(KERNELS)}")
    return cache.unpacked(f"linux-{flavour}", lambda: packages(flavour), finish)


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


def newest(root: Path) -> None:
    """Downloads the newest kernel that Debian has, with what builds modules for it."""
    found = []
    for suites in suite.NEWER:
        with suite.apt(*suites) as options:
            found.append((version(cache.package("linux-image-amd64", options=options)["Version"]), suites))
    number, suites = max(found)
    say(f"fetching Linux {'.'.join(map(str, number))} of {suites[-1]} into {cache.cache_dir()}")
    with suite.apt(*suites) as options:
        cache.download(cache.closure(["linux-image-amd64", "linux-headers-amd64"], PARTS + TOOLS, options), root, options)
    suite.wrap(root)
    checker = root / "sparse"
    checker.mkdir()
    with suite.apt("sid") as options:  # older ones do not know typeof_unqual
        cache.download(["sparse", "libc6"], checker, options)
    suite.wrap(checker)
    (root / "usr/bin/sparse").symlink_to("../../sparse/usr/bin/sparse")
    # make asks this whether sparse is good enough; Debian's packages lack it.
    for scripts in root.glob("usr/lib/linux-kbuild-*/scripts"):
        (scripts / "checker-valid.sh").write_text("#!/bin/sh\necho 1\n")
        (scripts / "checker-valid.sh").chmod(0o755)
    finish(root)


def version(text: str) -> tuple[int, ...]:
    """The numbers of Linux itself: 7.3.4 of 7.3.4-1~bpo13+1."""
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("-")[0]))


def finish(root: Path) -> None:
    """Makes the unpacked tree usable where it lies: no path leads to /usr, and modules.dep exists."""
    if not (root / "lib").exists():  # newer packages have all below /usr
        (root / "lib").symlink_to("usr/lib")
    (modules,) = (root / "lib/modules").iterdir()
    for link in ("build", "source"):
        target = os.readlink(modules / link)
        if target.startswith("/"):
            (modules / link).unlink()
            (modules / link).symlink_to(Path("../../..") / target.lstrip("/"))
    makefile = modules / "build/Makefile"
    makefile.write_text(makefile.read_text().replace("KBUILD_OUTPUT=", "KBUILD_OUTPUT:=").replace(
        "/usr/src/", "$(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)/"))
    for name in ("vmlinuz", "config"):
        if (modules / name).exists():
            (root / "boot").mkdir(exist_ok=True)
            (root / "boot" / f"{name}-{modules.name}").symlink_to(Path("../lib/modules") / modules.name / name)
    subprocess.run([tool("depmod"), "-b", root, modules.name], check=True)
