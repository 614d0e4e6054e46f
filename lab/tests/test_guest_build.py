# SPDX-License-Identifier: MIT OR Apache-2.0
"""What this machine's programs have compiled, the guests' programs take."""

import subprocess
import unittest

from labkit import TREE


def crates(*words: str) -> set[str]:
    """All crates that cargo would compile for these, each with its version and features."""
    tree = subprocess.run(["cargo", "tree", "--edges", "all", "--prefix", "none", "--format", "{p} [{f}]", *words],
                          cwd=TREE, check=True, capture_output=True, text=True).stdout
    return {line.removesuffix(" (*)").replace(" (proc-macro)", "") for line in tree.splitlines() if line.endswith(("]", "] (*)"))}


class Features(unittest.TestCase):
    def test_no_crate_of_others_has_other_features_in_guests(self) -> None:
        """Else it is compiled again, and all that uses it: name its features in lab/cases/Cargo.toml."""
        here = crates("--workspace", "--exclude", "strobe-cases")
        guests = crates("--package", "strobe-cases", "--package", "strobe")
        self.assertGreater(len(guests), 100)
        self.assertEqual([crate for crate in sorted(guests - here) if not crate.startswith("strobe")], [])


if __name__ == "__main__":
    unittest.main()
