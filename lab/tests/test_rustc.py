# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/rustc gives to the compiler."""

import os
import subprocess
import unittest
from pathlib import Path

RUSTC = Path(__file__).resolve().parents[1] / "rustc"


def compiles(*words: str) -> list[str]:
    return subprocess.run([RUSTC, "echo", *words], check=True, capture_output=True, text=True).stdout.split()


class Rustc(unittest.TestCase):
    def test_tests_are_not_optimized_whatever_the_profile_says(self) -> None:
        words = ["--crate-name", "strobe", "-C", "opt-level=3", "--test"]
        self.assertEqual(compiles(*words), [*words, "-C", "opt-level=0"])

    def test_libraries_and_programs_are_compiled_as_the_profile_says(self) -> None:
        words = ["--crate-name", "testing", "--crate-type", "lib", "-C", "opt-level=3"]
        self.assertEqual(compiles(*words), words)

    def test_the_compiler_has_the_variables_of_cargo_also_those_with_a_hyphen(self) -> None:
        words = [RUSTC, "env", "--"]
        said = subprocess.run(words, env=os.environ | {"CARGO_BIN_EXE_strobe-serve": "x"}, check=True, capture_output=True, text=True).stdout
        self.assertIn("CARGO_BIN_EXE_strobe-serve=x\n", said)

    def test_its_status_is_the_compilers(self) -> None:
        self.assertEqual(subprocess.run([RUSTC, "false"]).returncode, 1)


if __name__ == "__main__":
    unittest.main()
