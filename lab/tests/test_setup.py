# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/setup installs is enough for the kernels that lab/fetch only unpacks."""

import re
import unittest

from labkit import TREE, cache
from labkit.kernel import IMAGES, PARTS, packages

# Programs only: a library has names that no package has, and Python needs the same ones.
PROGRAMS = r"(gcc|cpp|pahole)(-\d+)?$"


class Setup(unittest.TestCase):
    def test_a_demonstration_has_all_programs_that_build_modules(self) -> None:
        (words,) = re.findall(r"^packages=\((.*?)\)", (TREE / "lab/setup").read_text(), re.DOTALL | re.MULTILINE)
        installed = names(cache.closure(words.split(), PROGRAMS))
        headers = [name for name in names(packages("amd64")) if name.startswith("linux-headers")]
        needed = {name for name in names(cache.closure(headers, f"{PARTS}|{PROGRAMS}")) if not re.match(PARTS, name)}
        self.assertEqual(needed - installed, set(), f"lab/setup --run does not install what {IMAGES['amd64'][0]}'s headers need")


def names(words: list[str]) -> set[str]:
    """The packages of NAME=VERSION."""
    return {word.partition("=")[0] for word in words}


if __name__ == "__main__":
    unittest.main()
