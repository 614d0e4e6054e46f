# SPDX-License-Identifier: MIT OR Apache-2.0
"""A kernel's image as QEMU starts it soonest: unpacked here, once, and not by each guest."""

import struct
import subprocess
from pathlib import Path

from . import cache, tool

# What QEMU wants of it: the note that says where it begins (PVH).
NOTE = struct.pack("<III", 4, 8, 18) + b"Xen\0"
ZSTD = b"\x28\xb5\x2f\xfd"


def unpack(image: Path) -> None:
    """Puts the kernel of a vmlinuz beside it; if it is none that QEMU can start so, a link to the vmlinuz."""
    place = image.with_name(image.name.replace("vmlinuz", "vmlinux", 1))
    with cache.locked(image.with_name(f".{place.name}.lock")):
        if not place.exists():
            part = image.with_name(f".{place.name}.part")
            part.unlink(missing_ok=True)
            if kernel := starts_at_once(image.read_bytes()):
                part.write_bytes(kernel)
            else:
                part.symlink_to(image.name)
            part.rename(place)


def starts_at_once(vmlinuz: bytes) -> bytes | None:
    """The kernel in it, if it is packed with zstd, as Debian's are, and has the note."""
    sectors, offset, length = vmlinuz[0x1f1], *struct.unpack_from("<II", vmlinuz, 0x248)
    begin = (sectors + 1) * 512 + offset
    packed = vmlinuz[begin:begin + length - 4]  # after it stands how long the kernel is
    if not packed.startswith(ZSTD):
        return None
    kernel = subprocess.run([tool("zstd"), "-dcq"], input=packed, check=True, stdout=subprocess.PIPE).stdout
    return kernel if NOTE in kernel else None
