# SPDX-License-Identifier: MIT OR Apache-2.0
"""A kernel is unpacked once, and only if QEMU can start it so."""

import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from labkit.vmlinux import NOTE, unpack


def vmlinuz(packed: bytes) -> bytes:
    """What the head of a kernel's image says, with one sector of setup, and what it carries."""
    head = bytearray(1024)
    head[0x1f1] = 1
    struct.pack_into("<II", head, 0x248, 16, len(packed) + 4)
    return bytes(head) + bytes(16) + packed + bytes(4) + b"what comes after"


def zstd(kernel: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=kernel, check=True, stdout=subprocess.PIPE).stdout


class Unpacked(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.image = Path(directory.name, "vmlinuz-6.12.1-amd64")

    def unpacked(self, packed: bytes) -> Path:
        self.image.write_bytes(vmlinuz(packed))
        unpack(self.image)
        return self.image.with_name("vmlinux-6.12.1-amd64")

    def test_a_kernel_with_the_note_is_unpacked_once(self) -> None:
        kernel = b"\x7fELF and " + NOTE + bytes(5000)
        place = self.unpacked(zstd(kernel))
        self.assertEqual(place.read_bytes(), kernel)
        self.assertEqual(self.unpacked(b"").read_bytes(), kernel)

    def test_one_without_it_or_packed_otherwise_is_started_as_it_is(self) -> None:
        for packed in (zstd(bytes(5000)), b"\x1f\x8b gzip"):
            with self.subTest(packed[:4]):
                place = self.unpacked(packed)
                self.assertEqual(place.resolve(), self.image.resolve())
                place.unlink()


if __name__ == "__main__":
    unittest.main()
