# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's stress-ng and the libraries it is linked with, to be put into a guest."""

from pathlib import Path

from .programs import Program

PROGRAM = "usr/bin/stress-ng"
# The packages of its libraries and of theirs. Without those that come behind libegl1: what it loads in order to draw.
PACKAGES = (r"lib(apparmor1|bsd0|md0|c6|crypt1|egl1|gbm1|gles2|glvnd0|drm2|drm-common|expat1|wayland-server0|ffi8|"
            r"xcb-randr0|xcb1|xau6|xdmcp6|ipsec-mb[12]|jpeg62-turbo|judydebian1|kmod2|lzma5|zstd1|ssl3(t64)?|sctp1|"
            r"xxhash0)$|zlib1g$")
STRESS = Program("stress-ng", PROGRAM, PACKAGES)


def stress() -> Path:
    """A directory with the program and its libraries as their packages have them."""
    return STRESS.root()


def files() -> list[str]:
    """Words for lab/run --file: the program as /usr/local/bin/stress-ng, and all that it needs to start."""
    return STRESS.files()
