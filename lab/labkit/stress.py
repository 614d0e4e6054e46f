# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's stress-ng and the libraries it is linked with, to be put into a guest."""

import re
import subprocess
from pathlib import Path

from . import LabError, cache, say

PROGRAM = "usr/bin/stress-ng"
LOADER = "ld-linux-x86-64.so.2"
# The packages of its libraries and of theirs. Without those that come behind libegl1: what it loads in order to draw.
PACKAGES = (r"lib(apparmor1|bsd0|md0|c6|crypt1|egl1|gbm1|gles2|glvnd0|drm2|drm-common|expat1|wayland-server0|ffi8|"
            r"xcb-randr0|xcb1|xau6|xdmcp6|ipsec-mb[12]|jpeg62-turbo|judydebian1|kmod2|lzma5|zstd1|ssl3(t64)?|sctp1|"
            r"xxhash0)$|zlib1g$")


def stress() -> Path:
    """A directory with the program and its libraries as their packages have them."""
    return cache.unpacked("stress-ng", packages, lambda root: None)


def packages() -> list[str]:
    if not cache.package("stress-ng"):
        raise LabError("apt does not know the package stress-ng: run `apt-get update` as root")
    say(f"fetching stress-ng into {cache.cache_dir()}")
    return cache.closure(["stress-ng"], PACKAGES)


def files() -> list[str]:
    """Words for lab/run --file: the program as /usr/local/bin/stress-ng, and all that it needs to start."""
    root = stress()
    # Without links that lead out of the tree: the loader has one.
    there = {path.name: path for path in root.rglob("*.so.*") if path.resolve().is_relative_to(root)}
    wanted, found = needs(root / PROGRAM), {}
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        if name not in there:
            raise LabError(f"stress-ng needs {name}, which is in none of the packages in {root}: see lab/labkit/stress.py")
        found[name] = there[name].resolve()
        wanted += needs(found[name])
    place = {LOADER: "/lib64"}
    return [f"{root / PROGRAM}:/usr/local/bin/stress-ng",
            *(f"{path}:{place.get(name, '/lib/x86_64-linux-gnu')}/{name}" for name, path in sorted(found.items()))]


def needs(binary: Path) -> list[str]:
    """The libraries that a program or library names."""
    said = subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)
