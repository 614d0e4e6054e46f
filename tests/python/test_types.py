# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package says of its types is true by pyright, too, and serves whoever writes what the documentation has."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import strobe

TREE = Path(__file__).parents[2]
PAGES = ["docs/how-to/python.md", "python/README.md"]
PACKAGE = Path(strobe.__file__).parent
BIN = Path(sys.executable).parent


class Types(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-python-")))
        examples = [example for page in PAGES for example in re.findall(r"```python\n(.*?)```", (TREE / page).read_text(), re.S)]
        self.assertGreater(len(examples), 8)
        notebook = json.loads((TREE / "examples/notebook.ipynb").read_text())
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        # A cell may await, and ends with what it shows.
        body = "\n".join(cells)
        examples.append("async def cells() -> None:\n" + "".join(f"    {line}\n" for line in body.splitlines()))
        for number, example in enumerate(examples):
            (self.folder / f"example_{number}.py").write_text(example)

    def passes(self, *words: str) -> None:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pyright_finds_no_error_in_the_package_and_the_examples(self) -> None:
        # Where PyTango is not installed, pyright takes the module beside it for it.
        (self.folder / "pyrightconfig.json").write_text(json.dumps({
            "include": [str(self.folder), str(PACKAGE)], "exclude": [str(PACKAGE / "tango.py"), str(PACKAGE / "sardana")],
            "extraPaths": [str(PACKAGE.parent)],
            "typeCheckingMode": "standard", "pythonVersion": "3.11", "reportMissingImports": False,
            # What a cell ends with is shown.
            "reportMissingModuleSource": False, "reportUnusedExpression": False}))
        self.passes(BIN / "basedpyright", "--pythonpath", sys.executable)

    def test_mypy_finds_no_error_in_the_examples(self) -> None:
        config = self.folder / "mypy.ini"
        config.write_text("[mypy]\nstrict = true\nignore_missing_imports = true\n")
        self.passes(BIN / "mypy", "--config-file", config, "--cache-dir", self.folder / "cache", self.folder)


if __name__ == "__main__":
    unittest.main()
