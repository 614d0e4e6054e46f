# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package says of its types is true by pyright, too, and serves whoever writes what the documentation has."""

import tempfile
import unittest
from pathlib import Path

from typed import PACKAGE, examples, mypy_passes, pyright_passes

PAGES = ["docs/how-to/python.md", "python/README.md"]


class Types(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-python-")))
        programs = [example for page in PAGES for example in examples(page)]
        self.assertGreater(len(programs), 8)
        for number, program in enumerate(programs):
            (self.folder / f"example_{number}.py").write_text(program)

    def test_pyright_finds_no_error_in_the_package_and_the_examples(self) -> None:
        # tests/bluesky has ophyd-async. Where PyTango is not installed, pyright takes the module beside it for it.
        without = [PACKAGE / "bluesky", PACKAGE / "tango.py", PACKAGE / "sardana"]
        pyright_passes(self, self.folder, of=[PACKAGE], without=without)

    def test_pyright_finds_what_is_wrong(self) -> None:
        (self.folder / "wrong.py").write_text('import strobe\n\nstrobe.open("scan.h5").acount\n')
        with self.assertRaisesRegex(AssertionError, "acount"):
            pyright_passes(self, self.folder, of=[])

    def test_mypy_finds_no_error_in_the_examples(self) -> None:
        mypy_passes(self, self.folder)


if __name__ == "__main__":
    unittest.main()
