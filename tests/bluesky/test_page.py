# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of docs/how-to/fly-scan.md do what the page says, one after the other."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import strobe
from scan import Scan

PAGE = Path(__file__).parents[2] / "docs/how-to/fly-scan.md"


class Page(Scan):
    def test_each_example_runs(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertEqual(len(examples), 5)
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore", strobe.Lost)
        names = {"__name__": "example"}
        said = []
        for example in examples:
            example = example.replace("tempfile.mkdtemp()", repr(str(self.folder)))
            with self.subTest(example), contextlib.redirect_stdout(io.StringIO()) as text:
                exec(compile(example, PAGE.name, "exec"), names)
            said.append(text.getvalue())
        fly, tiled, edge, gate, step = said
        self.assertRegex(fly, "points {'start': 0, 'stop': [0-9]+}")
        self.assertIn("= 3000 rows", fly)
        self.assertRegex(tiled, r"1000 points up to 1\.0 V")
        self.assertIn("= 100 rows", edge)
        self.assertRegex(gate, r"= 10 rows \+ [0-9]+ missed .*\+ 5[0-9]+ skipped")
        self.assertIn("3 triggers = 3 rows + 0 missed", step)
