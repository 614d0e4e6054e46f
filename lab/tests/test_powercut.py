# SPDX-License-Identifier: MIT OR Apache-2.0
"""The disk that loses what was not flushed, and what lab/cases/powercut makes of the words of its guests."""

import random
import socket
import tempfile
import unittest
from pathlib import Path

from labkit import disk

from .test_parts import program


class Caches(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.image = Path(directory.name, "image")
        self.image.write_bytes(bytes(64 * disk.SECTOR))

    def sectors(self) -> str:
        data = self.image.read_bytes()
        return "".join(chr(data[at] or 46) for at in range(0, len(data), disk.SECTOR))

    def test_what_was_flushed_survives_a_cut_and_what_was_not_may_not(self) -> None:
        cache = disk.Cache(self.image)
        cache.write(0, b"a" * 8 * disk.SECTOR)
        cache.flush()
        cache.write(4 * disk.SECTOR, b"b" * 32 * disk.SECTOR)
        self.assertEqual(cache.read(3 * disk.SECTOR, 2 * disk.SECTOR), b"a" * disk.SECTOR + b"b" * disk.SECTOR)
        lost = cache.cut(random.Random(1))
        self.assertTrue(self.sectors().startswith("aaaa"))
        self.assertEqual(self.sectors().count("b"), 32 - lost)
        self.assertTrue(0 < lost < 32, lost)

    def test_a_guest_is_served_until_the_cut_and_hears_nothing_after_it(self) -> None:
        path = self.image.with_name("socket")
        with disk.Disk(self.image, path) as served, socket.socket(socket.AF_UNIX) as guest:
            guest.connect(str(path))
            magic, _, size, flags = disk.HELLO.unpack(disk.receive(guest, disk.HELLO.size))
            self.assertEqual((magic, size, flags & disk.SEND_FLUSH), (b"NBDMAGIC", 64 * disk.SECTOR, disk.SEND_FLUSH))
            for kind, data in ((disk.WRITE, b"x" * disk.SECTOR), (disk.FLUSH, b"")):
                guest.sendall(disk.REQUEST.pack(0x25609513, 0, kind, 7, 0, len(data)) + data)
                self.assertEqual(disk.REPLY.unpack(disk.receive(guest, disk.REPLY.size)), (0x67446698, 0, 7))
            served.cut(random.Random(1))
            guest.sendall(disk.REQUEST.pack(0x25609513, 0, disk.WRITE, 8, 0, disk.SECTOR) + b"y" * disk.SECTOR)
            self.assertEqual(disk.receive(guest, 1), b"")
        self.assertTrue(self.sectors().startswith("x."))


class Promises(unittest.TestCase):
    def round(self, words: list[tuple[float, int]], found: int | None) -> object:
        done = program("cases/powercut").Round(words)
        done.found = found
        return done

    def test_rows_are_promised_that_were_made_a_second_before_the_last_word(self) -> None:
        words = [(10 + n / 10, n * 100) for n in range(31)]
        self.assertEqual((self.round(words, 2000).promised, self.round(words, 2000).made), (2000, 3000))
        self.assertTrue(self.round(words, 2000).is_kept)
        self.assertFalse(self.round(words, 1999).is_kept)
        self.assertFalse(self.round(words, None).is_kept)

    def test_while_the_guest_stood_still_nothing_is_promised(self) -> None:
        words = [(10.0, 1), (10.1, 100), (15.1, 5100), (15.2, 5200)]
        self.assertEqual(self.round(words, 0).promised, 0)

    def test_rows_that_are_not_in_order_are_not_kept(self) -> None:
        done = self.round([(n / 10, n) for n in range(30)], 30)
        done.is_in_order = False
        self.assertFalse(done.is_kept)


if __name__ == "__main__":
    unittest.main()
