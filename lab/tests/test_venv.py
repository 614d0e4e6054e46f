# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/venv makes a virtual environment once for each list, in the cache, and says where it is."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from labkit import TREE
from labkit.cache import cache_dir

NOBODY_HAS = "strobe-has-no-such-package==1"


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="strobe-venv.")))
        cls.cache = cls.folder / "cache"
        cls.cache.mkdir()
        # What makes them is there already, if it is in the lab's cache.
        for uv in cache_dir().glob("uv-*"):
            (cls.cache / uv.name).symlink_to(uv)

    def setUp(self) -> None:
        self.list = self.folder / self._testMethodName / "requirements.txt"
        self.list.parent.mkdir()
        self.list.write_text("# Nothing.\n")

    def venv(self) -> subprocess.CompletedProcess[str]:
        words = [TREE / "tests/venv", self.list]
        return subprocess.run(words, env=os.environ | {"STROBE_CACHE": str(self.cache)}, capture_output=True, text=True)

    def made(self) -> Path:
        done = self.venv()
        self.assertEqual(done.returncode, 0, done.stderr)
        return Path(done.stdout.removesuffix("\n"))

    def test_a_list_has_one_that_is_made_once(self) -> None:
        first = self.made()
        self.assertEqual(first.parent, self.cache)
        self.assertTrue(first.name.startswith(f"venv-{self.list.parent.name}-"), first)
        subprocess.run([first / "bin/python", "-c", "pass"], check=True)
        (first / "mark").touch()
        self.assertEqual(self.made(), first)
        self.assertTrue((first / "mark").exists(), "it was made again")

    def test_a_cache_that_is_said_from_here_is_found_from_everywhere(self) -> None:
        words = [TREE / "tests/venv", self.list]
        done = subprocess.run(words, env=os.environ | {"STROBE_CACHE": "cache"}, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(Path(done.stdout.removesuffix("\n")).parent, self.cache, done.stderr)

    def test_another_list_has_another(self) -> None:
        first = self.made()
        self.list.write_text("# Nothing, and that in other words.\n")
        self.assertNotEqual(self.made(), first)

    def test_one_that_was_not_finished_is_made_again(self) -> None:
        first = self.made()
        (first / "requirements.txt").unlink()
        (first / "mark").touch()
        self.assertEqual(self.made(), first)
        self.assertFalse((first / "mark").exists(), "it was taken as it was")

    def test_what_cannot_be_installed_is_said_with_its_list_and_leaves_none_that_is_finished(self) -> None:
        self.list.write_text(f"{NOBODY_HAS}\n")
        done = self.venv()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"cannot install what {self.list} names", done.stderr)
        self.assertEqual(list(self.cache.glob(f"venv-{self.list.parent.name}-*/requirements.txt")), [])


if __name__ == "__main__":
    unittest.main()
