# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's own cards: when QEMU gets them, and what they are built against."""

import hashlib
import tempfile
import unittest
from pathlib import Path

from labkit import LabError, cards


class Cards(unittest.TestCase):
    def test_qemu_gets_them_only_if_its_command_line_names_one(self) -> None:
        self.assertTrue(cards.wanted(["-device", "lab-counter,id=a"]))
        self.assertFalse(cards.wanted(["-device", "edu", "-qmp", "stdio", "-name", "a-lab-"]))

    def test_a_download_is_what_the_source_package_says_or_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "qemu.tar"
            file.write_bytes(b"some")
            digest = hashlib.sha256(b"some").hexdigest()
            cards.check(file, f"Format: 3.0\nChecksums-Sha256:\n {digest} 4 qemu.tar\nFiles:\n")
            for wrong in ("", f"Checksums-Sha256:\n {digest} 5 qemu.tar\n", f"Checksums-Sha256:\n {'0' * 64} 4 qemu.tar\n",
                          f"Checksums-Sha1:\n {digest} 4 qemu.tar\n"):
                with self.subTest(wrong), self.assertRaisesRegex(LabError, "qemu.tar is not what QEMU's source package says"):
                    cards.check(file, wrong)


if __name__ == "__main__":
    unittest.main()
