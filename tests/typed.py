# SPDX-License-Identifier: MIT OR Apache-2.0
"""What pyright says of the package, by the rules of its pyproject.toml, and of the examples that the documentation has."""

import json
import re
import subprocess
import sys
import unittest
from collections.abc import Sequence
from pathlib import Path

import strobe

TREE = Path(__file__).parents[1]
PACKAGE = Path(strobe.__file__).parent
PYRIGHT, MYPY = (Path(sys.executable).parent / name for name in ("basedpyright", "mypy"))


def examples(page: str) -> list[str]:
    """The programs of a page."""
    return re.findall(r"```python\n(.*?)```", (TREE / page).read_text(), re.S)


def passes(test: unittest.TestCase, folder: Path, *words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=folder)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def mypy_passes(test: unittest.TestCase, folder: Path, *words: str) -> None:
    """It finds no error in the files of the folder, by its strict rules and these words."""
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\nignore_missing_imports = true\n")
    passes(test, folder, MYPY, "--config-file", config, "--cache-dir", folder / "cache", *words, folder)


def pyright_passes(test: unittest.TestCase, folder: Path, *, of: Sequence[Path], without: Sequence[Path] = ()) -> None:
    """It finds no error in these files and in those of the folder."""
    (folder / "pyrightconfig.json").write_text(json.dumps({
        "extends": str(TREE / "python/pyproject.toml"), "extraPaths": [str(PACKAGE.parent)],
        "include": [str(folder), *map(str, of)], "exclude": [str(path) for path in without]}))
    passes(test, folder, PYRIGHT, "--pythonpath", sys.executable)
