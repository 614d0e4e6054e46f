# SPDX-License-Identifier: MIT OR Apache-2.0
"""What strobe.bluesky says of its types is true by pyright, with the types of ophyd-async."""

import tempfile
import unittest
from pathlib import Path

from typed import PACKAGE, examples, pyright_passes


class Types(unittest.TestCase):
    def test_pyright_finds_no_error_in_the_package_and_the_examples(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-bluesky-")))
        # One after the other they are a program. bluesky's plan stubs do not say all of what they yield.
        program = "# pyright: standard\n" + "\n".join(examples("docs/how-to/fly-scan.md"))
        (folder / "fly_scan.py").write_text(program)
        pyright_passes(self, folder, of=[PACKAGE / "bluesky"])


if __name__ == "__main__":
    unittest.main()
